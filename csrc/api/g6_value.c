/* g6_value.c - the historical calls by value, and their cluster-less _all forms. What they
 * do is in api/g6_calls.c; what they mean, in g6lib.h. */
#include <stddef.h>

#include "api/g6_calls.h"
#include "g6lib.h"
#include "session/quick_write.h"
#include "session/registry.h"

#define CONST3(p) ((const double3 *)(p))
/* Arguments that only the hardware had a use for. */
#define UNUSED_FIRST (void)aold, (void)j6old, (void)phiold
#define UNUSED_LAST (void)index, (void)xi, (void)vi, (void)eps2, (void)h2

int g6_open(int clusterid) { return api_g6_calls_open(clusterid); }
int g6_close(int clusterid) { return api_g6_calls_close(clusterid); }
int g6_npipes(void) { return api_g6_calls_npipes(); }
int get_device_count(void) { return api_g6_calls_device_count(); }

int g6_open_special(int ndevice, int *list) { return api_g6_calls_open_special(ndevice, list); }

int g6_open_special2(int ndevice, int *list, int nmax)
{
    (void)nmax;
    return api_g6_calls_open_special(ndevice, list);
}

/* Legal before open: the hosts' recovery and set-up calls. The arguments of the units
 * arrive as int or double, whatever the caller believes, and are not looked at. */
#define NOTHING(name)                                                                              \
    int name(int ignored)                                                                          \
    {                                                                                              \
        (void)ignored;                                                                             \
        return 0;                                                                                  \
    }
NOTHING(g6_reset)
NOTHING(g6_reset_fofpga)
NOTHING(g6_reinitialize)
NOTHING(g6_set_tunit)
NOTHING(g6_set_xunit)

int g6_set_overflow_flag_test_mode(int aflag, int jflag, int pflag)
{
    (void)aflag, (void)jflag, (void)pflag;
    return 0;
}

int g6_set_neighbour_list_sort_mode(int mode) { return api_g6_calls_set_sort_mode(mode); }
int g6_get_neighbour_list_sort_mode(void) { return api_g6_calls_sort_mode(); }

int g6_initialize_jp_buffer(int clusterid, int size)
{
    (void)size;
    return api_g6_calls_idle(clusterid);
}

int g6_flush_jp_buffer(int clusterid) { return api_g6_calls_idle(clusterid); }

int g6_flush_jp_buffer_and_multisend(int clusterid, int nclusters)
{
    (void)nclusters;
    return api_g6_calls_idle(clusterid);
}

int g6_setup_njdata(int clusterid, int nj)
{
    (void)nj;
    return api_g6_calls_idle(clusterid);
}

int g6_print_chip_status(int clusterid) { return api_g6_calls_idle(clusterid); }
int force_j_particle_send(void) { return api_g6_calls_idle_recent(); }

int g6_set_ti(int clusterid, double ti) { return api_g6_calls_set_ti(clusterid, ti); }

/* Has the arguments where the call itself has them: nothing is to be moved or kept for it. */
static __attribute__((noinline)) int set_j_quickly(int clusterid, int address, int index, double tj,
                                                   double dtj, double mass, double k18[3],
                                                   double j6[3], double a2[3], double v[3],
                                                   double x[3])
{
    (void)dtj;
    if (quick_write(clusterid, address, index, tj, mass, k18, j6, a2, v, x)) return 0;
    return api_g6_calls_set_j(clusterid, address, index, tj, mass, k18, j6, a2, v, x);
}

int g6_set_j_particle(int clusterid, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3])
{
    if (quick_may())
        return set_j_quickly(clusterid, address, index, tj, dtj, mass, k18, j6, a2, v, x);
    return api_g6_calls_set_j(clusterid, address, index, tj, mass, k18, j6, a2, v, x);
}

int g6_set_j_particle_mxonly(int clusterid, int address, int index, double mass, double x[3])
{
    return api_g6_calls_set_j_at_rest(clusterid, address, index, mass, x);
}

int g6_getnjmax(int clusterid)
{
    const int code = api_g6_calls_idle(clusterid);
    return code ? code : 0x7fffffff;
}

int g6_get_predicted_j_particles(int clusterid, int nj, double (*x)[3], double (*v)[3])
{
    return api_g6_calls_predicted(clusterid, nj, x, v);
}

int get_j_part_data(int addr, int nj, double *x6) { return api_g6_calls_predicted6(addr, nj, x6); }

int g6calc_firsthalf(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double (*aold)[3], double (*j6old)[3], double phiold[], double eps2,
                     double h2[])
{
    UNUSED_FIRST;
    return api_g6_calls_first(clusterid, nj, ni, index, CONST3(xi), CONST3(vi), &eps2, 0, h2);
}

int g6calc_firsthalf0(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                      double (*aold)[3], double (*j6old)[3], double phiold[], double *eps2,
                      double h2[], int mode)
{
    UNUSED_FIRST, (void)mode;
    return api_g6_calls_first(clusterid, nj, ni, index, CONST3(xi), CONST3(vi), eps2, 1, h2);
}

int g6calc_lasthalf(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                    double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[])
{
    UNUSED_LAST;
    return api_g6_calls_last(clusterid, nj, ni, acc, jerk, pot);
}

int g6calc_lasthalf0(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double *eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                     int mode)
{
    UNUSED_LAST, (void)mode;
    return api_g6_calls_last(clusterid, nj, ni, acc, jerk, pot);
}

