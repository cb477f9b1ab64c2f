/* arithmetic.h - refuses compilers that do not compute what is written: forces would be wrong by up
 * to a third, and a NaN would not be seen. */
#pragma once

#include <float.h>

#if __FAST_MATH__ || __FINITE_MATH_ONLY__ || __ASSOCIATIVE_MATH__ || __RECIPROCAL_MATH__ ||        \
    __NO_SIGNED_ZEROS__
#error "no -ffast-math or parts of it: add -fno-fast-math (icx: -fp-model=precise) to the flags"
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 /* 16: wider for _Float16 alone */
#error "float and double have to be computed as such: no -mfpmath=387 (i386: -msse2 -mfpmath=sse)"
#endif
_Static_assert(sizeof 0.1 == sizeof(double), "no -fsingle-precision-constant");
