/* neon.h - the kernels' operations in NEON (Advanced SIMD), which every aarch64 processor has. */
#include <arm_neon.h>
#define VEC_REGISTER(a) "+w"(a)
#include "shared/host_device.h"

#if REAL_BITS == 32
#define VL 4
typedef float real;
typedef float32x4_t vec;
typedef uint32x4_t vmask;
#define V(op) op##q_f32
#define v_set1(a) vdupq_n_f32((real)(a))
#define vmask_index(p, j) vceqq_s32(vld1q_s32(p), vdupq_n_s32(j))
HOST_DEVICE unsigned vmask_bits(vmask m)
{
    const vmask bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(m, bit));
}
HOST_DEVICE void v_accumulate(double *d, vec s)
{
    vst1q_f64(d, vaddq_f64(vld1q_f64(d), vcvt_f64_f32(vget_low_f32(s))));
    vst1q_f64(d + 2, vaddq_f64(vld1q_f64(d + 2), vcvt_high_f64_f32(s)));
}
/* Integers; and their differences (modulo 2^32) converted to real. */
typedef int32x4_t vint;
#define v_set1_int vdupq_n_s32
HOST_DEVICE vec v_int_difference(vint a, const int32_t *b)
{
    return vcvtq_f32_s32(vsubq_s32(a, vld1q_s32(b)));
}
#else
#define VL 2
typedef double real;
typedef float64x2_t vec;
typedef uint64x2_t vmask;
#define V(op) op##q_f64
#define v_set1(a) vdupq_n_f64((real)(a))
#define vmask_index(p, j)                                                                          \
    vreinterpretq_u64_s64(vmovl_s32(vreinterpret_s32_u32(vceq_s32(vld1_s32(p), vdup_n_s32(j)))))
HOST_DEVICE unsigned vmask_bits(vmask m)
{
    const vmask bit = {1, 2};
    return (unsigned)vaddvq_u64(vandq_u64(m, bit));
}
HOST_DEVICE void v_accumulate(double *d, vec s) { vst1q_f64(d, vaddq_f64(vld1q_f64(d), s)); }
#endif

#define v_load V(vld1)
#define v_store V(vst1)
#define v_add V(vadd)
#define v_sub V(vsub)
#define v_mul V(vmul)
#define v_fma(a, b, c) V(vfma)(c, a, b)
#define v_fnma(a, b, c) V(vfms)(c, a, b)
#define v_abs V(vabs)
#define v_lt V(vclt)
#define v_eq V(vceq)
#define v_select V(vbsl)
/* vminq and vmaxq give NaN if either operand is NaN. These give b, as on x86. */
HOST_DEVICE vec v_min(vec a, vec b) { return v_select(v_lt(a, b), a, b); }
HOST_DEVICE vec v_max(vec a, vec b) { return v_select(v_lt(b, a), a, b); }

/* An estimate with an error of at most 2^-8.2, and a Newton step, which leaves 3/2 of the square of
 * the error. The architecture defines the bits of both. x y is computed first, since y^2 of a
 * denormal x could overflow. */
#define RSQRT_SEED_BITS 15
HOST_DEVICE vec v_rsqrt_seed(vec x)
{
    const vec y = V(vrsqrte)(x);
    return v_mul(y, V(vrsqrts)(v_mul(x, y), y));
}
#define v_rsqrt(x) rsqrt_refine(x, v_rsqrt_seed(x)) /* of rsqrt.h */

#if REAL_BITS == 32
/* The sum of the lanes of each vector, in double. */
HOST_DEVICE float64x2_t v_halves(vec a)
{
    return vaddq_f64(vcvt_f64_f32(vget_low_f32(a)), vcvt_high_f64_f32(a));
}
HOST_DEVICE void v_sum_lanes(vec a, vec b, vec c, vec d, double sum[4])
{
    vst1q_f64(sum, vpaddq_f64(v_halves(a), v_halves(b)));
    vst1q_f64(sum + 2, vpaddq_f64(v_halves(c), v_halves(d)));
}
/* Combines two rows of pairs of numbers: the first pair of each row, or the second pair. */
#define V_PAIRS(op, a, b)                                                                          \
    vreinterpretq_f32_f64(op(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)))
HOST_DEVICE void v_transpose(const vec row[4], vec column[4])
{
    const vec a = vtrn1q_f32(row[0], row[1]), b = vtrn2q_f32(row[0], row[1]);
    const vec c = vtrn1q_f32(row[2], row[3]), d = vtrn2q_f32(row[2], row[3]);
    column[0] = V_PAIRS(vtrn1q_f64, a, c), column[1] = V_PAIRS(vtrn1q_f64, b, d);
    column[2] = V_PAIRS(vtrn2q_f64, a, c), column[3] = V_PAIRS(vtrn2q_f64, b, d);
}
/* Loads rows of four numbers, row k at p[k], and gives the columns. */
HOST_DEVICE void v_columns(const float *const p[VL], vec column[4])
{
    const vec row[4] = {vld1q_f32(p[0]), vld1q_f32(p[1]), vld1q_f32(p[2]), vld1q_f32(p[3])};
    v_transpose(row, column);
}
#endif

