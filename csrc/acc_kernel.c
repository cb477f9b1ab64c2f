/* acc_kernel.c - see acc_kernel.h. Compiled once per instruction set.
 *
 * A pair is 20 operations, most of which wait for the one before, and a core looks through no more
 * than 64 or so for what is ready. So the loop works in stages, in the order in which results
 * arrive: separations go to the cache, a group ahead; each vector's estimate of
 * 1/s is begun one vector ahead, and its sums are added one vector later.
 */
#include "acc_kernel.h"

#include <math.h>
#include <stdalign.h>

#include OPS_HEADER

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { GROUP = 32, DEPTH = GROUP / VL, STEP = GROUP / CHUNK }; /* pairs, vectors, chunks */
_Static_assert(ACC_GROUP == 2 * STEP, "groups are summed two by two");

/* m / s^3 is 3/2 times y^3 m (5/3 - s^2 y^2), y being the estimate of 1/s: one step, and no
 * square of the error of y, whose mean correction() finds. */
INLINE vec bracket(vec s2, vec y2) { return v_fnma(s2, y2, v_set1(5.0 / 3.0)); }

/* ---- sums of a block ------------------------------------------------------------ */

struct pairs {
    alignas(sizeof(vec)) real x[VL], y[VL], z[VL], s2[VL];
};

typedef struct pairs group_of_pairs[DEPTH];

/* The compiler would carry what it has stored in registers, of which there are too few. */
#define KEEP_IN_MEMORY __asm__ volatile("" ::: "memory")

struct target {
    vint x, y, z;
    vec eps2;
};

struct sums {
    vec x, y, z, pot;
};

struct totals {
    alignas(sizeof(vec)) real sum[NACC][VL];
};

INLINE void add_to(real *total, vec part) { v_store(total, v_add(v_load(total), part)); }

/* In the cache, so that the loop has the registers. */
INLINE void push(struct totals *total, struct sums *part)
{
    add_to(total->sum[ACC_AX], part->x), add_to(total->sum[ACC_AY], part->y);
    add_to(total->sum[ACC_AZ], part->z), add_to(total->sum[ACC_POT], part->pot);
    part->x = part->y = part->z = part->pot = v_set1(0);
}

/* A group of pairs of which some are near: notes these, up to place `end` of the block, and gives
 * chunks in which they have no mass. */
static __attribute__((noinline)) const struct acc_chunk *
leave_out(struct pairs *p, const struct acc_chunk *group, struct acc_chunk *massless, int place,
          int end, struct acc_close *close)
{
    for (int c = 0; c < STEP; c++) memcpy(massless[c].m, group[c].m, sizeof group[c].m);
    for (int k = 0; k < DEPTH; k++) {
        unsigned bits = vmask_bits(v_lt(v_load(p[k].s2), v_set1(ACC_NEAR * ACC_NEAR)));
        for (; bits; bits &= bits - 1) {
            const int at = k * VL + __builtin_ctz(bits);
            massless[at / CHUNK].m[at % CHUNK] = 0.0f;
            p[k].s2[at % VL] = 1.0f;
            if (place < end) close->place[close->count++] = (int16_t)(place + at);
        }
    }
    return massless;
}

/* Stage one of vector k of a group: separations, and s^2. */
INLINE vec separate(const struct target *t, const struct acc_chunk *group, int k, struct pairs *p)
{
    const struct acc_chunk *c = group + k * VL / CHUNK;
    const int at = k * VL % CHUNK;
    const vec x = v_int_difference(c->x[0] + at, t->x);
    const vec y = v_int_difference(c->x[1] + at, t->y);
    const vec z = v_int_difference(c->x[2] + at, t->z);
    const vec s2 = v_fma(z, z, v_fma(y, y, v_fma(x, x, t->eps2)));
    v_store(p->x, x), v_store(p->y, y), v_store(p->z, z), v_store(p->s2, s2);
    return s2;
}

