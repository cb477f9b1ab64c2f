/* A host that defines one spelling of the calls itself, as wrappers of the other: those by value,
 * as ph4 does, or with -DREVERSE those of Fortran. Calls inside the library must not come back
 * here, or they would never end. */
#include "g5lib.h"
#include "g6lib.h"

#include <math.h>

typedef double (*vectors)[3];
int g6_open_(int *id), g6_close_(int *id), g6_set_ti_(int *id, double *ti);
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double *k18, double *j6, double *a2, double *v, double *x);

#ifdef REVERSE
int g6_open_(int *id) { return g6_open(*id); }
int g6_close_(int *id) { return g6_close(*id); }
int g6_set_ti_(int *id, double *ti) { return g6_set_ti(*id, *ti); }
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double *k18, double *j6, double *a2, double *v, double *x)
{
    return g6_set_j_particle(*id, *address, *index, *tj, *dtj, *mass, k18, j6, a2, v, x);
}
#else
int g6calc_firsthalf_(int *id, int *nj, int *ni, int *index, vectors x, vectors v, vectors aold,
                      vectors j6old, double *phiold, double *eps2, double *h2);
int g6calc_lasthalf_(int *id, int *nj, int *ni, int *index, vectors x, vectors v, double *eps2,
                     double *h2, vectors acc, vectors jerk, double *pot);
int g5_open_(void), g5_close_(void), g5_set_xmj_(int *adr, int *nj, vectors x, double *m);
int g5_set_n_(int *n), g5_set_eps_to_all_(double *eps);
int g5_calculate_force_on_x_(vectors x, vectors a, double *p, int *ni);

int g6_open(int id) { return g6_open_(&id); }
int g6_close(int id) { return g6_close_(&id); }
int g6_set_ti(int id, double ti) { return g6_set_ti_(&id, &ti); }
int g6_set_j_particle(int id, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3])
{
    return g6_set_j_particle_(&id, &address, &index, &tj, &dtj, &mass, k18, j6, a2, v, x);
}
int g6calc_firsthalf(int id, int nj, int ni, int index[], vectors x, vectors v, vectors aold,
                     vectors j6old, double phiold[], double eps2, double h2[])
{
    return g6calc_firsthalf_(&id, &nj, &ni, index, x, v, aold, j6old, phiold, &eps2, h2);
}
int g6calc_lasthalf(int id, int nj, int ni, int index[], vectors x, vectors v, double eps2,
                    double h2[], vectors acc, vectors jerk, double pot[])
{
    return g6calc_lasthalf_(&id, &nj, &ni, index, x, v, &eps2, h2, acc, jerk, pot);
}
int g5_open(void) { return g5_open_(); }
int g5_close(void) { return g5_close_(); }
int g5_set_n(int n) { return g5_set_n_(&n); }
int g5_set_xmj(int adr, int nj, vectors x, double *m) { return g5_set_xmj_(&adr, &nj, x, m); }
int g5_set_eps_to_all(double eps) { return g5_set_eps_to_all_(&eps); }
int g5_calculate_force_on_x(vectors x, vectors a, double *p, int ni)
{
    return g5_calculate_force_on_x_(x, a, p, &ni);
}
#endif

int main(void)
{
    double x[2][3] = {{0, 0, 0}, {2, 0, 0}}, zero[2][3] = {{0}}, h2[3] = {0}, acc[2][3], jerk[2][3];
    double pot[2], m[2] = {4, 4}, t = 0;
    int index[2] = {7, 8}, id = 3, j = 1;
    int bad = g6_open(id) | g6_open_(&id) | g6_set_ti(id, t) | g6_set_ti_(&id, &t);
    bad |= g6_set_j_particle(id, 0, 7, t, t, m[0], h2, h2, h2, h2, x[0]);
    bad |= g6_set_j_particle_(&id, &j, &index[1], &t, &t, m, h2, h2, h2, h2, x[1]);
    bad |= g6calc_firsthalf(id, 2, 2, index, x, zero, zero, zero, h2, 0.0, h2);
    bad |= g6calc_lasthalf(id, 2, 2, index, x, zero, 0.0, h2, acc, jerk, pot);
    bad |= fabs(acc[0][0] - 1) > 1e-6 || fabs(acc[1][0] + 1) > 1e-6 || fabs(pot[0] + 2) > 1e-6;
    bad |= g5_open() | g5_set_xmj(0, 2, x, m) | g5_set_n(2) | g5_set_eps_to_all(0.0);
    bad |= g5_calculate_force_on_x(x, acc, pot, 2);
    bad |= fabs(acc[0][0] - 1) > 1e-6 || fabs(pot[1] - 2) > 1e-6;
    return bad | g5_close() | g6_close(id) | g6_close_(&id);
}