/* Four doubles at once (x, y, z and one more), for the predictor. */
typedef float64x2x2_t quad;
HOST_DEVICE quad q_load(const double *p) { return (quad){{vld1q_f64(p), vld1q_f64(p + 2)}}; }
HOST_DEVICE quad q_set(double a, double b, double c, double d) { return (quad){{{a, b}, {c, d}}}; }
#define q_set1(a) q_set(a, a, a, a)
#define q_three(a) q_set(a, a, a, 0)
#define QUAD_OP(name, op)                                                                          \
    HOST_DEVICE quad name(quad a, quad b)                                                          \
    {                                                                                              \
        return (quad){{op(a.val[0], b.val[0]), op(a.val[1], b.val[1])}};                           \
    }
QUAD_OP(q_add, vaddq_f64)
QUAD_OP(q_sub, vsubq_f64)
QUAD_OP(q_mul, vmulq_f64)
HOST_DEVICE quad q_fma(quad a, quad b, quad c)
{
    return (quad){
        {vfmaq_f64(c.val[0], a.val[0], b.val[0]), vfmaq_f64(c.val[1], a.val[1], b.val[1])}};
}

#define RECORD_GROUP 4
#if REAL_BITS == 32
HOST_DEVICE vec q_single(quad a) { return vcvt_high_f32_f64(vcvt_f32_f64(a.val[0]), a.val[1]); }
HOST_DEVICE void q_store_single(float *p, quad a) { vst1q_f32(p, q_single(a)); }
/* Splits x, y, z on the grid of integers; the fourth lane stays whole in hi. */
HOST_DEVICE void q_split(quad a, quad *hi, quad *lo)
{
    quad r = {{vrndnq_f64(a.val[0]), vrndnq_f64(a.val[1])}};
    r.val[1] = vcopyq_laneq_f64(r.val[1], 1, a.val[1], 1);
    const vec single = q_single(r);
    *hi = (quad){{vcvt_f64_f32(vget_low_f32(single)), vcvt_high_f64_f32(single)}};
    *lo = q_sub(a, *hi);
}
HOST_DEVICE void q_store_columns(float *row, const int nrow, const quad q[RECORD_GROUP])
{
    const vec record[4] = {q_single(q[0]), q_single(q[1]), q_single(q[2]), q_single(q[3])};
    vec field[4];
    v_transpose(record, field);
    for (int k = 0; k < nrow; k++) vst1q_f32(row + 16 * k, field[k]);
}
/* Rounds scaled coordinates to integers (INT32_MIN if they do not fit); *low is the remainder. */
HOST_DEVICE int32x2_t q_place(float64x2_t a, float32x2_t *low)
{
    const uint64x2_t fits = vcltq_f64(vabsq_f64(a), vdupq_n_f64(0x1p30));
    const int64x2_t place = vbslq_s64(fits, vcvtnq_s64_f64(a), vdupq_n_s64(INT32_MIN));
    const float64x2_t beside = vsubq_f64(a, vcvtq_f64_s64(place));
    *low = vcvt_f32_f64(vbslq_f64(fits, beside, vdupq_n_f64(0.0)));
    return vmovn_s64(place);
}
/* Packs four points; see simd/quad_avx.h. */
HOST_DEVICE void q_pack_points(const double *x, const quad origin[3], quad unit, int32_t *row,
                               float *low)
{
    const float64x2x3_t first = vld3q_f64(x), second = vld3q_f64(x + 6); /* two points each */
    const float64x2_t from[3] = {vdupq_laneq_f64(origin[0].val[0], 0),
                                 vdupq_laneq_f64(origin[0].val[0], 1),
                                 vdupq_laneq_f64(origin[0].val[1], 0)};
    for (int c = 0; c < 3; c++) {
        float32x2_t beside[2];
        const int32x2_t a =
            q_place(vmulq_f64(vsubq_f64(first.val[c], from[c]), unit.val[0]), &beside[0]);
        const int32x2_t b =
            q_place(vmulq_f64(vsubq_f64(second.val[c], from[c]), unit.val[0]), &beside[1]);
        vst1q_s32(row + 16 * c, vcombine_s32(a, b));
        vst1q_f32(low + 16 * c, vcombine_f32(beside[0], beside[1]));
    }
}
#else
HOST_DEVICE void q_store_columns(double *row, const int nrow, const quad q[RECORD_GROUP])
{
    for (int k = 0; k < nrow; k += 2, row += 32) {
        vst1q_f64(row, vtrn1q_f64(q[0].val[k / 2], q[1].val[k / 2]));
        vst1q_f64(row + 2, vtrn1q_f64(q[2].val[k / 2], q[3].val[k / 2]));
        if (k + 1 == nrow) break;
        vst1q_f64(row + 16, vtrn2q_f64(q[0].val[k / 2], q[1].val[k / 2]));
        vst1q_f64(row + 18, vtrn2q_f64(q[2].val[k / 2], q[3].val[k / 2]));
    }
}
#endif