int g6calc_lasthalf2(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                     int nnbindex[])
{
    UNUSED_LAST;
    return api_g6_calls_last2(clusterid, nj, ni, acc, jerk, pot, nnbindex);
}

int g6calc_lasthalf2p(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                      double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                      int nnbindex[], float rnnb[])
{
    UNUSED_LAST;
    return api_g6_calls_last2p(clusterid, nj, ni, acc, jerk, pot, nnbindex, rnnb);
}

int g6calc_lasthalfn(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[])
{
    UNUSED_LAST;
    return api_g6_calls_last(clusterid, nj, ni, acc, jerk, pot);
}

int g6calc_lasthalf2n(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                      double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                      int nnbindex[])
{
    UNUSED_LAST;
    return api_g6_calls_last2(clusterid, nj, ni, acc, jerk, pot, nnbindex);
}

int g6calc_lasthalf2np(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                       double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                       int nnbindex[], float rnnb[])
{
    UNUSED_LAST;
    return api_g6_calls_last2p(clusterid, nj, ni, acc, jerk, pot, nnbindex, rnnb);
}

int g6_read_neighbour_list(int clusterid) { return api_g6_calls_read_lists(clusterid); }
int g6_read_neighbour_list_old(int clusterid) { return api_g6_calls_read_lists(clusterid); }

int g6_get_neighbour_list(int clusterid, int ipipe, int maxlength, int *nblen, int nbl[])
{
    return api_g6_calls_list(clusterid, ipipe, maxlength, nblen, nbl);
}

int g6_set_nip(int clusterid, int nip) { return api_g6_calls_set_nip(clusterid, nip); }
int g6_set_njp(int clusterid, int njp) { return api_g6_calls_set_njp(clusterid, njp); }

int g6_set_i_particle_scales_from_real_value(int clusterid, int address, double acc[3],
                                             double jerk[3], double phi, double jfactor,
                                             double ffactor)
{
    (void)address, (void)acc, (void)jerk, (void)phi, (void)jfactor, (void)ffactor;
    return api_g6_calls_idle(clusterid);
}

int g6_set_i_particle(int clusterid, int address, int index, double x[3], double v[3], double eps2,
                      double h2)
{
    return api_g6_calls_set_i(clusterid, address, index, x, v, eps2, h2);
}

int g6_get_force(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[], int flag[])
{
    return api_g6_calls_get_force(clusterid, acc, jerk, phi, flag);
}

int g6_get_force_etc(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[],
                     int nnbindex[], int flag[])
{
    return api_g6_calls_get_force_etc(clusterid, acc, jerk, phi, nnbindex, flag);
}

/* ---- the multi-card library's forms: all cards are one memory --------------------- */

int g6_open_all(void) { return api_g6_calls_open(SESSION_ALL); }
int g6_close_all(void) { return api_g6_calls_close(SESSION_ALL); }
int g6_reset_all(void) { return 0; }
int g6_reset_fofpga_all(void) { return 0; }
int g6_set_ti_all(double ti) { return api_g6_calls_set_ti(SESSION_ALL, ti); }

int g6_set_j_particle_all(int address, int index, double tj, double dtj, double mass, double k18[3],
                          double j6[3], double a2[3], double v[3], double x[3])
{
    (void)dtj;
    return api_g6_calls_set_j(SESSION_ALL, address, index, tj, mass, k18, j6, a2, v, x);
}

int g6_set_j_particle_mxonly_all(int address, int index, double mass, double x[3])
{
    return api_g6_calls_set_j_at_rest(SESSION_ALL, address, index, mass, x);
}

int g6calc_firsthalf_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double (*aold)[3], double (*j6old)[3], double phiold[], double eps2,
                         double h2[])
{
    UNUSED_FIRST;
    return api_g6_calls_first(SESSION_ALL, nj, ni, index, CONST3(xi), CONST3(vi), &eps2, 0, h2);
}

int g6calc_firsthalf0_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                          double (*aold)[3], double (*j6old)[3], double phiold[], double *eps2,
                          double h2[], int mode)
{
    UNUSED_FIRST, (void)mode;
    return api_g6_calls_first(SESSION_ALL, nj, ni, index, CONST3(xi), CONST3(vi), eps2, 1, h2);
}

int g6calc_lasthalf_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3], double eps2,
                        double h2[], double (*acc)[3], double (*jerk)[3], double pot[])
{
    UNUSED_LAST;
    return api_g6_calls_last(SESSION_ALL, nj, ni, acc, jerk, pot);
}

int g6calc_lasthalf0_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double *eps2, double h2[], double (*acc)[3], double (*jerk)[3],
                         double pot[], int mode)
{
    UNUSED_LAST, (void)mode;
    return api_g6_calls_last(SESSION_ALL, nj, ni, acc, jerk, pot);
}

int g6calc_lasthalf2_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3], double eps2,
                         double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                         int nnbindex[])
{
    UNUSED_LAST;
    return api_g6_calls_last2(SESSION_ALL, nj, ni, acc, jerk, pot, nnbindex);
}

int g6_initialize_jp_buffer_all(int size)
{
    (void)size;
    return api_g6_calls_idle(SESSION_ALL);
}

int g6_flush_jp_buffer_all(void) { return api_g6_calls_idle(SESSION_ALL); }
int g6_read_neighbour_list_all(void) { return api_g6_calls_read_lists(SESSION_ALL); }

int g6_get_neighbour_list_all(int ipipe, int maxlength, int *nblen, int nbl[])
{
    return api_g6_calls_list(SESSION_ALL, ipipe, maxlength, nblen, nbl);
}
