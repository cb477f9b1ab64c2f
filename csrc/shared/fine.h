/* fine.h - mode auto: which i particles are summed in double, the rest as in mode grape. Also
 * compiled for GPUs, with the same bits. */
#ifndef GRAPE6_FINE_H
#define GRAPE6_FINE_H

#include "shared/host_device.h"

/* A step h, in units of a particle's own time scale tau, up to which it is. Aarseth's rule needs
 * the third derivative of a, which a Hermite scheme takes from a3 = 12 da / h^3. Roundoff e |a| of
 * mode grape becomes 17 e |a| / h^3 there, against |a| / tau^3, and steps shrink by 3 % if it is
 * 0.3 of that: at h = (57 e)^(1/3) tau, 0.6 of which is measured, since steps are powers of two
 * below the rule's. e is 4e-8 for 64 bodies, 1e-8 for 32768: about N^(-1/4). */
HOST_DEVICE double fine_step(double n) { return n > 1024.0 ? 0.005 : 0.01; }

HOST_DEVICE double fine_norm(const double a[3])
{
    const double x = fabs(a[0]), y = fabs(a[1]), z = fabs(a[2]);
    const double longer = x > y ? x : y, most = longer > z ? longer : z;
    if (!(most > 0.0)) return 0.0;
    return most * sqrt(x / most * (x / most) + y / most * (y / most) + z / most * (z / most));
}

/* Whether |dt| <= step tau, given a / 2 and jerk / 6 as j particles have them, and the velocity
 * from that of all. tau is |a| / |jerk|, or sqrt(|v| / |jerk|) / 3 where forces cancel and |a| says
 * nothing of the roundoff. Never for a = jerk = 0, as of a program without derivatives. */
HOST_DEVICE int fine_is(double step, double dt, const double a2[3], const double j6[3],
                        const double v[3])
{
    const double h = fabs(dt), a = 2.0 * fine_norm(a2), j = 6.0 * fine_norm(j6);
    if (!(a > 0.0) && !(j > 0.0)) return 0;
    if (!(j > 0.0) || h == 0.0) return 1;
    return h * (j / a) <= step || 9.0 * h * h * (j / fine_norm(v)) <= step * step;
}

#endif
