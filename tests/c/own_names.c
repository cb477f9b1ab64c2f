/* A host that defines one spelling of the calls itself, as wrappers of the other: those by value,
 * as ph4 does, or with -DREVERSE those of Fortran. Calls inside the library must not come back
 * here, or they would never end. */
#include "g5lib.h"
#include "g6lib.h"

#include <math.h>

typedef double (*vectors)[3];
#ifdef REVERSE
#define HOST(name, by_value, values, by_pointer, pointers)                                         \
    int name##_ by_pointer { return name pointers; }
#else
#define HOST(name, by_value, values, by_pointer, pointers)                                         \
    int name##_ by_pointer;                                                                        \
    int name by_value { return name##_ values; }
#endif
int g6_open_(int *), g6_close_(int *), g6_set_ti_(int *, double *), g5_open_(void), g5_close_(void);

HOST(g6_open, (int id), (&id), (int *id), (*id))
HOST(g6_close, (int id), (&id), (int *id), (*id))
HOST(g6_set_ti, (int id, double ti), (&id, &ti), (int *id, double *ti), (*id, *ti))
HOST(g6_set_j_particle,
     (int id, int a, int index, double tj, double dtj, double m, double k18[3], double j6[3],
      double a2[3], double v[3], double x[3]),
     (&id, &a, &index, &tj, &dtj, &m, k18, j6, a2, v, x),
     (int *id, int *a, int *index, double *tj, double *dtj, double *m, double *k18, double *j6,
      double *a2, double *v, double *x),
     (*id, *a, *index, *tj, *dtj, *m, k18, j6, a2, v, x))
HOST(g6calc_lasthalf,
     (int id, int nj, int ni, int index[], vectors x, vectors v, double eps2, double h2[],
      vectors acc, vectors jerk, double pot[]),
     (&id, &nj, &ni, index, x, v, &eps2, h2, acc, jerk, pot),
     (int *id, int *nj, int *ni, int *index, vectors x, vectors v, double *eps2, double *h2,
      vectors acc, vectors jerk, double *pot),
     (*id, *nj, *ni, index, x, v, *eps2, h2, acc, jerk, pot))
HOST(g5_open, (void), (), (void), ())
HOST(g5_close, (void), (), (void), ())
HOST(g5_calculate_force_on_x, (vectors x, vectors a, double *p, int ni), (x, a, p, &ni),
     (vectors x, vectors a, double *p, int *ni), (x, a, p, *ni))

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
