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
HOST_DEVICE vec v_int_difference(vint a, const int32_t *b)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(a, _mm256_loadu_si256((const void *)b)));
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
/* Lane-wise maximum of most, which is not negative, and |a|; NaN counts as the largest number. */
#define v_max_abs(most, a)                                                                         \
    _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(most), _mm256_castps_si256(v_abs(a))))
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

/* ---- the predictor's records, one at a time (records.h) ---- */

#define q_three(a) _mm256_blend_pd(_mm256_set1_pd(a), _mm256_setzero_pd(), 8)
#define q_add _mm256_add_pd
#define q_sub _mm256_sub_pd
#define q_fma _mm256_fmadd_pd
/* Splits x, y, z on the grid of integers; the fourth lane stays whole in hi. */
HOST_DEVICE void q_split(quad a, quad *hi, quad *lo)
{
    const quad r = _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *hi = _mm256_cvtps_pd(_mm256_cvtpd_ps(_mm256_blend_pd(r, a, 8)));
    *lo = _mm256_sub_pd(a, *hi);
}
#define RECORD_GROUP VL
#if REAL_BITS == 32
HOST_DEVICE void q_store_columns(float *row, const int nrow, const quad q[RECORD_GROUP])
{
    vec r[4], column[4];
    for (int k = 0; k < 4; k++)
        r[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(q[k])),
                                    _mm256_cvtpd_ps(q[k + 4]), 1);
    v_transpose(r, column);
    for (int k = 0; k < nrow; k++) v_store(row + 16 * k, column[k]);
}
#else
HOST_DEVICE void q_store_columns(double *row, const int nrow, const quad q[RECORD_GROUP])
{
    const quad t0 = _mm256_unpacklo_pd(q[0], q[1]), t1 = _mm256_unpackhi_pd(q[0], q[1]);
    const quad t2 = _mm256_unpacklo_pd(q[2], q[3]), t3 = _mm256_unpackhi_pd(q[2], q[3]);
    v_store(row, _mm256_permute2f128_pd(t0, t2, 0x20));
    v_store(row + 16, _mm256_permute2f128_pd(t1, t3, 0x20));
    v_store(row + 32, _mm256_permute2f128_pd(t0, t2, 0x31));
    if (nrow == 4) v_store(row + 48, _mm256_permute2f128_pd(t1, t3, 0x31));
}
#endif
