/* grape5_kernel.c - see grape5_kernel.h. Compiled once per instruction set.
 *
 * A pair takes 20 operations, most of which depend on the one before, and a core reorders only so
 * many. So the loop adds the vectors of one group of pairs while it computes the separations of the
 * next: in registers, as far as there are enough.
 */
#include "cpu/grape5_kernel.h"
#include "simd/dispatch.h"

#include <math.h>
#include <stdalign.h>

#include OPS_HEADER

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

/* AVX2 has too few registers for a group. */
enum { IN_CACHE = VL == 8 };
/* Vectors, pairs and chunks of a group; groups until a lane has 32 terms. */
enum { DEPTH = IN_CACHE ? 8 : 4, GROUP = DEPTH * VL, STEP = GROUP / CHUNK, GROUPS = 32 / DEPTH };
_Static_assert(ACC_GROUP % STEP == 0, "a sum has whole groups");

/* m / s^3 is 3/2 times y^3 m (5/3 - s^2 y^2), where y is the estimate of 1/s: one refinement step.
 * The error is of second order in that of y; correction() removes its mean. */
INLINE vec bracket(vec s2, vec y2) { return v_fnma(s2, y2, v_set1(5.0 / 3.0)); }

/* ---- sums of a block ------------------------------------------------------------ */

/* A vector of pairs: positions of the target relative to the points, and the squared distance with
 * softening. */
struct pairs_of {
    vec r[3], s2;
};

struct target {
    vint place[3];
    vec eps2, near; /* s^2 of pairs at ACC_NEAR */
};

INLINE struct target take(const struct acc_target *t)
{
    const int32_t *at = t->place;
    return (struct target){{v_set1_int(at[0]), v_set1_int(at[1]), v_set1_int(at[2])},
                           v_set1(t->eps2),
                           v_set1(t->eps2 + ACC_NEAR * ACC_NEAR)};
}

struct sums {
    vec of[NACC];
};

/* Keeps the compiler from moving the operations of a vector past those of the next. */
#define STEP_DONE(now, l)                                                                          \
    if (IN_CACHE)                                                                                  \
        __asm__ volatile("" ::"r"(now) : "memory");                                                \
    else                                                                                           \
        __asm__ volatile("" : VEC_REGISTER((now)[l].s2))

INLINE vec square_of(const vec r[3], vec eps2)
{
    return v_fma(r[2], r[2], v_fma(r[1], r[1], v_fma(r[0], r[0], eps2)));
}

/* Vector k of a group. */
INLINE void separate(const struct target *t, const struct acc_chunk *group, int k,
                     struct pairs_of *p)
{
    const struct acc_chunk *c = group + k * VL / CHUNK;
    for (int q = 0; q < 3; q++) p->r[q] = v_int_difference(t->place[q], c->x[q] + k * VL % CHUNK);
    p->s2 = square_of(p->r, t->eps2);
}

/* A group; returns the least s^2 of each lane. */
INLINE vec separate_all(const struct target *t, const struct acc_chunk *group,
                        struct pairs_of p[DEPTH])
{
    vec least = v_set1(INFINITY);
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        separate(t, group, k, &p[k]);
        least = v_min(least, p[k].s2);
    }
    return least;
}

INLINE vec mass_of(const struct acc_chunk *group, int k)
{
    return v_load(group[k * VL / CHUNK].m + k * VL % CHUNK);
}

INLINE void add_pairs(const struct pairs_of *p, vec m, struct sums *sum)
{
    const vec y = v_rsqrt_seed(p->s2), y2 = v_mul(y, y), my = v_mul(y, m);
    const vec f = v_mul(v_mul(my, y2), bracket(p->s2, y2));
    sum->of[ACC_POT] = v_fma(f, p->s2, sum->of[ACC_POT]);
    for (int q = 0; q < 3; q++) sum->of[q] = v_fma(f, p->r[q], sum->of[q]);
}

/* Records points to leave to double: bits of a place. */
INLINE void note(uint64_t bits, int place, struct acc_close *close)
{
    for (; bits; bits &= bits - 1)
        close->place[close->count++] = (int16_t)(place + __builtin_ctzll(bits));
}

/* Positions after rounding to integers: what remains. */
struct remainders {
    float x[3][CHUNK];
};

