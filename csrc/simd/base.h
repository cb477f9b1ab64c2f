/* base.h - the operations of the kernels in the compiler's vector types, for every machine; on
 * x86-64 with a few SSE2 instructions.
 *
 * What the kernels rely on, in this and in every other set:
 * - VL is a power of two from 2 to 16, which divides the 16 numbers of a chunk.
 * - v_min(a, b) and v_max(a, b) give b if one of the two is NaN; v_lt and v_eq are false with NaN.
 *   vmask is what comparisons give and v_select takes; bit l of vmask_bits is lane l.
 * - v_fma may be two operations, contraction is off. v_set1 converts to `real` first.
 * - v_rsqrt_seed errs by 2^-11 or less: GRAPE-5 uses it alone. v_rsqrt errs to no side: it refines
 *   the seed by rsqrt_refine. RSQRT_SEED_BITS is the seed's error as measured over [1, 4), rounded
 *   to the worse side; it chooses the order in double. 0 and infinity may give NaN.
 * - With 32 bits alone: vint and its operations, v_sum_lanes, v_columns and the quads, which are
 *   doubles. q_fma is fused where there is FMA, as the predictor is (simd/records.h). */
#include "shared/host_device.h"
#include <math.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#if REAL_BITS == 32
#define VL 4
typedef float real;
typedef int32_t lane_int;
#else
#define VL 2
typedef double real;
typedef int64_t lane_int;
#endif
typedef real vec __attribute__((vector_size(16)));
typedef lane_int vmask __attribute__((vector_size(16)));

#if defined(__SSE2__)
#define VEC_REGISTER(a) "+x"(a)
#elif defined(__aarch64__)
#define VEC_REGISTER(a) "+w"(a)
#else
#define VEC_REGISTER(a) "+m"(a)
#endif

HOST_DEVICE vec v_load(const real *p)
{
    vec a;
    memcpy(&a, p, sizeof a);
    return a;
}
HOST_DEVICE void v_store(real *p, vec a) { memcpy(p, &a, sizeof a); }
HOST_DEVICE vec v_fill(real a)
{
#if REAL_BITS == 32
    return (vec){a, a, a, a};
#else
    return (vec){a, a};
#endif
}
#define v_set1(a) v_fill((real)(a))
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_fma(a, b, c) ((a) * (b) + (c))
#define v_fnma(a, b, c) ((c) - (a) * (b))
#define v_lt(a, b) ((vmask)((a) < (b)))
#define v_eq(a, b) ((vmask)((a) == (b)))
HOST_DEVICE vec v_select(vmask m, vec a, vec b) { return (vec)(((vmask)a & m) | ((vmask)b & ~m)); }
#define v_min(a, b) v_select(v_lt(a, b), a, b)
#define v_max(a, b) v_select(v_lt(b, a), a, b)
#define v_abs(a) ((vec)((vmask)(a) & ~(vmask)v_set1(-0.0)))

HOST_DEVICE unsigned vmask_bits(vmask m)
{
#if defined(__SSE2__) && REAL_BITS == 32
    return (unsigned)_mm_movemask_ps((__m128)m);
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_pd((__m128d)m);
#else
    unsigned bits = 0;
    for (int l = 0; l < VL; l++) bits |= m[l] ? 1u << l : 0;
    return bits;
#endif
}
HOST_DEVICE vmask vmask_index(const int32_t *p, int32_t j)
{
    vmask m = {0};
    for (int l = 0; l < VL; l++) m[l] = -(lane_int)(p[l] == j);
    return m;
}

/* 1/sqrt: on x86 an 11-bit seed that is refined; otherwise correctly rounded operations. */
#define RSQRT_SEED_BITS 11
#if defined(__SSE2__)
HOST_DEVICE vec v_rsqrt_seed(vec x)
{
#if REAL_BITS == 32
    return (vec)_mm_rsqrt_ps((__m128)x);
#else
    return (vec)_mm_cvtps_pd(_mm_rsqrt_ps(_mm_cvtpd_ps((__m128d)x)));
#endif
}
#define v_rsqrt(x) rsqrt_refine(x, v_rsqrt_seed(x)) /* of rsqrt.h */
#else
HOST_DEVICE vec v_rsqrt_exact(vec x)
{
    for (int l = 0; l < VL; l++) x[l] = (real)(1.0 / sqrt((double)x[l]));
    return x;
}
#define v_rsqrt v_rsqrt_exact
#define v_rsqrt_seed v_rsqrt_exact
#endif

