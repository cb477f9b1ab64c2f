/* pair_double.h - the pair interaction in double precision, for the pairs of walks that their
 * kernels do not resolve. No fused operations, so that C and CUDA give the same bits. */
#ifndef GRAPE6_PAIR_DOUBLE_H
#define GRAPE6_PAIR_DOUBLE_H

#include "shared/host_device.h"

/* Adds a pair with r = x_i - x_j: acc -= m r / s^3, pot += m / s. Returns 1/s. r^2 may underflow to
 * zero although r is not zero: without softening the force is then infinite. */
HOST_DEVICE double pair_add_double(const double r[3], double eps2, double m, double acc[3],
                                   double *pot)
{
    const double y = 1.0 / sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + eps2), my = m * y;
    for (int c = 0; c < 3; c++) acc[c] -= my * y * y * r[c];
    *pot += my;
    return y;
}

/* Adds what a mass does to acc and jerk from a place, and with a velocity, relative to theirs. At
 * the same place it does nothing, as on the board. */
HOST_DEVICE void pair_add_pull(double m, const double r[3], const double v[3], double eps2,
                               double acc[3], double jerk[3])
{
    const double s2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + eps2;
    const double y = s2 > 0.0 ? 1.0 / sqrt(s2) : 0.0, by = m * y * y * y;
    const double rate = 3.0 * (r[0] * v[0] + r[1] * v[1] + r[2] * v[2]) * y * y;
    for (int c = 0; c < 3; c++) {
        acc[c] += by * r[c];
        jerk[c] += by * (v[c] - rate * r[c]);
    }
}

#endif
