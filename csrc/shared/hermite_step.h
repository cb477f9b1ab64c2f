/* hermite_step.h - one particle in the fourth-order Hermite scheme (Makino and Aarseth 1992, PASJ
 * 44, 141): predictor, corrector, and the rule for its next step. Also compiled for GPUs,
 * with the same bits. */
#ifndef GRAPE6_HERMITE_STEP_H
#define GRAPE6_HERMITE_STEP_H

#include "shared/field.h"
#include "shared/fine.h"
#include "shared/host_device.h"
#include "shared/predictor.h"

/* Particles of an integrator: each at its own time t, with its step dt (NULL if steps are not to
 * change) and the derivatives a = d2x/dt2 and j = da/dt at t. */
struct hermite_state {
    double *t, *dt;
    double (*x)[3], (*v)[3], (*a)[3], (*j)[3];
    const double *mass; /* NULL: masses are not checked */
};

/* Aarseth's eta, and limits of the steps. Steps are dt_max divided by powers of two. */
struct hermite_rule {
    double eta, dt_min, dt_max;
};

/* End of a step. With a common step (0: none), times are its multiples, not sums. */
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
HOST_DEVICE double hermite_criterion(double eta, double longest, const double a[3],
                                     const double j[3], const double a2[3], const double a3[3])
{
    const double a_ = hermite_norm(a), j_ = hermite_norm(j);
    const double s = hermite_norm(a2), c = hermite_norm(a3);
    const double below = j_ * c + s * s;
    return below > 0.0 ? sqrt(eta * (a_ * s + j_ * j_) / below) : longest;
}

/* The criterion, extrapolated two steps ahead. All in units of the completed step, to which a2 and
 * a3 belong. Without extrapolation, steps react too late when an encounter approaches or ends, and
 * the energy drifts. The next step is at most 2. Extrapolates no further than |a2| / |a3|, beyond
 * which the series is useless: otherwise steps would be too short for a million softened bodies,
 * where steps are as long as encounters. */
HOST_DEVICE double hermite_criterion_step(double eta, double longest, const double a[3],
                                          const double j[3], const double a2[3], const double a3[3])
{
    const double now = hermite_criterion(eta, longest, a, j, a2, a3);
    const double s = hermite_norm(a2), c = hermite_norm(a3);
    double ahead = 2.0 * (now < 2.0 ? now : 2.0);
    if (c * ahead > s) ahead = s / c;
    double b[3], b1[3], b2[3];
    for (int k = 0; k < 3; k++) {
        b[k] = a[k] + ahead * (j[k] + ahead * (a2[k] / 2.0 + ahead * a3[k] / 6.0));
        b1[k] = j[k] + ahead * (a2[k] + ahead * a3[k] / 2.0);
        b2[k] = a2[k] + ahead * a3[k];
    }
    return hermite_criterion(eta, longest, b, b1, b2, a3);
}

/* Halves the step as often as needed. Doubles it at most once, and only at multiples of the doubled
 * step, so that particles of equal step stay synchronized. */
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

/* Roundoff of a row's terms: `noise`, the relative error of each, and `place`, that of positions
 * where their difference is not computed more precisely. In mode auto, rows of particles below
 * `acting` may be fine (fine.h), by their steps in units of `step`, and drift. step 0: none is. */
struct hermite_noise {
    double noise, place, step, drift[3];
    int acting, unused;
};
/* Error of a term in double, by that of one in single precision. */
#define HERMITE_FINE 0x1p-28

/* Whether the force on particle p at `time` was summed in double, in mode auto. */
HOST_DEVICE int hermite_is_fine(const struct hermite_noise *noise, const struct hermite_state *s,
                                int p, double time)
{
    double a2[3], j6[3], v[3];
    if (!(noise->step > 0.0) || p >= noise->acting) return 0;
    for (int k = 0; k < 3; k++) {
        a2[k] = s->a[p][k] / 2.0; /* as its j particle has them */
        j6[k] = s->j[p][k] / 6.0;
        v[k] = s->v[p][k] - noise->drift[k];
    }
    return fine_is(noise->step, time - s->t[p], a2, j6, v);
}

/* Roundoff error of an acceleration: the relative error of its terms times the sum of their
 * magnitudes. That sum is at least |a|, a being the sum without a field, and at least pot^2 divided
 * by the mass of the other particles (Cauchy-Schwarz); `rounding` is noise divided by this mass.
 * Errors of positions act as the motion that the jerk j tells of. */
HOST_DEVICE double hermite_roundoff(const struct hermite_noise *row, double rounding, double pot,
                                    const double a[3], const double j[3], const double x[3],
                                    const double v[3])
{
    const double least = row->noise * hermite_norm(a), other = rounding * (pot * pot);
    const double speed = hermite_norm(v);
    const double moved = row->place > 0.0 && speed > 0.0
                             ? row->place * hermite_norm(x) * hermite_norm(j) / speed
                             : 0.0;
    return (least > other ? least : other) + moved;
}

/* The step that a particle requests after a step dt, with the roundoff of a0 and a1 (negative:
 * unknown). Errors grow as 1/dt^2 in a2 and 1/dt^3 in a3, and would shorten steps more and more:
 * - Where they alone could explain a2 and a3, the step is not shortened: so for bodies whose forces
 *   cancel, such as a star in a ring of planets.
 * - Where they could explain much of a3, as for small eta, a3 is at most what continues the series
 *   of j and a2. HERMITE_NOISE is 12 sqrt(2), of a difference of two, times 7.5: the error of a
 * single pair may be that of several roundings. In units of dt, a power of two: so the bits are the
 * same, and no square leaves the range. */
