/* output.c - see output.h. */
#include "session/output.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "cpu/exact.h"
#include "session/call_rows.h"
#include "session/force_scale.h"
#include "util/fpenv.h"
#include "util/threads.h"

void session_output_nan(int n, double (*acc)[3], double (*jerk)[3], double *pot, int *nearest,
                        float *distance)
{
    if (!acc && !jerk && !pot && !nearest && !distance) return; /* then n may be undefined */
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) {
            if (acc) acc[i][k] = NAN;
            if (jerk) jerk[i][k] = NAN;
        }
        if (pot) pot[i] = NAN;
        if (nearest) nearest[i] = -1;
        if (distance) distance[i] = NAN;
    }
}

int session_output_unfit(struct session *s, int row, int index)
{
    return error_set(&s->error, G6X_E_RANGE,
                     "the force on particle %d (index %d) does not fit a double", row, index);
}

int session_output_invalid(struct session *s, int row, int index)
{
    return error_set(&s->error, G6X_E_I_NAN,
                     "NaN or Inf in i particle %d (index %d); its force is NaN", row, index);
}

int session_output_fit(double sum[NSUM], int jerk)
{
    unsigned unfit = 0; /* bit per window: a vector is NaN as a whole */
    for (int k = 0; k < NSUM; k++)
        if ((jerk || window_of(k) != WINDOW_JERK) && !is_finite(sum[k]))
            unfit |= 1u << window_of(k);
    for (int k = 0; k < NSUM; k++)
        if (unfit >> window_of(k) & 1 || (!jerk && window_of(k) == WINDOW_JERK)) sum[k] = NAN;
    return !unfit;
}

enum { ROWS_PER_THREAD = 1024, MOST_COPIERS = 8, ROWS_AT_ONCE = 256, EARLY_ROWS = 8192 };

/* Writes a row that has a NaN or does not fit a double. */
static void checked_row(struct outputs *o, int i)
{
    const struct force_call *c = o->call;
    double sum[NSUM];
    for (int k = 0; k < NSUM; k++) sum[k] = c->own.invalid[i] ? NAN : c->results.sum[k][i];
    if (!session_output_fit(sum, c->jerk) && !c->own.invalid[i]) {
        int lowest = atomic_load(&o->out_of_range);
        while (i < lowest && !atomic_compare_exchange_weak(&o->out_of_range, &lowest, i)) continue;
    }
    memcpy(o->acc[i], sum + SUM_AX, sizeof o->acc[i]);
    if (o->jerk) memcpy(o->jerk[i], sum + SUM_JX, sizeof o->jerk[i]);
    o->pot[i] = 0.0 - sum[SUM_POT];
}

/* Loads rows that a device has just written into the cache, all at once. */
static void prefetch_rows(const struct force_call *c, int first, int end)
{
    enum { LINE = 64 / sizeof(double) };
    for (int i = first; i < end; i += LINE) {
        for (int k = 0; k < NSUM; k++) __builtin_prefetch(&c->results.sum[k][i]);
        __builtin_prefetch(&c->results.nearest[i]);
        __builtin_prefetch(&c->results.index[i]);
    }
}

static void plain_rows(struct outputs *o, int first, int end)
{
    const struct force_call *c = o->call;
    const double *const *sum = c->results.sum;
    if (end - first >= ROWS_AT_ONCE) prefetch_rows(c, first, end);
    for (int i = first; i < end; i++) {
        uint64_t bad = 0;
        for (int k = 0; k < NSUM; k++)
            if (c->jerk || window_of(k) != WINDOW_JERK) bad |= not_finite(sum[k][i]);
        if (bad >> 63 || c->own.invalid[i] || (o->jerk && !c->jerk)) {
            checked_row(o, i);
            continue;
        }
        for (int k = 0; k < 3; k++) o->acc[i][k] = sum[SUM_AX + k][i];
        for (int k = 0; o->jerk && k < 3; k++) o->jerk[i][k] = sum[SUM_JX + k][i];
        o->pot[i] = 0.0 - sum[SUM_POT][i];
    }
    for (int i = first; i < end && o->nearest; i++) {
        const int alone = c->results.nearest[i] < 0 || c->own.invalid[i];
        o->nearest[i] = alone ? c->own.index[i] : c->results.index[i];
        if (o->distance)
            o->distance[i] = c->own.invalid[i] ? NAN
                             : alone           ? 0.0f
                                               : (float)c->distance[c->first + i];
    }
}

/* ---- distances, verification -------------------------------------------------------------- */

/* The current call for the functions of cpu/exact.h. */
static struct direct_job job_of(struct session *s, _Atomic int64_t *zero_distances)
{
    const struct force_call *c = &s->call;
    jmemory_commit(&s->j);
    return (struct direct_job){
        .mode = c->precision,
        .memory = &s->j,
        .nj = c->nj < s->j.capacity ? c->nj : s->j.capacity,
        .time = c->time,
        .snap = c->snap,
        .scale = c->scale,
        .ni = c->ni,
        .index = c->own.index,
        .x = CONST3(c->own.x),
        .v = CONST3(c->own.v),
        .eps2 = c->own.eps2,
        .zero_distances = zero_distances,
    };
}

/* Prefetch distance in rows: the neighbours are scattered in memory. */
enum { AHEAD = 8 };

