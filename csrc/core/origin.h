/* origin.h - where the middle of most particles is.
 *
 * Places are held relative to an origin, velocities relative to a drift, so that a cluster far from
 * the caller's origin has as fine a grid as one that lies there. An origin is a multiple of a power
 * of two about twice as large as the cluster: near the caller's origin it is zero, and taking
 * it away from a particle of the cluster is exact.
 *
 * It is chosen from ORIGIN_SAMPLE particles, evenly spread over the addresses below nj: their
 * median is of the majority, wherever a few others are, and takes no time.
 */
#pragma once

#include <stdint.h>

enum { ORIGIN_SAMPLE = 15 };

/* Address of one of `count` samples of the addresses below nj. */
static inline int64_t origin_address(int64_t nj, int count, int sample)
{
    return (2 * (int64_t)sample + 1) * nj / (2 * count);
}

/* The origin of n sampled triples, finite for finite ones. Returns an exponent: half of them are
 * within 2^that of their median; EXPONENT_NONE if they are in one place. */
int origin_choose(const double (*sample)[3], int n, double origin[3]);
