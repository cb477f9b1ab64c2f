/* tree_distance.h - distances of particles and cells from a position, and lists of the nearest, for
 * searches. Boxes are rounded like particles, and rounding is monotonic: the distance of a box is
 * never above that of a particle in it. Also compiled for GPUs. */
#ifndef GRAPE6_TREE_DISTANCE_H
#define GRAPE6_TREE_DISTANCE_H

#include "shared/tree_box.h"
#include "shared/tree_moments.h"

/* Margin of cell boxes. Positions are stored to 2^-48, in units of the box. */
#define TREE_SLACK 0x1p-46

/* A search position, and the tree's centre and length unit, unit[0] unit[1]. */
struct tree_around {
    double at[3], centre[3], unit[2];
};

HOST_DEVICE struct tree_around tree_around_place(const struct tree_box *box, const double at[3])
{
    struct tree_around a;
    for (int k = 0; k < 3; k++) a.at[k] = at[k], a.centre[k] = box->centre[k];
    tree_halves(a.unit, box->length);
    return a;
}

HOST_DEVICE double tree_distance2(const struct tree_around *a, const double x[3])
{
    const double d[3] = {x[0] - a->at[0], x[1] - a->at[1], x[2] - a->at[2]};
    return tree_square(d);
}

/* Bounds of the positions of a cell's particles, in the caller's unit. */
HOST_DEVICE void tree_cell_bounds(const struct tree_around *a, const struct tree_moments *c,
                                  double low[3], double high[3])
{
    for (int k = 0; k < 3; k++) {
        low[k] = a->centre[k] + (c->low[k] - TREE_SLACK) * a->unit[0] * a->unit[1];
        high[k] = a->centre[k] + (c->high[k] + TREE_SLACK) * a->unit[0] * a->unit[1];
    }
}

/* Bounds of the squared distances of a cell's particles. */
HOST_DEVICE void tree_distances2(const struct tree_around *a, const struct tree_moments *c,
                                 double *nearest, double *farthest)
{
    double low[3], high[3], near[3], far[3];
    tree_cell_bounds(a, c, low, high);
    for (int k = 0; k < 3; k++) {
        const double to_low = a->at[k] - low[k], to_high = high[k] - a->at[k];
        near[k] = to_low < 0.0 ? -to_low : to_high < 0.0 ? -to_high : 0.0;
        far[k] = to_low > to_high ? to_low : to_high;
    }
    *nearest = tree_square(near);
    *farthest = tree_square(far);
}

/* ---- heaps: the last of the kept elements is on top -------------------------------- */

/* Ordered by r2, then by number; if r2 is NULL, by number only. */
struct tree_heap {
    int32_t *number;
    double *r2;
    int64_t count;
};

HOST_DEVICE int tree_is_after(const struct tree_heap *h, int64_t a, int64_t b)
{
    if (h->r2 && h->r2[a] != h->r2[b]) return h->r2[a] > h->r2[b];
    return h->number[a] > h->number[b];
}

HOST_DEVICE void tree_exchange(struct tree_heap *h, int64_t a, int64_t b)
{
    const int32_t number = h->number[a];
    h->number[a] = h->number[b], h->number[b] = number;
    if (!h->r2) return;
    const double r2 = h->r2[a];
    h->r2[a] = h->r2[b], h->r2[b] = r2;
}

HOST_DEVICE void tree_sink(struct tree_heap *h, int64_t at, int64_t end)
{
    for (int64_t child; (child = 2 * at + 1) < end; at = child) {
        if (child + 1 < end && tree_is_after(h, child + 1, child)) child++;
        if (!tree_is_after(h, child, at)) return;
        tree_exchange(h, at, child);
    }
}

/* Adds an element; keeps the first `capacity` (> 0) of all elements added. */
HOST_DEVICE void tree_keep(struct tree_heap *h, int64_t capacity, int32_t number, double r2)
{
    const int full = h->count == capacity;
    if (full) {
        const double last = h->r2 ? h->r2[0] : r2;
        if (r2 > last || (r2 == last && number > h->number[0])) return;
    }
    int64_t at = full ? 0 : h->count++;
    h->number[at] = number;
    if (h->r2) h->r2[at] = r2;
    if (full) tree_sink(h, 0, h->count);
    for (int64_t above; at && tree_is_after(h, at, above = (at - 1) / 2); at = above)
        tree_exchange(h, at, above);
}

HOST_DEVICE void tree_put_in_order(struct tree_heap *h)
{
    for (int64_t end = h->count; end-- > 1;) {
        tree_exchange(h, 0, end);
        tree_sink(h, 0, end);
    }
}

#endif
