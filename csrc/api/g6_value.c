/* g6_value.c - the historical calls by value, and their _all forms, which name no cluster.
 * api/g6_calls.c implements them; g6lib.h documents them. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g6_calls.h"
#include "g6lib.h"
#include "session/force.h"
#include "session/quick_write.h"
#include "session/registry.h"

/* Defines name, and name_all, whose cluster is SESSION_ALL. */
#define CALLS(name, result, ...)                                                                   \
    int name(int clusterid, __VA_ARGS__)                                                           \
    {                                                                                              \
        const int64_t id = clusterid;                                                              \
        return result;                                                                             \
    }                                                                                              \
    int name##_all(__VA_ARGS__)                                                                    \
    {                                                                                              \
        const int64_t id = SESSION_ALL;                                                            \
        return result;                                                                             \
    }
/* The same for a call without further arguments. */
#define CALLS0(name, call)                                                                         \
    int name(int clusterid) { return call(clusterid); }                                            \
    int name##_all(void) { return call(SESSION_ALL); }

CALLS0(g6_open, api_g6_calls_open)
CALLS0(g6_close, api_g6_calls_close)
int g6_npipes(void) { return api_g6_calls_npipes(); }
int get_device_count(void) { return api_g6_calls_device_count(); }

int g6_open_special(int ndevice, int *list) { return api_g6_calls_open_special(ndevice, list); }

int g6_open_special2(int ndevice, int *list, UNUSED int nmax)
{
    return api_g6_calls_open_special(ndevice, list);
}

int g6_reset(int clusterid)
{
    session_registry_reset(clusterid);
    return 0;
}

/* Recovery and set-up calls of host programs, allowed before open. Callers pass units as int or
 * double; the arguments are ignored. */
#define NOTHING(name)                                                                              \
    int name(UNUSED int ignored) { return 0; }
NOTHING(g6_reset_fofpga)
NOTHING(g6_reinitialize)
NOTHING(g6_set_tunit)
NOTHING(g6_set_xunit)
int g6_reset_all(void)
{
    session_registry_reset(SESSION_ALL);
    return 0;
}
int g6_reset_fofpga_all(void) { return 0; }

int g6_set_overflow_flag_test_mode(UNUSED int aflag, UNUSED int jflag, UNUSED int pflag)
{
    return 0;
}

int g6_set_neighbour_list_sort_mode(int mode) { return api_g6_calls_set_sort_mode(mode); }
int g6_get_neighbour_list_sort_mode(void) { return api_g6_calls_sort_mode(); }

CALLS(g6_initialize_jp_buffer, api_g6_calls_idle(id), UNUSED int size)
CALLS0(g6_flush_jp_buffer, api_g6_calls_idle)

int g6_flush_jp_buffer_and_multisend(int clusterid, UNUSED int nclusters)
{
    return api_g6_calls_idle(clusterid);
}

int g6_setup_njdata(int clusterid, UNUSED int nj) { return api_g6_calls_idle(clusterid); }
int g6_print_chip_status(int clusterid) { return api_g6_calls_idle(clusterid); }
int g6_changed_index(UNUSED int clusterid) { return -1; }
int force_j_particle_send(void) { return api_g6_calls_idle_recent(); }

CALLS(g6_set_ti, ON_SESSION(id, api_g6_calls_set_ti, ti), double ti)

