/* hermite.h - the fourth-order Hermite scheme for the particles of a block on the host. */
#pragma once

#include "g6lib.h"
#include "shared/hermite_pair.h"
#include "shared/hermite_step.h"
#include "shared/hermite_watch.h"

/* An integration's arrays of particles, and the work of what is from outside. */
static inline struct hermite_state hermite_state_of(const struct g6x_hermite *h)
{
    return (struct hermite_state){h->t, h->dt, h->x, h->v, h->a, h->j, h->mass};
}
static inline struct hermite_work hermite_work_of(const struct g6x_hermite *h)
{
    return (struct hermite_work){h->work, h->power, h->rate};
}
/* The step that all particles have, or 0. */
static inline double hermite_common(const struct g6x_hermite *h)
{
    return h->dtmin == h->dtmax ? h->dtmax : 0.0;
}
/* The particles that act: j particles 0 .. n - 1. */
static inline int hermite_acting(const struct g6x_hermite *h) { return h->n - h->massless; }

/* Errors of acc: roundoff[row], or hermite_roundoff() of rounding[particle], pot[row] and acc less
 * outside[row]. If roundoff and rounding are NULL, they are unknown. */
struct hermite_errors {
    const double *roundoff, *rounding, *pot;
    const double (*outside)[3]; /* NULL: no field is in acc */
    struct hermite_noise row;
    double field; /* to be added to the second */
};

/* Finds the particles, of n, whose steps end first. Writes them to `address`, ascending, and the
 * end of the steps to `time`; returns their number. common: the step that all share, or 0. */
int hermite_next(int n, const struct hermite_state *s, double common, int threads, int *address,
                 double *time);

/* The first particle whose time or step is NaN or Inf, so that its step never ends; -1: none. */
int hermite_endless(int n, const struct hermite_state *s, double common);

/* Predicts particles address[0..ni-1] to `time`; xi, vi: double[ni][3]. */
void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double (*xi)[3], double (*vi)[3]);

/* What is from outside: acceleration and jerk, row by row (NULL: not kept), and its work. */
struct hermite_outside {
    double (*acc)[3], (*jerk)[3];
    struct hermite_work work;
};

/* Adds to acc and jerk, which are those of the rows, what is known of hard pairs among them. */
void hermite_correct_pairs(const struct hermite_rows *rows, const struct hermite_state *s,
                           double (*acc)[3], double (*jerk)[3]);

/* Of the same particles: acc and jerk at the predicted (or last corrected) positions xi, vi, which
 * correct these. If state.dt is not NULL, that also moves particles there and sets their next
 * steps.
 */
struct hermite_correction {
    const int *address;
    double time;
    struct hermite_rule rule;
    struct hermite_state state;
    double (*acc)[3], (*jerk)[3];
    struct hermite_errors errors;
    struct hermite_outside out; /* its work: of a move, if there is any */
    double (*xi)[3], (*vi)[3];
};
/* That of an integration's block, with nothing from outside. */
static inline struct hermite_correction hermite_correction_of(const struct g6x_hermite *h,
                                                              double time)
{
    struct hermite_correction c = {.address = h->address, .time = time, .xi = h->xi, .vi = h->vi};
    c.state = hermite_state_of(h);
    c.rule = (struct hermite_rule){h->eta, h->dtmin, h->dtmax};
    c.acc = h->acc, c.jerk = h->jerk, c.errors.rounding = h->rounding, c.errors.pot = h->pot;
    return c;
}
/* Adds a field to acc and jerk of ni rows, and keeps it in `out`; f NULL: adds what is there. */
void hermite_add_field_to(const struct hermite_correction *c, int ni, const struct field *f);
/* Corrects rows first to end - 1. Returns the number of particles that need a step below dt_min.
 * *unfit: the first row whose particle is not moved because its x or v would not be finite; -1:
 * none. */
int hermite_correct(const struct hermite_correction *c, int first, int end, int *unfit);
