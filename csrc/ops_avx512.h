/* ops_avx512.h - the operations of the kernels in AVX-512 (F, DQ, VL, BW). */
#include <immintrin.h>
#define VEC_REGISTER(a) "+v"(a)
#define PAIR_FN static inline __attribute__((always_inline))

#if REAL_BITS == 32
#define VL 16
typedef float real;
typedef __m512 vec;
typedef __mmask16 vmask;
#define V(op) _mm512_##op##_ps
#define vmask_index(p, j) _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(p), _mm512_set1_epi32(j))
PAIR_FN vec v_rsqrt_seed(vec x) { return _mm512_rsqrt14_ps(x); }
PAIR_FN void v_accumulate(double *d, vec s)
{
    const __m512d lo = _mm512_cvtps_pd(_mm512_castps512_ps256(s));
    const __m512d hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps(s, 1));
    _mm512_storeu_pd(d, _mm512_add_pd(_mm512_loadu_pd(d), lo));
    _mm512_storeu_pd(d + 8, _mm512_add_pd(_mm512_loadu_pd(d + 8), hi));
}
#define v_lt(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define v_select(m, a, b) _mm512_mask_blend_ps(m, b, a)
#else
#define VL 8
typedef double real;
typedef __m512d vec;
typedef __mmask8 vmask;
#define V(op) _mm512_##op##_pd
#define vmask_index(p, j)                                                                          \
    _mm256_cmpeq_epi32_mask(_mm256_loadu_si256((const void *)(p)), _mm256_set1_epi32(j))
#define RSQRT_SEED_BITS 14
PAIR_FN vec v_rsqrt_seed(vec x) { return _mm512_rsqrt14_pd(x); }
PAIR_FN void v_accumulate(double *d, vec s)
{
    _mm512_storeu_pd(d, _mm512_add_pd(_mm512_loadu_pd(d), s));
}
#define v_lt(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define v_select(m, a, b) _mm512_mask_blend_pd(m, b, a)
#endif

#define v_set1(a) V(set1)((real)(a))
#define v_load V(loadu)
#define v_store V(storeu)
#define v_add V(add)
#define v_sub V(sub)
#define v_mul V(mul)
#define v_fma V(fmadd)
#define v_fnma V(fnmadd)
#define v_min V(min)
#define v_max V(max)
#define v_abs V(abs)
#define vmask_bits(m) ((unsigned)(m))

#include "ops_quad_avx.h"
