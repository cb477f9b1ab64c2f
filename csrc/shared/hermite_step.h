/* hermite_step.h - one particle in the fourth-order Hermite scheme (Makino and Aarseth 1992, PASJ
 * 44, 141): predictor, corrector, and the rule for its next step. Also compiled for GPUs,
 * with the same bits. */
#ifndef GRAPE6_HERMITE_STEP_H
#define GRAPE6_HERMITE_STEP_H

#include "shared/host_device.h"
#include "shared/predictor.h"

/* Particles of an integrator: each at its own time t, with its step dt (NULL if steps are not to
 * change) and the derivatives a = d2x/dt2 and j = da/dt at t. */
struct hermite_state {
    double *t, *dt;
    double (*x)[3], (*v)[3], (*a)[3], (*j)[3];
    const double *mass; /* NULL: not looked at */
};

/* Limits of the steps, which are dt_max divided by powers of two, and Aarseth's eta. */
struct hermite_rule {
    double eta, dt_min, dt_max;
};

/* When a step ends. Times of a common step (0: there is none) are its multiples, not sums. */
HOST_DEVICE double hermite_step_end(double t, double dt, double common)
{
    return common > 0.0 ? (rint(t / common) + 1.0) * common : t + dt;
}

HOST_DEVICE void hermite_predict_one(const struct hermite_state *s, int p, double time, double x[3],
                                     double v[3])
{
    for (int k = 0; k < 3; k++)
        predict_component(time - s->t[p], 0.0, s->j[p][k] / 6.0, s->a[p][k] / 2.0, s->v[p][k],
                          s->x[p][k], &x[k], &v[k]);
}

