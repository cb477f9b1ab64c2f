/* grape5_kernel.c - see grape5_kernel.h. Compiled once per instruction set.
 *
 * A pair takes 20 operations, most of which depend on the one before, and a core reorders only
 * about 64 operations. So the loop is a software pipeline: separations are computed one group
 * ahead and stored in the cache; the estimate of 1/s of each vector is computed one vector ahead;
 * its sums are added one vector later.
 */
#include "cpu/grape5_kernel.h"
#include "simd/dispatch.h"

#include <math.h>
#include <stdalign.h>

#include OPS_HEADER

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { GROUP = 32, DEPTH = GROUP / VL, STEP = GROUP / CHUNK }; /* pairs, vectors, chunks */
_Static_assert(ACC_GROUP == 2 * STEP, "groups are summed two by two");

/* m / s^3 is 3/2 times y^3 m (5/3 - s^2 y^2), where y is the estimate of 1/s: one refinement step.
 * The error is of second order in that of y; correction() removes its mean. */
INLINE vec bracket(vec s2, vec y2) { return v_fnma(s2, y2, v_set1(5.0 / 3.0)); }

/* ---- sums of a block ------------------------------------------------------------ */

struct separations {
    alignas(sizeof(vec)) real r[3][VL], s2[VL];
};

typedef struct separations group_of_pairs[DEPTH];

/* Without this, the compiler keeps stored values in registers, of which there are too few. */
#define KEEP_IN_MEMORY __asm__ volatile("" ::: "memory")

struct target {
    vint place[3];
    vec low[3], eps2;
};

struct sums {
    vec x, y, z, pot;
};

struct totals {
    alignas(sizeof(vec)) real sum[NACC][VL];
};

INLINE void add_to(real *total, vec part) { v_store(total, v_add(v_load(total), part)); }

/* Totals are in memory (cache), so that the loop can use the registers. */
INLINE void push(struct totals *total, struct sums *part)
{
    add_to(total->sum[ACC_AX], part->x), add_to(total->sum[ACC_AY], part->y);
    add_to(total->sum[ACC_AZ], part->z), add_to(total->sum[ACC_POT], part->pot);
    part->x = part->y = part->z = part->pot = v_set1(0);
}

INLINE vec square_of(const vec r[3], vec eps2)
{
    return v_fma(r[2], r[2], v_fma(r[1], r[1], v_fma(r[0], r[0], eps2)));
}

/* Adds the remainders of the positions to the separations of a group. */
INLINE void refine(const struct target *t, const struct acc_low *low, struct separations *p)
{
    for (int k = 0; k < DEPTH; k++, p++) {
        const struct acc_low *l = low + k * VL / CHUNK;
        vec r[3];
        for (int c = 0; c < 3; c++) {
            const vec beside = v_sub(v_load(l->x[c] + k * VL % CHUNK), t->low[c]);
            v_store(p->r[c], r[c] = v_add(v_load(p->r[c]), beside));
        }
        v_store(p->s2, square_of(r, t->eps2));
    }
}

/* Bits of the pairs of a vector to compute in double: close ones and, if `rules`, those nearer than
 * ACC_RULES. */
INLINE unsigned left_to_double(const struct separations *p, int rules)
{
    const vec r[3] = {v_load(p->r[0]), v_load(p->r[1]), v_load(p->r[2])};
    const unsigned close = vmask_bits(v_lt(square_of(r, v_set1(0)), v_set1(ACC_CLOSE * ACC_CLOSE)));
    return close | (rules ? vmask_bits(v_lt(v_load(p->s2), v_set1(ACC_RULES * ACC_RULES))) : 0);
}

/* Handles a group with near pairs: adds the remainders of the positions, records pairs to compute
 * in double (offsets below `end` of the block), and returns chunks in which these have no mass. */
