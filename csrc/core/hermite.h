/* hermite.h - the fourth-order Hermite scheme for the particles of a block on the host. */
#pragma once

#include "shared/hermite_step.h"

/* Errors of acc: roundoff[row], or hermite_roundoff() of rounding[particle] and pot[row]. If both
 * are NULL, they are unknown. */
struct hermite_errors {
    const double *roundoff, *rounding, *pot;
};

/* Finds the particles, of n, whose steps end first. Writes them to `address`, ascending, and the
 * end of the steps to `time`; returns their number. common: the step shared by all particles, or 0.
 */
int hermite_next(int n, const struct hermite_state *s, double common, int *address, double *time);

/* The first particle whose time or step is NaN or Inf, so that its step never ends; -1: none. */
int hermite_endless(int n, const struct hermite_state *s, double common);

/* Predicts particles address[0..ni-1] to `time`; xi, vi: double[ni][3]. */
void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double (*xi)[3], double (*vi)[3]);

/* Corrects the same particles with acc and jerk at the predicted (or last corrected) positions;
 * writes xi, vi. If s->dt is not NULL, also moves them there and sets their next steps. Returns the
 * number of particles that need a step below dt_min. *unfit: the first row whose particle is not
 * moved because its x or v would not be finite; -1: none. */
int hermite_correct(int ni, const int *address, double time, const struct hermite_rule *rule,
                    const struct hermite_state *s, const double (*acc)[3], const double (*jerk)[3],
                    const struct hermite_errors *errors, double (*xi)[3], double (*vi)[3],
                    int *unfit);
