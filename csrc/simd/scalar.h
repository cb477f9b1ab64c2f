/* scalar.h - the operations of pair.h on one number, a SCALAR: a long double if that is not
 * defined. */
#include <math.h>
#include "shared/host_device.h"
#ifndef SCALAR
#define SCALAR long double
#define SCALAR_SQRT sqrtl
#endif
typedef SCALAR vec;
typedef int vmask;
#define v_set1(a) ((vec)(a))
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_fma(a, b, c) ((a) * (b) + (c))
#define v_fnma(a, b, c) ((c) - (a) * (b))
#define v_lt(a, b) ((a) < (b))
#define v_select(m, a, b) ((m) ? (a) : (b))
#define v_rsqrt(x) ((vec)1 / SCALAR_SQRT(x))
