/* long_double.h - the operations of pair.h on one long double. */
#include <math.h>
#include "shared/host_device.h"
typedef long double vec;
#define v_set1(a) ((long double)(a))
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_fma(a, b, c) ((a) * (b) + (c))
#define v_fnma(a, b, c) ((c) - (a) * (b))
#define v_rsqrt(x) (1.0L / sqrtl(x))
