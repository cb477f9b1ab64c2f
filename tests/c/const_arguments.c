/* Fortran passes constants by address: every input of the pointer forms is read-only here. */
#include <math.h>

typedef const int ci;
typedef const double cd;
int g6_open_(ci *id);
int g6_close_(ci *id);
int g6_set_tunit_(ci *unit);
int g6_set_xunit_(ci *unit);
int g6_set_ti_(ci *id, cd *ti);
int g6_set_j_particle_(ci *id, ci *address, ci *index, cd *tj, cd *dtj, cd *mass, cd *k18, cd *j6,
                       cd *a2, cd *v, cd *x);
int g6calc_firsthalf_(ci *id, ci *nj, ci *ni, ci *index, cd *x, cd *v, cd *aold, cd *j6old,
                      cd *phiold, cd *eps2, cd *h2);
int g6calc_lasthalf2_(ci *id, ci *nj, ci *ni, ci *index, cd *x, cd *v, cd *eps2, cd *h2,
                      double *acc, double *jerk, double *pot, int *nn);
int g6_initialize_jp_buffer_(ci *id, ci *size);
int g6_flush_jp_buffer_(ci *id);
int g6_read_neighbour_list_(ci *id);
int g6_get_neighbour_list_(ci *id, ci *pipe, ci *maxlength, int *n, int *list);

static ci id = 4, unit = 45, two = 2, eight = 8, addresses[2] = {0, 1}, index[2] = {70, 80};
static cd zero[6] = {0}, one = 1, x[6] = {0, 0, 0, 1, 0, 0}, h2[2] = {4, 4};

int main(void)
{
    double acc[6], jerk[6], pot[2];
    int nn[2], n, list[8], bad = 0;
    bad += g6_open_(&id) != 0 || g6_set_tunit_(&unit) != 0 || g6_set_xunit_(&unit) != 0;
    bad += g6_initialize_jp_buffer_(&id, &unit) != 0 || g6_set_ti_(&id, zero) != 0;
    for (int j = 0; j < 2; j++) {
        bad += g6_set_j_particle_(&id, &addresses[j], &index[j], zero, zero, &one, zero, zero, zero,
                                  zero, x + 3 * j) != 0;
    }
    bad += g6_flush_jp_buffer_(&id) != 0;
    bad += g6calc_firsthalf_(&id, &two, &two, index, x, zero, zero, zero, zero, zero, h2) != 0;
    bad += g6calc_lasthalf2_(&id, &two, &two, index, x, zero, zero, h2, acc, jerk, pot, nn) != 0;
    bad += fabs(acc[0] - 1) > 1e-6 || nn[0] != 80 || nn[1] != 70;
    bad += g6_read_neighbour_list_(&id) != 0;
    bad += g6_get_neighbour_list_(&id, addresses, &eight, &n, list) != 0 || n != 1;
    bad += g6_close_(&id) != 0;
    return bad;
}
