/* verify.c - see verify.h. */
#include "verify.h"

#include <math.h>

#include "exact.h"

/* Differences beyond these, in units of the sum of the terms' magnitudes, are no
 * rounding: a broken memory or card. Single loses the separation of close pairs. */
static const double TOLERANCE[NMODE] = {
    [MODE_GRAPE] = 1e-5, [MODE_DOUBLE] = 1e-12, [MODE_SINGLE] = 1e-2};

/* Takes every (1 / fraction)-th row, counted over calls. */
static int chosen(struct session *s)
{
    s->verify_due += s->options.verify;
    if (s->verify_due < 1.0) return 0;
    s->verify_due -= 1.0;
    return 1;
}

int verify_rows(struct session *s, unsigned want)
{
    struct force_call *c = &s->call;
    _Atomic int64_t coincidences = 0;
    const struct direct_job job = {
        .memory = &s->j,
        .nj = c->nj < s->j.capacity ? c->nj : s->j.capacity,
        .time = c->time,
        .snap = c->snap,
        .index = c->index,
        .x = (const double (*)[3])c->x,
        .v = (const double (*)[3])c->v,
        .eps2 = c->eps2,
        .coincidences = &coincidences,
    };
    for (int i = 0; i < c->ni; i++) {
        double sum[NSUM], right[NSUM], size[NWINDOW];
        if (!chosen(s) || c->invalid[i] || c->rows[i].invalid) continue;
        partial_value(&c->rows[i], sum);
        exact_row(&job, i, right, size);
        for (int k = 0; k < NSUM; k++) {
            const int w = window_of(k);
            if (w == WINDOW_JERK && !(want & WANT_JERK)) continue;
            if (!(fabs(sum[k] - right[k]) <= TOLERANCE[c->precision] * size[w]))
                return error_set(&s->fault, G6X_E_VERIFY,
                                 "GRAPE6_VERIFY: the force on particle %d (index %d) is wrong; "
                                 "check the machine's memory or its graphics card",
                                 i, c->index[i]);
        }
    }
    return 0;
}
