/* field.h - the field of a galaxy at one time: acceleration, its time derivative along the path of
 * a body (the jerk) and potential, as sums of analytic terms. Also compiled for GPUs.
 *
 * Sources of the formulas: Binney & Tremaine 2008, "Galactic Dynamics", sections 2.2.2 (Plummer,
 * NFW), 2.3.1 (Miyamoto and Nagai), 2.3.2 (logarithmic), 3.3.2 (a rotating frame); Bovy 2015, ApJS
 * 216, 29 (power law with a cutoff). */
#ifndef GRAPE6_FIELD_H
#define GRAPE6_FIELD_H

#include "shared/host_device.h"

#ifdef __CUDACC__
#define FIELD_FN __device__ __noinline__ /* of kernels that are fast without a field */
#else
#define FIELD_FN static inline
#endif

/* Kinds of terms: numbers of g6lib.h. Parameters p, with masses times G:
 * mass, scale / mass, a, b / mass, scale / speed, core, flattening / mass, exponent, cutoff. */
enum { FIELD_PLUMMER = 1, FIELD_MIYAMOTO_NAGAI, FIELD_NFW, FIELD_LOGARITHMIC, FIELD_CUTOFF };
enum { FIELD_TERMS = 8, FIELD_NUMBERS = 3 };
#define FIELD_CENTRE2 1e-200 /* square of a radius below which cubes underflow */

struct field_term {
    int32_t kind, unused;
    double p[FIELD_NUMBERS];
    double norm; /* of a cutoff: 1 / Gamma(3/2 - exponent/2); 0: to be computed */
};

/* Coordinates rotate with the angular speed omega about the z axis, or (moves) are relative to an
 * origin with this position, velocity, acceleration and jerk. */
struct field {
    struct field_term term[FIELD_TERMS];
    double omega, origin[4][3];
    double roundoff; /* of the acceleration in a frame that moves */
    int32_t terms, moves;
};

/* Whether there is nothing in it. */
HOST_DEVICE int field_is_none(const struct field *f)
{
    return !f->terms && !f->moves && f->omega == 0.0;
}

HOST_DEVICE double field_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Adds the field -f x of a sphere, where f depends on the radius and its derivative is slope r. */
HOST_DEVICE void field_add_sphere(double f, double slope, const double x[3], const double v[3],
                                  double acc[3], double jerk[3])
{
    const double along = slope * field_dot(x, v);
    for (int k = 0; k < 3; k++) {
        acc[k] -= f * x[k];
        jerk[k] -= f * v[k] + along * x[k];
    }
}

HOST_DEVICE void field_add_plummer(const double p[3], const double x[3], const double v[3],
                                   double acc[3], double jerk[3])
{
    const double r2 = field_dot(x, x) + p[1] * p[1], f = p[0] / (r2 * sqrt(r2));
    field_add_sphere(f, -3.0 * f / r2, x, v, acc, jerk);
}

HOST_DEVICE void field_add_miyamoto_nagai(const double p[3], const double x[3], const double v[3],
                                          double acc[3], double jerk[3])
{
    const double s = sqrt(x[2] * x[2] + p[2] * p[2]), b = p[1] + s, ds = x[2] * v[2] / s;
    const double d = x[0] * x[0] + x[1] * x[1] + b * b, f = p[0] / (d * sqrt(d));
    const double df = -3.0 * f * (x[0] * v[0] + x[1] * v[1] + b * ds) / d;
    const double up = b / s, dup = -p[1] * ds / (s * s);
    for (int k = 0; k < 2; k++) {
        acc[k] -= f * x[k];
        jerk[k] -= f * v[k] + df * x[k];
    }
    acc[2] -= f * up * x[2];
    jerk[2] -= f * up * v[2] + (df * up + f * dup) * x[2];
}

