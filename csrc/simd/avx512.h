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
HOST_DEVICE vec v_int_difference(vint a, const int32_t *b)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(a, _mm512_loadu_si512(b)));
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
/* Lane-wise maximum of most, which is not negative, and |a|; NaN counts as the largest number. */
#define v_max_abs(most, a)                                                                         \
    _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(most), _mm512_castps_si512(v_abs(a))))
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
#define v_max_abs(most, a)                                                                         \
    _mm512_castsi512_pd(_mm512_max_epi64(_mm512_castpd_si512(most), _mm512_castpd_si512(v_abs(a))))
#endif

#define v_abs V(abs)
#define vmask_bits(m) ((unsigned)(m))

#include "simd/quad_avx.h"

/* ---- the predictor's records, two at a time (records.h) ---- */

#define RECORDS 2
typedef __m512d records;
HOST_DEVICE records records_load(const double *p, int next)
{
    return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(p)), _mm256_loadu_pd(p + next),
                              1);
}
#define records_set(a, b, c, d) _mm512_broadcast_f64x4(_mm256_setr_pd(a, b, c, d))
HOST_DEVICE records records_elapsed(double time, const double *since, int next)
{
    const records both = _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_broadcast_sd(since)),
                                            _mm256_broadcast_sd(since + next), 1);
    return _mm512_maskz_sub_pd(0x77, _mm512_set1_pd(time), both);
}
#define records_set1 _mm512_set1_pd
#define records_add _mm512_add_pd
#define records_sub _mm512_sub_pd
#define records_mul _mm512_mul_pd
#define records_fma _mm512_fmadd_pd
#define RECORD_GROUP VL
#if REAL_BITS == 32
HOST_DEVICE void records_split(records a, records *hi, records *lo)
{
    const records r = _mm512_mask_roundscale_pd(a, 0x77, a, 8); /* to nearest, no exceptions */
    *hi = _mm512_cvtps_pd(_mm512_cvtpd_ps(r));
    *lo = _mm512_sub_pd(a, *hi);
}
HOST_DEVICE void records_store_columns(float *row, const int nrow, const records q[8])
{
    vec r[4], column[4];
    for (int k = 0; k < 4; k++)
        r[k] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(q[k])),
                                  _mm512_cvtpd_ps(q[k + 4]), 1);
    v_transpose(r, column);
    for (int k = 0; k < nrow; k++) v_store(row + 16 * k, column[k]);
}
#else
HOST_DEVICE void records_store_columns(double *row, const int nrow, const records q[4])
{
    const records xz01 = _mm512_unpacklo_pd(q[0], q[1]), ym01 = _mm512_unpackhi_pd(q[0], q[1]);
    const records xz23 = _mm512_unpacklo_pd(q[2], q[3]), ym23 = _mm512_unpackhi_pd(q[2], q[3]);
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    v_store(row, _mm512_permutex2var_pd(xz01, first, xz23));
    v_store(row + 16, _mm512_permutex2var_pd(ym01, first, ym23));
    v_store(row + 32, _mm512_permutex2var_pd(xz01, second, xz23));
    if (nrow == 4) v_store(row + 48, _mm512_permutex2var_pd(ym01, second, ym23));
}
#endif
