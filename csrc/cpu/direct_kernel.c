/* direct_kernel.c - the direct sum for one instruction set and one precision.
 *
 * Compiled once per instruction set (-DISA=...) and width (-DREAL_BITS=32 or 64).
 * Two arrangements compute the same sums in the same order (cpu/direct_kernel.h), so that each
 * call can use the faster one. `tile`: lanes hold i, and j is broadcast. `row`: lanes hold 16 j of
 * a chunk for one i; for calls with few i.
 */
#include "cpu/direct_kernel.h"
#include "simd/dispatch.h"

#include <math.h>
#include <stdlib.h>

#include OPS_HEADER
#include "simd/records.h"
#include "shared/rsqrt.h"
#include "shared/pair.h"

#include "cpu/exact.h"
#include "util/clock.h"
#include "util/fpenv.h"
#include "util/threads.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")

enum { TILE = VL };

/* Every s^2 of a close pair is below this, including rounding errors. */
HOST_DEVICE vec maybe_close(vec eps2, vec close)
{
    const vec slack = v_set1(1.0 + (REAL_BITS == 32 ? 0x1p-22 : 0x1p-51));
    return v_mul(v_add(eps2, close), slack);
}

#include "cpu/direct_pack.h"

/* Converts i particles from job->x, v, eps2 to fields and body_range. */
static void pack_targets(const struct direct_job *job)
{
    void *const *fields = job->fields;
    struct body_range *range = job->body_range;
    const double xs = scale_power_of_two(length_shift(&job->scale, job->mode));
    const double vs = scale_power_of_two(velocity_shift(&job->scale));
    for (int i = 0; i < job->ni; i++) {
        uint64_t x = 0, v = 0; /* largest magnitudes, as bits */
        for (int k = 0; k < 3; k++) {
            const double a = (job->x[i][k] - job->scale.origin[k]) * xs;
            const double b = (job->v[i][k] - job->scale.drift[k]) * vs;
            double hi = a;
#if REAL_BITS == 32
            if (job->mode == MODE_GRAPE) {
                const double round = 6755399441055744.0;
                hi = (float)(a < 0x1p40 && a > -0x1p40 ? a + round - round : a);
                ((real *)fields[3 + k])[i] = (real)(a - hi);
            }
#endif
            ((real *)fields[k])[i] = (real)hi;
            ((real *)fields[6 + k])[i] = (real)b;
            if (bits_of(a) << 1 > x) x = bits_of(a) << 1;
            if (bits_of(b) << 1 > v) v = bits_of(b) << 1;
        }
        const double e = job->eps2[i] * xs * xs;
        ((real *)fields[9])[i] = (real)e;
        range[i] =
            (struct body_range){(int16_t)exponent_of(from_bits(x >> 1)),
                                (int16_t)exponent_of(from_bits(v >> 1)), (int16_t)exponent_of(e)};
        ((real *)fields[10])[i] = (real)scale_power_of_two(close_exponent(job->mode, range[i].x));
    }
}

static void rows_lock(const struct direct_job *job, int i)
{
    if (job->shared)
        while (
            atomic_flag_test_and_set_explicit(&job->lock[i / 8 % ROW_LOCKS], memory_order_acquire))
            threads_pause();
}

static void rows_unlock(const struct direct_job *job, int i)
{
    if (job->shared)
        atomic_flag_clear_explicit(&job->lock[i / 8 % ROW_LOCKS], memory_order_release);
}

/* A call with constants for whether positions are split, never in 64 bits, and there are jerks. */
#define EACH_JERK(split, jerk, CALL) ((jerk) ? CALL(split, 1) : CALL(split, 0))
#define EACH_KIND(split, jerk, CALL)                                                               \
    (REAL_BITS == 32 && (split) ? EACH_JERK(REAL_BITS == 32, jerk, CALL) : EACH_JERK(0, jerk, CALL))

#include "cpu/direct_row.h"
#include "cpu/direct_hits.h"
#include "cpu/direct_tile.h"

/* ---- the table ------------------------------------------------------------------ */

#define EACH_NEAREST(split, jerk, CALL)                                                            \
    (job->nearest == 2 ? CALL(split, jerk, 2)                                                      \
     : job->nearest    ? CALL(split, jerk, 1)                                                      \
                       : CALL(split, jerk, 0))

/* With fewer i, the row arrangement is faster than tiles with empty lanes. */
enum { ROWS_BELOW = VL * 3 / 4 };

static void direct_sum(const struct direct_job *job, int i, int n, int64_t first, int64_t last,
                       struct partial_row *rows, struct nearest *nearest)
{
    while (n > 0) {
        const int done = n >= TILE ? TILE : n >= ROWS_BELOW ? n : 1;
#define TILE_SUM(split, jerk, nn)                                                                  \
    tile_sum(job, split, jerk, nn, i, done, first, last, rows, nearest)
#define TILES(split, jerk) EACH_NEAREST(split, jerk, TILE_SUM)
#define ROW_SUM(split, jerk, nn) row_sum(job, split, jerk, nn, i, first, last, rows, nearest)
#define ROW(split, jerk) EACH_NEAREST(split, jerk, ROW_SUM)
        if (n >= ROWS_BELOW)
            EACH_KIND(job->mode == MODE_GRAPE, job->jerk, TILES);
        else
            EACH_KIND(job->mode == MODE_GRAPE, job->jerk, ROW);
        i += done, n -= done, rows += done;
        if (nearest) nearest += done;
    }
}

/* Twelve independent chains hide the latency of FMA on any processor. */
static double fma_rate(void)
{
    enum { ROUNDS = 20000, CHAINS = 12 };
    double best = 0.0;
    for (int take = 0; take < 20; take++) {
        vec a[CHAINS];
        for (int k = 0; k < CHAINS; k++) a[k] = v_set1(1.0 + k);
        const double began = clock_seconds();
        for (int n = 0; n < ROUNDS; n++) {
            UNROLL
            for (int k = 0; k < CHAINS; k++) {
                a[k] = v_fma(a[k], a[k], a[k]);
                __asm__ volatile("" : VEC_REGISTER(a[k]));
            }
        }
        const double s = clock_seconds() - began;
        if ((double)ROUNDS * CHAINS / s > best) best = (double)ROUNDS * CHAINS / s;
    }
    return best;
}

extern const struct direct_kernel SIMD_NAME(cpu_direct_kernel);
const struct direct_kernel SIMD_NAME(cpu_direct_kernel) = {
    TILE, pack_blocks, pack_targets, direct_sum, direct_hits, fma_rate,
};