HOST_DEVICE void field_add_logarithmic(const double p[3], const double x[3], const double v[3],
                                       double acc[3], double jerk[3])
{
    const double q2[3] = {1.0, 1.0, p[2] * p[2]};
    double d = p[1] * p[1], dd = 0.0;
    for (int k = 0; k < 3; k++) {
        d += x[k] * x[k] / q2[k];
        dd += 2.0 * x[k] * v[k] / q2[k];
    }
    const double f = p[0] * p[0] / d, df = -f * dd / d;
    for (int k = 0; k < 3; k++) {
        acc[k] -= f * x[k] / q2[k];
        jerk[k] -= (f * v[k] + df * x[k]) / q2[k];
    }
}

/* ln(1 + s) - s / (1 + s), which for small s is a series of alternating terms. */
HOST_DEVICE double field_nfw_mass(double s)
{
    if (s > 0.0625) return log1p(s) - s / (1.0 + s);
    double sum = 0.0;
    for (int k = 14; k >= 2; k--) sum = (k - 1.0) / k - s * sum;
    return s * s * sum;
}

HOST_DEVICE void field_add_nfw(const double p[3], const double x[3], const double v[3],
                               double acc[3], double jerk[3])
{
    const double r2 = field_dot(x, x), r = sqrt(r2), s = r / p[1];
    if (r2 < FIELD_CENTRE2) return; /* finite there, without a direction */
    const double f = p[0] * field_nfw_mass(s) / (r2 * r);
    const double density = p[0] / (p[1] * p[1] * r * (1.0 + s) * (1.0 + s)); /* times 4 pi */
    field_add_sphere(f, (density - 3.0 * f) / r2, x, v, acc, jerk);
}

/* The incomplete gamma function over s^a exp(-s), for a > 0: the lower one by its series, or the
 * upper one by its continued fraction (Abramowitz & Stegun 1964, 6.5.29 and 6.5.31). */
HOST_DEVICE int field_gamma_is_lower(double a, double s) { return s < a + 2.0; }

/* `error`: the relative error that is allowed. */
FIELD_FN double field_gamma(double a, double s, double error)
{
    if (field_gamma_is_lower(a, s)) {
        double term = 1.0 / a, sum = term;
        for (int k = 1; term > 0.1 * error * sum; k++) sum += term *= s / (a + k);
        return sum;
    }
    double b = s + 1.0 - a, c = 1e300, d = 1.0 / b, product = d; /* Lentz's method */
    for (int k = 1; k < 500; k++) {
        const double t = k * (a - k);
        b += 2.0;
        d = 1.0 / (t * d + b);
        c = b + t / c;
        product *= d * c;
        if (fabs(d * c - 1.0) < error) break;
    }
    return product;
}

enum { FIELD_LOWER, FIELD_UPPER };

/* The lower or upper incomplete gamma function of a, where norm is 1 / Gamma(a), times norm;
 * *weight: norm s^a exp(-s). */
HOST_DEVICE double field_gamma_share(double a, double s, double norm, int side, double *weight)
{
    *weight = norm * exp(a * log(s) - s);
    const double small = 1e-16 / (*weight > 1e-10 ? *weight : 1e-10); /* of what is added to 1 */
    const int is_lower = field_gamma_is_lower(a, s), same = is_lower == (side == FIELD_LOWER);
    const double error = same || small < 1e-16 ? 1e-16 : small;
    const double part = *weight * field_gamma(a, s, error);
    return same ? part : 1.0 - part;
}

HOST_DEVICE void field_add_cutoff(const struct field_term *term, const double x[3],
                                  const double v[3], double acc[3], double jerk[3])
{
    const double *p = term->p, r2 = field_dot(x, x), c2 = p[2] * p[2], a = 1.5 - p[1] / 2.0;
    double weight;
    if (r2 < FIELD_CENTRE2) return;
    const double norm = term->norm > 0.0 ? term->norm : 1.0 / tgamma(a), s = r2 / c2;
    const double r3 = r2 * sqrt(r2);
    const double f = p[0] * field_gamma_share(a, s, norm, FIELD_LOWER, &weight) / r3;
    field_add_sphere(f, (2.0 * p[0] * weight / r3 - 3.0 * f) / r2, x, v, acc, jerk);
}

