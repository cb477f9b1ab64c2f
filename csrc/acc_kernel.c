/* acc_kernel.c - see acc_kernel.h. Compiled once per instruction set.
 *
 * A pair is 23 operations, and a core has more of them under way at once than it can look through
 * for what is ready. So the loop works in two stages: separations of one group of vectors go to a
 * small ring in the cache while those of the group before, from there, become forces.
 */
#include "acc_kernel.h"

#include <math.h>
#include <stdalign.h>

#include OPS_HEADER

/* How good the estimate of 1/sqrt is in single precision. */
#if defined(__x86_64__) && !defined(__AVX512F__)
#define RSQRT_12_BITS 1
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { DEPTH = ACC_GROUP * CHUNK / VL < 4 ? ACC_GROUP * CHUNK / VL : 4 }; /* vectors of a group */
enum { GROUP = DEPTH * VL, SUB_GROUPS = 32 / DEPTH };
/* A close pair does no harm where s^2 is this much larger than the r^2 that makes it one: the error
 * of the force, m 2^-25 / s^3 near the origin, is then small beside m / L^2, for L = 2^20 the
 * length scale. */
#define SOFT 0x1p16

/* Twice 1/sqrt(x) from v_rsqrt_seed's y, by one Newton step. It is too small, by SMALL in the mean
 * where the seed has 12 bits (measured on a Zen 4), and 2e-7 at most. The factor of two saves an
 * operation; block_on takes both out again. */
#ifdef RSQRT_12_BITS
#define SMALL 9.55e-9
#else
#define SMALL 0.0
#endif
INLINE vec twice_rsqrt(vec x, vec y)
{
#ifdef v_rsqrt
    (void)x;
    return v_add(y, y);
#else
    return v_mul(y, v_fnma(v_mul(x, y), y, v_set1(3)));
#endif
}

struct target {
    vec x, y, z, xl, yl, zl, eps2;
    float close; /* r^2 below which a pair is done exactly */
};

/* A vector of pairs between the stages. */
struct pairs {
    alignas(sizeof(vec)) real x[VL], y[VL], z[VL], s2[VL];
};

/* Vector k of a group in rows that begin with it. */
INLINE const real *vector_of(const real *rows, int k)
{
    return rows + k * VL / CHUNK * ACC_ROWS * CHUNK + k * VL % CHUNK;
}

/* Separations x_j - x_i as in pair.h. Gives s^2. */
INLINE vec separate(const struct target *t, const real *j, struct pairs *p)
{
    const real *low = j + 4 * CHUNK;
    const vec x = v_add(v_sub(v_load(j), t->x), v_sub(v_load(low), t->xl));
    const vec y = v_add(v_sub(v_load(j + CHUNK), t->y), v_sub(v_load(low + CHUNK), t->yl));
    const vec z = v_add(v_sub(v_load(j + 2 * CHUNK), t->z), v_sub(v_load(low + 2 * CHUNK), t->zl));
    const vec s2 = v_fma(z, z, v_fma(y, y, v_fma(x, x, t->eps2)));
    v_store(p->x, x);
    v_store(p->y, y);
    v_store(p->z, z);
    v_store(p->s2, s2);
    return s2;
}

struct sums {
    vec x, y, z, pot;
};

INLINE void add_pairs(const struct pairs *p, vec m, vec y, struct sums *sum)
{
    const vec my = v_mul(m, y), my3 = v_mul(my, v_mul(y, y));
    sum->pot = v_add(sum->pot, my);
    sum->x = v_fma(my3, v_load(p->x), sum->x);
    sum->y = v_fma(my3, v_load(p->y), sum->y);
    sum->z = v_fma(my3, v_load(p->z), sum->z);
}

/* A vector of pairs some of which may be too close. */
static void add_careful(const struct pairs *p, const real *m, int place, float close_r2,
                        struct sums *sum, struct acc_close *close)
{
    real s2[VL], mass[VL];
    memcpy(s2, p->s2, sizeof s2);
    memcpy(mass, m, sizeof mass);
    for (int l = 0; l < VL; l++) {
        const real r2 = p->x[l] * p->x[l] + p->y[l] * p->y[l] + p->z[l] * p->z[l];
        if (!(r2 < close_r2)) continue;
        close->place[close->count++] = (int16_t)(place + l);
        s2[l] = 1;
        mass[l] = 0;
    }
    const vec d2 = v_load(s2);
    add_pairs(p, v_load(mass), twice_rsqrt(d2, v_rsqrt_seed(d2)), sum);
}

