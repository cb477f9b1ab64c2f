/* scale.h - exact scaling by powers of two, from an origin.
 *
 * The scale of a session is an origin of positions and one of velocities (origin.h), and three
 * exponents. 7/8 of the j particles have every coordinate below 2^length from the origin, 7/8 of
 * those with mass have a mass below 2^mass, and 7/8 have every velocity component below 2^velocity
 * from the drift. Internal lengths are in units of 2^(length - 20) (mode double: 2^(length - 26)),
 * so that
 *   - the grid of the high halves is that of the integers: hi = rint(x), exact in
 *     differences up to 2^23 units, |lo| <= 1/2;
 *   - a pair whose separation the low halves no longer resolve to single precision
 *     (close_exponent) is found from the smallest s^2 and is computed exactly.
 * Masses are near 2^60 and velocities near 1: all terms are far from the ends of the
 * exponent range.
 */
#pragma once

#include <stdint.h>

#include "core/partial.h"
#include "shared/range.h"

struct scale {
    int length, mass, velocity; /* exponents, in the caller's units */
    int unused;                 /* zero: scales are compared as bytes */
    double origin[3], drift[3]; /* of positions and of velocities, in the caller's units */
};

static inline int length_shift(const struct scale *s, int mode)
{
    return (mode == MODE_DOUBLE ? 26 : 20) - s->length;
}
static inline int mass_shift(const struct scale *s) { return SCALED_MASS_EXPONENT - s->mass; }
static inline int velocity_shift(const struct scale *s) { return -s->velocity; }

/* frexp's exponent of |a|; EXPONENT_NONE for zero, EXPONENT_HUGE for Inf and NaN. */
static inline int exponent_of(double a)
{
    const int biased = (int)(bits_of(a) >> 52 & 0x7ff);
    if (biased == 0x7ff) return EXPONENT_HUGE;
    if (biased) return biased - 1022;
    const uint64_t mantissa = bits_of(a) << 12;
    return mantissa ? -1022 - __builtin_clzll(mantissa) : EXPONENT_NONE;
}

/* Exponents of a scale are between -MOST_SCALE and MOST_SCALE, so that scale factors are normal
 * numbers. For larger or smaller data, in_range selects exact sums. */
enum { MOST_SCALE = 960 };
static inline int scale_exponent(int exponent)
{
    if (exponent > MOST_SCALE) return MOST_SCALE;
    return exponent < -MOST_SCALE ? -MOST_SCALE : exponent;
}

/* 2^shift, which must be a normal double. */
static inline double scale_power_of_two(int shift)
{
    return from_bits((uint64_t)(shift + 1023) << 52);
}
/* 2^shift for any shift, as two factors. A sum underflows or overflows only when both are in it. */
static inline void scale_factors(int shift, double factor[2])
{
    const int bounded = shift > 2046 ? 2046 : shift;
    factor[0] = shift < -2044 ? 0.0 : scale_power_of_two(bounded / 2);
    factor[1] = shift < -2044 ? 0.0 : scale_power_of_two(bounded - bounded / 2);
}
