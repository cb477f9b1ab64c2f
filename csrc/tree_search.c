/* tree_search.c - neighbours in a tree: a walk from the root that leaves out cells whose boxes are
 * too far. Boxes and distances are rounded as those of particles are, and rounding keeps the order
 * of numbers: the distance of a box is never above that of a particle in it. */
#include <math.h>
#include <stddef.h>

#include "tree.h"
#include "tree_key.h"

/* A place in units of the box is kept to 2^-48 of them. */
#define SLACK 0x1p-46

enum { STACK = 8 * (TREE_LEVELS + 3) }; /* a level adds 7 cells at most */

/* Around a place: unit[0] unit[1] is the length of the tree's units. */
struct search {
    const struct tree *t;
    const double *at;
    double unit[2];
};

static struct search search_around(const struct tree *t, const double at[3])
{
    const int half = t->box.length / 2;
    return (struct search){t, at, {ldexp(1.0, half), ldexp(1.0, t->box.length - half)}};
}

static double squared(const double d[3]) { return (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]; }

static double distance2(const struct search *s, const double x[3])
{
    const double d[3] = {x[0] - s->at[0], x[1] - s->at[1], x[2] - s->at[2]};
    return squared(d);
}

/* No particle of a cell is nearer than the first, or farther than the second; both squared. */
static void distances2(const struct search *s, int32_t cell, double *nearest, double *farthest)
{
    const struct tree_moments *c = &s->t->moments[cell];
    double near[3], far[3];
    for (int k = 0; k < 3; k++) {
        const double centre = s->t->box.centre[k], at = s->at[k];
        const double low = centre + (c->low[k] - SLACK) * s->unit[0] * s->unit[1];
        const double high = centre + (c->high[k] + SLACK) * s->unit[0] * s->unit[1];
        const double to_low = at - low, to_high = high - at;
        near[k] = to_low < 0.0 ? -to_low : to_high < 0.0 ? -to_high : 0.0;
        far[k] = to_low > to_high ? to_low : to_high;
    }
    *nearest = squared(near);
    *farthest = squared(far);
}

/* ---- heaps: the last of the kept first --------------------------------------------- */

/* In the order of r2, then of numbers; r2 NULL: of numbers. */
struct heap {
    int32_t *number;
    double *r2;
    int64_t count;
};

static int is_after(const struct heap *h, int64_t a, int64_t b)
{
    if (h->r2 && h->r2[a] != h->r2[b]) return h->r2[a] > h->r2[b];
    return h->number[a] > h->number[b];
}

static void exchange(struct heap *h, int64_t a, int64_t b)
{
    const int32_t number = h->number[a];
    h->number[a] = h->number[b], h->number[b] = number;
    if (!h->r2) return;
    const double r2 = h->r2[a];
    h->r2[a] = h->r2[b], h->r2[b] = r2;
}

static void sink(struct heap *h, int64_t at, int64_t end)
{
    for (int64_t child; (child = 2 * at + 1) < end; at = child) {
        if (child + 1 < end && is_after(h, child + 1, child)) child++;
        if (!is_after(h, child, at)) return;
        exchange(h, at, child);
    }
}

static void rise(struct heap *h, int64_t at)
{
    for (int64_t above; at && is_after(h, at, above = (at - 1) / 2); at = above)
        exchange(h, at, above);
}

/* Keeps the first `room` of all that are put in; room > 0. */
static void keep(struct heap *h, int64_t room, int32_t number, double r2)
{
    const int full = h->count == room;
    if (full) {
        const double last = h->r2 ? h->r2[0] : r2;
        if (r2 > last || (r2 == last && number > h->number[0])) return;
    }
    const int64_t at = full ? 0 : h->count++;
    h->number[at] = number;
    if (h->r2) h->r2[at] = r2;
    if (full)
        sink(h, 0, h->count);
    else
        rise(h, at);
}

static void put_in_order(struct heap *h)
{
    for (int64_t end = h->count; end-- > 1;) {
        exchange(h, 0, end);
        sink(h, 0, end);
    }
}

/* ---- searches ------------------------------------------------------------------------ */

int64_t tree_others_within(const struct tree *t, const double (*x)[3], const double at[3],
                           double h2, int32_t skip, int32_t *found, int64_t room)
{
    const struct search s = search_around(t, at);
    struct heap list = {found, NULL, 0};
    int32_t stack[STACK];
    int64_t count = 0;
    int left = 0;
    if (t->cells) stack[left++] = 0;
    while (left) {
        const int32_t id = stack[--left];
        const struct tree_cell *c = &t->cell[id];
        double nearest, farthest;
        distances2(&s, id, &nearest, &farthest);
        if (!(nearest <= h2)) continue;
        const int all = farthest <= h2;
        if (c->child >= 0 && !all) {
            for (int32_t k = c->child; k < c->child_end; k++) stack[left++] = k;
            continue;
        }
        for (int32_t k = c->first; k < c->end; k++) {
            const int32_t number = t->points.order[k];
            if (number == skip || !(all || distance2(&s, x[number]) <= h2)) continue;
            if (room > 0) keep(&list, room, number, 0.0);
            count++;
        }
    }
    put_in_order(&list);
    return count;
}

int64_t tree_within(const struct tree *t, const double (*x)[3], const double at[3], double h2,
                    int32_t *found, int64_t room)
{
    return tree_others_within(t, x, at, h2, -1, found, room);
}

/* Children of a cell, the nearest last. */
static int push_children(const struct search *s, const struct tree_cell *c, int32_t *stack,
                         double *distance, int left)
{
    const int first = left;
    for (int32_t child = c->child; child < c->child_end; child++) {
        double nearest, farthest;
        distances2(s, child, &nearest, &farthest);
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
    const struct search s = search_around(t, at);
    struct heap list = {number, r2, 0};
    int32_t stack[STACK];
    double distance[STACK];
    int left = 0;
    if (t->cells && k > 0) stack[left] = 0, distance[left++] = 0.0;
    while (left) {
        const struct tree_cell *c = &t->cell[stack[--left]];
        if (list.count == k && distance[left] > r2[0]) continue;
        if (c->child >= 0) {
            left = push_children(&s, c, stack, distance, left);
            continue;
        }
        for (int32_t p = c->first; p < c->end; p++) {
            const int32_t n = t->points.order[p];
            if ((label ? label[n] : n) != skip) keep(&list, k, n, distance2(&s, x[n]));
        }
    }
    put_in_order(&list);
    return (int)list.count;
}
