/* grape5_sum.c - see grape5_sum.h. Block sums are added in the order of addresses, so that a force
 * has the same bits for any number of threads. */
#include "cpu/grape5_sum.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"
#include "simd/dispatch.h"

#define DECLARE(isa, ...) extern const struct grape5_kernel cpu_grape5_kernel_##isa;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) &cpu_grape5_kernel_##isa,
static const struct grape5_kernel *const KERNELS[] = {SIMD_COMPILED(ROW)};

const struct grape5_kernel *cpu_grape5_sum_kernel(int isa)
{
    const int k = simd_dispatch(isa);
    return k < 0 ? NULL : KERNELS[k];
}

/* Targets that use a block while it is in the cache; least pairs of a thread. */
enum { TILE = ACC_TILE, PAIRS_PER_THREAD = 16384 };

struct work {
    const struct grape5_points *p;
    struct grape5_sum *sum;
    int64_t n, blocks;
    int64_t i_step, j_step, i_parts, count; /* tasks: i parts times j parts */
    _Atomic int64_t zero_distances;
    double acc_unit[2], pot_unit[2];
    double (*block_sum)[NACC]; /* [block][i], if j has parts */
};

static struct acc_target take_target(const struct work *w, int64_t i, int *bad)
{
    const struct acc_units *f = &w->p->units;
    const struct grape5_sum *s = w->sum;
    const double eps2 = s->eps2[s->each ? i : 0] * f->x_unit * f->x_unit;
    struct acc_target t = {.eps2 = eps2, .fits = eps2 < ACC_EPS2, .central = 1};
    *bad = 0;
    for (int k = 0; k < 3; k++) {
        const double round = 6755399441055744.0, a = (s->x[i][k] - f->origin[k]) * f->x_unit;
        const int fits = a < ACC_REACH && a > -ACC_REACH;
        t.x[k] = s->x[i][k];
        t.place[k] = fits ? (int32_t)(a + round - round) : 0;
        t.low[k] = fits ? (float)(a - t.place[k]) : 0.0f;
        t.fits &= fits;
        t.central &= fabs(a) < ACC_REACH / 2;
        *bad |= !is_finite(s->x[i][k]);
    }
    return t;
}

/* Adds the pair of a target and a point, in extended precision and the caller's units. */
static void add_exactly(struct work *w, int64_t i, int64_t address, long double sum[NACC])
{
    const struct grape5_sum *s = w->sum;
    const double m = w->p->m[address], *x = w->p->x[address];
    if (!is_finite(m) || m == 0.0) return;
    FPENV_X87_HERE;
    long double r[3], s2 = s->eps2[s->each ? i : 0];
    for (int k = 0; k < 3; k++) {
        r[k] = (long double)x[k] - (long double)s->x[i][k];
        s2 += r[k] * r[k];
    }
    if (s2 == 0.0L) {
        atomic_fetch_add_explicit(&w->zero_distances, 1, memory_order_relaxed);
        return;
    }
    const long double y = 1.0L / sqrtl(s2), my = m * y;
    for (int k = 0; k < 3; k++) sum[k] += my * y * y * r[k];
    sum[ACC_POT] += my;
}

static void add_rounded(const long double exact[NACC], double sum[NACC])
{
    FPENV_X87_HERE;
    for (int k = 0; k < NACC; k++) sum[k] += (double)exact[k];
}

/* Adds the same in double, in scaled units, unless its terms might not be within the range of
 * double. Returns whether it did. */
static inline int add_pair(const struct work *w, const struct acc_target *t, int64_t address,
                           double sum[NACC])
{
    const struct acc_units *f = &w->p->units;
    const double *x = w->p->x[address], m = w->p->m[address] * f->m_unit, size = fabs(m);
    double r[3], s2 = t->eps2;
    for (int k = 0; k < 3; k++) r[k] = (x[k] - t->x[k]) * f->x_unit, s2 += r[k] * r[k];
    if (!((s2 > 0x1p-200) & (s2 < 0x1p400) & (size < 0x1p400) & (size > 0x1p-300))) return 0;
    const double y = 1.0 / sqrt(s2), my = m * y, my3 = my * y * y;
    for (int k = 0; k < 3; k++) sum[k] += my3 * r[k];
    sum[ACC_POT] += my;
    return 1;
}

/* Completes the sum of a block on a target, which then is in the caller's units. place: offsets in
 * the block of the n points that the kernel left out. */
static void complete(struct work *w, const struct acc_target *t, int64_t i, int64_t b,
                     const int16_t *place, int n, double sum[NACC])
{
    const struct grape5_points *p = w->p;
    const struct acc_unpacked *u = &p->unpacked[b];
    const int64_t first = b * BLOCK, end = first + BLOCK < w->n ? first + BLOCK : w->n;
    long double exact[NACC];
    int extreme = 0;
#define ADD(address)                                                                               \
    if (!add_pair(w, t, address, sum)) {                                                           \
        if (!extreme) memset(exact, 0, sizeof exact); /* storing a long double takes long */       \
        extreme = 1;                                                                               \
        add_exactly(w, i, address, exact);                                                         \
    }
    for (int k = 0; k < NACC; k++)
        sum[k] = !t->fits ? 0.0 : sum[k] * (k == ACC_POT ? p->correction : -p->correction);
    for (int k = 0; k < n && t->fits; k++) ADD(first + place[k]);
    for (int k = 0; k < u->count && t->fits; k++) ADD(first + u->place[k]);
    for (int k = 0; k < u->distant && t->fits && !t->central; k++) ADD(first + u->distant_place[k]);
    for (int64_t a = first; a < end && !t->fits; a++) ADD(a);
    for (int k = 0; k < NACC; k++) {
        const double *unit = k == ACC_POT ? w->pot_unit : w->acc_unit;
        sum[k] = sum[k] * unit[0] * unit[1];
    }
    if (extreme) add_rounded(exact, sum);
}

