/* verify.c - see verify.h. */
#include "session/verify.h"

#include <math.h>

#include "cpu/exact.h"
#include "session/force_scale.h"

/* Larger differences, in units of the sum of the terms' magnitudes, are not roundoff: the memory or
 * GPU is broken. Single loses the separation of close pairs. */
static const double TOLERANCE[NMODE] = {
    [MODE_GRAPE] = 1e-5, [MODE_DOUBLE] = 1e-12, [MODE_SINGLE] = 1e-2};

/* The same for tree forces at any setting: only gross errors are found. */
static const double TREE_TOLERANCE = 0.5;

/* Selects every (1 / fraction)-th row, counted over calls. */
static int chosen(struct session *s)
{
    s->verify_due += s->options.verify;
    if (s->verify_due < 1.0) return 0;
    s->verify_due -= 1.0;
    return 1;
}

/* A force that does not fit a double is reported elsewhere. */
static int is_nan_row(const struct force_call *c, int i)
{
    int nan = 0;
    for (int k = 0; k < NSUM; k++) nan |= isnan(c->results.sum[k][i]) != 0;
    return nan;
}

int session_verify_rows(struct session *s, const struct direct_job *job, unsigned want)
{
    struct force_call *c = &s->call;
    for (int i = 0; i < c->ni; i++) {
        double right[NSUM], size[NWINDOW];
        if (!chosen(s) || c->invalid[i] || is_nan_row(c, i)) continue;
        const double tolerance = s->backend->capabilities & CAN_APPROXIMATE
                                     ? TREE_TOLERANCE
                                     : TOLERANCE[session_force_scale_mode_of(c, i)];
        cpu_exact_row(job, i, right, size);
        for (int k = 0; k < NSUM; k++) {
            const int w = window_of(k);
            if (w == WINDOW_JERK && !(want & WANT_JERK)) continue;
            if (!(fabs(c->results.sum[k][i] - right[k]) <= tolerance * size[w]))
                return error_set(&s->error, G6X_E_VERIFY,
                                 "GRAPE6_VERIFY: the force on particle %d (index %d) is wrong; "
                                 "check the machine's memory or its GPU",
                                 i, c->index[i]);
        }
    }
    return 0;
}
