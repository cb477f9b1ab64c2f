/* chain_far.h - the tide of many bodies far from a few, as a series about the centre of these: its
 * gradient and the gradient of that, each a parabola in time. Also compiled for GPUs. */
#ifndef GRAPE6_CHAIN_FAR_H
#define GRAPE6_CHAIN_FAR_H

#include "shared/kepler.h"

/* xx, yy, zz, xy, xz, yz; xxx, yyy, zzz, xxy, xxz, yyx, yyz, zzx, zzy, xyz. */
enum { CHAIN_FAR_TERMS = 16 };

struct chain_far {
    double span;                   /* 0: there is none */
    double of[3][CHAIN_FAR_TERMS]; /* at the times 0, span / 2 and span; or the coefficients of
                                    * powers of the time over span */
};

/* Adds a body that is at d from the centre. */
HOST_DEVICE void chain_far_add(double m, const double d[3], double to[CHAIN_FAR_TERMS])
{
    const double inverse = 1.0 / sqrt(kepler_dot(d, d));
    const double n[3] = {d[0] * inverse, d[1] * inverse, d[2] * inverse};
    const double by = m * inverse * inverse * inverse, next = by * inverse;
    const int pair[3][2] = {{0, 1}, {0, 2}, {1, 2}}, others[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    for (int k = 0; k < 3; k++) {
        to[k] += by * (3.0 * n[k] * n[k] - 1.0);
        to[3 + k] += by * 3.0 * n[pair[k][0]] * n[pair[k][1]];
        to[6 + k] += next * (15.0 * n[k] * n[k] - 9.0) * n[k];
        for (int c = 0; c < 2; c++)
            to[9 + 2 * k + c] += next * (15.0 * n[k] * n[k] - 3.0) * n[others[k][c]];
    }
    to[15] += next * 15.0 * n[0] * n[1] * n[2];
}

/* Makes coefficients of what has been added for the three times. */
HOST_DEVICE void chain_far_end(struct chain_far *f)
{
    for (int k = 0; k < CHAIN_FAR_TERMS; k++) {
        const double start = f->of[0][k], middle = f->of[1][k], end = f->of[2][k];
        f->of[1][k] = 4.0 * middle - 3.0 * start - end;
        f->of[2][k] = 2.0 * (start - 2.0 * middle + end);
    }
}

/* The terms at a time. */
HOST_DEVICE void chain_far_at(const struct chain_far *f, double t, double of[CHAIN_FAR_TERMS])
{
    const double u = t / f->span;
    for (int k = 0; k < CHAIN_FAR_TERMS; k++)
        of[k] = f->of[0][k] + u * (f->of[1][k] + u * f->of[2][k]);
}

/* Adds the acceleration at x. */
HOST_DEVICE void chain_far_pull(const double of[CHAIN_FAR_TERMS], const double x[3], double acc[3])
{
    const double xx = 0.5 * x[0] * x[0], yy = 0.5 * x[1] * x[1], zz = 0.5 * x[2] * x[2];
    const double xy = x[0] * x[1], xz = x[0] * x[2], yz = x[1] * x[2];
    acc[0] += of[0] * x[0] + of[3] * x[1] + of[4] * x[2] + of[6] * xx + of[11] * yy + of[13] * zz +
              of[9] * xy + of[10] * xz + of[15] * yz;
    acc[1] += of[3] * x[0] + of[1] * x[1] + of[5] * x[2] + of[9] * xx + of[7] * yy + of[14] * zz +
              of[11] * xy + of[15] * xz + of[12] * yz;
    acc[2] += of[4] * x[0] + of[5] * x[1] + of[2] * x[2] + of[10] * xx + of[12] * yy + of[8] * zz +
              of[15] * xy + of[13] * xz + of[14] * yz;
}

/* The size of the tide at a distance of 1. */
HOST_DEVICE double chain_far_size(const struct chain_far *f)
{
    const double *of = f->of[0];
    return f->span > 0.0 ? sqrt(of[0] * of[0] + of[1] * of[1] + of[2] * of[2] +
                                2.0 * (of[3] * of[3] + of[4] * of[4] + of[5] * of[5]))
                         : 0.0;
}

#endif
