/* predictor.h - a particle at another time: its Taylor series in the scaled derivatives of
 * the API, a2 = a/2, j6 = (da/dt)/6, k18 = (d2a/dt2)/18. dt = 0 gives x and v exactly. Also
 * compiled for GPUs, with the same bits. */
#ifndef GRAPE6_PREDICTOR_H
#define GRAPE6_PREDICTOR_H

#include "shared/host_device.h"

/* Predicts one component. cpu/direct_pack.h does the same fused steps on four at once. */
HOST_DEVICE void predict_component(double dt, double k18, double j6, double a2, double v, double x,
                                   double *xp, double *vp)
{
    const double x3 = fma(dt, 0.75 * k18, j6);
    const double v2 = 3.0 * fma(dt, k18, j6);
    *xp = fma(dt, fma(dt, fma(dt, x3, a2), v), x);
    *vp = fma(dt, fma(dt, v2, a2 + a2), v);
}

#endif
