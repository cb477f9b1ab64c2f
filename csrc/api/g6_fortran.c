/* g6_fortran.c - the historical calls for Fortran: every argument by pointer, names with one
 * underscore or two. api/g6_calls.c implements them. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g6_calls.h"
#include "core/mutants.h"
#include "session/force.h"
#include "session/quick_write.h"
#include "session/registry.h"

/* Defines name, and name_all, whose cluster is SESSION_ALL. */
#define CALLS(name, result, ...)                                                                   \
    FORTRAN(name, int *clusterid, __VA_ARGS__)                                                     \
    {                                                                                              \
        const int64_t id = id_of(clusterid);                                                       \
        return result;                                                                             \
    }                                                                                              \
    FORTRAN(name##_all, __VA_ARGS__)                                                               \
    {                                                                                              \
        const int64_t id = SESSION_ALL;                                                            \
        return result;                                                                             \
    }
/* The same for a call without further arguments. */
#define CALLS0(name, call)                                                                         \
    FORTRAN(name, int *clusterid) { return call(id_of(clusterid)); }                               \
    FORTRAN(name##_all, void) { return call(SESSION_ALL); }

static int64_t id_of(const int *clusterid) { return clusterid ? *clusterid : SESSION_NONE; }

/* A null pointer opens cluster 0: sapporo2's own test does so. */
FORTRAN(g6_open, int *clusterid)
{
    if (MUTANT(open_by_exported_name)) return g6_open(clusterid ? *clusterid : 0);
    return api_g6_calls_open(clusterid ? *clusterid : 0);
}
FORTRAN(g6_close, int *clusterid) { return api_g6_calls_close(clusterid ? *clusterid : 0); }
FORTRAN(g6_open_all, void) { return api_g6_calls_open(SESSION_ALL); }
FORTRAN(g6_close_all, void) { return api_g6_calls_close(SESSION_ALL); }
FORTRAN(g6_npipes, void) { return api_g6_calls_npipes(); }
FORTRAN(get_device_count, void) { return api_g6_calls_device_count(); }

FORTRAN(g6_open_special, int *ndevice, int *list)
{
    return ndevice ? api_g6_calls_open_special(*ndevice, list) : missing();
}

FORTRAN(g6_open_special2, int *ndevice, int *list, UNUSED int *nmax)
{
    return ndevice ? api_g6_calls_open_special(*ndevice, list) : missing();
}

FORTRAN(g6_reset, int *clusterid)
{
    if (clusterid) session_registry_reset(*clusterid);
    return 0;
}

/* Allowed before open; the arguments are ignored. */
#define NOTHING(name)                                                                              \
    FORTRAN(name, UNUSED void *ignored) { return 0; }
NOTHING(g6_reset_fofpga)
NOTHING(g6_reinitialize)
NOTHING(g6_set_tunit)
NOTHING(g6_set_xunit)
FORTRAN(g6_reset_all, void)
{
    session_registry_reset(SESSION_ALL);
    return 0;
}
FORTRAN(g6_reset_fofpga_all, void) { return 0; }

FORTRAN(g6_set_overflow_flag_test_mode, UNUSED int *aflag, UNUSED int *jflag, UNUSED int *pflag)
{
    return 0;
}

FORTRAN(g6_set_neighbour_list_sort_mode, int *mode)
{
    return mode ? api_g6_calls_set_sort_mode(*mode) : missing();
}
FORTRAN(g6_get_neighbour_list_sort_mode, void) { return api_g6_calls_sort_mode(); }

/* No-ops on an open cluster. */
#define IDLE(name, ...)                                                                            \
    FORTRAN(name, int *clusterid, __VA_ARGS__) { return api_g6_calls_idle(id_of(clusterid)); }
IDLE(g6_flush_jp_buffer_and_multisend, UNUSED int *nclusters)
IDLE(g6_setup_njdata, UNUSED int *nj)
IDLE(g6_set_i_particle_scales_from_real_value, UNUSED int *address, UNUSED double *acc,
     UNUSED double *jerk, UNUSED double *phi, UNUSED double *jfactor, UNUSED double *ffactor)
CALLS(g6_initialize_jp_buffer, api_g6_calls_idle(id), UNUSED int *size)
CALLS0(g6_flush_jp_buffer, api_g6_calls_idle)
FORTRAN(g6_print_chip_status, int *clusterid) { return api_g6_calls_idle(id_of(clusterid)); }
FORTRAN(g6_changed_index, UNUSED int *clusterid) { return -1; }
FORTRAN(force_j_particle_send, void) { return api_g6_calls_idle_recent(); }

CALLS(g6_set_ti, ti ? ON_SESSION(id, api_g6_calls_set_ti, *ti) : missing(), double *ti)

/* Takes the exported call's arguments in the same order, so that none is moved or saved. */
static __attribute__((noinline)) int set_j(int *clusterid, int *address, int *index, double *tj,
                                           UNUSED double *dtj, double *mass, double *k18,
                                           double *j6, double *a2, double *v, double *x)
{
    if (!address || !index || !tj || !mass) return missing();
    return api_g6_calls_set_j(id_of(clusterid), *address, *index, *tj, *mass, k18, j6, a2, v, x);
}

FORTRAN(g6_set_j_particle, int *clusterid, int *address, int *index, double *tj, double *dtj,
        double *mass, double *k18, double *j6, double *a2, double *v, double *x)
{
    if (clusterid && address && index && tj && mass &&
        quick_write(*clusterid, *address, *index, *tj, *mass, k18, j6, a2, v, x))
        return 0;
    return set_j(clusterid, address, index, tj, dtj, mass, k18, j6, a2, v, x);
}

FORTRAN(g6_set_j_particle_all, int *address, int *index, double *tj, UNUSED double *dtj,
        double *mass, double *k18, double *j6, double *a2, double *v, double *x)
{
    if (!address || !index || !tj || !mass) return missing();
    return api_g6_calls_set_j(SESSION_ALL, *address, *index, *tj, *mass, k18, j6, a2, v, x);
}

CALLS(g6_set_j_particle_mxonly,
      address && index && mass ? api_g6_calls_set_j_at_rest(id, *address, *index, *mass, x)
                               : missing(),
      int *address, int *index, double *mass, double *x)

FORTRAN(g6_set_j_particle_multisend_mxfast, int *clusterid, int *nclusters, int *address,
        int *index, double *mass, double x[3])
{
    int code = 0;
    if (!clusterid || !nclusters || !address || !index || !mass) return missing();
    for (int k = 0; k < *nclusters; k++) {
        const int one =
            api_g6_calls_set_j_at_rest(*clusterid + (int64_t)k, *address, *index, *mass, x);
        if (!code) code = one;
    }
    return code;
}

FORTRAN(g6_getnjmax, int *clusterid)
{
    const int code = api_g6_calls_idle(id_of(clusterid));
    return code ? code : 0x7fffffff;
}

FORTRAN(g6_get_predicted_j_particles, int *clusterid, int *nj, double3 *x, double3 *v)
{
    return nj ? api_g6_calls_predicted(id_of(clusterid), *nj, x, v) : missing();
}

FORTRAN(get_j_part_data, int *addr, int *nj, double *x6)
{
    return addr && nj ? api_g6_calls_predicted6(*addr, *nj, x6) : missing();
}

/* The arguments that force calls share. */
#define FIRST_ARGUMENTS                                                                            \
    int *nj, int *ni, int *index, double3 *xi, double3 *vi, UNUSED double3 *aold,                  \
        UNUSED double3 *j6old, UNUSED double *phiold, double *eps2, double *h2
#define LAST_ARGUMENTS                                                                             \
    int *nj, int *ni, UNUSED int *index, UNUSED double3 *xi, UNUSED double3 *vi,                   \
        UNUSED double *eps2, UNUSED double *h2, double3 *acc, double3 *jerk, double *pot

/* each: each i particle has its own softening. */
static int first(int64_t id, int *nj, int *ni, int *index, double3 *xi, double3 *vi, double *eps2,
                 int each, double *h2)
{
    if (!nj || !ni || !eps2) return ON_SESSION(id, api_g6_calls_first_null);
    return ON_SESSION(id, session_force_first, *nj, *ni, index, CONST3(xi), CONST3(vi), eps2, each,
                      h2);
}

static int last(int64_t id, enum last_half what, int *nj, int *ni, double3 *acc, double3 *jerk,
                double *pot, int *nnbindex, float *rnnb)
{
    if (!nj || !ni) return api_g6_calls_null(ni ? *ni : 0, acc, jerk, pot, nnbindex, rnnb);
    return api_g6_calls_last(id, what, *nj, *ni, acc, jerk, pot, nnbindex, rnnb);
}

CALLS(g6calc_firsthalf, first(id, nj, ni, index, xi, vi, eps2, 0, h2), FIRST_ARGUMENTS)
CALLS(g6calc_firsthalf0, first(id, nj, ni, index, xi, vi, eps2, 1, h2), FIRST_ARGUMENTS,
      UNUSED int *mode)
CALLS(g6calc_lasthalf, last(id, FORCES, nj, ni, acc, jerk, pot, NULL, NULL), LAST_ARGUMENTS)
CALLS(g6calc_lasthalf0, last(id, FORCES, nj, ni, acc, jerk, pot, NULL, NULL), LAST_ARGUMENTS,
      UNUSED int *mode)
CALLS(g6calc_lasthalf2, last(id, NEAREST, nj, ni, acc, jerk, pot, nnbindex, NULL), LAST_ARGUMENTS,
      int *nnbindex)

FORTRAN(g6calc_lasthalfn, int *clusterid, LAST_ARGUMENTS)
{
    return last(id_of(clusterid), FORCES, nj, ni, acc, jerk, pot, NULL, NULL);
}

FORTRAN(g6calc_lasthalf2n, int *clusterid, LAST_ARGUMENTS, int *nnbindex)
{
    return last(id_of(clusterid), NEAREST, nj, ni, acc, jerk, pot, nnbindex, NULL);
}

FORTRAN(g6calc_lasthalf2p, int *clusterid, LAST_ARGUMENTS, int *nnbindex, float *rnnb)
{
    return last(id_of(clusterid), DISTANCES, nj, ni, acc, jerk, pot, nnbindex, rnnb);
}

FORTRAN(g6calc_lasthalf2np, int *clusterid, LAST_ARGUMENTS, int *nnbindex, float *rnnb)
{
    return last(id_of(clusterid), DISTANCES, nj, ni, acc, jerk, pot, nnbindex, rnnb);
}

CALLS0(g6_read_neighbour_list, api_g6_calls_read_lists)
FORTRAN(g6_read_neighbour_list_old, int *clusterid)
{
    return api_g6_calls_read_lists(id_of(clusterid));
}
CALLS(g6_get_neighbour_list,
      ipipe &&maxlength ? api_g6_calls_list(id, *ipipe, *maxlength, nblen, nbl) : missing(),
      int *ipipe, int *maxlength, int *nblen, int *nbl)

FORTRAN(g6_set_nip, int *clusterid, int *nip)
{
    return nip ? ON_SESSION(id_of(clusterid), api_g6_calls_set_nip, *nip) : missing();
}

FORTRAN(g6_set_njp, int *clusterid, int *njp)
{
    return njp ? ON_SESSION(id_of(clusterid), api_g6_calls_set_njp, *njp) : missing();
}

FORTRAN(g6_set_i_particle, int *clusterid, int *address, int *index, double *x, double *v,
        double *eps2, double *h2)
{
    if (!address || !index || !eps2 || !h2) return missing();
    return ON_SESSION(id_of(clusterid), api_g6_calls_set_i, *address, *index, x, v, *eps2, *h2);
}

FORTRAN(g6_get_force, int *clusterid, double3 *acc, double3 *jerk, double *phi, int *flag)
{
    return ON_SESSION(id_of(clusterid), api_g6_calls_get_force, acc, jerk, phi, 0, NULL, flag);
}

FORTRAN(g6_get_force_etc, int *clusterid, double3 *acc, double3 *jerk, double *phi, int *nnbindex,
        int *flag)
{
    return ON_SESSION(id_of(clusterid), api_g6_calls_get_force, acc, jerk, phi, 1, nnbindex, flag);
}
