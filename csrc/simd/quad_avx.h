/* quad_avx.h - code shared by AVX2 and AVX-512: operations whose names differ only in V, and four
 * doubles at once (x, y, z and one more), for the predictor. */
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
#define v_rsqrt(x) rsqrt_refine(x, v_rsqrt_seed(x)) /* of rsqrt.h */

#if REAL_BITS == 32
/* The sum of the lanes of each vector, in double. */
HOST_DEVICE void v_sum_lanes(vec a, vec b, vec c, vec d, double sum[4])
{
    const __m256d ab = _mm256_hadd_pd(v_quarters(a), v_quarters(b));
    const __m256d cd = _mm256_hadd_pd(v_quarters(c), v_quarters(d));
    _mm256_storeu_pd(sum, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20),
                                        _mm256_permute2f128_pd(ab, cd, 0x31)));
}
/* Loads rows of four numbers, row k at p[k], and gives the columns. */
HOST_DEVICE void v_columns(const float *const p[VL], vec column[4])
{
    vec r[4];
    v_rows(p, r);
    const vec a = V(unpacklo)(r[0], r[1]), b = V(unpackhi)(r[0], r[1]);
    const vec c = V(unpacklo)(r[2], r[3]), d = V(unpackhi)(r[2], r[3]);
    column[0] = V(shuffle)(a, c, 0x44), column[1] = V(shuffle)(a, c, 0xee);
    column[2] = V(shuffle)(b, d, 0x44), column[3] = V(shuffle)(b, d, 0xee);
}
#endif

typedef __m256d quad;
#define q_load(p) _mm256_loadu_pd(p)
#define q_set1(a) _mm256_set1_pd(a)
#define q_set(a, b, c, d) _mm256_setr_pd(a, b, c, d)
#define q_zero() _mm256_setzero_pd()
#define q_add _mm256_add_pd
#define q_sub _mm256_sub_pd
#define q_mul _mm256_mul_pd
#define q_fma _mm256_fmadd_pd
/* Splits x, y, z on the grid of integers; the fourth lane stays whole in hi. */
HOST_DEVICE void q_split(quad a, quad *hi, quad *lo)
{
    const quad r = _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *hi = _mm256_cvtps_pd(_mm256_cvtpd_ps(_mm256_blend_pd(r, a, 8)));
    *lo = _mm256_sub_pd(a, *hi);
}
#if REAL_BITS == 32
HOST_DEVICE void q_store_single(float *p, quad a) { _mm_storeu_ps(p, _mm256_cvtpd_ps(a)); }
#endif
#if REAL_BITS == 32
/* Stores x y z x, y z x y, z x y z as rows of x, y and z, 16 apart. */
HOST_DEVICE void q_store_points(float *row, const __m128 part[3])
{
    const __m128 a = part[0], b = part[1], c = part[2];
    const __m128 ab = _mm_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 2, 1)); /* y z y z */
    const __m128 bc = _mm_shuffle_ps(b, c, _MM_SHUFFLE(2, 1, 3, 2)); /* x y x y */
    const __m128 column[3] = {_mm_shuffle_ps(a, bc, _MM_SHUFFLE(2, 0, 3, 0)),
                              _mm_shuffle_ps(ab, bc, _MM_SHUFFLE(3, 1, 2, 0)),
                              _mm_shuffle_ps(ab, c, _MM_SHUFFLE(3, 0, 3, 1))};
    for (int k = 0; k < 3; k++) _mm_storeu_ps(row + 16 * k, column[k]);
}
/* Packs four points of three coordinates: (x - origin) unit, rounded to an integer (INT32_MIN if it
 * does not fit) in `row`, and the remainder in `low`; one row per coordinate, 16 apart. The three
 * quads of `origin` repeat its coordinates in the order of x. */
HOST_DEVICE void q_pack_points(const double *x, const quad origin[3], quad unit, int32_t *row,
                               float *low)
{
    __m128 part[3], beside[3];
    for (int k = 0; k < 3; k++) {
        const quad a = _mm256_mul_pd(_mm256_sub_pd(_mm256_loadu_pd(x + 4 * k), origin[k]), unit);
        const __m128i place = _mm256_cvtpd_epi32(a);
        part[k] = _mm_castsi128_ps(place);
        beside[k] = _mm256_cvtpd_ps(_mm256_sub_pd(a, _mm256_cvtepi32_pd(place)));
    }
    q_store_points((float *)(void *)row, part);
    q_store_points(low, beside);
}
#endif
/* Writes the quads of four records as columns of up to four rows, each 16 apart. */
#if REAL_BITS == 32
HOST_DEVICE void q_store_columns(float *row, const int nrow, quad a, quad b, quad c, quad d)
{
    __m128 r0 = _mm256_cvtpd_ps(a), r1 = _mm256_cvtpd_ps(b);
    __m128 r2 = _mm256_cvtpd_ps(c), r3 = _mm256_cvtpd_ps(d);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(row, r0);
    _mm_storeu_ps(row + 16, r1);
    _mm_storeu_ps(row + 32, r2);
    if (nrow == 4) _mm_storeu_ps(row + 48, r3);
}
#else
HOST_DEVICE void q_store_columns(double *row, const int nrow, quad a, quad b, quad c, quad d)
{
    const quad t0 = _mm256_unpacklo_pd(a, b), t1 = _mm256_unpackhi_pd(a, b);
    const quad t2 = _mm256_unpacklo_pd(c, d), t3 = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(row, _mm256_permute2f128_pd(t0, t2, 0x20));
    _mm256_storeu_pd(row + 16, _mm256_permute2f128_pd(t1, t3, 0x20));
    _mm256_storeu_pd(row + 32, _mm256_permute2f128_pd(t0, t2, 0x31));
    if (nrow == 4) _mm256_storeu_pd(row + 48, _mm256_permute2f128_pd(t1, t3, 0x31));
}
#endif