/* Adds the terms at x, v. */
FIELD_FN void field_add_terms(const struct field *f, const double x[3], const double v[3],
                              double acc[3], double jerk[3])
{
    for (int i = 0; i < f->terms; i++) {
        const double *p = f->term[i].p;
        switch (f->term[i].kind) {
        case FIELD_PLUMMER: field_add_plummer(p, x, v, acc, jerk); break;
        case FIELD_MIYAMOTO_NAGAI: field_add_miyamoto_nagai(p, x, v, acc, jerk); break;
        case FIELD_NFW: field_add_nfw(p, x, v, acc, jerk); break;
        case FIELD_LOGARITHMIC: field_add_logarithmic(p, x, v, acc, jerk); break;
        case FIELD_CUTOFF: field_add_cutoff(&f->term[i], x, v, acc, jerk); break;
        default: break;
        }
    }
}

/* Adds the field to acc and jerk of a body, which have all other forces already: those that the
 * rotation makes depend on them. */
HOST_DEVICE void field_add(const struct field *f, const double x[3], const double v[3],
                           double acc[3], double jerk[3])
{
    if (f->moves) {
        double there[3], speed[3];
        for (int k = 0; k < 3; k++)
            there[k] = x[k] + f->origin[0][k], speed[k] = v[k] + f->origin[1][k];
        field_add_terms(f, there, speed, acc, jerk);
        for (int k = 0; k < 3; k++) acc[k] -= f->origin[2][k], jerk[k] -= f->origin[3][k];
        return;
    }
    field_add_terms(f, x, v, acc, jerk);
    if (f->omega == 0.0) return;
    const double w = f->omega, twice = 2.0 * w, w2 = w * w;
    acc[0] += twice * v[1] + w2 * x[0];
    acc[1] += w2 * x[1] - twice * v[0];
    jerk[0] += twice * acc[1] + w2 * v[0];
    jerk[1] += w2 * v[1] - twice * acc[0];
}

/* Potential of the terms at x. */
FIELD_FN double field_potential(const struct field *f, const double x[3])
{
    const double r2 = field_dot(x, x), r = sqrt(r2);
    double pot = 0.0;
    for (int i = 0; i < f->terms; i++) {
        const double *p = f->term[i].p;
        double s, a, norm, weight;
        switch (f->term[i].kind) {
        case FIELD_PLUMMER: pot -= p[0] / sqrt(r2 + p[1] * p[1]); break;
        case FIELD_MIYAMOTO_NAGAI:
            s = p[1] + sqrt(x[2] * x[2] + p[2] * p[2]);
            pot -= p[0] / sqrt(x[0] * x[0] + x[1] * x[1] + s * s);
            break;
        case FIELD_NFW: pot -= r > 0.0 ? p[0] * log1p(r / p[1]) / r : p[0] / p[1]; break;
        case FIELD_LOGARITHMIC:
            s = x[2] / p[2];
            pot += p[0] * p[0] / 2.0 * log(x[0] * x[0] + x[1] * x[1] + s * s + p[1] * p[1]);
            break;
        case FIELD_CUTOFF: /* what is inside, and shells outside */
            s = r2 / (p[2] * p[2]), a = 1.5 - p[1] / 2.0, norm = 1.0 / tgamma(a);
            if (r2 > FIELD_CENTRE2)
                pot -= p[0] * field_gamma_share(a, s, norm, FIELD_LOWER, &weight) / r;
            a -= 0.5, norm *= tgamma(a); /* the ratio of the two */
            pot -=
                p[0] * norm * field_gamma_share(a, s, 1.0 / tgamma(a), FIELD_UPPER, &weight) / p[2];
            break;
        default: break;
        }
    }
    return pot;
}

/* Potential at x: in a rotating frame with the centrifugal one, in a moving one above that at its
 * origin. */
HOST_DEVICE double field_pot(const struct field *f, const double x[3])
{
    double there[3];
    if (!f->moves)
        return field_potential(f, x) - f->omega * f->omega * (x[0] * x[0] + x[1] * x[1]) / 2.0;
    for (int k = 0; k < 3; k++) there[k] = x[k] + f->origin[0][k];
    return field_potential(f, there) - field_potential(f, f->origin[0]);
}

#endif