static __attribute__((noinline)) const struct acc_chunk *
look_closely(const struct target *t, struct separations *p, const struct acc_chunk *group,
             const struct acc_low *low, struct acc_chunk *massless, int place, int end,
             struct acc_close *close)
{
    unsigned any = 0;
    int few = 0;
    refine(t, low, p);
    for (int k = 0; k < DEPTH; k++)
        few += __builtin_popcount(vmask_bits(v_lt(v_load(p[k].s2), v_set1(ACC_RULES * ACC_RULES))));
    few = few <= ACC_FEW;
    for (int k = 0; k < DEPTH; k++) any |= left_to_double(&p[k], few);
    if (!any) return group;
    for (int c = 0; c < STEP; c++) memcpy(massless[c].m, group[c].m, sizeof group[c].m);
    for (int k = 0; k < DEPTH; k++) {
        unsigned bits = left_to_double(&p[k], few);
        for (; bits; bits &= bits - 1) {
            const int at = k * VL + __builtin_ctz(bits);
            massless[at / CHUNK].m[at % CHUNK] = 0.0f;
            p[k].s2[at % VL] = 1.0f;
            if (place < end) close->place[close->count++] = (int16_t)(place + at);
        }
    }
    return massless;
}

/* First stage of vector k of a group: separations and s^2. */
INLINE vec separate(const struct target *t, const struct acc_chunk *group, int k,
                    struct separations *p)
{
    const struct acc_chunk *c = group + k * VL / CHUNK;
    const int at = k * VL % CHUNK;
    const vec r[3] = {v_int_difference(c->x[0] + at, t->place[0]),
                      v_int_difference(c->x[1] + at, t->place[1]),
                      v_int_difference(c->x[2] + at, t->place[2])};
    const vec s2 = square_of(r, t->eps2);
    v_store(p->r[0], r[0]), v_store(p->r[1], r[1]), v_store(p->r[2], r[2]);
    v_store(p->s2, s2);
    return s2;
}

INLINE void add_pairs(vec f, const struct separations *p, vec s2, struct sums *sum)
{
    sum->pot = v_fma(f, s2, sum->pot);
    sum->x = v_fma(f, v_load(p->r[0]), sum->x);
    sum->y = v_fma(f, v_load(p->r[1]), sum->y);
    sum->z = v_fma(f, v_load(p->r[2]), sum->z);
}

/* State between the stages of the pipeline. */
struct flow {
    vec y;     /* estimate of 1/s of the next vector */
    vec f, s2; /* m / s^3 and s^2 of the last vector, not added yet */
    struct sums sum;
};

/* Adds the last vector of `other`, then the vectors of `now` except its last. Writes the
 * separations of group `ahead` to `other`; returns their least s^2. */
INLINE vec advance(const struct target *t, const group_of_pairs now, group_of_pairs other,
                   const struct acc_chunk *mass, const struct acc_chunk *ahead, struct flow *flow)
{
    vec least = v_set1(0);
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        const struct separations *last = k ? now + k - 1 : other + DEPTH - 1;
        const struct separations *next = k + 1 < DEPTH ? now + k + 1 : other;
        const vec y = flow->y, y2 = v_mul(y, y), s2 = v_load(now[k].s2);
        const vec my = v_mul(y, v_load(mass[k * VL / CHUNK].m + k * VL % CHUNK));
        if (k == DEPTH - 1) add_pairs(flow->f, last, flow->s2, &flow->sum);
        const vec found = separate(t, ahead, k, &other[k]);
        least = k ? v_min(least, found) : found;
        if (k != DEPTH - 1) add_pairs(flow->f, last, flow->s2, &flow->sum);
        flow->y = v_rsqrt_seed(v_load(next->s2));
        flow->f = v_mul(v_mul(my, y2), bracket(s2, y2));
        flow->s2 = s2;
    }
    return least;
}

