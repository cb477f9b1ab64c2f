/* hermite.h - the fourth-order Hermite scheme for the particles of a block on the host. */
#pragma once

#include "shared/hermite_step.h"

/* Particles address[0..ni-1] predicted to `time`; xi, vi: double[ni][3]. */
void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double (*xi)[3], double (*vi)[3]);

/* The same corrected with acc and jerk at the predicted (or last corrected) place: xi, vi.
 * noise: double[ni], the error of acc, or NULL. With s->dt they are moved there, and each gets
 * its next step. Returns the number of those that want a step below dt_min. */
int hermite_correct(int ni, const int *address, double time, const struct hermite_rule *rule,
                    const struct hermite_state *s, const double (*acc)[3], const double (*jerk)[3],
                    const double *noise, double (*xi)[3], double (*vi)[3]);
