/* g6x_device.c - the g6x_ calls that take arrays in the memory of the cluster's device. */
#include "session/force_device.h"
#include "g6lib.h"
#include "session/hermite.h"
#include "session/registry.h"

int g6x_set_j_particles_device(int clusterid, int n, const int address[], const int index[],
                               const double tj[], const double mass[], const double (*k18)[3],
                               const double (*j6)[3], const double (*a2)[3], const double (*v)[3],
                               const double (*x)[3], void *stream)
{
    const struct device_particles from = {n,   0,  address, index, tj, mass,
                                          k18, j6, a2,      v,     x,  stream};
    return ON_SESSION(clusterid, session_force_device_receive, &from);
}

int g6x_get_predicted_j_particles_device(int clusterid, int nj, double (*x)[3], double (*v)[3],
                                         void *stream)
{
    return ON_SESSION(clusterid, session_force_device_predicted, nj, x, v, stream);
}

int g6x_forces_device(int clusterid, int nj, int ni, const int index[], const double (*x)[3],
                      const double (*v)[3], double eps2, const double h2[], double (*acc)[3],
                      double (*jerk)[3], double pot[], int nearest[], float distance[],
                      void *stream)
{
    struct targets targets = {.ni = ni, .index = index, .x = x, .v = v, .eps2 = &eps2};
    targets.on_device = 1, targets.h2 = h2, targets.stream = stream;
    const struct device_forces to = {ni, acc, jerk, pot, nearest, distance};
    return ON_SESSION(clusterid, session_force_device, nj, &targets, &to);
}

int g6x_force_part_device(int clusterid, int nj, int ni, const int index[], const double (*x)[3],
                          const double (*v)[3], double eps2, int nearest, int share, int shares,
                          void *part, long long *bytes, void *stream)
{
    struct targets targets = {.ni = ni, .index = index, .x = x, .v = v, .eps2 = &eps2};
    targets.on_device = 1, targets.stream = stream, targets.share = share, targets.shares = shares;
    return ON_SESSION(clusterid, session_force_device_part, nj, &targets, nearest, part, bytes);
}

int g6x_merge_parts_device(int clusterid, int ni, void *parts, int shares, double (*acc)[3],
                           double (*jerk)[3], double pot[], int nearest[], float distance[],
                           void *stream)
{
    const struct device_forces to = {ni, acc, jerk, pot, nearest, distance};
    return ON_SESSION(clusterid, session_force_device_merge, parts, shares, &to, stream);
}

/* ---- integrations ------------------------------------------------------------------------ */

int g6x_hermite_next_device(int clusterid, const struct g6x_hermite *h, double *time, void *stream)
{
    return ON_SESSION(clusterid, session_hermite_device_next, h, time, stream);
}

int g6x_hermite_predict_device(int clusterid, const struct g6x_hermite *h, int ni, double time,
                               void *stream)
{
    return ON_SESSION(clusterid, session_hermite_device_predict, h, ni, time, stream);
}

int g6x_hermite_evolve_device(int clusterid, const struct g6x_hermite *h, struct g6x_evolution *e,
                              void *stream)
{
    return ON_SESSION(clusterid, session_hermite_device_evolve, h, e, stream);
}

int g6x_hermite_correct_device(int clusterid, const struct g6x_hermite *h, int ni, double time,
                               int what, void *stream)
{
    return ON_SESSION(clusterid, session_hermite_device_correct, h, ni, time, what, stream);
}
