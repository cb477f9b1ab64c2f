/* walk.c - what every walk through a tree's cells needs: see kernel.h. */
#include "tree/kernel.h"

#include <math.h>
#include <string.h>

#include "simd/dispatch.h"
#include "util/memory.h"

#define DECLARE(isa, ...) extern const struct tree_kernel tree_kernel_##isa;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) &tree_kernel_##isa,
static const struct tree_kernel *const KERNELS[] = {SIMD_COMPILED(ROW)};

const struct tree_kernel *tree_walk_kernel(int isa) { return KERNELS[simd_dispatch(isa)]; }

void tree_walk_begin(const struct tree *t, struct tree_list *list)
{
    list->cell[0] = 0;
    if (t->roots) memcpy(list->cell + 1, t->root, (size_t)t->roots * sizeof *t->root);
    list->count = 1 + t->roots;
}

void tree_walk_free(struct tree_work *w)
{
    if (!w) return;
    struct tree_list *lists[] = {&w->from[0],  &w->from[1], &w->from[2], &w->front[0],
                                 &w->front[1], &w->local,   &w->point,   &w->leaf};
    for (int k = 0; k < 8; k++) memory_free(lists[k]->cell);
    memory_free(w);
}

struct tree_work *tree_walk_new(const struct tree *t)
{
    struct tree_work *w = memory_zeroed(sizeof *w);
    for (int k = 0; k < 3 && w; k++) {
        struct tree_list *from = &w->from[k];
        from->capacity = 64 + t->roots;
        from->cell = memory_zeroed((size_t)from->capacity * sizeof *from->cell);
        w->missing |= !from->cell;
    }
    return w;
}

struct tree_cell_centre *tree_walk_barnes_hut_places(const struct tree *t, double theta)
{
    struct tree_cell_centre *place = memory_zeroed(((size_t)t->cells + 16) * sizeof *place);
    for (int level = 0; place && level < t->levels; level++) {
        const double side = ldexp(t->box.side, -level);
        const int32_t end = tree_level_end(t, level);
        for (int32_t k = t->level_first[level]; k < end; k++) {
            place[k] = t->place[k];
            place[k].size = tree_barnes_hut_size(&t->moments[k], t->box.low, side, theta);
        }
    }
    for (int32_t k = t->own_cells; place && k < t->cells; k++) place[k] = t->place[k];
    return place;
}
