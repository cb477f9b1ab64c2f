/* kepler.h - two bodies: motion along a conic section in universal variables, and its elements. Of
 * sums, products, quotients and square roots alone, so that all machines have the same bits. Also
 * compiled for GPUs. */
#ifndef GRAPE6_KEPLER_H
#define GRAPE6_KEPLER_H

#include "shared/host_device.h"

#define KEPLER_TWO_PI 6.28318530717958647692

HOST_DEVICE double kepler_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Semi-major axis, negative if unbound, and eccentricity of a relative motion; gm: G times the sum
 * of the masses. */
HOST_DEVICE void kepler_elements(double gm, const double r[3], const double v[3], double *a,
                                 double *e)
{
    const double r1 = sqrt(kepler_dot(r, r)), v2 = kepler_dot(v, v), rv = kepler_dot(r, v);
    const double along = 1.0 - r1 * v2 / gm; /* e cos E */
    *a = r1 / (1.0 + along);                 /* 2 - r v^2 / gm */
    *e = sqrt(fabs(along * along + rv * rv / (gm * *a)));
}

/* Stumpff's functions c0 to c3 of z: series for z / 4^k, and k times those of four times as much
 * (Mikkola 1997, Celest. Mech. Dyn. Astron. 67, 145). */
HOST_DEVICE void kepler_stumpff(double z, double c[4])
{
    int k = 0;
    while (z > 0.1 || z < -0.1) z *= 0.25, k++;
    double c2 = 1.0, c3 = 1.0;
    for (int n = 7; n > 0; n--) {
        c2 = 1.0 - z / ((2 * n + 1) * (2 * n + 2)) * c2;
        c3 = 1.0 - z / ((2 * n + 2) * (2 * n + 3)) * c3;
    }
    c2 *= 0.5, c3 *= 1.0 / 6.0;
    double c0 = 1.0 - z * c2, c1 = 1.0 - z * c3;
    for (; k > 0; k--) {
        c3 = 0.25 * (c2 + c0 * c3);
        c2 = 0.5 * c1 * c1;
        c1 = c0 * c1;
        c0 = 2.0 * c0 * c0 - 1.0;
    }
    c[0] = c0, c[1] = c1, c[2] = c2, c[3] = c3;
}

/* r and its way by s, the universal anomaly (ds = dt / r), and the time that it takes. */
struct kepler_orbit {
    double gm, beta, r, rv; /* beta: gm / a */
};

HOST_DEVICE struct kepler_orbit kepler_orbit_of(double gm, const double r[3], const double v[3])
{
    struct kepler_orbit o = {gm, 0.0, sqrt(kepler_dot(r, r)), kepler_dot(r, v)};
    o.beta = 2.0 * gm / o.r - kepler_dot(v, v);
    return o;
}

HOST_DEVICE double kepler_time(const struct kepler_orbit *o, double s, double g[4], double *r)
{
    double c[4];
    kepler_stumpff(o->beta * s * s, c);
    g[0] = c[0], g[1] = s * c[1], g[2] = s * s * c[2], g[3] = s * s * s * c[3];
    *r = o->r * g[0] + o->rv * g[1] + o->gm * g[2];
    return o->r * g[1] + o->rv * g[2] + o->gm * g[3];
}

/* The motion to where kepler_time has led; sign -1: it was backwards. */
HOST_DEVICE void kepler_turn(const struct kepler_orbit *o, const double g[4], double r1,
                             double sign, double r[3], double v[3])
{
    const double f = 1.0 - o->gm * g[2] / o->r, h = o->r * g[1] + o->rv * g[2];
    const double df = -o->gm * g[1] / (o->r * r1), dh = 1.0 - o->gm * g[2] / r1;
    for (int k = 0; k < 3; k++) {
        const double x = r[k], w = sign * v[k];
        r[k] = f * x + h * w;
        v[k] = sign * (df * x + dh * w);
    }
}

/* Moves r and v by dt. 0 if no motion is known: r is zero or a number is not finite. */
HOST_DEVICE int kepler_move(double gm, double dt, double r[3], double v[3])
{
    struct kepler_orbit o = kepler_orbit_of(gm, r, v);
    const int backwards = dt < 0.0;
    double g[4], r1, low = 0.0, high;
    if (backwards) dt = -dt, o.rv = -o.rv;
    if (o.beta > 0.0) {
        const double by = 1.0 / sqrt(o.beta), turn = KEPLER_TWO_PI * by;
        dt = fmod(dt, turn * gm * by * by);
        high = turn;
    } else {
        high = dt / o.r; /* its exponential is kept small */
        if (high * high * -o.beta > 1.0) high = 1.0 / sqrt(-o.beta);
        while (kepler_time(&o, high, g, &r1) < dt) high *= 2.0;
    }
    double s = dt / o.r, last = high;
    if (!(s < high)) s = 0.5 * high;
    for (int n = 0; n < 200; n++) {
        const double more = dt - kepler_time(&o, s, g, &r1);
        if (more > 0.0)
            low = s;
        else
            high = s;
        double next = s + more / r1;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        const double step = fabs(next - s);
        if (next == s || (step >= last && step <= 1e-15 * fabs(s)) || next == low || next == high)
            break;
        last = step, s = next;
    }
    if (!(r1 > 0.0)) return 0;
    kepler_turn(&o, g, r1, backwards ? -1.0 : 1.0, r, v);
    return 1;
}

/* The least distance of an orbit, and the time until it is there, negative if that is past. Found
 * where the radial velocity is zero, between now and half a turn away. */
HOST_DEVICE double kepler_pericentre(double gm, const double r[3], const double v[3], double *when)
{
    struct kepler_orbit o = kepler_orbit_of(gm, r, v);
    const double sign = o.rv > 0.0 ? -1.0 : 1.0;
    const int beyond = gm < o.beta * o.r; /* nearer to the apocentre */
    double g[4], nearest = o.r, low = 0.0,
                 high = o.beta > 0.0 ? KEPLER_TWO_PI / 2.0 / sqrt(o.beta) : INFINITY;
    double s = beyond ? high : 0.0;
    o.rv *= sign;
    for (int n = 0; n < 100; n++) {
        *when = sign * kepler_time(&o, s, g, &nearest);
        const double rv = o.rv * g[0] + (gm - o.beta * o.r) * g[1];
        const double rate = (gm - o.beta * o.r) * g[0] - o.beta * o.rv * g[1];
        if (rv < 0.0)
            low = s;
        else
            high = s;
        double next = s - rv / rate;
        if (!(next >= low && next <= high)) next = 0.5 * (low + high);
        const double step = fabs(next - s);
        s = next;
        if (step <= 1e-9 * s) break;
    }
    return nearest;
}

#endif