static void block(const struct acc_chunk *chunk, const struct acc_low *low, int chunks,
                  const struct acc_target *target, double sum[NACC], struct acc_close *close)
{
    const int32_t *at = target->place;
    const float *beside = target->low;
    const struct target t = {{v_set1_int(at[0]), v_set1_int(at[1]), v_set1_int(at[2])},
                             {v_set1(beside[0]), v_set1(beside[1]), v_set1(beside[2])},
                             v_set1(target->eps2)};
    const vec near = v_set1(target->eps2 + ACC_NEAR * ACC_NEAR), zero = v_set1(0);
    const int end = chunks * CHUNK;
    group_of_pairs ring[2];
    struct acc_chunk massless[2][STEP];
    const struct acc_chunk *mass[2] = {chunk, chunk};
    struct totals total;
    vec least = near;
    close->count = 0;
    for (int k = 0; k < DEPTH; k++) least = v_min(least, separate(&t, chunk, k, &ring[0][k]));
    ring[1][DEPTH - 1] = ring[0][0]; /* any finite values: its factor is zero */
    for (int k = 0; k < NACC; k++) v_store(total.sum[k], zero);
    if (vmask_bits(v_lt(least, near)))
        mass[0] = look_closely(&t, ring[0], chunk, low, massless[0], 0, end, close);
    struct flow flow = {v_rsqrt_seed(v_load(ring[0][0].s2)), zero, zero, {zero, zero, zero, zero}};
    for (int place = 0, left = VL / 2; place < end; place += 2 * GROUP) {
        UNROLL
        for (int h = 0; h < 2; h++) {
            chunk += STEP, low += STEP;
            KEEP_IN_MEMORY;
            least = advance(&t, ring[h], ring[!h], mass[h], chunk, &flow);
            mass[!h] = chunk;
            if (__builtin_expect(vmask_bits(v_lt(least, near)), 0)) {
                mass[!h] = look_closely(&t, ring[!h], chunk, low, massless[!h],
                                        place + (h + 1) * GROUP, end, close);
                flow.y = v_rsqrt_seed(v_load(ring[!h][0].s2));
            }
        }
        if (--left) continue; /* 32 terms per lane */
        left = VL / 2;
        push(&total, &flow.sum);
    }
    KEEP_IN_MEMORY;
    add_pairs(flow.f, &ring[1][DEPTH - 1], flow.s2, &flow.sum);
    push(&total, &flow.sum);
    v_sum_lanes(v_load(total.sum[0]), v_load(total.sum[1]), v_load(total.sum[2]),
                v_load(total.sum[3]), sum);
}

/* Factor of the sums: 3/2, corrected for the processor's mean error of 1/s over an octave of s. */
static double correction(void)
{
    enum { SAMPLES = 4096 };
    double sum = 0.0;
    for (int k = 0; k < SAMPLES; k += VL) {
        real s2[VL], f[VL];
        for (int l = 0; l < VL; l++) s2[l] = (real)(1.0 + 3.0 * (k + l + 0.5) / SAMPLES);
        const vec a = v_load(s2), y = v_rsqrt_seed(a), y2 = v_mul(y, y);
        v_store(f, v_mul(v_mul(y, y2), bracket(a, y2)));
        for (int l = 0; l < VL; l++) sum += (double)f[l] * (double)s2[l] * sqrt((double)s2[l]);
    }
    return SAMPLES / sum;
}

/* ---- pairs in double ------------------------------------------------------------ */

/* Pairs in double are computed in batches; lane l adds every LANES-th pair. */
enum { LANES = 8, BATCH = 8 * LANES };

struct batch {
    double r[3][BATCH], m[BATCH], s2[BATCH];
};

/* Points first + place[k], or first + k, relative to the target. Missing points have no mass. */
INLINE void take_batch(const struct acc_points *p, const struct acc_units *f, int64_t first,
                       const int16_t *place, int n, const struct acc_target *t, struct batch *b)
{
    for (int l = 0; l < n; l++) {
        const int64_t a = first + (place ? place[l] : l);
        const double there = is_finite(p->m[a]) ? f->x_unit : 0.0;
        for (int c = 0; c < 3; c++) b->r[c][l] = (p->x[a][c] - t->x[c]) * there;
        b->m[l] = is_finite(p->m[a]) ? p->m[a] * f->m_unit : 0.0;
    }
}

/* Whether the terms of a pair are within the range of double. */
INLINE int pair_fits(double s2, double m)
{
    const double size = fabs(m);
    return (s2 > 0x1p-200) & (s2 < 0x1p400) & (size < 0x1p400) & (size > 0x1p-300);
}