/* A block. The remainders of a chunk are computed when first needed, which few lists do. */
struct source {
    const struct acc_chunk *chunk;
    const double (*x)[3];
    const struct acc_units *units;
    uint64_t known; /* bit of each chunk with remainders */
    struct remainders low[BLOCK_CHUNKS];
};

INLINE void round_positions(const double (*x)[3], const struct acc_units *f,
                            int32_t (*place)[CHUNK], struct remainders *low)
{
    const double *o = f->origin;
    const quad origin[3] = {q_set(o[0], o[1], o[2], o[0]), q_set(o[1], o[2], o[0], o[1]),
                            q_set(o[2], o[0], o[1], o[2])};
    UNROLL
    for (int g = 0; g < CHUNK; g += 4)
        q_pack_points(x[g], origin, q_set1(f->x_unit), place[0] + g, low->x[0] + g);
}

/* Records pairs of a group hardly apart, and if those nearer than ACC_RULES are few all these; adds
 * the others. */
static __attribute__((noinline)) void add_others(const struct acc_chunk *at, int place,
                                                 struct pairs_of p[DEPTH], struct sums *sum,
                                                 struct acc_close *close)
{
    const vec rules = v_set1(ACC_RULES * ACC_RULES), touch = v_set1(ACC_CLOSE * ACC_CLOSE);
    const vec zero = v_set1(0);
    vec r2[DEPTH];
    int few = 0;
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        r2[k] = square_of(p[k].r, zero);
        few += __builtin_popcount(vmask_bits(v_lt(r2[k], rules)));
    }
    const vec limit = few > ACC_FEW ? touch : rules;
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        const vmask out = v_lt(r2[k], limit);
        note(vmask_bits(out), place + k * VL, close);
        p[k].s2 = v_select(out, v_set1(1), p[k].s2);
        add_pairs(&p[k], v_select(out, zero, mass_of(at, k)), sum);
    }
}

/* Adds a group with many near pairs, these with the remainders of the positions. */
static __attribute__((noinline)) void add_closely(struct source *from, int group,
                                                  const struct acc_target *target, struct sums *sum,
                                                  struct acc_close *close)
{
    const struct target t = take(target);
    const struct acc_chunk *at = from->chunk + group;
    /* All pairs nearer than ACC_RULES are below this, whatever the rounding. */
    const vec rules = v_set1((target->eps2 + ACC_RULES * ACC_RULES) * (1 + 0x1p-20));
    struct pairs_of p[DEPTH];
    vec least = rules;
    for (int c = group; c < group + STEP; c++) {
        int32_t unused[3][CHUNK];
        if (from->known >> c & 1) continue;
        round_positions(from->x + c * CHUNK, from->units, unused, &from->low[c]);
        from->known |= (uint64_t)1 << c;
    }
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        const struct remainders *l = from->low + group + k * VL / CHUNK;
        separate(&t, at, k, &p[k]);
        const vmask near = v_lt(p[k].s2, t.near); /* others may have no position */
        for (int c = 0; c < 3; c++) {
            const vec beside = v_sub(v_set1(target->low[c]), v_load(l->x[c] + k * VL % CHUNK));
            p[k].r[c] = v_add(p[k].r[c], v_select(near, beside, v_set1(0)));
        }
        p[k].s2 = square_of(p[k].r, t.eps2);
        least = v_min(least, p[k].s2);
    }
    if (vmask_bits(v_lt(least, rules))) {
        add_others(at, group * CHUNK, p, sum, close);
        return;
    }
    struct sums part = *sum;
    UNROLL
    for (int k = 0; k < DEPTH; k++) add_pairs(&p[k], mass_of(at, k), &part);
    *sum = part;
}

/* Adds points that are in single precision. */
INLINE void add_distant(const struct target *t, const struct acc_target *target,
                        const struct acc_unpacked *u, struct sums *sum)
{
    for (int k = 0; k < u->distant; k += VL) {
        struct pairs_of p;
        for (int c = 0; c < 3; c++) {
            const vec at = v_set1(target->place[c] + (double)target->low[c]);
            p.r[c] = v_sub(at, v_load(u->x[c] + k));
        }
        p.s2 = square_of(p.r, t->eps2);
        add_pairs(&p, v_load(u->m + k), sum);
    }
}