static void store(struct grape5_sum *s, int64_t i, const double sum[NACC], int bad)
{
    for (int k = 0; k < 3; k++) s->acc[i][k] = bad ? (double)NAN : sum[k];
    s->pot[i] = bad ? (double)NAN : sum[ACC_POT];
}

/* Sums the forces of blocks first .. last - 1 on targets i .. i + count - 1. */
static void sum_tile(struct work *w, int64_t i, int count, int64_t first, int64_t last)
{
    const struct grape5_points *p = w->p;
    struct acc_target t[TILE];
    struct acc_close close;
    double total[TILE][NACC], sum[TILE][NACC];
    int bad[TILE];
    memset(total, 0, (size_t)count * sizeof *total);
    for (int k = 0; k < count; k++) t[k] = take_target(w, i + k, &bad[k]);
    for (int64_t b = first; b < last; b++) {
        const int64_t chunk = b * BLOCK / CHUNK, left = ceil_div(w->n - b * BLOCK, CHUNK);
        const int64_t most = BLOCK / CHUNK, chunks = left < most ? left : most;
        for (int k = 0, done, end = 0; k < count; k += done, end = 0) {
            done = p->kernel->block(p->chunk + chunk, (int)ceil_div(chunks, ACC_GROUP) * ACC_GROUP,
                                    CONST3(p->x + b * BLOCK), &p->units, &p->unpacked[b], t + k,
                                    count - k, sum, &close);
            for (int q = 0; q < done; end = close.end[q++]) {
                double *of = w->block_sum ? w->block_sum[b * w->sum->ni + i + k + q] : total[k + q];
                if (bad[k + q]) continue;
                complete(w, &t[k + q], i + k + q, b, close.place + end, close.end[q] - end, sum[q]);
                for (int c = 0; c < NACC; c++) of[c] += sum[q][c];
            }
        }
    }
    for (int k = 0; k < count && !w->block_sum; k++) store(w->sum, i + k, total[k], bad[k]);
}

static void sum_tasks(void *work, int64_t from, int64_t to)
{
    struct work *w = work;
    for (int64_t k = from; k < to; k++) {
        const int64_t i = k % w->i_parts * w->i_step, first = k / w->i_parts * w->j_step;
        const int64_t end = i + w->i_step < w->sum->ni ? i + w->i_step : w->sum->ni;
        const int64_t last = first + w->j_step < w->blocks ? first + w->j_step : w->blocks;
        for (int64_t at = i; at < end; at += TILE)
            sum_tile(w, at, end - at < TILE ? (int)(end - at) : TILE, first, last);
    }
}

/* Cuts the work into tasks for a number of threads: by targets; if these are few, by blocks too. */
static void cut(struct work *w, int threads)
{
    const int64_t ni = w->sum->ni;
    w->i_step = ni;
    w->j_step = w->blocks ? w->blocks : 1;
    if (threads > 1 && ni >= 8 * threads) {
        w->i_step = ceil_div(ni, 4 * threads) < TILE ? ceil_div(ni, 4 * threads) : TILE;
    } else if (threads > 1) {
        const int64_t i_parts = ni < threads ? ni : threads, j_parts = ceil_div(threads, i_parts);
        w->i_step = ceil_div(ni, i_parts);
        w->j_step = ceil_div(w->blocks, j_parts < w->blocks ? j_parts : w->blocks);
    }
    w->i_parts = ceil_div(ni, w->i_step);
    w->count = w->i_parts * ceil_div(w->blocks, w->j_step);
    if (!w->blocks) w->count = w->i_parts;
}

int cpu_grape5_sum_run(const struct grape5_points *p, int64_t n, int threads,
                       struct grape5_sum *sum)
{
    const int length = length_shift(&p->scale, MODE_GRAPE) + ACC_SHIFT,
              mass = mass_shift(&p->scale);
    struct work w = {.p = p, .sum = sum, .n = n < p->capacity ? n : p->capacity};
    w.blocks = ceil_div(w.n, BLOCK);
    scale_factors(2 * length - mass, w.acc_unit);
    scale_factors(length - mass, w.pot_unit);
    const int64_t useful = w.n * sum->ni / PAIRS_PER_THREAD + 1;
    const int most = useful < threads ? (int)useful : threads;
    if (sum->ni) cut(&w, most);
    if (w.j_step < w.blocks) {
        w.block_sum = memory_zeroed((size_t)(w.blocks * sum->ni) * sizeof *w.block_sum);
        if (!w.block_sum) return G6X_E_MEMORY;
    }
    threads_each(most, w.count, 1, sum_tasks, &w);
    for (int i = 0; i < sum->ni && w.block_sum; i++) { /* of all threads, in the blocks' order */
        double total[NACC] = {0};
        const int bad = !all_finite(sum->x[i], 3);
        for (int64_t b = 0; b < w.blocks && !bad; b++)
            for (int q = 0; q < NACC; q++) total[q] += w.block_sum[b * sum->ni + i][q];
        store(sum, i, total, bad);
    }
    memory_free(w.block_sum);
    sum->zero_distances = w.zero_distances;
    return 0;
}