#define HERMITE_NOISE 128.0
HOST_DEVICE double hermite_requested(const struct hermite_rule *rule, double dt, double roundoff,
                                     const double a[3], const double j[3], const double a2[3],
                                     const double a3[3])
{
    double b1[3], b2[3], b3[3];
    for (int k = 0; k < 3; k++) {
        b1[k] = dt * j[k];
        b2[k] = dt * dt * a2[k];
        b3[k] = dt * dt * dt * a3[k];
    }
    const double j_ = hermite_norm(b1), s = hermite_norm(b2), c = hermite_norm(b3);
    if (s <= 36.0 * roundoff && c <= 24.0 * roundoff) return 2.0 * dt;
    if (c <= HERMITE_NOISE * roundoff && j_ * c > s * s)
        for (int k = 0; k < 3; k++) b3[k] *= s * s / (j_ * c);
    return dt * hermite_criterion_step(rule->eta, rule->dt_max / dt, a, b1, b2, b3);
}

/* Whether x, v and the mass of particle p are finite. */
HOST_DEVICE int hermite_fits(const struct hermite_state *s, int p, const double x[3],
                             const double v[3])
{
    double zero = s->mass ? 0.0 * s->mass[p] : 0.0; /* NaN for NaN and Inf */
    for (int k = 0; k < 3; k++) zero += 0.0 * x[k] + 0.0 * v[k];
    return zero == 0.0;
}

/* Adds a field to acc and jerk of particle p, which are those at x, v, its predicted (or last
 * corrected) state at `time`. The forces of a rotation depend on the velocity, which the prediction
 * has to a lower order than the scheme: it is corrected before. */
HOST_DEVICE void hermite_add_field(const struct field *f, const struct hermite_state *s, int p,
                                   double time, const double x[3], const double v[3], double acc[3],
                                   double jerk[3])
{
    const double dt = time - s->t[p];
    double a1[3], j1[3], a2[3], a3[3], x1[3], v1[3];
    if (f->omega == 0.0 || dt == 0.0) {
        field_add(f, x, v, acc, jerk);
        return;
    }
    for (int k = 0; k < 3; k++) a1[k] = acc[k], j1[k] = jerk[k];
    field_add(f, x, v, a1, j1);
    hermite_predict_one(s, p, time, x1, v1);
    hermite_add_orders(dt, s->a[p], s->j[p], a1, j1, x1, v1, a2, a3);
    field_add(f, x1, v1, acc, jerk);
}

/* Work that a field does on particles, per mass: up to now, and its power and the derivative of
 * that at their times. All are NULL if it is not requested. */
struct hermite_work {
    double *work, *power, *rate;
};

/* Power of a field with acceleration a and jerk j on a particle with velocity v and total
 * acceleration acc, and its derivative. */
HOST_DEVICE double hermite_power(const double a[3], const double j[3], const double v[3],
                                 const double acc[3], double *rate)
{
    *rate = field_dot(j, v) + field_dot(a, acc);
    return field_dot(a, v);
}

/* Work on particle p in a step dt, at whose end the power is that, to the order of the scheme. */
HOST_DEVICE double hermite_step_work(const struct hermite_work *w, int p, double dt, double power,
                                     double rate)
{
    return dt * ((w->power[p] + power) / 2.0 + dt * (w->rate[p] - rate) / 12.0);
}

/* Adds the work of a step that particle p has made. */
HOST_DEVICE void hermite_add_work(const struct hermite_work *w, int p, double dt, const double a[3],
                                  const double j[3], const double v[3], const double acc[3])
{
    double rate;
    const double power = hermite_power(a, j, v, acc, &rate);
    w->work[p] += hermite_step_work(w, p, dt, power, rate);
    w->power[p] = power;
    w->rate[p] = rate;
}

/* Corrects particle p with acc and jerk at its predicted (or last corrected) position; writes x, v,
 * which may be the arrays acc, jerk. roundoff: error of acc; negative if unknown. If s->dt is not
 * NULL, also moves the particle there and sets its next step. Returns 1 if it needs a step below
 * dt_min, else 0; -1 if it is not moved because x or v would not be finite. */
HOST_DEVICE int hermite_correct_one(const struct hermite_rule *rule, const struct hermite_state *s,
                                    int p, double time, const double acc[3], const double jerk[3],
                                    double roundoff, double x[3], double v[3])
{
    const double dt = time - s->t[p];
    double a1[3], j1[3], a2[3], a3[3];
    for (int k = 0; k < 3; k++) a1[k] = acc[k], j1[k] = jerk[k];
    hermite_predict_one(s, p, time, x, v);
    if (dt == 0.0) return 0; /* already at this time */
    hermite_add_orders(dt, s->a[p], s->j[p], a1, j1, x, v, a2, a3);
    if (!hermite_fits(s, p, x, v)) return -1;
    if (!s->dt) return 0; /* does not move the particle */
    const double requested = hermite_requested(rule, dt, roundoff, a1, j1, a2, a3);
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
