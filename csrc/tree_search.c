/* tree_search.c - neighbours in a tree: a walk from the root that leaves out cells whose boxes are
 * too far. */
#include "tree_search.h"

#include <stddef.h>

#include "tree.h"
#include "tree_key.h"

enum { STACK = 8 * (TREE_LEVELS + 3) }; /* a level adds 7 cells at most */

int64_t tree_others_within(const struct tree *t, const double (*x)[3], const double at[3],
                           double h2, int32_t skip, int32_t *found, int64_t room)
{
    const struct tree_around around = tree_around_place(&t->box, at);
    struct tree_heap list = {found, NULL, 0};
    int32_t stack[STACK];
    int64_t count = 0;
    int left = 0;
    if (t->cells) stack[left++] = 0;
    while (left) {
        const int32_t id = stack[--left];
        const struct tree_cell *c = &t->cell[id];
        double nearest, farthest;
        tree_distances2(&around, &t->moments[id], &nearest, &farthest);
        if (!(nearest <= h2)) continue;
        const int all = farthest <= h2;
        if (c->child >= 0 && !all) {
            for (int32_t k = c->child; k < c->child_end; k++) stack[left++] = k;
            continue;
        }
        for (int32_t k = c->first; k < c->end; k++) {
            const int32_t number = t->points.order[k];
            if (number == skip || !(all || tree_distance2(&around, x[number]) <= h2)) continue;
            if (room > 0) tree_keep(&list, room, number, 0.0);
            count++;
        }
    }
    tree_put_in_order(&list);
    return count;
}

int64_t tree_within(const struct tree *t, const double (*x)[3], const double at[3], double h2,
                    int32_t *found, int64_t room)
{
    return tree_others_within(t, x, at, h2, -1, found, room);
}

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

int tree_nearest(const struct tree *t, const double (*x)[3], const int32_t *label, int32_t skip,
                 const double at[3], int k, int32_t *number, double *r2)
{
    const struct tree_around around = tree_around_place(&t->box, at);
    struct tree_heap list = {number, r2, 0};
    int32_t stack[STACK];
    double distance[STACK];
    int left = 0;
    if (t->cells && k > 0) stack[left] = 0, distance[left++] = 0.0;
    while (left) {
        const struct tree_cell *c = &t->cell[stack[--left]];
        if (list.count == k && distance[left] > r2[0]) continue;
        if (c->child >= 0) {
            left = push_children(t, &around, c, stack, distance, left);
            continue;
        }
        for (int32_t p = c->first; p < c->end; p++) {
            const int32_t n = t->points.order[p];
            if ((label ? label[n] : n) != skip)
                tree_keep(&list, k, n, tree_distance2(&around, x[n]));
        }
    }
    tree_put_in_order(&list);
    return (int)list.count;
}
