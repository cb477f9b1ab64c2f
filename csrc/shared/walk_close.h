/* walk_close.h - which pairs of a walk are too close for arithmetic relative to a tile. Also
 * compiled for GPUs, over the operations of pair.h. */
#ifndef GRAPE6_WALK_CLOSE_H
#define GRAPE6_WALK_CLOSE_H

/* The s^2 below which a pair is computed again in double from the given positions. Closer than 1/64
 * of the tile's radius, relative positions in single give its distance an error of 2^-18; terms
 * could leave the range of single; and a zero-distance pair must add nothing. Includes a margin for
 * the rounding of s^2. */
HOST_DEVICE real walk_close(real eps2, real radius)
{
    const real share = radius * (real)0x1p-6, least = (real)1e-24;
    const real slack = (real)(1 + (REAL_BITS == 32 ? 0x1p-22 : 0x1p-51));
    return (eps2 + (share * share > least ? share * share : least)) * slack;
}

#endif