HOST_DEVICE double hermite_norm(const double a[3])
{
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

/* Adds the third and fourth order to the prediction x, v (Makino and Aarseth, equations 4 to
 * 8). Returns in a2 and a3 the second and third derivative of a at the end of the step. */
HOST_DEVICE void hermite_add_orders(double dt, const double a0[3], const double j0[3],
                                    const double a1[3], const double j1[3], double x[3],
                                    double v[3], double a2[3], double a3[3])
{
    const double dt2 = dt * dt, dt3 = dt2 * dt;
    for (int k = 0; k < 3; k++) {
        const double start = (6.0 * (a1[k] - a0[k]) - dt * (4.0 * j0[k] + 2.0 * j1[k])) / dt2;
        a3[k] = (12.0 * (a0[k] - a1[k]) + 6.0 * dt * (j0[k] + j1[k])) / dt3;
        a2[k] = start + dt * a3[k];
        x[k] += dt2 * dt2 * (start / 24.0 + dt * a3[k] / 120.0);
        v[k] += dt3 * (start / 6.0 + dt * a3[k] / 24.0);
    }
}

/* Aarseth's criterion (Makino and Aarseth, equation 9) for a and its three derivatives. */
HOST_DEVICE double hermite_criterion(const struct hermite_rule *rule, const double a[3],
                                     const double j[3], const double a2[3], const double a3[3])
{
    const double a_ = hermite_norm(a), j_ = hermite_norm(j);
    const double s = hermite_norm(a2), c = hermite_norm(a3);
    const double below = j_ * c + s * s;
    return below > 0.0 ? sqrt(rule->eta * (a_ * s + j_ * j_) / below) : rule->dt_max;
}

/* The criterion two steps ahead: a2 and a3 are those of the step that has been made, and a step
 * that follows what has been lags behind an approaching encounter, and ahead of one that is over;
 * such steps let the energy drift. dt is the step made, of which twice is the most that comes next.
 * Not further than |a2| / |a3|: beyond, the series says nothing but that it has ended, and in a
 * million softened bodies, where steps are as long as encounters, steps would be too short.
 */
HOST_DEVICE double hermite_criterion_step(const struct hermite_rule *rule, double dt,
                                          const double a[3], const double j[3], const double a2[3],
                                          const double a3[3])
{
    const double now = hermite_criterion(rule, a, j, a2, a3);
    const double s = hermite_norm(a2), c = hermite_norm(a3);
    double ahead = 2.0 * (now < 2.0 * dt ? now : 2.0 * dt);
    if (c * ahead > s) ahead = s / c;
    double b[3], b1[3], b2[3];
    for (int k = 0; k < 3; k++) {
        b[k] = a[k] + ahead * (j[k] + ahead * (a2[k] / 2.0 + ahead * a3[k] / 6.0));
        b1[k] = j[k] + ahead * (a2[k] + ahead * a3[k] / 2.0);
        b2[k] = a2[k] + ahead * a3[k];
    }
    return hermite_criterion(rule, b, b1, b2, a3);
}

/* Halved as often as need be; doubled once, and only where the doubled step's grid has a
 * point, so that particles of equal step stay together. */
HOST_DEVICE double hermite_next_step(const struct hermite_rule *rule, double time, double dt,
                                     double requested)
{
    if (requested < dt) {
        while (dt > requested && dt > rule->dt_min && 0.5 * dt < dt) dt *= 0.5; /* not for Inf */
    } else if (requested >= 2.0 * dt && 2.0 * dt <= rule->dt_max && fmod(time, 2.0 * dt) == 0.0) {
        dt *= 2.0;
    }
    return dt;
}

/* The error of an acceleration: that of its terms, `rounding` for each, whose sum without signs is
 * at least pot^2 over the mass of the others (Cauchy and Schwarz), by which `rounding` is divided.
 */
HOST_DEVICE double hermite_roundoff(double rounding, double pot) { return rounding * (pot * pot); }

/* Whether the differences that a2 and a3 are made of could come from errors of a0 and a1 alone.
 * A body whose forces cancel, like a star in a ring of planets, would get ever shorter steps from
 * them: errors grow as 1/dt^2 in a2 and 1/dt^3 in a3. */
HOST_DEVICE int hermite_is_roundoff(double dt, double roundoff, const double a2[3],
                                    const double a3[3])
{
    return dt * dt * hermite_norm(a2) <= 36.0 * roundoff &&
           dt * dt * dt * hermite_norm(a3) <= 24.0 * roundoff;
}

/* Whether particle p can be at x with v. */
HOST_DEVICE int hermite_fits(const struct hermite_state *s, int p, const double x[3],
                             const double v[3])
{
    double zero = s->mass ? 0.0 * s->mass[p] : 0.0; /* NaN for NaN and Inf */
    for (int k = 0; k < 3; k++) zero += 0.0 * x[k] + 0.0 * v[k];
    return zero == 0.0;
}

/* Particle p corrected with acc and jerk at its predicted (or last corrected) place: x, v, which
 * may be acc, jerk. roundoff: the error of acc; negative if it is not known. With s->dt it is moved
 * there, and gets its next step; 1 if it wants one below dt_min, else 0. -1: it is not moved, as it
 * would be nowhere that a double holds. */
HOST_DEVICE int hermite_correct_one(const struct hermite_rule *rule, const struct hermite_state *s,
                                    int p, double time, const double acc[3], const double jerk[3],
                                    double roundoff, double x[3], double v[3])
{
    const double dt = time - s->t[p];
    double a1[3], j1[3], a2[3], a3[3];
    for (int k = 0; k < 3; k++) a1[k] = acc[k], j1[k] = jerk[k];
    hermite_predict_one(s, p, time, x, v);
    if (dt == 0.0) return 0; /* it is there */
    hermite_add_orders(dt, s->a[p], s->j[p], a1, j1, x, v, a2, a3);
    if (!hermite_fits(s, p, x, v)) return -1;
    if (!s->dt) return 0; /* it stays where it is */
    const double requested = roundoff >= 0.0 && hermite_is_roundoff(dt, roundoff, a2, a3)
                                 ? 2.0 * dt
                                 : hermite_criterion_step(rule, dt, a1, j1, a2, a3);
    for (int k = 0; k < 3; k++) {
        s->x[p][k] = x[k];
        s->v[p][k] = v[k];
        s->a[p][k] = a1[k];
        s->j[p][k] = j1[k];
    }
    s->t[p] = time;
    s->dt[p] = hermite_next_step(rule, time, s->dt[p], requested);
    return s->dt[p] > requested;
}

#endif
