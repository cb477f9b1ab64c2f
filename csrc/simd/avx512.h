/* avx512.h - the operations of the kernels in AVX-512 (F, DQ, VL, BW). */
#include <immintrin.h>
#define VEC_REGISTER(a) "+v"(a)
#include "shared/host_device.h"

#if REAL_BITS == 32
#define VL 16
typedef float real;
typedef __m512 vec;
typedef __mmask16 vmask;
#define V(op) _mm512_##op##_ps
#define vmask_index(p, j) _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(p), _mm512_set1_epi32(j))
HOST_DEVICE vec v_rsqrt_seed(vec x) { return _mm512_rsqrt14_ps(x); }
HOST_DEVICE void v_accumulate(double *d, vec s)
{
    const __m512d lo = _mm512_cvtps_pd(_mm512_castps512_ps256(s));
    const __m512d hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps(s, 1));
    _mm512_storeu_pd(d, _mm512_add_pd(_mm512_loadu_pd(d), lo));
    _mm512_storeu_pd(d + 8, _mm512_add_pd(_mm512_loadu_pd(d + 8), hi));
}
#define v_lt(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define v_eq(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define v_select(m, a, b) _mm512_mask_blend_ps(m, b, a)
/* Integers; and their differences (modulo 2^32) converted to real. */
typedef __m512i vint;
#define v_set1_int _mm512_set1_epi32
HOST_DEVICE vec v_int_difference(const int32_t *a, vint b)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(a), b));
}
/* Sums of the lanes in four groups, in double. */
HOST_DEVICE __m256d v_quarters(vec a)
{
    const __m512d half = _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a)),
                                       _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
    return _mm256_add_pd(_mm512_castpd512_pd256(half), _mm512_extractf64x4_pd(half, 1));
}
/* Loads the rows of four numbers at p[0..VL-1]; r[k] holds every fourth row, from row k. */
HOST_DEVICE void v_rows(const float *const p[VL], vec r[4])
{
    for (int k = 0; k < 4; k++) {
        r[k] = _mm512_castps128_ps512(_mm_loadu_ps(p[k]));
        r[k] = _mm512_insertf32x4(r[k], _mm_loadu_ps(p[k + 4]), 1);
        r[k] = _mm512_insertf32x4(r[k], _mm_loadu_ps(p[k + 8]), 2);
        r[k] = _mm512_insertf32x4(r[k], _mm_loadu_ps(p[k + 12]), 3);
    }
}
#else
#define VL 8
typedef double real;
typedef __m512d vec;
typedef __mmask8 vmask;
#define V(op) _mm512_##op##_pd
#define vmask_index(p, j)                                                                          \
    _mm256_cmpeq_epi32_mask(_mm256_loadu_si256((const void *)(p)), _mm256_set1_epi32(j))
#define RSQRT_SEED_BITS 14
HOST_DEVICE vec v_rsqrt_seed(vec x) { return _mm512_rsqrt14_pd(x); }
HOST_DEVICE void v_accumulate(double *d, vec s)
{
    _mm512_storeu_pd(d, _mm512_add_pd(_mm512_loadu_pd(d), s));
}
#define v_lt(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define v_eq(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define v_select(m, a, b) _mm512_mask_blend_pd(m, b, a)
#endif

#define v_abs V(abs)
#define vmask_bits(m) ((unsigned)(m))

#include "simd/quad_avx.h"
