/* search_runs.c - what tree/search_kernel.c reads: positions in the order of the curve, and cells
 * without what only forces need. */
#include "tree/search_kernel.h"

#include "g6lib.h"
#include "shared/tree_distance.h"
#include "simd/dispatch.h"
#include "util/memory.h"

#define DECLARE(isa, ...) extern const struct tree_search_kernel tree_search_kernel_##isa;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) &tree_search_kernel_##isa,
static const struct tree_search_kernel *const KERNELS[] = {SIMD_COMPILED(ROW)};

const struct tree_search_kernel *tree_search_kernel(int isa) { return KERNELS[simd_dispatch(isa)]; }

void tree_search_free(struct tree_search *s)
{
    memory_free(s->x[0]);
    memory_free(s->cell);
}

int tree_search_prepare(const struct tree *t, const double (*x)[3], struct tree_search *s)
{
    const size_t padded = (size_t)t->points.n + SEARCH_PAD;
    *s = (struct tree_search){.tree = t};
    s->x[0] = memory_zeroed(3 * padded * sizeof *s->x[0]);
    s->cell = memory_zeroed((size_t)t->cells * sizeof *s->cell);
    if (!s->x[0] || !s->cell) {
        tree_search_free(s);
        return G6X_E_MEMORY;
    }
    for (int q = 1; q < 3; q++) s->x[q] = s->x[q - 1] + padded;
    for (int64_t k = 0; k < t->points.n; k++)
        for (int q = 0; q < 3; q++) s->x[q][k] = x[t->points.order[k]][q];
    const struct tree_around around = tree_around_place(&t->box, x[0]);
    for (int32_t k = 0; k < t->cells; k++) {
        const struct tree_cell *c = &t->cell[k];
        struct tree_search_cell *to = &s->cell[k];
        tree_cell_bounds(&around, &t->moments[k], to->low, to->high);
        to->first = c->child < 0 ? c->first : c->child;
        to->end = c->child < 0 ? c->end : -c->child_end;
    }
    return 0;
}
