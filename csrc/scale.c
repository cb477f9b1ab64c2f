/* scale.c - see scale.h. */
#include "scale.h"

#include <math.h>

double power_of_two(int shift)
{
    if (shift > 1023 || shift < -1022) return NAN;
    return from_bits((uint64_t)(shift + 1023) << 52);
}

static int larger(int a, int b) { return a > b ? a : b; }

/* The bounds are on exponents. r: |separation| < 2^r, with the softening; v: relative
 * velocity, `moving` that of what has mass. A term of acc is m / s^2 or less, of jerk
 * 4 m v / s^3 or less, s^2 >= 2. Below, 24 bits of a term must stay above the smallest
 * normal number. */
int in_range(int mode, const struct body_range *i, const struct block_range *block)
{
    const int tiny = mode == MODE_DOUBLE ? -1000 : -126, huge = mode == MODE_DOUBLE ? 1000 : 120;
    const int r = larger(larger(i->x, block->x) + 2, (i->eps2 + 3) / 2);
    const int v = larger(larger(i->v, block->v), -1000) + 2;
    const int moving = larger(larger(i->v, block->v_massive), -1000) + 2;
    if (r > 60 || v > 60) return 0;
    if (block->m_high == EXPONENT_NONE) return 1; /* no mass: zeros, as long as s^2 is finite */
    if (block->m_high + larger(v, 0) + 12 > huge) return 0;
    if (block->m_low - 3 * larger(r, 0) - 24 < tiny) return 0;
    return moving <= -990 || block->m_low - 3 * larger(r, 0) + moving - 48 >= tiny;
}
