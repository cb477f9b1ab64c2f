/* A host that defines the by-value names itself, as wrappers of the underscore names. */
#include <math.h>
#include <stdio.h>

int g6_open_(int *id);
int g6_close_(int *id);
int g6_npipes_(void);
int g6_set_tunit_(double *p);
int g6_set_xunit_(double *p);
int g6_set_ti_(int *id, double *ti);
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double *k18, double *j6, double *a2, double *v, double *x);
void g6calc_firsthalf_(int *id, int *nj, int *ni, int *index, double *x, double *v, double *aold,
                       double *j6old, double *phiold, double *eps2, double *h2);
int g6calc_lasthalf_(int *id, int *nj, int *ni, int *index, double *x, double *v, double *eps2,
                     double *h2, double *acc, double *jerk, double *pot);
int g6calc_lasthalf2_(int *id, int *nj, int *ni, int *index, double *x, double *v, double *eps2,
                      double *h2, double *acc, double *jerk, double *pot, int *nn);
int g6_initialize_jp_buffer_(int *id, int *size);
int g6_flush_jp_buffer_(int *id);
int g6_reset_(int *id);
int g6_reset_fofpga_(int *id);
int g6_read_neighbour_list_(int *id);
int g6_get_neighbour_list_(int *id, int *pipe, int *maxlength, int *n, int *list);

int g6_open(int id) { return g6_open_(&id); }
int g6_close(int id) { return g6_close_(&id); }
int g6_npipes(void) { return g6_npipes_(); }
int g6_set_tunit(double p) { return g6_set_tunit_(&p); }
int g6_set_xunit(double p) { return g6_set_xunit_(&p); }
int g6_set_ti(int id, double ti) { return g6_set_ti_(&id, &ti); }
int g6_set_j_particle(int id, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3])
{
    return g6_set_j_particle_(&id, &address, &index, &tj, &dtj, &mass, k18, j6, a2, v, x);
}
void g6calc_firsthalf(int id, int nj, int ni, int index[], double x[][3], double v[][3],
                      double aold[][3], double j6old[][3], double phiold[], double eps2,
                      double h2[])
{
    g6calc_firsthalf_(&id, &nj, &ni, index, x[0], v[0], aold[0], j6old[0], phiold, &eps2, h2);
}
int g6calc_lasthalf(int id, int nj, int ni, int index[], double x[][3], double v[][3], double eps2,
                    double h2[], double acc[][3], double jerk[][3], double pot[])
{
    return g6calc_lasthalf_(&id, &nj, &ni, index, x[0], v[0], &eps2, h2, acc[0], jerk[0], pot);
}
int g6calc_lasthalf2(int id, int nj, int ni, int index[], double x[][3], double v[][3], double eps2,
                     double h2[], double acc[][3], double jerk[][3], double pot[], int nn[])
{
    return g6calc_lasthalf2_(&id, &nj, &ni, index, x[0], v[0], &eps2, h2, acc[0], jerk[0], pot, nn);
}
int g6_initialize_jp_buffer(int id, int size) { return g6_initialize_jp_buffer_(&id, &size); }
int g6_flush_jp_buffer(int id) { return g6_flush_jp_buffer_(&id); }
int g6_reset(int id) { return g6_reset_(&id); }
int g6_reset_fofpga(int id) { return g6_reset_fofpga_(&id); }
int g6_read_neighbour_list(int id) { return g6_read_neighbour_list_(&id); }
int g6_get_neighbour_list(int id, int pipe, int maxlength, int *n, int list[])
{
    return g6_get_neighbour_list_(&id, &pipe, &maxlength, n, list);
}

int main(void)
{
    double x[2][3] = {{0, 0, 0}, {2, 0, 0}}, v[2][3] = {{0}}, zero[3] = {0}, old[2][3] = {{0}};
    double phi[2] = {0}, h2[2] = {9, 9}, acc[2][3], jerk[2][3], pot[2];
    int index[2] = {7, 8}, nn[2], n = -1, list[8], bad = 0;
    bad += g6_open(3) != 0 || g6_npipes() != 48;
    g6_set_tunit(51.0);
    g6_set_xunit(51.0);
    bad += g6_reset(3) != 0 || g6_reset_fofpga(3) != 0 || g6_initialize_jp_buffer(3, 100) != 0;
    for (int j = 0; j < 2; j++) {
        bad += g6_set_j_particle(3, j, index[j], 0, 0.125, 4, zero, zero, zero, v[j], x[j]) != 0;
    }
    bad += g6_flush_jp_buffer(3) != 0 || g6_set_ti(3, 0.5) != 0;
    g6calc_firsthalf(3, 2, 2, index, x, v, old, old, phi, 0, h2);
    bad += g6calc_lasthalf2(3, 2, 2, index, x, v, 0, h2, acc, jerk, pot, nn) != 0;
    bad += fabs(acc[0][0] - 1) > 1e-6 || fabs(acc[1][0] + 1) > 1e-6 || fabs(pot[0] + 2) > 1e-6;
    bad += nn[0] != 8 || nn[1] != 7;
    bad += g6_read_neighbour_list(3) != 0 || g6_get_neighbour_list(3, 1, 8, &n, list) != 0;
    bad += n != 1 || list[0] != 7;
    g6calc_firsthalf(3, 2, 2, index, x, v, old, old, phi, 0, h2);
    bad += g6calc_lasthalf(3, 2, 2, index, x, v, 0, h2, acc, jerk, pot) != 0;
    bad += g6_close(3) != 0;
    return bad;
}