/* Takes the exported call's arguments in the same order, so that none is moved or saved. */
static __attribute__((noinline)) int set_j_quickly(int clusterid, int address, int index, double tj,
                                                   UNUSED double dtj, double mass, double k18[3],
                                                   double j6[3], double a2[3], double v[3],
                                                   double x[3])
{
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

int g6_set_j_particle_all(int address, int index, double tj, UNUSED double dtj, double mass,
                          double k18[3], double j6[3], double a2[3], double v[3], double x[3])
{
    return api_g6_calls_set_j(SESSION_ALL, address, index, tj, mass, k18, j6, a2, v, x);
}

CALLS(g6_set_j_particle_mxonly, api_g6_calls_set_j_at_rest(id, address, index, mass, x),
      int address, int index, double mass, double x[3])

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

/* The arguments that force calls share; eps2 is declared by value or as an array. */
#define FIRST_ARGUMENTS(eps2)                                                                      \
    int nj, int ni, int index[], double (*xi)[3], double (*vi)[3], UNUSED double (*aold)[3],       \
        UNUSED double (*j6old)[3], UNUSED double phiold[], eps2, double h2[]
#define LAST_ARGUMENTS(eps2)                                                                       \
    int nj, int ni, UNUSED int index[], UNUSED double (*xi)[3], UNUSED double (*vi)[3],            \
        UNUSED eps2, UNUSED double h2[], double (*acc)[3], double (*jerk)[3], double pot[]

CALLS(g6calc_firsthalf,
      ON_SESSION(id, session_force_first, nj, ni, index, CONST3(xi), CONST3(vi), &eps2, 0, h2),
      FIRST_ARGUMENTS(double eps2))
CALLS(g6calc_firsthalf0,
      ON_SESSION(id, session_force_first, nj, ni, index, CONST3(xi), CONST3(vi), eps2, 1, h2),
      FIRST_ARGUMENTS(double *eps2), UNUSED int mode)
CALLS(g6calc_lasthalf, api_g6_calls_last(id, FORCES, nj, ni, acc, jerk, pot, NULL, NULL),
      LAST_ARGUMENTS(double eps2))
CALLS(g6calc_lasthalf0, api_g6_calls_last(id, FORCES, nj, ni, acc, jerk, pot, NULL, NULL),
      LAST_ARGUMENTS(double *eps2), UNUSED int mode)
CALLS(g6calc_lasthalf2, api_g6_calls_last(id, NEAREST, nj, ni, acc, jerk, pot, nnbindex, NULL),
      LAST_ARGUMENTS(double eps2), int nnbindex[])

int g6calc_lasthalf2p(int clusterid, LAST_ARGUMENTS(double eps2), int nnbindex[], float rnnb[])
{
    return api_g6_calls_last(clusterid, DISTANCES, nj, ni, acc, jerk, pot, nnbindex, rnnb);
}

int g6calc_lasthalfn(int clusterid, LAST_ARGUMENTS(double eps2))
{
    return api_g6_calls_last(clusterid, FORCES, nj, ni, acc, jerk, pot, NULL, NULL);
}

int g6calc_lasthalf2n(int clusterid, LAST_ARGUMENTS(double eps2), int nnbindex[])
{
    return api_g6_calls_last(clusterid, NEAREST, nj, ni, acc, jerk, pot, nnbindex, NULL);
}

int g6calc_lasthalf2np(int clusterid, LAST_ARGUMENTS(double eps2), int nnbindex[], float rnnb[])
{
    return api_g6_calls_last(clusterid, DISTANCES, nj, ni, acc, jerk, pot, nnbindex, rnnb);
}

CALLS0(g6_read_neighbour_list, api_g6_calls_read_lists)
int g6_read_neighbour_list_old(int clusterid) { return api_g6_calls_read_lists(clusterid); }
CALLS(g6_get_neighbour_list, api_g6_calls_list(id, ipipe, maxlength, nblen, nbl), int ipipe,
      int maxlength, int *nblen, int nbl[])

int g6_set_nip(int clusterid, int nip) { return ON_SESSION(clusterid, api_g6_calls_set_nip, nip); }
int g6_set_njp(int clusterid, int njp) { return ON_SESSION(clusterid, api_g6_calls_set_njp, njp); }

int g6_set_i_particle_scales_from_real_value(int clusterid, UNUSED int address,
                                             UNUSED double acc[3], UNUSED double jerk[3],
                                             UNUSED double phi, UNUSED double jfactor,
                                             UNUSED double ffactor)
{
    return api_g6_calls_idle(clusterid);
}

int g6_set_i_particle(int clusterid, int address, int index, double x[3], double v[3], double eps2,
                      double h2)
{
    return ON_SESSION(clusterid, api_g6_calls_set_i, address, index, x, v, eps2, h2);
}

int g6_get_force(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[], int flag[])
{
    return ON_SESSION(clusterid, api_g6_calls_get_force, acc, jerk, phi, 0, NULL, flag);
}

int g6_get_force_etc(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[],
                     int nnbindex[], int flag[])
{
    return ON_SESSION(clusterid, api_g6_calls_get_force, acc, jerk, phi, 1, nnbindex, flag);
}
