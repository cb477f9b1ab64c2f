/* scale.c - see scale.h. */
#include "core/scale.h"

double scale_power_of_two(int shift) { return from_bits((uint64_t)(shift + 1023) << 52); }

int scale_exponent(int exponent)
{
    if (exponent > MOST_SCALE) return MOST_SCALE;
    return exponent < -MOST_SCALE ? -MOST_SCALE : exponent;
}

void scale_factors(int shift, double factor[2])
{
    const int bounded = shift > 2046 ? 2046 : shift;
    factor[0] = shift < -2044 ? 0.0 : scale_power_of_two(bounded / 2);
    factor[1] = shift < -2044 ? 0.0 : scale_power_of_two(bounded - bounded / 2);
}