struct distances {
    const struct force_call *call;
    const struct direct_job *job;
};

static void find_some(void *distances, int64_t first, int64_t count)
{
    const struct distances *d = distances;
    const struct force_call *c = d->call;
    const int32_t *nearest = c->results.nearest;
    const int end = c->distances + (int)count;
    FPENV_X87_HERE;
    for (int i = c->distances + (int)first; i < end; i++) {
        if (i + AHEAD < end && nearest[i + AHEAD] >= 0) {
            const char *next = (const char *)&d->job->memory->body[nearest[i + AHEAD]];
            __builtin_prefetch(next);
            __builtin_prefetch(next + 64);
        }
        if (nearest[i] >= 0) c->distance[c->first + i] = cpu_exact_distance(d->job, i, nearest[i]);
    }
}

void session_output_distances(struct session *s, int end)
{
    enum { ROWS = 256, ROWS_PER_THREAD = 512 };
    const struct direct_job job = job_of(s, NULL);
    struct distances d = {&s->call, &job};
    const int rows = end - s->call.distances;
    threads_each(options_threads_for(rows / ROWS_PER_THREAD, s->options.threads), rows, ROWS,
                 find_some, &d);
    s->call.distances = end;
}

/* Larger differences, in units of the sum of the terms' magnitudes, are not roundoff: the memory or
 * GPU is broken. Single loses the separation of close pairs. */
static const double TOLERANCE[NMODE] = {
    [MODE_GRAPE] = 1e-5, [MODE_DOUBLE] = 1e-12, [MODE_SINGLE] = 1e-2};

/* The same for tree forces at any setting: only gross errors are found. */
static const double TREE_TOLERANCE = 0.5;

int session_output_verify(struct session *s, unsigned want)
{
    struct force_call *c = &s->call;
    _Atomic int64_t zero_distances = 0;
    if (!(s->options.verify > 0.0)) return 0;
    const struct direct_job job = job_of(s, &zero_distances);
    for (int i = 0; i < c->ni; i++) {
        double right[NSUM], size[NWINDOW];
        int nan = c->own.invalid[i];
        s->verify_due += s->options.verify; /* every (1 / fraction)-th row, counted over calls */
        if (s->verify_due < 1.0) continue;
        s->verify_due -= 1.0;
        for (int k = 0; k < NSUM; k++) nan |= isnan(c->results.sum[k][i]) != 0;
        if (nan) continue; /* a force that does not fit a double is reported elsewhere */
        const double tolerance = s->backend->capabilities & CAN_APPROXIMATE
                                     ? TREE_TOLERANCE
                                     : TOLERANCE[session_force_scale_mode_of(c, i)];
        cpu_exact_row(&job, i, right, size);
        for (int k = 0; k < NSUM; k++) {
            const int w = window_of(k);
            if (w == WINDOW_JERK && !(want & WANT_JERK)) continue;
            if (!(fabs(c->results.sum[k][i] - right[k]) <= tolerance * size[w]))
                return error_set(&s->error, G6X_E_VERIFY,
                                 "GRAPE6_VERIFY: the force on particle %d (index %d) is wrong; "
                                 "check the machine's memory or its GPU",
                                 i, c->own.index[i]);
        }
    }
    return 0;
}

/* ---- to the caller --------------------------------------------------------------------------- */

static void task(void *outputs)
{
    struct outputs *o = outputs;
    for (int i; (i = atomic_fetch_add(&o->next, ROWS_AT_ONCE)) < o->end;)
        plain_rows(o, i, o->end - i < ROWS_AT_ONCE ? o->end : i + ROWS_AT_ONCE);
}

void session_output_rows(struct session *s, struct outputs *o, int first, int end)
{
    const int useful = (end - first) / ROWS_PER_THREAD;
    const int most = useful < MOST_COPIERS ? useful : MOST_COPIERS;
    if (first >= end) return;
    o->end = end;
    atomic_store(&o->next, first);
    if (most < 2)
        plain_rows(o, first, end);
    else
        threads_run(options_threads_for(most, s->options.threads), task, o);
}

/* One thread waits and copies: as fast as four, since rows arrive one after another. Few rows
 * arrive at once. Distances use several threads: their particles are scattered in the j memory. */
int session_output_early(struct session *s, struct outputs *o, unsigned want)
{
    struct force_call *c = &s->call;
    const int with_distance = (want & WANT_DISTANCE) != 0;
    const int step = with_distance ? EARLY_ROWS / 2 : ROWS_AT_ONCE;
    int first = 0;
    if (!(s->backend->capabilities & CAN_OVERLAP) || c->done || s->options.verify > 0.0 ||
        c->ni < EARLY_ROWS)
        return 0;
    for (int end = step; end < c->ni; first = end, end += step) {
        const int code = session_call_rows_collect(s, want & ~(unsigned)WANT_DISTANCE, end);
        if (code) return code < 0 ? 0 : first;
        if (with_distance) session_output_distances(s, end);
        plain_rows(o, first, end);
    }
    return first;
}

int session_output_verdict(struct session *s, const struct outputs *o)
{
    struct force_call *c = &s->call;
    const int row = atomic_load(&o->out_of_range);
    if (row != INT_MAX) return session_output_unfit(s, row, c->own.index[row]);
    return c->invalid_rows ? G6X_E_I_NAN : 0;
}
