/* hermite.h - the fourth-order Hermite scheme for the particles of a block (Makino and
 * Aarseth 1992, PASJ 44, 141): predictor, corrector, and the rule for the next step. */
#ifndef GRAPE6_HERMITE_H
#define GRAPE6_HERMITE_H

typedef double double3[3];

/* Particles of an integrator, n of them, in the caller's arrays: each at its own time t,
 * with its step dt (NULL if steps are not to change) and the derivatives a = d2x/dt2 and
 * j = da/dt at t. */
struct hermite_state {
    double *t, *dt;
    double3 *x, *v, *a, *j;
};

/* Limits of the steps, which are dt_max divided by powers of two, and Aarseth's eta. */
struct hermite_rule {
    double eta, dt_min, dt_max;
};

/* Particles address[0..ni-1] predicted to `time`; xi, vi: double[ni][3]. */
void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double3 *xi, double3 *vi);

/* The same corrected with acc and jerk at the predicted (or last corrected) place: xi, vi.
 * noise: double[ni], the error of acc, or NULL. With s->dt they are moved there, and each gets
 * its next step. Returns the number of those that want a step below dt_min. */
int hermite_correct(int ni, const int *address, double time, const struct hermite_rule *rule,
                    const struct hermite_state *s, const double3 *acc, const double3 *jerk,
                    const double *noise, double3 *xi, double3 *vi);

#endif
