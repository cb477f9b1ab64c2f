/* origin.h - origin: the centre of most particles.
 *
 * Positions are stored relative to an origin, velocities relative to a drift, so that a cluster far
 * from the caller's origin has as fine a grid as one at the origin. An origin is a multiple of a
 * power of two about twice as large as the cluster: near the caller's origin it is zero, and
 * subtracting it from a particle of the cluster is exact.
 *
 * It is the median of ORIGIN_SAMPLE particles, evenly spread over the addresses below nj: cheap,
 * and not affected by a few distant particles.
 */
#pragma once

#include <math.h>
#include <stdint.h>

/* A column of the sample; INFINITY where there is no particle, so that all are equally long. */
enum { ORIGIN_SAMPLE = 15, ORIGIN_COLUMN = ORIGIN_SAMPLE + 1 };

/* Address of sample number `sample` of `count`, from the addresses below nj. */
static inline int64_t origin_address(int64_t nj, int count, int sample)
{
    return (2 * (int64_t)sample + 1) * nj / (2 * count);
}

/* Which samples were the medians of x, y, z and of the distance. In the next sample they mostly are
 * again, which is fast to check. */
struct origin_hint {
    int median[4];
};

/* Empties columns. */
static inline void origin_clear(double (*column)[ORIGIN_COLUMN], int columns)
{
    for (int c = 0; c < columns; c++)
        for (int k = 0; k < ORIGIN_COLUMN; k++) column[c][k] = INFINITY;
}

/* Chooses the origin from the columns x, y and z of n particles; finite if they are finite. Returns
 * exponent e: half of the particles are within 2^e of the median; EXPONENT_NONE if all are at one
 * position. The hint, zero at first, does not change the result. */
int origin_choose(double sample[3][ORIGIN_COLUMN], int n, double origin[3],
                  struct origin_hint *hint);
