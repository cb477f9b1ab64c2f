/* pair_double.h - the pair interaction in double precision, for the pairs of walks and trees that
 * their kernels do not resolve. No fused operations, so that C and CUDA give the same bits. */
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

#endif
