/* memory.h - memory allocation. The library allocates memory only here. */
#pragma once

#include <stddef.h>

/* Allocates zeroed memory aligned to a cache line, or returns NULL. Large allocations use huge
 * pages if the system has them. */
void *memory_zeroed(size_t bytes);
/* Grows an allocation (NULL: a new one); the new bytes are zero. Returns NULL if memory is short,
 * and leaves the old allocation unchanged. Large allocations move without a copy. */
void *memory_grown(void *p, size_t bytes);
void memory_free(void *p);

/* One of several arrays: the address of its pointer, and its size. A NULL pointer ends the list. */
struct memory_array {
    void *pointer;
    size_t bytes;
};
#define MEMORY_ARRAY(p, n) {&(p), (size_t)(n) * sizeof *(p)}
/* Grows the arrays one by one. The old content is kept even if one fails. 0 or G6X_E_MEMORY. */
int memory_grow_all(const struct memory_array *array);
/* The same with arrays of *capacity rows, if these are fewer than `rows`, which they then are. */
int memory_reserve(const struct memory_array *array, int rows, int *capacity);
/* Frees all; their pointers become NULL. */
void memory_free_all(const struct memory_array *array);

#ifdef GRAPE6_TEST_HOOKS
/* Test builds: makes the n-th allocation from now fail, once (0: none). Returns how many
 * allocations remained before the failure set last; 0 if it has happened. */
long memory_fail_at(long n);
#endif
