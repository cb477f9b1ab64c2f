/* scale.h - exact scaling by powers of two, and where single precision is enough.
 *
 * The scale of a session is three exponents: 7/8 of the j particles have every
 * coordinate below 2^length, 7/8 of the massive ones a mass below 2^mass, 7/8 every
 * velocity component below 2^velocity. Inside, lengths are in units of
 * 2^(length - 20) (mode double: 2^(length - 26)), so that
 *   - the grid of the high halves is that of the integers: hi = rint(x), exact in
 *     differences up to 2^23 units, |lo| <= 1/2;
 *   - a pair at r^2 < 2, whose separation the low halves no longer resolve to single
 *     precision, shows in the smallest s^2 and is done again exactly.
 * Masses are near 2^60 and velocities near 1: all terms lie far from the ends of the
 * exponent range.
 */
#ifndef GRAPE6_SCALE_H
#define GRAPE6_SCALE_H

#include <stdint.h>

#include "partial.h"

enum { MODE_GRAPE, MODE_DOUBLE, MODE_SINGLE, NMODE };
enum { SCALED_MASS_EXPONENT = 60 };

/* Where empty slots stand, in scaled units, and the square of it, beyond any s^2 of a
 * pair that the fast kernels take. */
#define FAR_AWAY 0x1p62
#define FAR_S2 0x1p124
/* Beyond any r^2 of a pair, below those with empty slots. */
#define NO_NEIGHBOUR 0x1p122

struct scale {
    int length, mass, velocity; /* exponents, in the caller's units */
};

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

/* 2^shift, or NaN if that is no normal double: what is scaled by it is then invalid. */
double power_of_two(int shift);

/* Whether every term of body i with the block stays in the normal range of the kernels'
 * arithmetic; otherwise that row of that block is summed exactly. Larger x and eps2 only make
 * it harder, but velocities may be too large, too small, or zero, which is fine. */
int in_range(int mode, const struct body_range *i, const struct block_range *block);

#endif
