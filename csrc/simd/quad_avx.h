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
/* Columns of rows of four numbers; r[k] holds every fourth row, from row k. */
HOST_DEVICE void v_transpose(const vec r[4], vec column[4])
{
    const vec a = V(unpacklo)(r[0], r[1]), b = V(unpackhi)(r[0], r[1]);
    const vec c = V(unpacklo)(r[2], r[3]), d = V(unpackhi)(r[2], r[3]);
    column[0] = V(shuffle)(a, c, 0x44), column[1] = V(shuffle)(a, c, 0xee);
    column[2] = V(shuffle)(b, d, 0x44), column[3] = V(shuffle)(b, d, 0xee);
}
/* Adds the lanes of each vector to a sum in double, one after another. */
#define v_add_in_order v_add_in_order
HOST_DEVICE void v_add_in_order(vec a, vec b, vec c, vec d, double sum[4])
{
    const vec row[4] = {a, b, c, d};
    vec column[4];
    float lane[4][VL];
    __m256d total = _mm256_loadu_pd(sum);
    v_transpose(row, column);
    for (int k = 0; k < 4; k++) v_store(lane[k], column[k]);
    for (int l = 0; l < VL; l++)
        total = _mm256_add_pd(total, _mm256_cvtps_pd(_mm_loadu_ps(lane[l % 4] + l / 4 * 4)));
    _mm256_storeu_pd(sum, total);
}
/* Loads rows of four numbers, row k at p[k], and gives the columns. */
HOST_DEVICE void v_columns(const float *const p[VL], vec column[4])
{
    vec r[4];
    v_rows(p, r);
    v_transpose(r, column);
}
#endif

typedef __m256d quad;
#define q_load(p) _mm256_loadu_pd(p)
#define q_set1(a) _mm256_set1_pd(a)
#define q_set(a, b, c, d) _mm256_setr_pd(a, b, c, d)
#define q_mul _mm256_mul_pd
#if REAL_BITS == 32
HOST_DEVICE void q_store_single(float *p, quad a) { _mm_storeu_ps(p, _mm256_cvtpd_ps(a)); }
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