HOST_DEVICE void v_accumulate(double *d, vec s)
{
    for (int l = 0; l < VL; l++) d[l] += (double)s[l];
}

#if REAL_BITS == 32
/* Integers; and their differences (modulo 2^32) converted to real. */
typedef uint32_t vint __attribute__((vector_size(16)));
HOST_DEVICE vint v_set1_int(int32_t a)
{
    const uint32_t b = (uint32_t)a;
    return (vint){b, b, b, b};
}
HOST_DEVICE vec v_int_difference(vint a, const int32_t *b)
{
    vint c;
    memcpy(&c, b, sizeof c);
    return __builtin_convertvector((vmask)(a - c), vec);
}
/* The sum of the lanes of each vector, in double. */
HOST_DEVICE void v_sum_lanes(vec a, vec b, vec c, vec d, double sum[4])
{
    const vec v[4] = {a, b, c, d};
    for (int k = 0; k < 4; k++)
        sum[k] = ((double)v[k][0] + (double)v[k][2]) + ((double)v[k][1] + (double)v[k][3]);
}
/* Loads rows of four numbers, row k at p[k], and gives the columns. */
HOST_DEVICE void v_columns(const float *const p[VL], vec column[4])
{
    for (int c = 0; c < 4; c++) column[c] = (vec){p[0][c], p[1][c], p[2][c], p[3][c]};
}
#endif

/* Four doubles at once, for the predictor. */
typedef struct {
    double lane[4];
} quad;
HOST_DEVICE quad q_load(const double *p)
{
    quad a;
    memcpy(&a, p, sizeof a);
    return a;
}
HOST_DEVICE quad q_set(double a, double b, double c, double d) { return (quad){{a, b, c, d}}; }
#define q_set1(a) q_set(a, a, a, a)
#define q_three(a) q_set(a, a, a, 0)
#define QUAD_OP(name, expression)                                                                  \
    HOST_DEVICE quad name(quad a, quad b)                                                          \
    {                                                                                              \
        for (int k = 0; k < 4; k++) a.lane[k] = expression;                                        \
        return a;                                                                                  \
    }
QUAD_OP(q_add, a.lane[k] + b.lane[k])
QUAD_OP(q_sub, a.lane[k] - b.lane[k])
QUAD_OP(q_mul, a.lane[k] * b.lane[k])
HOST_DEVICE quad q_fma(quad a, quad b, quad c)
{
    for (int k = 0; k < 4; k++) {
#ifdef FP_FAST_FMA /* the same bits as shared/predictor.h */
        a.lane[k] = fma(a.lane[k], b.lane[k], c.lane[k]);
#else
        a.lane[k] = a.lane[k] * b.lane[k] + c.lane[k];
#endif
    }
    return a;
}
/* Rounds by adding a magic number. Values beyond 2^51 are left unchanged. */
HOST_DEVICE void q_split(quad a, quad *hi, quad *lo)
{
    for (int k = 0; k < 4; k++) {
        const double magic = 6755399441055744.0, x = a.lane[k];
        const double r = k < 3 && x < 0x1p51 && x > -0x1p51 ? x + magic - magic : x;
        hi->lane[k] = (double)(float)r;
        lo->lane[k] = x - hi->lane[k];
    }
}
#define RECORD_GROUP 4
HOST_DEVICE void q_store_columns(real *row, const int nrow, const quad q[RECORD_GROUP])
{
    for (int k = 0; k < nrow; k++)
        for (int n = 0; n < RECORD_GROUP; n++) row[16 * k + n] = (real)q[n].lane[k];
}
HOST_DEVICE void q_store_single(float *p, quad a)
{
    for (int k = 0; k < 4; k++) p[k] = (float)a.lane[k];
}
/* Packs four points; see simd/quad_avx.h. */
HOST_DEVICE void q_pack_points(const double *x, const quad origin[3], quad unit, int32_t *row,
                               float *low)
{
    const double magic = 6755399441055744.0;
    for (int k = 0; k < 12; k++) {
        const double a = (x[k] - origin[k / 4].lane[k % 4]) * unit.lane[0];
        const int fits = a < 0x1p30 && a > -0x1p30;
        const double place = fits ? a + magic - magic : (double)INT32_MIN;
        row[k % 3 * 16 + k / 3] = (int32_t)place;
        low[k % 3 * 16 + k / 3] = fits ? (float)(a - place) : 0.0f;
    }
}
