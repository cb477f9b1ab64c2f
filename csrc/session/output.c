/* output.c - see output.h. */
#include "session/output.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/mutants.h"
#include "session/call_rows.h"
#include "session/distance.h"
#include "util/threads.h"

void session_output_nan(int n, double (*acc)[3], double (*jerk)[3], double *pot, int *nearest,
                        float *distance)
{
    if (MUTANT(stale_outputs)) return;
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

/* Writes rows of which some have a NaN or do not fit a double. */
static void checked_rows(struct outputs *o, int first, int end)
{
    const struct force_call *c = o->call;
    for (int i = first; i < end; i++) {
        double sum[NSUM];
        for (int k = 0; k < NSUM; k++) sum[k] = c->results.sum[k][i];
        if (!session_output_fit(sum, c->jerk) && !c->invalid[i]) {
            int lowest = atomic_load(&o->out_of_range);
            while (i < lowest && !atomic_compare_exchange_weak(&o->out_of_range, &lowest, i))
                continue;
        }
        for (int k = 0; c->invalid[i] && k < NSUM; k++) sum[k] = NAN;
        memcpy(o->acc[i], sum + SUM_AX, sizeof o->acc[i]);
        if (o->jerk) memcpy(o->jerk[i], sum + SUM_JX, sizeof o->jerk[i]);
        o->pot[i] = 0.0 - sum[SUM_POT];
    }
}

static int is_plain(const struct outputs *o, int first, int count)
{
    const struct force_call *c = o->call;
    int invalid = !c->jerk && o->jerk; /* then the jerk is NaN */
    for (int i = first; i < first + count; i++) invalid |= c->invalid[i];
    for (int k = 0; k < NSUM && !invalid; k++)
        if (c->jerk || window_of(k) != WINDOW_JERK)
            invalid = !all_finite(c->results.sum[k] + first, (size_t)count);
    return !invalid;
}

static void plain_rows(struct outputs *o, int first, int end)
{
    const struct force_call *c = o->call;
    const double *const *sum = c->results.sum;
    if (is_plain(o, first, end - first))
        for (int i = first; i < end; i++) {
            o->acc[i][0] = sum[SUM_AX][i], o->acc[i][1] = sum[SUM_AY][i];
            o->acc[i][2] = sum[SUM_AZ][i];
            o->pot[i] = 0.0 - sum[SUM_POT][i];
            if (!o->jerk) continue;
            o->jerk[i][0] = sum[SUM_JX][i], o->jerk[i][1] = sum[SUM_JY][i];
            o->jerk[i][2] = sum[SUM_JZ][i];
        }
    else
        checked_rows(o, first, end);
    for (int i = first; i < end && o->nearest; i++) {
        const int alone = c->results.nearest[i] < 0 || c->invalid[i];
        o->nearest[i] = alone ? c->index[i] : c->results.index[i];
        if (o->distance)
            o->distance[i] = c->invalid[i] ? NAN : alone ? 0.0f : (float)c->distance[i];
    }
}

enum { ROWS_PER_THREAD = 1024, MOST_COPIERS = 4, ROWS_AT_ONCE = 256, EARLY_ROWS = 8192 };

static void task(void *outputs)
{
    struct outputs *o = outputs;
    for (int i; (i = atomic_fetch_add(&o->next, ROWS_AT_ONCE)) < o->end;)
        plain_rows(o, i, o->end - i < ROWS_AT_ONCE ? o->end : i + ROWS_AT_ONCE);
}

static int copiers(const struct session *s, int rows)
{
    const int useful = rows / ROWS_PER_THREAD;
    return options_threads_for(useful < MOST_COPIERS ? useful : MOST_COPIERS, s->options.threads);
}

void session_output_rows(struct session *s, struct outputs *o, int first, int end)
{
    if (first >= end) return;
    o->end = end;
    atomic_store(&o->next, first);
    threads_run(copiers(s, end - first), task, o);
}

/* One thread waits and copies: as fast as four, since rows arrive one after another. Few rows
 * arrive all at once. Distances use several threads, since their particles are scattered in the j
 * memory. */
int session_output_early(struct session *s, struct outputs *o, unsigned want,
                         const struct direct_job *job)
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
        if (with_distance) session_distance_up_to(c, job, end, s->options.threads);
        plain_rows(o, first, end);
    }
    return first;
}

int session_output_verdict(struct session *s, const struct outputs *o)
{
    struct force_call *c = &s->call;
    const int row = atomic_load(&o->out_of_range);
    if (row != INT_MAX)
        return error_set(&s->error, G6X_E_RANGE,
                         "the force on particle %d (index %d) does not fit a double", row,
                         c->index[row]);
    return c->invalid_rows ? G6X_E_I_NAN : 0;
}