INLINE void add_pairs(vec f, const struct pairs *p, vec s2, struct sums *sum)
{
    sum->pot = v_fma(f, s2, sum->pot);
    sum->x = v_fma(f, v_load(p->x), sum->x);
    sum->y = v_fma(f, v_load(p->y), sum->y);
    sum->z = v_fma(f, v_load(p->z), sum->z);
}

/* What is under way between the stages of a vector. */
struct flow {
    vec y;     /* estimate of 1/s, of the next vector */
    vec f, s2; /* m / s^3 and s^2 of the last one, which is not added yet */
    struct sums sum;
};

/* Sums the pairs of `now` but for its last vector, before them the last one of `other`, into
 * which those of the group `ahead` go. Gives the least s^2 of these. */
INLINE vec advance(const struct target *t, const group_of_pairs now, group_of_pairs other,
                   const struct acc_chunk *mass, const struct acc_chunk *ahead, struct flow *flow)
{
    vec least = v_set1(0);
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        const struct pairs *last = k ? now + k - 1 : other + DEPTH - 1;
        const struct pairs *next = k + 1 < DEPTH ? now + k + 1 : other;
        const vec y = flow->y, y2 = v_mul(y, y), s2 = v_load(now[k].s2);
        const vec my = v_mul(y, v_load(mass[k * VL / CHUNK].m + k * VL % CHUNK));
        if (k == DEPTH - 1) add_pairs(flow->f, last, flow->s2, &flow->sum);
        const vec fresh = separate(t, ahead, k, &other[k]);
        least = k ? v_min(least, fresh) : fresh;
        if (k != DEPTH - 1) add_pairs(flow->f, last, flow->s2, &flow->sum);
        flow->y = v_rsqrt_seed(v_load(next->s2));
        flow->f = v_mul(v_mul(my, y2), bracket(s2, y2));
        flow->s2 = s2;
    }
    return least;
}

static void block(const struct acc_chunk *chunk, int chunks, const struct acc_target *target,
                  double sum[NACC], struct acc_close *close)
{
    const struct target t = {v_set1_int(target->place[0]), v_set1_int(target->place[1]),
                             v_set1_int(target->place[2]), v_set1(target->eps2)};
    const vec near = v_set1(ACC_NEAR * ACC_NEAR), zero = v_set1(0);
    const int end = chunks * CHUNK;
    group_of_pairs ring[2];
    struct acc_chunk massless[2][STEP];
    const struct acc_chunk *mass[2] = {chunk, chunk};
    struct totals total;
    vec least = near;
    close->count = 0;
    for (int k = 0; k < DEPTH; k++) least = v_min(least, separate(&t, chunk, k, &ring[0][k]));
    ring[1][DEPTH - 1] = ring[0][0]; /* counts for nothing */
    for (int k = 0; k < NACC; k++) v_store(total.sum[k], zero);
    if (vmask_bits(v_lt(least, near)))
        mass[0] = leave_out(ring[0], chunk, massless[0], 0, end, close);
    struct flow flow = {v_rsqrt_seed(v_load(ring[0][0].s2)), zero, zero, {zero, zero, zero, zero}};
    for (int place = 0, left = VL / 2; place < end; place += 2 * GROUP) {
        UNROLL
        for (int h = 0; h < 2; h++) {
            chunk += STEP;
            KEEP_IN_MEMORY;
            least = advance(&t, ring[h], ring[!h], mass[h], chunk, &flow);
            mass[!h] = chunk;
            if (__builtin_expect(vmask_bits(v_lt(least, near)), 0)) {
                mass[!h] =
                    leave_out(ring[!h], chunk, massless[!h], place + (h + 1) * GROUP, end, close);
                flow.y = v_rsqrt_seed(v_load(ring[!h][0].s2));
            }
        }
        if (--left) continue; /* 32 terms a lane */
        left = VL / 2;
        push(&total, &flow.sum);
    }
    KEEP_IN_MEMORY;
    add_pairs(flow.f, &ring[1][DEPTH - 1], flow.s2, &flow.sum);
    push(&total, &flow.sum);
    v_sum_lanes(v_load(total.sum[0]), v_load(total.sum[1]), v_load(total.sum[2]),
                v_load(total.sum[3]), sum);
}

