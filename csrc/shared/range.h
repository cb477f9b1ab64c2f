/* range.h - the range in which the kernels' arithmetic is sufficient. Also compiled for GPUs. */
#ifndef GRAPE6_RANGE_H
#define GRAPE6_RANGE_H

#include "shared/host_device.h"

/* Mode auto is grape or double, row by row: shared/fine.h. */
enum { MODE_GRAPE, MODE_DOUBLE, MODE_SINGLE, NMODE, MODE_AUTO = NMODE };
enum { SCALED_MASS_EXPONENT = 60 };

/* Exponent of the r^2, in scaled units, below which a pair is close and is computed in double or
 * better. Mode double resolves all that the caller's numbers do; the limit only keeps terms in
 * range. The other modes resolve a separation of one to single precision near the origin. Beyond
 * 2^23 their positions are coarser, so the limit is larger. x is the exponent of the i particle's
 * coordinates. */
enum { CLOSE_EXPONENT_DOUBLE = -80 };
HOST_DEVICE int close_exponent(int mode, int x)
{
    if (mode == MODE_DOUBLE) return CLOSE_EXPONENT_DOUBLE;
    return x <= 23 ? 1 : 1 + 2 * ((x > 60 ? 60 : x) - 23);
}

/* Coordinate of empty slots, in scaled units. */
#define FAR_AWAY 0x1p62
/* Its square: larger than any s^2 of a pair that the fast kernels compute. */
#define FAR_S2 0x1p124
/* Larger than any r^2 of a pair, smaller than that of an empty slot. */
#define NO_NEIGHBOUR 0x1p122

/* Exponents (as in frexp) of the largest |coordinate|, of the largest |velocity
 * component|, of the same among particles with mass, and of the smallest and largest
 * non-zero |mass| of a block, scaled. */
struct block_range {
    int16_t x, v, v_massive, m_low, m_high;
};
struct body_range {
    int16_t x, v, eps2;
};
enum { EXPONENT_NONE = -20000, EXPONENT_HUGE = 20000 };

HOST_DEVICE int range_larger(int a, int b) { return a > b ? a : b; }

/* Whether every term of body i with the block stays in the normal range of the kernels'
 * arithmetic; otherwise that row of that block is summed exactly. Larger x and eps2 are
 * always worse. Velocities may be too large or too small; zero is fine.
 *
 * The bounds are on exponents. r: |separation| < 2^r, including softening. v: relative velocity;
 * moving: the same of particles with mass. If s^2 is not close, a term of acc is at most m / s^2
 * and one of jerk at most 4 m v / s^3. Of the smallest term of acc, 24 bits must be normal numbers;
 * of jerk, all that is not below the rounding of the largest velocity. */
HOST_DEVICE int in_range(int mode, const struct body_range *i, const struct block_range *block)
{
    const int tiny = mode == MODE_DOUBLE ? -1000 : -126, huge = mode == MODE_DOUBLE ? 1000 : 120;
    const int r = range_larger(range_larger(i->x, block->x) + 2, (i->eps2 + 3) / 2);
    const int v = range_larger(range_larger(i->v, block->v), -1000) + 2;
    const int moving = range_larger(range_larger(i->v, block->v_massive), -1000) + 2;
    if (r > 60 || v > 60) return 0;
    if (block->m_high == EXPONENT_NONE) return 1; /* no mass: zeros, as long as s^2 is finite */
    const int nearest = mode == MODE_DOUBLE ? CLOSE_EXPONENT_DOUBLE / 2 : 0;
    if (block->m_high + range_larger(v, 0) - 3 * nearest + 12 > huge) return 0;
    if (block->m_low - 3 * range_larger(r, 0) - 24 < tiny) return 0;
    return moving <= -990 || block->m_low - 3 * range_larger(r, 0) + moving - 28 >= tiny;
}

#endif
