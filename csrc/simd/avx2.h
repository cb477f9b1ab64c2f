/* avx2.h - the operations of the kernels in AVX2 with FMA. */
#include <immintrin.h>
#define VEC_REGISTER(a) "+x"(a)
#include "shared/host_device.h"

#if REAL_BITS == 32
#define VL 8
typedef float real;
typedef __m256 vec;
typedef __m256 vmask;
#define V(op) _mm256_##op##_ps
#define vmask_index(p, j)                                                                          \
    _mm256_castsi256_ps(                                                                           \
        _mm256_cmpeq_epi32(_mm256_loadu_si256((const void *)(p)), _mm256_set1_epi32(j)))
HOST_DEVICE vec v_rsqrt_seed(vec x) { return _mm256_rsqrt_ps(x); }
HOST_DEVICE void v_accumulate(double *d, vec s)
{
    const __m256d lo = _mm256_cvtps_pd(_mm256_castps256_ps128(s));
    const __m256d hi = _mm256_cvtps_pd(_mm256_extractf128_ps(s, 1));
    _mm256_storeu_pd(d, _mm256_add_pd(_mm256_loadu_pd(d), lo));
    _mm256_storeu_pd(d + 4, _mm256_add_pd(_mm256_loadu_pd(d + 4), hi));
}
/* Integers; and their differences (modulo 2^32) converted to real. */
typedef __m256i vint;
#define v_set1_int _mm256_set1_epi32
HOST_DEVICE vec v_int_difference(const int32_t *a, vint b)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_loadu_si256((const void *)a), b));
}
/* Sums of the lanes in four groups, in double. */
HOST_DEVICE __m256d v_quarters(vec a)
{
    return _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                         _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
}
/* Loads the rows of four numbers at p[0..VL-1]; r[k] holds every fourth row, from row k. */
HOST_DEVICE void v_rows(const float *const p[VL], vec r[4])
{
    for (int k = 0; k < 4; k++)
        r[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p[k])),
                                    _mm_loadu_ps(p[k + 4]), 1);
}
#else
#define VL 4
typedef double real;
typedef __m256d vec;
typedef __m256d vmask;
#define V(op) _mm256_##op##_pd
#define vmask_index(p, j)                                                                          \
    _mm256_castsi256_pd(_mm256_cvtepi32_epi64(                                                     \
        _mm_cmpeq_epi32(_mm_loadu_si128((const void *)(p)), _mm_set1_epi32(j))))
#define RSQRT_SEED_BITS 11
HOST_DEVICE vec v_rsqrt_seed(vec x) { return _mm256_cvtps_pd(_mm_rsqrt_ps(_mm256_cvtpd_ps(x))); }
HOST_DEVICE void v_accumulate(double *d, vec s)
{
    _mm256_storeu_pd(d, _mm256_add_pd(_mm256_loadu_pd(d), s));
}
#endif

#define v_abs(a) V(andnot)(v_set1(-0.0), a)
#define v_lt(a, b) V(cmp)(a, b, _CMP_LT_OQ)
#define v_eq(a, b) V(cmp)(a, b, _CMP_EQ_OQ)
#define v_select(m, a, b) V(blendv)(b, a, m)
#define vmask_bits(m) ((unsigned)V(movemask)(m))

#include "simd/quad_avx.h"
