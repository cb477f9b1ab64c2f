/* search.c - neighbours in a tree: a walk from the root that leaves out cells whose boxes are
 * too far. */
#include "tree/search_kernel.h"

#include <stddef.h>

#include "g6lib.h"
#include "shared/tree_distance.h"
#include "shared/tree_hilbert.h"
#include "simd/dispatch.h"
#include "tree/pieces.h"
#include "util/memory.h"

enum { STACK = 8 * (TREE_LEVELS + 3) }; /* a level adds 7 cells at most */

/* What is searched: particles of a tree, or of a piece of one, in which several have a place. */
struct among {
    const struct tree *tree;
    const double (*x)[3];
    const struct tree_pieces *pieces; /* NULL: x are the particles */
    const struct tree_piece *piece;
    int32_t skip;
    struct tree_around around;
};

static int pieces_of(const struct tree *t) { return t->pieces ? t->pieces->count : 1; }

static struct among among_piece(const struct tree *t, int number, const double (*x)[3],
                                const double at[3], int32_t skip)
{
    struct among a = {.tree = t, .x = x, .pieces = t->pieces, .skip = skip};
    if (t->pieces) {
        a.piece = &t->pieces->piece[number];
        a.tree = &a.piece->tree;
        a.x = CONST3(a.piece->x);
    }
    a.around = tree_around_place(&a.tree->box, at);
    return a;
}

/* Places that are looked at one by one: those of a piece without a tree. */
static int32_t places_of(const struct among *a)
{
    return a->piece && !a->tree->cells ? a->piece->n : 0;
}

/* The particles at number n of x. */
static const int32_t *particles_at(const struct among *a, const int32_t *n, int32_t *count)
{
    *count = 1;
    if (!a->pieces) return n;
    const int32_t first = a->pieces->first[a->piece->site[*n]];
    *count = a->pieces->first[a->piece->site[*n] + 1] - first;
    return a->pieces->particle + first;
}

/* ---- all within a radius ------------------------------------------------------------------- */

static int64_t keep_within(const struct among *a, int32_t n, struct tree_heap *list,
                           int64_t capacity)
{
    int64_t found = 0;
    int32_t count;
    const int32_t *particle = particles_at(a, &n, &count);
    for (int32_t k = 0; k < count; k++) {
        if (particle[k] == a->skip) continue;
        if (capacity > 0) tree_keep(list, capacity, particle[k], 0.0);
        found++;
    }
    return found;
}

static int64_t find_within(const struct among *a, double h2, struct tree_heap *list,
                           int64_t capacity)
{
    const struct tree *t = a->tree;
    int32_t stack[STACK];
    int64_t count = 0;
    int left = 0;
    for (int32_t k = 0; k < places_of(a); k++)
        if (tree_distance2(&a->around, a->x[k]) <= h2) count += keep_within(a, k, list, capacity);
    if (t->cells) stack[left++] = 0;
    while (left) {
        const int32_t id = stack[--left];
        const struct tree_cell *c = &t->cell[id];
        double nearest, farthest;
        tree_distances2(&a->around, &t->moments[id], &nearest, &farthest);
        if (!(nearest <= h2)) continue;
        const int all = farthest <= h2;
        if (c->child >= 0 && !all) {
            for (int32_t k = c->child; k < c->child_end; k++) stack[left++] = k;
            continue;
        }
        for (int32_t k = c->first; k < c->end; k++) {
            const int32_t n = t->points.order[k];
            if (all || tree_distance2(&a->around, a->x[n]) <= h2)
                count += keep_within(a, n, list, capacity);
        }
    }
    return count;
}

int64_t tree_search_within(const struct tree *t, const double (*x)[3], const double at[3],
                           double h2, int32_t skip, int32_t *found, int64_t capacity)
{
    struct tree_heap list = {found, NULL, 0};
    int64_t count = 0;
    for (int number = 0; number < pieces_of(t); number++) {
        const struct among a = among_piece(t, number, x, at, skip);
        count += find_within(&a, h2, &list, capacity);
    }
    tree_put_in_order(&list);
    return count;
}

/* ---- the nearest ---------------------------------------------------------------------------- */

/* Children of a cell, the nearest last. */
static int push_children(const struct tree *t, const struct tree_around *around,
                         const struct tree_cell *c, int32_t *stack, double *distance, int left)
{
    const int first = left;
    for (int32_t child = c->child; child < c->child_end; child++) {
        double nearest, farthest;
        tree_distances2(around, &t->moments[child], &nearest, &farthest);
        int k = left++;
        for (; k > first && distance[k - 1] < nearest; k--)
            stack[k] = stack[k - 1], distance[k] = distance[k - 1];
        stack[k] = child, distance[k] = nearest;
    }
    return left;
}

/* Of particles at one place, whose numbers ascend, no more than k can be among the first. */
static void keep_if_near(const struct among *a, int32_t n, struct tree_heap *list, int k)
{
    const double r2 = tree_distance2(&a->around, a->x[n]);
    int32_t count;
    const int32_t *particle = particles_at(a, &n, &count);
    for (int32_t i = 0, kept = 0; i < count && kept < k; i++) {
        if (particle[i] == a->skip) continue;
        tree_keep(list, k, particle[i], r2);
        kept++;
    }
}

static void find_nearest(const struct among *a, struct tree_heap *list, int k)
{
    const struct tree *t = a->tree;
    int32_t stack[STACK];
    double distance[STACK];
    int left = 0;
    for (int32_t n = 0; n < places_of(a); n++) keep_if_near(a, n, list, k);
    if (t->cells) stack[left] = 0, distance[left++] = 0.0;
    while (left) {
        const struct tree_cell *c = &t->cell[stack[--left]];
        if (list->count == k && distance[left] > list->r2[0]) continue;
        if (c->child >= 0) {
            left = push_children(t, &a->around, c, stack, distance, left);
            continue;
        }
        for (int32_t p = c->first; p < c->end; p++) keep_if_near(a, t->points.order[p], list, k);
    }
}

int tree_search_nearest(const struct tree *t, const double (*x)[3], const double at[3],
                        int32_t skip, int k, int32_t *number, double *r2)
{
    struct tree_heap list = {number, r2, 0};
    for (int p = 0; k > 0 && p < pieces_of(t); p++) {
        const struct among a = among_piece(t, p, x, at, skip);
        find_nearest(&a, &list, k);
    }
    tree_put_in_order(&list);
    return (int)list.count;
}

/* ---- many of the tree's own particles ------------------------------------------------------- */

/* What tree/search_kernel.c reads: positions in the order of the curve, and cells without what only
 * forces need. */

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