/* What the sums are to be multiplied by: 3/2, and the mean error that the processor's estimates
 * leave, over an octave of s. */
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

INLINE int is_number(double a) { return (bits_of(a) >> 52 & 0x7ff) != 0x7ff; }

enum { MOST_LANES = 8 };

INLINE void pairs_by(const int LANES, const struct acc_points *p, const struct acc_frame *f,
                     int64_t first, const int16_t *place, int n, const struct acc_target *t,
                     double sum[NACC], struct acc_close *left)
{
    double total[NACC][MOST_LANES] = {{0}};
    const double unit = f->x_unit, eps2 = t->eps2;
    for (int k = 0; k < n; k += LANES) {
        double r[3][MOST_LANES] = {{0}}, m[MOST_LANES] = {0}, s2[MOST_LANES];
        const int lanes = n - k < LANES ? n - k : LANES;
        for (int l = 0; l < lanes; l++) {
            const int64_t a = first + (place ? place[k + l] : k + l);
            if (!is_number(p->m[a])) continue;
            for (int c = 0; c < 3; c++) r[c][l] = (p->x[a][c] - t->x[c]) * unit;
            m[l] = p->m[a] * f->m_unit;
        }
        for (int l = 0; l < LANES; l++)
            s2[l] = r[0][l] * r[0][l] + r[1][l] * r[1][l] + r[2][l] * r[2][l] + eps2;
        for (int l = 0; l < lanes; l++) {
            const int at = place ? place[k + l] : k + l;
            const double size = fabs(m[l]), given = p->m[first + at];
            const int fits =
                s2[l] > 0x1p-200 && s2[l] < 0x1p400 && size < 0x1p400 && size > 0x1p-300;
            if (fits) continue;
            if (is_number(given) && given != 0.0) left->place[left->count++] = (int16_t)at;
            m[l] = 0.0, s2[l] = 1.0;
            for (int c = 0; c < 3; c++) r[c][l] = 0.0;
        }
        for (int l = lanes; l < LANES; l++) s2[l] = 1.0;
        for (int l = 0; l < LANES; l++) {
            const double y = 1.0 / sqrt(s2[l]), my = m[l] * y, my3 = my * y * y;
            total[ACC_POT][l] += my;
            for (int c = 0; c < 3; c++) total[c][l] += my3 * r[c][l];
        }
    }
    for (int k = 0; k < NACC; k++)
        for (int l = 0; l < LANES; l++) sum[k] += total[k][l];
}

static void pairs_in_double(const struct acc_points *p, const struct acc_frame *f, int64_t first,
                            const int16_t *place, int n, const struct acc_target *t,
                            double sum[NACC], struct acc_close *left)
{
    left->count = 0;
    if (n < MOST_LANES)
        pairs_by(1, p, f, first, place, n, t, sum, left);
    else
        pairs_by(MOST_LANES, p, f, first, place, n, t, sum, left);
}

/* ---- packing ---------------------------------------------------------------------- */

/* In pieces that stay in the cache between the look and the copy. */
static int copy(double *to, const double *from, int64_t n)
{
    enum { PIECE = 512 };
    for (int64_t k = 0; k < n; k += PIECE) {
        const int64_t piece = n - k < PIECE ? n - k : PIECE;
        uint64_t any = 0;
        for (int64_t l = 0; l < piece; l++)
            any |= (bits_of(from[k + l]) & 0x7ff0000000000000u) + 0x0010000000000000u;
        if (any >> 63) return 0;
        memcpy(to + k, from + k, (size_t)piece * sizeof *to);
    }
    return 1;
}