INLINE void flush(double total[NACC][VL], struct sums *sum)
{
    v_accumulate(total[ACC_AX], sum->x);
    v_accumulate(total[ACC_AY], sum->y);
    v_accumulate(total[ACC_AZ], sum->z);
    v_accumulate(total[ACC_POT], sum->pot);
    sum->x = sum->y = sum->z = sum->pot = v_set1(0);
}

INLINE double folded(double *lane)
{
    UNROLL
    for (int half = VL / 2; half; half /= 2)
        for (int v = 0; v < half; v++) lane[v] += lane[v + half];
    return lane[0];
}

/* The block sums on one target; it reads one group beyond the last. `guarded`: pairs may be too
 * close; any such s^2 is below `limit`, however it was rounded. */
INLINE void block_on(const int guarded, const real *rows, int n, const struct target *t,
                     double sum[NACC], struct acc_close *close)
{
    const int groups = (n + GROUP - 1) / GROUP;
    const size_t step = (size_t)GROUP * ACC_ROWS;
    struct pairs ring[2][DEPTH];
    double total[NACC][VL] = {{0}};
    struct sums part;
    const vec slack = v_set1(1 + 0x1p-22), limit = v_mul(v_add(t->eps2, v_set1(t->close)), slack);
    part.x = part.y = part.z = part.pot = v_set1(0);
    vec least = v_set1(FAR_S2);
    UNROLL
    for (int k = 0; k < DEPTH; k++)
        least = v_min(least, separate(t, vector_of(rows, k), &ring[0][k]));
    for (int g = 0; g < groups; g++, rows += step) {
        const struct pairs *now = ring[g & 1];
        struct pairs *next = ring[(g & 1) ^ 1];
        const unsigned near = guarded && vmask_bits(v_lt(least, limit));
        if (__builtin_expect(near, 0)) {
            for (int k = 0; k < DEPTH; k++) {
                const real *m = vector_of(rows, k) + 3 * CHUNK;
                add_careful(&now[k], m, g * GROUP + k * VL, t->close, &part, close);
            }
            least = v_set1(FAR_S2);
            for (int k = 0; k < DEPTH; k++)
                least = v_min(least, separate(t, vector_of(rows + step, k), &next[k]));
        } else {
            vec s2[DEPTH], y = v_load(now[0].s2);
            y = twice_rsqrt(y, v_rsqrt_seed(y));
            UNROLL
            for (int k = 0; k < DEPTH; k++) { /* each step between those that wait for it */
                const vec d2 = v_load(now[k + 1 < DEPTH ? k + 1 : k].s2), seed = v_rsqrt_seed(d2);
                const vec m = v_load(vector_of(rows, k) + 3 * CHUNK);
                s2[k] = separate(t, vector_of(rows + step, k), &next[k]);
                add_pairs(&now[k], m, y, &part);
                y = twice_rsqrt(d2, seed);
            }
            least = s2[0];
            UNROLL
            for (int k = 1; k < DEPTH && guarded; k++) least = v_min(least, s2[k]);
        }
        if ((g + 1) % SUB_GROUPS == 0) flush(total, &part);
    }
    flush(total, &part);
    for (int k = 0; k < NACC; k++)
        sum[k] = folded(total[k]) * (k == ACC_POT ? 0.5 * (1 + SMALL) : 0.125 * (1 + 3 * SMALL));
}

/* ---- GRAPE-5's points ------------------------------------------------------------- */

static void block(const float *rows, int n, const float target[ACC_FIELDS], double sum[NACC],
                  struct acc_close *close)
{
    const struct target t = {v_set1(target[0]), v_set1(target[1]), v_set1(target[2]),
                             v_set1(target[3]), v_set1(target[4]), v_set1(target[5]),
                             v_set1(target[6]), target[7]};
    close->count = 0;
    if (target[6] >= target[7] * SOFT)
        block_on(0, rows, n, &t, sum, close);
    else
        block_on(1, rows, n, &t, sum, close);
}

INLINE int is_number(double a) { return (bits_of(a) >> 52 & 0x7ff) != 0x7ff; }

static int all_finite(const double *a, int64_t n)
{
    uint64_t any = 0;
    for (int64_t k = 0; k < n; k++)
        any |= (bits_of(a[k]) & 0x7ff0000000000000u) + 0x0010000000000000u;
    return !(any >> 63);
}

/* Those of `n` points that are there, with points at the origin without mass in place of the
 * others, which pack moves far away. */
static unsigned take_there(const struct acc_points *p, int64_t first, int n, const double origin[3],
                           double (*x)[3], double *m)
{
    unsigned there = 0;
    for (int k = 0; k < CHUNK; k++) {
        const int is_there = k < n && is_number(p->m[first + k]);
        memcpy(x[k], is_there ? p->x[first + k] : origin, sizeof x[k]);
        m[k] = is_there ? p->m[first + k] : 0.0;
        there |= (unsigned)is_there << k;
    }
    return there;
}

