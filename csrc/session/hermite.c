/* hermite.c - see hermite.h. A block that takes long is made in parts, between which the caller may
 * look after signals. */
#include "session/hermite.h"

#include <math.h>
#include <time.h>

#include "core/hermite.h"
#include "g6lib.h"
#include "session/force.h"
#include "util/fpenv.h"

/* A part has so many pairs, about a second of one core's work, but at least some rows. */
static const int64_t PAIRS_AT_ONCE = (int64_t)1 << 31;
enum { LEAST_ROWS = 64, MOST_ROWS = 65536 };

static double seconds_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int argument(struct session *s, const char *call, const char *what)
{
    return error_set(&s->fault, G6X_E_ARGUMENT, "%s: %s", call, what);
}

int session_hermite_check(struct session *s, const char *call, const struct g6x_hermite *h)
{
    if (!h) return error_set(&s->fault, G6X_E_NULL, "%s: null pointer", call);
    if (h->n < 0) return argument(s, call, "n is negative");
    if (!(h->eta > 0.0 && isfinite(h->eta) && h->dtmin > 0.0 && h->dtmin <= h->dtmax &&
          isfinite(h->dtmax)))
        return argument(s, call, "eta, dtmin or dtmax is out of range");
    if (h->n && !(h->mass && h->t && h->dt && h->x && h->v && h->a && h->j && h->address && h->xi &&
                  h->vi && h->acc && h->jerk && h->pot))
        return error_set(&s->fault, G6X_E_NULL, "%s: null pointer", call);
    return 0;
}

int session_hermite_unfit(struct session *s, int row)
{
    return error_set(&s->fault, G6X_E_RANGE,
                     "block step: the particle in row %d of the block moves beyond what a double "
                     "holds, or its mass is NaN or Inf",
                     row);
}

static int check(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    static const char call[] = "g6x_hermite_evolve";
    const int code = session_hermite_check(s, call, e ? h : NULL);
    if (code) return code;
    if (isnan(e->t_end)) return argument(s, call, "t_end is NaN");
    if (e->passes < 1 || e->most_blocks < 0 || !(e->seconds >= 0.0))
        return argument(s, call, "passes, most_blocks or seconds is out of range");
    if (e->ni < 0 || e->ni > h->n ||
        (e->ni && (e->row < 0 || e->row >= e->ni || e->pass < 0 || e->pass >= e->passes ||
                   !isfinite(e->next))))
        return argument(s, call, "the block under way is none of this integration's");
    return session_force_check_softening(s, 0, e->eps2);
}

static struct hermite_state state_of(const struct g6x_hermite *h)
{
    return (struct hermite_state){h->t, h->dt, h->x, h->v, h->a, h->j};
}

/* Begins the next block, unless it ends after t_end. */
static int begin(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    const struct hermite_state state = state_of(h);
    const double common = h->dtmin == h->dtmax ? h->dtmax : 0.0;
    const int ni = hermite_next(h->n, &state, common, h->address, &e->next);
    if (!ni || e->next > e->t_end) return 0;
    for (int i = 0; i < ni; i++)
        if (!(e->next > h->t[h->address[i]]))
            return error_set(&s->fault, G6X_E_ARGUMENT,
                             "block step: the step of particle %d ends when it begins",
                             h->address[i]);
    hermite_predict(ni, h->address, e->next, &state, h->xi, h->vi);
    e->ni = ni;
    e->row = e->pass = 0;
    return 0;
}

/* Forces on the next rows of the block. */
static int sum(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    const double began = seconds_now();
    const int64_t fitting = PAIRS_AT_ONCE / h->n;
    const int most = (int)(fitting < LEAST_ROWS  ? LEAST_ROWS
                           : fitting > MOST_ROWS ? MOST_ROWS
                                                 : fitting);
    const int k = e->row, count = e->ni - k < most ? e->ni - k : most;
    const double (*x)[3] = (const double (*)[3])h->xi + k, (*v)[3] = (const double (*)[3])h->vi + k;
    s->time = e->next;
    s->time_bad = 0;
    int code = session_force_first_plain(s, h->n, count, h->address + k, x, v, e->eps2);
    if (!code)
        code = session_force_last(s, h->n, count, h->acc + k, h->jerk + k, h->pot + k, NULL, NULL);
    if (!code) e->row += count;
    e->force_seconds += seconds_now() - began;
    return code;
}

/* The block as j particles, as it stands in xi, vi, acc and jerk. */
static int write(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    session_force_before_write(s);
    for (int i = 0; i < e->ni; i++) {
        const int p = h->address[i];
        double a2[3], j6[3];
        for (int k = 0; k < 3; k++) a2[k] = h->acc[i][k] / 2.0, j6[k] = h->jerk[i][k] / 6.0;
        if (!all_finite(h->xi[i], 3) || !all_finite(h->vi[i], 3) || !all_finite(&h->mass[p], 1))
            return session_hermite_unfit(s, i);
        const int code =
            jmemory_set(&s->j, p, p, e->next, h->mass[p], NULL, j6, a2, h->vi[i], h->xi[i]);
        if (code) return error_set(&s->fault, code, "block step: particle %d is refused", p);
    }
    return 0;
}

/* All forces of a pass are there. */
static int end_pass(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    const int moves = e->pass + 1 == e->passes;
    const struct hermite_rule rule = {h->eta, h->dtmin, h->dtmax};
    const struct hermite_errors errors = {.rounding = h->rounding, .pot = h->pot};
    struct hermite_state state = state_of(h);
    if (!moves) state.dt = NULL;
    const int held =
        hermite_correct(e->ni, h->address, e->next, &rule, &state, (const double (*)[3])h->acc,
                        (const double (*)[3])h->jerk, &errors, h->xi, h->vi);
    const int code = write(s, h, e);
    e->row = 0;
    e->pass++;
    if (code || !moves) return code;
    e->blocks++;
    e->steps += e->ni;
    e->held += held;
    e->time = e->next;
    e->ni = 0;
    return 0;
}

int session_hermite_evolve(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    const double began = seconds_now();
    int code = check(s, h, e);
    struct fpenv host;
    if (code) return code;
    const volatile int *stop = e->stop;
    const long long last = e->most_blocks ? e->blocks + e->most_blocks : -1;
    fpenv_enter(&host);
    while (!code) {
        if (!e->ni) code = begin(s, h, e);
        if (code || !e->ni) break;
        code = sum(s, h, e);
        if (!code && e->row == e->ni) code = end_pass(s, h, e);
        if (code || (!e->ni && (e->blocks == last || (stop && *stop)))) break;
        if (e->seconds > 0.0 && seconds_now() - began > e->seconds) code = 1;
    }
    if (code < 0) e->ni = 0;
    fpenv_leave(&host);
    return code;
}
