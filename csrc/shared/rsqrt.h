/* rsqrt.h - 1/sqrt from a low-precision seed y, by the series in h = 1 - x y^2:
 *   1/sqrt(x) = y (1 + h/2 + 3/8 h^2 + 5/16 h^3 + 35/128 h^4 + ...)
 *
 * A Newton step (first order) always errs in the same direction, which changes the effective G.
 * Single uses second order for seeds of 11 bits or more. Double uses second order for 20 bits,
 * third for 14 and fourth for 11. The last operation adds a small correction to y, so the result is
 * rounded without bias. (For single, y ((h + 2/3)^2 + 20/9) saves one operation, but its rounding
 * errors are correlated: G was off by 3e-8.)
 */
#ifndef GRAPE6_RSQRT_H
#define GRAPE6_RSQRT_H

HOST_DEVICE vec rsqrt_refine(vec x, vec y)
{
    const vec h = v_fnma(v_mul(x, y), y, v_set1(1.0));
    vec p = v_set1(0.375);
#if REAL_BITS == 64 && RSQRT_SEED_BITS < 20
#if RSQRT_SEED_BITS >= 14
    p = v_fma(h, v_set1(0.3125), p);
#else
    p = v_fma(h, v_fma(h, v_set1(0.2734375), v_set1(0.3125)), p);
#endif
#endif
    p = v_fma(p, h, v_set1(0.5));
    return v_fma(p, v_mul(h, y), y);
}

#endif
