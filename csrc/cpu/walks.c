/* walks.c - see core/walks.h: threads take tiles of targets in turn. */
#include "core/walks.h"

#include "util/memory.h"
#include "util/threads.h"
#include "cpu/walks_kernel.h"
#include "simd/dispatch.h"
#include "util/numbers.h"
#include "core/scale.h"

#define DECLARE(isa, ...)                                                                          \
    extern const struct walks_kernel cpu_walks_kernel_##isa##_32, cpu_walks_kernel_##isa##_64;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) {&cpu_walks_kernel_##isa##_32, &cpu_walks_kernel_##isa##_64},
static const struct walks_kernel *const KERNELS[][2] = {SIMD_COMPILED(ROW)};

enum { VECTORS = 32, PER_THREAD = 8192 }; /* targets of the widest vectors; pairs */

struct tiles {
    struct walks *w;
    const struct walks_kernel *kernel;
    const int64_t *before; /* [count + 1] tiles of all walks before each walk */
    _Atomic int64_t next;
    _Atomic int missing; /* memory */
};

static int64_t tiles_of(int64_t ni) { return ceil_div(ni, WALK_ROWS); }

/* The walk that a tile belongs to. */
static int64_t walk_of(const struct tiles *t, int64_t tile)
{
    int64_t low = 0, high = t->w->count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (t->before[middle] <= tile)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void take_tile(struct tiles *t, int64_t tile, struct walk_work *work)
{
    struct walks *w = t->w;
    const int64_t walk = walk_of(t, tile);
    const struct walk_group *g = &w->group[walk];
    /* all tiles of a group have the same size, except the last */
    const int64_t step = ceil_div(ceil_div(g->ni, tiles_of(g->ni)), VECTORS) * VECTORS;
    const int64_t first = (tile - t->before[walk]) * step, left = g->ni - first;
    const int count = (int)(left < step ? left : step);
    if (count <= 0) return; /* rounding up can leave the last tile empty */
    const enum walk_error error = t->kernel->tile(w, g, first, count, work);
    if (error) {
        walks_note(error == WALK_BAD_NUMBER ? &w->bad_number : &w->bad_entry, walk);
        return;
    }
    for (int i = 0; i < count; i++) {
        const double acc[3] = {work->sum[0][i], work->sum[1][i], work->sum[2][i]};
        walks_output(w, walk, first + i, acc, work->sum[3][i]);
    }
}

static void take_tiles(void *argument)
{
    struct tiles *t = argument;
    const int64_t all = t->before[t->w->count];
    struct walk_work *work = memory_zeroed(sizeof *work);
    if (!work) t->missing = 1;
    for (int64_t k; work && (k = atomic_fetch_add(&t->next, 1)) < all;) take_tile(t, k, work);
    memory_free(work);
}

int cpu_walks_sum(struct walks *w, struct error *err)
{
    const int isa = simd_dispatch(w->isa);
    if (isa < 0)
        return error_set(err, G6X_E_ARGUMENT,
                         "this machine lacks the instruction set that GRAPE6_ISA asks for");
    struct tiles t = {.w = w, .kernel = KERNELS[isa][w->precision == MODE_DOUBLE]};
    int64_t *before = memory_zeroed(((size_t)w->count + 1) * sizeof *before);
    double pairs = 0.0;
    for (int64_t k = 0; before && k < w->count; k++) {
        const struct walk_group *g = &w->group[k];
        before[k + 1] = before[k] + tiles_of(g->ni);
        pairs += (double)g->ni * (double)(g->list[0].n + g->list[1].n);
    }
    t.before = before;
    t.missing = !before;
    if (before) {
        const double useful = pairs / PER_THREAD + 1.0;
        const int64_t most = w->threads < before[w->count] ? w->threads : before[w->count];
        threads_run(useful < (double)most ? (int)useful : (int)most, take_tiles, &t);
    }
    memory_free(before);
    return t.missing
               ? error_set(err, G6X_E_MEMORY, "out of memory for %lld walks", (long long)w->count)
               : 0;
}