/* Removes pairs that do not fit from a batch, and records those with a mass. */
static __attribute__((noinline)) void take_out(struct batch *b, const double *given,
                                               const int16_t *place, int from, int n,
                                               struct acc_close *left)
{
    for (int l = 0; l < n; l++) {
        const int at = place ? place[l] : from + l;
        if (pair_fits(b->s2[l], b->m[l])) continue;
        if (is_finite(given[at]) && given[at] != 0.0) left->place[left->count++] = (int16_t)at;
        b->m[l] = 0.0, b->s2[l] = 1.0;
        for (int c = 0; c < 3; c++) b->r[c][l] = 0.0;
    }
}

static void pairs(const struct acc_points *p, const struct acc_units *f, int64_t first,
                  const int16_t *place, int n, const struct acc_target *t, double sum[NACC],
                  struct acc_close *left)
{
    double total[NACC][LANES] = {{0}};
    struct batch b;
    left->count = 0;
    for (int k = 0; k < n; k += BATCH) {
        const int here = n - k < BATCH ? n - k : BATCH, end = (here + LANES - 1) / LANES * LANES;
        const int16_t *at = place ? place + k : NULL;
        int fit = 1;
        if (at)
            take_batch(p, f, first, at, here, t, &b);
        else
            take_batch(p, f, first + k, NULL, here, t, &b);
        for (int l = here; l < end; l++) b.r[0][l] = b.r[1][l] = b.r[2][l] = b.m[l] = 1.0;
        for (int l = 0; l < end; l++) {
            b.s2[l] = b.r[0][l] * b.r[0][l] + b.r[1][l] * b.r[1][l] + b.r[2][l] * b.r[2][l];
            b.s2[l] += t->eps2;
            fit &= pair_fits(b.s2[l], b.m[l]);
        }
        if (!fit) take_out(&b, p->m + first, at, k, here, left);
        for (int l = here; l < end; l++) b.m[l] = 0.0;
        for (int q = 0; q < end; q += LANES)
            for (int l = 0; l < LANES; l++) {
                const double y = 1.0 / sqrt(b.s2[q + l]), my = b.m[q + l] * y, my3 = my * y * y;
                total[ACC_POT][l] += my;
                for (int c = 0; c < 3; c++) total[c][l] += my3 * b.r[c][q + l];
            }
    }
    for (int k = 0; k < NACC; k++)
        for (int l = 0; l < LANES; l++) sum[k] += total[k][l];
}

/* ---- packing ---------------------------------------------------------------------- */

/* Works in pieces that stay in the cache between the test and the copy. */
static int copy(double *to, const double *from, int64_t n)
{
    enum { PIECE = 512 };
    for (int64_t k = 0; k < n; k += PIECE) {
        const int64_t piece = n - k < PIECE ? n - k : PIECE;
        if (!all_finite(from + k, (size_t)piece)) return 0;
        memcpy(to + k, from + k, (size_t)piece * sizeof *to);
    }
    return 1;
}

/* Loads `n` points. Missing points are replaced by points without mass at the origin, which
 * send_away moves later; returns their bits. */
static unsigned take_there(const struct acc_points *p, int64_t first, int n, const double origin[3],
                           double (*x)[3], double *m)
{
    unsigned missing = 0;
    for (int k = 0; k < CHUNK; k++) {
        const int is_there = k < n && is_finite(p->m[first + k]);
        memcpy(x[k], is_there ? p->x[first + k] : origin, sizeof x[k]);
        m[k] = is_there ? p->m[first + k] : 0.0;
        missing |= (unsigned)!is_there << k;
    }
    return missing;
}

INLINE void send_away(struct acc_chunk *chunk, struct acc_low *low, int k)
{
    for (int c = 0; c < 3; c++) chunk->x[c][k] = INT32_MAX, low->x[c][k] = 0.0f;
    chunk->m[k] = 0.0f;
}