/* Those of `n` points that are there, with points at the origin without mass in place of the
 * others, which are sent far away later. */
static unsigned take_there(const struct acc_points *p, int64_t first, int n, const double origin[3],
                           double (*x)[3], double *m)
{
    unsigned missing = 0;
    for (int k = 0; k < CHUNK; k++) {
        const int is_there = k < n && is_number(p->m[first + k]);
        memcpy(x[k], is_there ? p->x[first + k] : origin, sizeof x[k]);
        m[k] = is_there ? p->m[first + k] : 0.0;
        missing |= (unsigned)!is_there << k;
    }
    return missing;
}

INLINE void send_away(struct acc_chunk *chunk, int k)
{
    for (int c = 0; c < 3; c++) chunk->x[c][k] = INT32_MAX;
    chunk->m[k] = 0.0f;
}

/* Scaled masses with which all terms are within single precision. */
#define LIGHTEST 0x1p-4f
#define HEAVIEST 0x1p99f

/* A chunk of points as they were sent. Whether any might not fit, or has no mass. */
INLINE unsigned pack_chunk(const double (*x)[3], const double *m, const struct acc_frame *f,
                           struct acc_chunk *chunk)
{
    const double *o = f->origin;
    const quad origin[3] = {q_set(o[0], o[1], o[2], o[0]), q_set(o[1], o[2], o[0], o[1]),
                            q_set(o[2], o[0], o[1], o[2])};
    const quad x_unit = q_set1(f->x_unit), m_unit = q_set1(f->m_unit);
    vec most = v_set1(0), heavy = most, light = v_set1(HEAVIEST);
    UNROLL
    for (int g = 0; g < CHUNK; g += 4) q_pack_points(x[g], origin, x_unit, chunk->x[0] + g);
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

static __attribute__((noinline)) void note_odd(struct acc_chunk *chunk, const double *m, int place,
                                               struct acc_odd *odd)
{
    for (int k = 0; k < CHUNK; k++) {
        const float size = fabsf(chunk->m[k]);
        int fits = size >= LIGHTEST && size <= HEAVIEST;
        for (int c = 0; c < 3; c++)
            fits &= chunk->x[c][k] < (int)ACC_REACH && chunk->x[c][k] > -(int)ACC_REACH;
        if (fits) continue;
        send_away(chunk, k);
        if (m[k] == 0.0) continue;
        if (odd->count < ACC_MOST_ODD) odd->place[odd->count] = (int16_t)(place + k);
        if (odd->count <= ACC_MOST_ODD) odd->count++;
    }
}

static void pack(const struct acc_points *p, const struct acc_frame *f, int64_t first, int64_t end,
                 int whole, struct acc_chunk *chunk, struct acc_odd *odd)
{
    odd->count = 0;
    for (int64_t a = first; a < end; a += CHUNK, chunk++) {
        double x[CHUNK][3], m[CHUNK];
        const int here = end - a < CHUNK ? (int)(end - a) : CHUNK;
        if (whole && here == CHUNK) {
            if (pack_chunk(p->x + a, p->m + a, f, chunk))
                note_odd(chunk, p->m + a, (int)(a - first), odd);
            continue;
        }
        const unsigned missing = take_there(p, a, here, f->origin, x, m);
        if (pack_chunk((const double (*)[3])x, m, f, chunk))
            note_odd(chunk, m, (int)(a - first), odd);
        for (int k = 0; k < CHUNK; k++)
            if (missing >> k & 1) send_away(chunk, k);
    }
    for (int64_t n = (end - first + CHUNK - 1) / CHUNK; n % ACC_GROUP; n++, chunk++)
        for (int k = 0; k < CHUNK; k++) send_away(chunk, k);
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern const struct acc_kernel JOIN(acc_kernel_, ISA);
const struct acc_kernel JOIN(acc_kernel_, ISA) = {copy, pack, block, pairs_in_double, correction};
