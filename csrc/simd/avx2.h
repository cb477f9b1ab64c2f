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
/* Integers, and differences of them (modulo 2^32) as numbers. */
typedef __m256i vint;
#define v_set1_int _mm256_set1_epi32
HOST_DEVICE vec v_int_difference(const int32_t *a, vint b)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_loadu_si256((const void *)a), b));
}
/* The sums of the lanes of each, in double. */
HOST_DEVICE __m256d v_halves(vec a)
{
    return _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                         _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
}
HOST_DEVICE void v_sum_lanes(vec a, vec b, vec c, vec d, double sum[4])
{
    const __m256d ab = _mm256_hadd_pd(v_halves(a), v_halves(b));
    const __m256d cd = _mm256_hadd_pd(v_halves(c), v_halves(d));
    _mm256_storeu_pd(sum, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20),
                                        _mm256_permute2f128_pd(ab, cd, 0x31)));
}
/* Row k of four numbers at p[k]; the columns. */
HOST_DEVICE void v_columns(const float *const p[VL], vec column[4])
{
    __m256 r[4];
    for (int k = 0; k < 4; k++)
        r[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p[k])),
                                    _mm_loadu_ps(p[k + 4]), 1);
    const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
    column[0] = _mm256_shuffle_ps(a, c, 0x44), column[1] = _mm256_shuffle_ps(a, c, 0xee);
    column[2] = _mm256_shuffle_ps(b, d, 0x44), column[3] = _mm256_shuffle_ps(b, d, 0xee);
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
#define v_abs(a) V(andnot)(v_set1(-0.0), a)
#define v_lt(a, b) V(cmp)(a, b, _CMP_LT_OQ)
#define v_select(m, a, b) V(blendv)(b, a, m)
#define vmask_bits(m) ((unsigned)V(movemask)(m))

#include "simd/quad_avx.h"
