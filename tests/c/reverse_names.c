/* A host that defines underscore names itself, as wrappers of the by-value names. */
#include "g6lib.h"

#include <math.h>

int g6_open_(int *id);
int g6_close_(int *id);
int g6_npipes_(void);
int g6_set_ti_(int *id, double *ti);
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double *k18, double *j6, double *a2, double *v, double *x);

int g6_open_(int *id) { return g6_open(*id); }
int g6_close_(int *id) { return g6_close(*id); }
int g6_npipes_(void) { return g6_npipes(); }
int g6_set_ti_(int *id, double *ti) { return g6_set_ti(*id, *ti); }
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double *k18, double *j6, double *a2, double *v, double *x)
{
    return g6_set_j_particle(*id, *address, *index, *tj, *dtj, *mass, k18, j6, a2, v, x);
}

int main(void)
{
    double x[2][3] = {{0, 0, 0}, {2, 0, 0}}, v[2][3] = {{0}}, zero[3] = {0}, old[2][3] = {{0}};
    double phi[2] = {0}, h2[2] = {0, 0}, acc[2][3], jerk[2][3], pot[2], t = 0, dt = 0, m = 4;
    int index[2] = {7, 8}, id = 3, bad = 0;
    bad += g6_open_(&id) != 0 || g6_npipes_() <= 0 || g6_set_ti_(&id, &t) != 0;
    for (int j = 0; j < 2; j++) {
        bad +=
            g6_set_j_particle_(&id, &j, &index[j], &t, &dt, &m, zero, zero, zero, v[j], x[j]) != 0;
    }
    bad += g6calc_firsthalf(id, 2, 2, index, x, v, old, old, phi, 0, h2) != 0;
    bad += g6calc_lasthalf(id, 2, 2, index, x, v, 0, h2, acc, jerk, pot) != 0;
    bad += fabs(acc[0][0] - 1) > 1e-6 || fabs(pot[0] + 2) > 1e-6;
    bad += g6_close_(&id) != 0;
    return bad;
}