/* Adds the sums of at most 32 terms to the totals. */
INLINE void push(struct sums *total, struct sums *part)
{
    for (int k = 0; k < NACC; k++) {
        total->of[k] = v_add(total->of[k], part->of[k]);
        part->of[k] = v_set1(0);
    }
}

/* Takes the near pairs out of a group before it is added: returns the chunks without them, and
 * records them. If they are many it adds the group, and returns NULL. */
INLINE const struct acc_chunk *take_near_out(struct source *from, int group,
                                             const struct acc_target *target, vec near,
                                             struct pairs_of now[DEPTH],
                                             struct acc_chunk massless[STEP], struct sums *part,
                                             struct acc_close *close)
{
    uint64_t bits = 0;
    UNROLL
    for (int k = 0; k < DEPTH; k++) bits |= (uint64_t)vmask_bits(v_lt(now[k].s2, near)) << (k * VL);
    if (__builtin_popcountll(bits) > ACC_FEW) {
        struct sums sum;
        for (int q = 0; q < NACC; q++) sum.of[q] = part->of[q];
        add_closely(from, group, target, &sum, close);
        for (int q = 0; q < NACC; q++) part->of[q] = sum.of[q];
        return NULL;
    }
    note(bits, group * CHUNK, close);
    UNROLL
    for (int k = 0; k < DEPTH; k++) {
        const vmask out = v_lt(now[k].s2, near);
        v_store(massless[k * VL / CHUNK].m + k * VL % CHUNK,
                v_select(out, v_set1(0), mass_of(from->chunk + group, k)));
        now[k].s2 = v_select(out, v_set1(1), now[k].s2);
    }
    return massless;
}

