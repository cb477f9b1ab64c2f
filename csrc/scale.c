/* scale.c - see scale.h. */
#include "scale.h"

#include <math.h>

double power_of_two(int shift)
{
    if (shift > 1023 || shift < -1022) return NAN;
    return from_bits((uint64_t)(shift + 1023) << 52);
}
