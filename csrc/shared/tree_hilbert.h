/* tree_hilbert.h - keys along a Hilbert curve (Skilling 2004, AIP Conf. Proc. 707, 381). Every cube
 * of an octree is one contiguous part of the curve: its particles share the leading digits of the
 * key. Also compiled for GPUs. */
#ifndef GRAPE6_TREE_HILBERT_H
#define GRAPE6_TREE_HILBERT_H

#include "shared/host_device.h"
#include "shared/tree_box.h"

enum { TREE_LEVELS = 21 }; /* binary digits of a coordinate; a key has three times as many */

/* Moves bit k of v to bit 3 k. */
HOST_DEVICE uint64_t tree_spread(uint32_t v)
{
    uint64_t s = v & 0x1fffff;
    s = (s | s << 32) & 0x001f00000000ffffULL;
    s = (s | s << 16) & 0x001f0000ff0000ffULL;
    s = (s | s << 8) & 0x100f00f00f00f00fULL;
    s = (s | s << 4) & 0x10c30c30c30c30c3ULL;
    return (s | s << 2) & 0x1249249249249249ULL;
}

/* If the bit of `from` is set, inverts the lower bits of *x; otherwise exchanges the lower bits of
 * *x and *y. */
HOST_DEVICE void tree_turn(uint32_t from, uint32_t bit, uint32_t *x, uint32_t *y)
{
    const uint32_t below = (1u << bit) - 1, set = 0u - (from >> bit & 1);
    const uint32_t change = (*x ^ *y) & below & ~set;
    *x ^= change ^ (below & set);
    *y ^= change;
}

/* A key is made of integer coordinates below 2^TREE_LEVELS by turns for all bits but the last, from
 * the highest on, */
HOST_DEVICE void tree_key_turn(uint32_t bit, uint32_t *x, uint32_t *y, uint32_t *z)
{
    *x ^= ((1u << bit) - 1) & (0u - (*x >> bit & 1));
    tree_turn(*y, bit, x, y);
    tree_turn(*z, bit, x, z);
}

/* and by this. */
HOST_DEVICE uint64_t tree_key_end(uint32_t x, uint32_t y, uint32_t z)
{
    y ^= x;
    z ^= y;
    uint32_t parity = z; /* bit k becomes the parity of the bits above k */
    parity ^= parity >> 1;
    parity ^= parity >> 2;
    parity ^= parity >> 4;
    parity ^= parity >> 8;
    parity ^= parity >> 16;
    parity >>= 1;
    return tree_spread(x ^ parity) << 2 | tree_spread(y ^ parity) << 1 | tree_spread(z ^ parity);
}

/* Integer cell coordinate. `at` is in units of the box's side, 0 at its low edge. Positions outside
 * belong to the cells at the edge. */
HOST_DEVICE uint32_t tree_place(double at)
{
    const double cells = (double)(1 << TREE_LEVELS), place = at * cells;
    return place > 0.0 ? (uint32_t)(place < cells - 1.0 ? place : cells - 1.0) : 0u;
}

/* The integer coordinates of a position in the box, given in two parts. */
HOST_DEVICE uint32_t tree_place_of(const struct tree_box *box, int c, float high, float low)
{
    return tree_place((((double)high + (double)low) - box->low[c]) * box->per_side);
}

/* Key of a position in the box, given in two parts. */
HOST_DEVICE uint64_t tree_key_of(const struct tree_box *box, const float high[3],
                                 const float low[3])
{
    uint32_t at[3];
    for (int c = 0; c < 3; c++) at[c] = tree_place_of(box, c, high[c], low[c]);
    for (uint32_t bit = TREE_LEVELS - 1; bit > 0; bit--) tree_key_turn(bit, &at[0], &at[1], &at[2]);
    return tree_key_end(at[0], at[1], at[2]);
}

#endif
