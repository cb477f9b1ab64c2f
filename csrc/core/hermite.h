/* hermite.h - the fourth-order Hermite scheme for the particles of a block on the host. */
#pragma once

#include "shared/hermite_step.h"

/* The errors of acc: roundoff[row], or hermite_roundoff() of rounding[particle] and pot[row]; not
 * known if both are NULL. */
struct hermite_errors {
    const double *roundoff, *rounding, *pot;
};

/* The particles of n whose steps end first, ascending, to address, and when that is; their number.
 * common: the step that all have, or 0. */
int hermite_next(int n, const struct hermite_state *s, double common, int *address, double *time);

/* The first particle whose step has no end, its time or step being NaN or Inf; -1: there is none.
 */
int hermite_endless(int n, const struct hermite_state *s, double common);

/* Particles address[0..ni-1] predicted to `time`; xi, vi: double[ni][3]. */
void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double (*xi)[3], double (*vi)[3]);

/* The same corrected with acc and jerk at the predicted (or last corrected) place: xi, vi. With
 * s->dt they are moved there, and each gets its next step. Returns the number of those that want a
 * step below dt_min. *unfit: the first row whose particle is not moved, as x or v would be none
 * that a double holds; -1: there is none. */
int hermite_correct(int ni, const int *address, double time, const struct hermite_rule *rule,
                    const struct hermite_state *s, const double (*acc)[3], const double (*jerk)[3],
                    const struct hermite_errors *errors, double (*xi)[3], double (*vi)[3],
                    int *unfit);