static int block(const struct acc_chunk *chunk, int chunks, const double (*x)[3],
                 const struct acc_units *units, const struct acc_unpacked *unpacked,
                 const struct acc_target *target, int count, double (*sum)[NACC],
                 struct acc_close *close)
{
    struct source from;
    const vec zero = v_set1(0);
    struct target t = take(target);
    struct pairs_of now[DEPTH];
    struct acc_chunk massless[STEP];
    vec least = separate_all(&t, chunk, now);
    int i = 0;
    from.chunk = chunk, from.x = x, from.units = units, from.known = 0;
    for (close->count = 0; i < count && close->count <= BLOCK; i++) {
        struct sums part = {{zero, zero, zero, zero}}, total = part;
        if (target[i].central) add_distant(&t, &target[i], unpacked, &total);
        for (int k = 0, left = GROUPS; k < chunks; k += STEP) {
            const struct acc_chunk *mass = chunk + k, *ahead = chunk + k + STEP;
            if (__builtin_expect(vmask_bits(v_lt(least, t.near)) != 0, 0))
                mass = take_near_out(&from, k, &target[i], t.near, now, massless, &part, close);
            if (k + STEP >= chunks) { /* on to the next target */
                t = take(&target[i + (i + 1 < count)]);
                ahead = chunk;
            }
            least = t.near;
            if (mass) {
                UNROLL
                for (int l = 0; l < DEPTH; l++) {
                    add_pairs(&now[l], mass_of(mass, l), &part);
                    separate(&t, ahead, l, &now[l]);
                    least = v_min(least, now[l].s2);
                    STEP_DONE(now, l);
                }
            } else {
                least = separate_all(&t, ahead, now);
            }
            if (--left) continue;
            left = GROUPS;
            push(&total, &part);
        }
        push(&total, &part);
        v_sum_lanes(total.of[0], total.of[1], total.of[2], total.of[3], sum[i]);
        close->end[i] = close->count;
    }
    return i;
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

/* ---- packing ---------------------------------------------------------------------- */

static int copy(double *restrict to, const double *restrict from, int64_t n)
{
    uint64_t any = 0; /* as in all_finite */
    for (int64_t k = 0; k < n; k++) {
        any |= (bits_of(from[k]) & 0x7ff0000000000000u) + 0x0010000000000000u;
        to[k] = from[k];
    }
    return !(any >> 63);
}

/* Range of scaled masses for which all terms are within the range of single precision. */
#define LIGHTEST 0x1p-4f
#define HEAVIEST 0x1p99f

INLINE void pack_chunk(const double (*x)[3], const double *m, const struct acc_units *f,
                       struct acc_chunk *chunk)
{
    struct remainders unused;
    round_positions(x, f, chunk->x, &unused);
    UNROLL
    for (int g = 0; g < CHUNK; g += 4)
        q_store_single(chunk->m + g, q_mul(q_load(m + g), q_set1(f->m_unit)));
}

/* Whether all points of a chunk fit and have a mass. */
INLINE int is_packed(const struct acc_chunk *chunk)
{
    vec most = v_set1(0), heavy = most, light = v_set1(HEAVIEST);
    for (int k = 0; k < CHUNK; k += VL) {
        const vec size = v_abs(v_load(chunk->m + k));
        heavy = v_max(heavy, size), light = v_min(light, size);
        for (int c = 0; c < 3; c++)
            most = v_max(most, v_abs(v_int_difference(v_set1_int(0), chunk->x[c] + k)));
    }
    const unsigned all = (1u << VL) - 1, bad_mass = vmask_bits(v_lt(light, v_set1(LIGHTEST))) |
                                                    vmask_bits(v_lt(v_set1(HEAVIEST), heavy));
    return !bad_mass && vmask_bits(v_lt(most, v_set1(ACC_REACH))) == all;
}

/* Removes from a chunk, and records, the points that do not fit or have no mass. m, x: of the
 * `here` points of the chunk that exist. */
static __attribute__((noinline)) void note_unpacked(struct acc_chunk *chunk, const double (*x)[3],
                                                    const double *m, int here,
                                                    const struct acc_units *f, int place,
                                                    struct acc_unpacked *u)
{
    for (int k = 0; k < CHUNK; k++) {
        const float mass = chunk->m[k], size = fabsf(mass);
        const int heavy = size >= LIGHTEST && size <= HEAVIEST;
        int packed = heavy, distant = heavy && u->distant < ACC_DISTANT;
        for (int c = 0; c < 3 && heavy; c++) {
            const double a = (x[k][c] - f->origin[c]) * f->x_unit;
            packed &= chunk->x[c][k] < (int)ACC_REACH && chunk->x[c][k] > -(int)ACC_REACH;
            if (distant) u->x[c][u->distant] = (float)a;
            distant &= fabs(a) < ACC_FARTHEST;
        }
        if (packed) continue;
        for (int c = 0; c < 3; c++) chunk->x[c][k] = INT32_MAX;
        chunk->m[k] = 0.0f;
        if (distant) {
            u->m[u->distant] = mass;
            u->distant_place[u->distant++] = (int16_t)(place + k);
        } else if (k < here && is_finite(m[k]) && m[k] != 0.0) {
            u->place[u->count++] = (int16_t)(place + k);
        }
    }
}

static void pack(const struct acc_points *p, const struct acc_units *f, int64_t first, int64_t end,
                 int whole, struct acc_chunk *chunk, struct acc_unpacked *unpacked)
{
    const int n = (int)(end - first), group = ACC_GROUP * CHUNK,
              padded = (n + group - 1) / group * group;
    const double (*const from)[3] = p->x + first, *const mass = p->m + first;
    for (int k = 0; k < padded; k += CHUNK) {
        double x[CHUNK][3], m[CHUNK];
        if (whole && k + CHUNK <= n) {
            pack_chunk(from + k, mass + k, f, &chunk[k / CHUNK]);
            continue;
        }
        for (int l = 0; l < CHUNK; l++) { /* no mass, if there is no point */
            const int there = k + l < n && is_finite(mass[k + l]);
            memcpy(x[l], there ? from[k + l] : f->origin, sizeof x[l]);
            m[l] = there ? mass[k + l] : 0.0;
        }
        pack_chunk(CONST3(x), m, f, &chunk[k / CHUNK]);
    }
    unpacked->count = unpacked->distant = 0;
    for (int k = 0; k < padded; k += CHUNK) /* stored long ago, as far as the processor goes */
        if (!is_packed(&chunk[k / CHUNK]))
            note_unpacked(&chunk[k / CHUNK], from + k, mass + k, n - k, f, k, unpacked);
    for (int k = unpacked->distant; k % CHUNK; k++) {
        for (int c = 0; c < 3; c++) unpacked->x[c][k] = 0x1p31f;
        unpacked->m[k] = 0.0f;
    }
}

extern const struct grape5_kernel SIMD_NAME_OF_SET(cpu_grape5_kernel);
const struct grape5_kernel SIMD_NAME_OF_SET(cpu_grape5_kernel) = {copy, pack, block, correction};
