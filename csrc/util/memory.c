/* memory.c - see memory.h. */
#include "util/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "g6lib.h"

enum { LINE = 64 };
/* Allocations of this size or more use mmap instead of malloc. */
static const size_t MAPPED = (size_t)1 << 20;

/* Stored in the cache line before an allocation. */
struct header {
    void *base;
    size_t total; /* bytes from the base */
    int mapped;
};

#ifdef GRAPE6_TEST_HOOKS
static long fail_at;
long memory_fail_at(long n)
{
    const long left = fail_at;
    fail_at = n;
    return left;
}
static int refused(void) { return fail_at && --fail_at == 0; }
#else
static int refused(void) { return 0; }
#endif

static struct header *header_of(void *p) { return (struct header *)(void *)((char *)p - LINE); }

static void *with_header(void *base, size_t total, int mapped)
{
    char *p = (char *)(((uintptr_t)base + 2 * LINE - 1) / LINE * LINE);
    *header_of(p) = (struct header){base, total, mapped};
    return p;
}

/* What mmap or mremap gave, on huge pages; NULL if that is nothing. */
static void *mapped(void *base, size_t total)
{
    if (base == MAP_FAILED) return NULL;
    (void)madvise(base, total, MADV_HUGEPAGE);
    return with_header(base, total, 1);
}

void *memory_zeroed(size_t bytes)
{
    if (refused() || bytes > SIZE_MAX / 2) return NULL;
    const size_t total = bytes + 2 * LINE;
    if (total >= MAPPED)
        return mapped(mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                      total);
    void *base = calloc(1, total);
    return base ? with_header(base, total, 0) : NULL;
}

void *memory_grown(void *p, size_t bytes)
{
    if (!p) return memory_zeroed(bytes);
    if (header_of(p)->mapped) {
        const struct header old = *header_of(p);
        const size_t total = bytes + 2 * LINE;
        if (refused() || bytes > SIZE_MAX / 2) return NULL;
        if (total <= old.total) return p;
        return mapped(mremap(old.base, old.total, total, MREMAP_MAYMOVE), total);
    }
    void *more = memory_zeroed(bytes);
    if (!more) return NULL;
    const size_t kept = header_of(p)->total - 2 * LINE;
    memcpy(more, p, kept < bytes ? kept : bytes);
    memory_free(p);
    return more;
}

void memory_free(void *p)
{
    if (!p) return;
    const struct header h = *header_of(p);
    if (h.mapped)
        (void)munmap(h.base, h.total);
    else
        free(h.base);
}

int memory_grow_all(const struct memory_array *array)
{
    for (; array->pointer; array++) {
        void *more = memory_grown(*(void **)array->pointer, array->bytes);
        if (!more) return G6X_E_MEMORY;
        *(void **)array->pointer = more;
    }
    return 0;
}

int memory_reserve(const struct memory_array *array, int rows, int *capacity)
{
    const int code = rows > *capacity ? memory_grow_all(array) : 0;
    if (!code && rows > *capacity) *capacity = rows;
    return code;
}

void memory_free_all(const struct memory_array *array)
{
    for (; array->pointer; array++) {
        memory_free(*(void **)array->pointer);
        *(void **)array->pointer = NULL;
    }
}