/* Range of scaled masses for which all terms are within the range of single precision. */
#define LIGHTEST 0x1p-4f
#define HEAVIEST 0x1p99f

/* Packs a chunk of points. Returns whether any point might not fit, or has no mass. */
INLINE unsigned pack_chunk(const double (*x)[3], const double *m, const struct acc_units *f,
                           struct acc_chunk *chunk, struct acc_low *low)
{
    const double *o = f->origin;
    const quad origin[3] = {q_set(o[0], o[1], o[2], o[0]), q_set(o[1], o[2], o[0], o[1]),
                            q_set(o[2], o[0], o[1], o[2])};
    const quad x_unit = q_set1(f->x_unit), m_unit = q_set1(f->m_unit);
    vec most = v_set1(0), heavy = most, light = v_set1(HEAVIEST);
    UNROLL
    for (int g = 0; g < CHUNK; g += 4)
        q_pack_points(x[g], origin, x_unit, chunk->x[0] + g, low->x[0] + g);
    UNROLL
    for (int g = 0; g < CHUNK; g += 4) q_store_single(chunk->m + g, q_mul(q_load(m + g), m_unit));
    for (int k = 0; k < CHUNK; k += VL) {
        const vec size = v_abs(v_load(chunk->m + k));
        heavy = v_max(heavy, size), light = v_min(light, size);
        for (int c = 0; c < 3; c++)
            most = v_max(most, v_abs(v_int_difference(chunk->x[c] + k, v_set1_int(0))));
    }
    const unsigned all = (1u << VL) - 1, bad_mass = vmask_bits(v_lt(light, v_set1(LIGHTEST))) |
                                                    vmask_bits(v_lt(v_set1(HEAVIEST), heavy));
    return bad_mass | (vmask_bits(v_lt(most, v_set1(ACC_REACH))) ^ all);
}

static __attribute__((noinline)) void note_unpacked(struct acc_chunk *chunk, struct acc_low *low,
                                                    const double *m, int place,
                                                    struct acc_unpacked *unpacked)
{
    for (int k = 0; k < CHUNK; k++) {
        const float size = fabsf(chunk->m[k]);
        int fits = size >= LIGHTEST && size <= HEAVIEST;
        for (int c = 0; c < 3; c++)
            fits &= chunk->x[c][k] < (int)ACC_REACH && chunk->x[c][k] > -(int)ACC_REACH;
        if (fits) continue;
        send_away(chunk, low, k);
        if (m[k] == 0.0) continue;
        unpacked->place[unpacked->count++] = (int16_t)(place + k);
    }
}

static void pack(const struct acc_points *p, const struct acc_units *f, int64_t first, int64_t end,
                 int whole, struct acc_chunk *chunk, struct acc_low *low,
                 struct acc_unpacked *unpacked)
{
    unpacked->count = 0;
    for (int64_t a = first; a < end; a += CHUNK, chunk++, low++) {
        double x[CHUNK][3], m[CHUNK];
        const int here = end - a < CHUNK ? (int)(end - a) : CHUNK;
        if (whole && here == CHUNK) {
            if (pack_chunk(p->x + a, p->m + a, f, chunk, low))
                note_unpacked(chunk, low, p->m + a, (int)(a - first), unpacked);
            continue;
        }
        const unsigned missing = take_there(p, a, here, f->origin, x, m);
        if (pack_chunk(CONST3(x), m, f, chunk, low))
            note_unpacked(chunk, low, m, (int)(a - first), unpacked);
        for (int k = 0; k < CHUNK; k++)
            if (missing >> k & 1) send_away(chunk, low, k);
    }
    for (int64_t n = (end - first + CHUNK - 1) / CHUNK; n % ACC_GROUP; n++, chunk++, low++)
        for (int k = 0; k < CHUNK; k++) send_away(chunk, low, k);
}

extern const struct grape5_kernel SIMD_NAME_OF_SET(cpu_grape5_kernel);
const struct grape5_kernel SIMD_NAME_OF_SET(cpu_grape5_kernel) = {copy, pack, block, pairs,
                                                                  correction};