/* A chunk of points as they were sent. */
INLINE void pack_chunk(const double (*x)[3], const double *m, const struct acc_frame *f, float *row)
{
    const double *o = f->origin;
    const quad origin[3] = {q_set(o[0], o[1], o[2], o[0]), q_set(o[1], o[2], o[0], o[1]),
                            q_set(o[2], o[0], o[1], o[2])};
    const quad x_unit = q_set1(f->x_unit);
    const double m_unit = f->m_unit;
    UNROLL
    for (int g = 0; g < CHUNK; g += 4)
        q_pack_points(x[g], origin, x_unit, row + g, row + 4 * CHUNK + g);
    for (int k = 0; k < CHUNK; k++) row[3 * CHUNK + k] = (float)(m[k] * m_unit);
}

/* A mass that would vanish sends its block to the exact sum (in_range). */
INLINE void keep_tiny(const double *m, int n, float *packed)
{
    unsigned tiny = 0;
    for (int l = 0; l < CHUNK; l += VL)
        tiny |= vmask_bits(v_lt(v_abs(v_load(packed + l)), v_set1(0x1p-100)));
    for (int k = 0; tiny && k < n; k++)
        if (m[k] != 0.0 && is_number(m[k]) && fabsf(packed[k]) < 0x1p-100f) packed[k] = 0x1p-126f;
}

static void pack(const struct acc_points *p, const struct acc_frame *f, int64_t first, int64_t end,
                 int whole, float *rows)
{
    for (int64_t a = first; a < end; a += CHUNK) {
        float *row = rows + a * ACC_ROWS;
        double x[CHUNK][3], m[CHUNK];
        if (end - a >= CHUNK && (whole || all_finite(p->m + a, CHUNK))) {
            pack_chunk(p->x + a, p->m + a, f, row);
            continue;
        }
        const unsigned there =
            take_there(p, a, end - a < CHUNK ? (int)(end - a) : CHUNK, f->origin, x, m);
        pack_chunk((const double (*)[3])x, m, f, row);
        for (int k = 0; k < CHUNK; k++)
            if (!(there >> k & 1)) row[k] = (float)FAR_AWAY;
    }
    for (int64_t a = first; a < end; a += CHUNK)
        keep_tiny(p->m + a, end - a < CHUNK ? (int)(end - a) : CHUNK,
                  rows + a * ACC_ROWS + 3 * CHUNK);
    for (int64_t a = (end + CHUNK - 1) / CHUNK * CHUNK; a % (ACC_GROUP * CHUNK); a += CHUNK) {
        memset(rows + a * ACC_ROWS, 0, sizeof(float) * CHUNK * ACC_ROWS);
        for (int k = 0; k < CHUNK; k++) rows[a * ACC_ROWS + k] = (float)FAR_AWAY;
    }
}

INLINE vec magnitude(vec a)
{
    const vec limit = v_set1(0x1p127), b = v_abs(a);
    return v_select(v_lt(b, limit), b, limit);
}

static double extreme(vec a, int largest)
{
    real lane[VL];
    v_store(lane, a);
    double most = lane[0];
    for (int l = 1; l < VL; l++)
        if (largest ? lane[l] > most : lane[l] < most) most = lane[l];
    return most;
}

static struct block_range range(const float *rows, int n)
{
    const vec none = v_set1(0x1p-126), never = v_set1(0x1p127), far = v_set1(FAR_AWAY);
    vec x = v_set1(0), high = x, low = never;
    for (int c = 0; c < n; c += CHUNK, rows += ACC_ROWS * CHUNK)
        for (int l = 0; l < CHUNK; l += VL) {
            const vec m = magnitude(v_load(rows + 3 * CHUNK + l)), x0 = magnitude(v_load(rows + l));
            x = v_max(x, v_select(v_lt(m, none), v_select(v_lt(x0, far), x0, v_set1(0)), x0));
            x = v_max(x, magnitude(v_load(rows + CHUNK + l)));
            x = v_max(x, magnitude(v_load(rows + 2 * CHUNK + l)));
            high = v_max(high, m);
            low = v_min(low, v_select(v_lt(m, none), never, m));
        }
    const double most = extreme(high, 1);
    return (struct block_range){
        (int16_t)exponent_of(extreme(x, 1)), EXPONENT_NONE, EXPONENT_NONE,
        (int16_t)(most > 0.0 ? exponent_of(extreme(low, 0)) : EXPONENT_NONE),
        (int16_t)exponent_of(most)};
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern const struct acc_kernel JOIN(acc_kernel_, ISA);
const struct acc_kernel JOIN(acc_kernel_, ISA) = {all_finite, pack, range, block};
