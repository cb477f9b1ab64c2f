/* walk_close.h - which pairs of a walk the arithmetic relative to a tile resolves too badly. Also
 * compiled for GPUs, over the operations of pair.h. */
#ifndef GRAPE6_WALK_CLOSE_H
#define GRAPE6_WALK_CLOSE_H

/* The s^2 below which a pair is done again, from the given places in double: closer than 1/64 of
 * the tile's radius, relative places leave its distance an error of 2^-18 in single; terms could
 * leave the range of single; and at distance zero it adds nothing. Every s^2 with such an r^2 is
 * below this, however it was rounded. */
HOST_DEVICE real walk_close(real eps2, real radius)
{
    const real share = radius * (real)0x1p-6, least = (real)1e-24;
    const real slack = (real)(1 + (REAL_BITS == 32 ? 0x1p-22 : 0x1p-51));
    return (eps2 + (share * share > least ? share * share : least)) * slack;
}

#endif
