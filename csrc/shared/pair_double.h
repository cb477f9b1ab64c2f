/* pair_double.h - the pair interaction in plain double precision, for the pairs of walks and trees
 * that their kernels do not resolve. Not fused: C and CUDA give the same bits.
 */
#ifndef GRAPE6_PAIR_DOUBLE_H
#define GRAPE6_PAIR_DOUBLE_H

#include "shared/host_device.h"

/* Adds a pair with r = x_i - x_j: acc -= m r / s^3, pot += m / s. Gives 1/s. r2 may be zero where r
 * is not: without softening the force is infinite then. */
HOST_DEVICE double pair_add_double(const double r[3], double eps2, double m, double acc[3],
                                   double *pot)
{
    const double y = 1.0 / sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + eps2), my = m * y;
    for (int c = 0; c < 3; c++) acc[c] -= my * y * y * r[c];
    *pot += my;
    return y;
}

#endif
