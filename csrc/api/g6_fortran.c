/* g6_fortran.c - the historical calls as Fortran makes them: every argument by pointer,
 * names with one underscore or two. What they do is in api/g6_calls.c. */
#include <stddef.h>

#include "api/g6_calls.h"
#include "core/mutants.h"
#include "session/quick_write.h"
#include "session/registry.h"

#define CONST3(p) ((const double3 *)(p))

/* Defines name_ and lets name__ be the same function. */
#define FORTRAN(name, ...)                                                                         \
    int name##_(__VA_ARGS__);                                                                      \
    int name##__(__VA_ARGS__) __attribute__((alias(#name "_")));                                   \
    int name##_(__VA_ARGS__)

static int missing(void)
{
    return session_registry_no_session(G6X_E_NULL, "a scalar argument is a null pointer");
}

static int64_t id_of(const int *clusterid) { return clusterid ? *clusterid : SESSION_NONE; }

/* A null pointer opens cluster 0: sapporo2's own test does so. */
FORTRAN(g6_open, int *clusterid)
{
    if (MISTAKE(open_by_exported_name)) return g6_open(clusterid ? *clusterid : 0);
    return api_g6_calls_open(clusterid ? *clusterid : 0);
}
FORTRAN(g6_close, int *clusterid) { return api_g6_calls_close(clusterid ? *clusterid : 0); }
FORTRAN(g6_npipes, void) { return api_g6_calls_npipes(); }
FORTRAN(get_device_count, void) { return api_g6_calls_device_count(); }

FORTRAN(g6_open_special, int *ndevice, int *list)
{
    return ndevice ? api_g6_calls_open_special(*ndevice, list) : missing();
}

FORTRAN(g6_open_special2, int *ndevice, int *list, int *nmax)
{
    (void)nmax;
    return ndevice ? api_g6_calls_open_special(*ndevice, list) : missing();
}

/* Legal before open, and their arguments are not looked at. */
#define NOTHING(name)                                                                              \
    FORTRAN(name, void *ignored)                                                                   \
    {                                                                                              \
        (void)ignored;                                                                             \
        return 0;                                                                                  \
    }
NOTHING(g6_reset)
NOTHING(g6_reset_fofpga)
NOTHING(g6_reinitialize)
NOTHING(g6_set_tunit)
NOTHING(g6_set_xunit)

FORTRAN(g6_set_overflow_flag_test_mode, int *aflag, int *jflag, int *pflag)
{
    (void)aflag, (void)jflag, (void)pflag;
    return 0;
}

FORTRAN(g6_set_neighbour_list_sort_mode, int *mode)
{
    return mode ? api_g6_calls_set_sort_mode(*mode) : missing();
}
FORTRAN(g6_get_neighbour_list_sort_mode, void) { return api_g6_calls_sort_mode(); }

/* No-ops on an open cluster. */
#define IDLE(name)                                                                                 \
    FORTRAN(name, int *clusterid, int *ignored)                                                    \
    {                                                                                              \
        (void)ignored;                                                                             \
        return api_g6_calls_idle(id_of(clusterid));                                                \
    }
IDLE(g6_initialize_jp_buffer)
IDLE(g6_flush_jp_buffer_and_multisend)
IDLE(g6_setup_njdata)
FORTRAN(g6_flush_jp_buffer, int *clusterid) { return api_g6_calls_idle(id_of(clusterid)); }
FORTRAN(g6_print_chip_status, int *clusterid) { return api_g6_calls_idle(id_of(clusterid)); }
FORTRAN(force_j_particle_send, void) { return api_g6_calls_idle_recent(); }

FORTRAN(g6_set_ti, int *clusterid, double *ti)
{
    return ti ? api_g6_calls_set_ti(id_of(clusterid), *ti) : missing();
}

/* Has the arguments where the call itself has them: nothing is to be moved or kept for it. */
static __attribute__((noinline)) int set_j(int *clusterid, int *address, int *index, double *tj,
                                           double *dtj, double *mass, double *k18, double *j6,
                                           double *a2, double *v, double *x)
{
    (void)dtj;
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

FORTRAN(g6_set_j_particle_mxonly, int *clusterid, int *address, int *index, double *mass, double *x)
{
    if (!address || !index || !mass) return missing();
    return api_g6_calls_set_j_at_rest(id_of(clusterid), *address, *index, *mass, x);
}

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

/* The arguments that force calls share; those the hardware alone used have no names. */
#define FIRST_ARGUMENTS                                                                            \
    int *nj, int *ni, int *index, double3 *xi, double3 *vi, double3 *aold, double3 *j6old,         \
        double *phiold, double *eps2, double *h2
#define FIRST nj, ni, index, xi, vi, aold, j6old, phiold, eps2, h2
#define LAST_ARGUMENTS                                                                             \
    int *nj, int *ni, int *index, double3 *xi, double3 *vi, double *eps2, double *h2,              \
        double3 *acc, double3 *jerk, double *pot
#define LAST nj, ni, index, xi, vi, eps2, h2, acc, jerk, pot

/* each: every i particle has a softening of its own. */
static int first(int64_t id, FIRST_ARGUMENTS, int each)
{
    (void)aold, (void)j6old, (void)phiold;
    if (!nj || !ni || !eps2) return api_g6_calls_first_null(id);
    return api_g6_calls_first(id, *nj, *ni, index, CONST3(xi), CONST3(vi), eps2, each, h2);
}

enum last_half { FORCES, NEAREST, DISTANCE };

static int last(int64_t id, LAST_ARGUMENTS, enum last_half what, int *nnbindex, float *rnnb)
{
    (void)index, (void)xi, (void)vi, (void)eps2, (void)h2;
    if (!nj || !ni) return api_g6_calls_null(ni ? *ni : 0, acc, jerk, pot, nnbindex, rnnb);
    if (what == FORCES) return api_g6_calls_last(id, *nj, *ni, acc, jerk, pot);
    if (what == NEAREST) return api_g6_calls_last2(id, *nj, *ni, acc, jerk, pot, nnbindex);
    return api_g6_calls_last2p(id, *nj, *ni, acc, jerk, pot, nnbindex, rnnb);
}

FORTRAN(g6calc_firsthalf, int *clusterid, FIRST_ARGUMENTS)
{
    return first(id_of(clusterid), FIRST, 0);
}

FORTRAN(g6calc_firsthalf0, int *clusterid, FIRST_ARGUMENTS, int *mode)
{
    (void)mode;
    return first(id_of(clusterid), FIRST, 1);
}

FORTRAN(g6calc_lasthalf, int *clusterid, LAST_ARGUMENTS)
{
    return last(id_of(clusterid), LAST, FORCES, NULL, NULL);
}

FORTRAN(g6calc_lasthalf0, int *clusterid, LAST_ARGUMENTS, int *mode)
{
    (void)mode;
    return last(id_of(clusterid), LAST, FORCES, NULL, NULL);
}

FORTRAN(g6calc_lasthalfn, int *clusterid, LAST_ARGUMENTS)
{
    return last(id_of(clusterid), LAST, FORCES, NULL, NULL);
}

FORTRAN(g6calc_lasthalf2, int *clusterid, LAST_ARGUMENTS, int *nnbindex)
{
    return last(id_of(clusterid), LAST, NEAREST, nnbindex, NULL);
}

FORTRAN(g6calc_lasthalf2n, int *clusterid, LAST_ARGUMENTS, int *nnbindex)
{
    return last(id_of(clusterid), LAST, NEAREST, nnbindex, NULL);
}

FORTRAN(g6calc_lasthalf2p, int *clusterid, LAST_ARGUMENTS, int *nnbindex, float *rnnb)
{
    return last(id_of(clusterid), LAST, DISTANCE, nnbindex, rnnb);
}

FORTRAN(g6calc_lasthalf2np, int *clusterid, LAST_ARGUMENTS, int *nnbindex, float *rnnb)
{
    return last(id_of(clusterid), LAST, DISTANCE, nnbindex, rnnb);
}

FORTRAN(g6_read_neighbour_list, int *clusterid)
{
    return api_g6_calls_read_lists(id_of(clusterid));
}
FORTRAN(g6_read_neighbour_list_old, int *clusterid)
{
    return api_g6_calls_read_lists(id_of(clusterid));
}

FORTRAN(g6_get_neighbour_list, int *clusterid, int *ipipe, int *maxlength, int *nblen, int *nbl)
{
    if (!ipipe || !maxlength) return missing();
    return api_g6_calls_list(id_of(clusterid), *ipipe, *maxlength, nblen, nbl);
}

FORTRAN(g6_set_nip, int *clusterid, int *nip)
{
    return nip ? api_g6_calls_set_nip(id_of(clusterid), *nip) : missing();
}

FORTRAN(g6_set_njp, int *clusterid, int *njp)
{
    return njp ? api_g6_calls_set_njp(id_of(clusterid), *njp) : missing();
}

FORTRAN(g6_set_i_particle_scales_from_real_value, int *clusterid, int *address, double *acc,
        double *jerk, double *phi, double *jfactor, double *ffactor)
{
    (void)address, (void)acc, (void)jerk, (void)phi, (void)jfactor, (void)ffactor;
    return api_g6_calls_idle(id_of(clusterid));
}

FORTRAN(g6_set_i_particle, int *clusterid, int *address, int *index, double *x, double *v,
        double *eps2, double *h2)
{
    if (!address || !index || !eps2 || !h2) return missing();
    return api_g6_calls_set_i(id_of(clusterid), *address, *index, x, v, *eps2, *h2);
}

FORTRAN(g6_get_force, int *clusterid, double3 *acc, double3 *jerk, double *phi, int *flag)
{
    return api_g6_calls_get_force(id_of(clusterid), acc, jerk, phi, flag);
}

FORTRAN(g6_get_force_etc, int *clusterid, double3 *acc, double3 *jerk, double *phi, int *nnbindex,
        int *flag)
{
    return api_g6_calls_get_force_etc(id_of(clusterid), acc, jerk, phi, nnbindex, flag);
}

/* ---- the multi-card library's forms ------------------------------------------------ */

FORTRAN(g6_open_all, void) { return api_g6_calls_open(SESSION_ALL); }
FORTRAN(g6_close_all, void) { return api_g6_calls_close(SESSION_ALL); }
FORTRAN(g6_reset_all, void) { return 0; }
FORTRAN(g6_reset_fofpga_all, void) { return 0; }

FORTRAN(g6_set_ti_all, double *ti)
{
    return ti ? api_g6_calls_set_ti(SESSION_ALL, *ti) : missing();
}

FORTRAN(g6_set_j_particle_all, int *address, int *index, double *tj, double *dtj, double *mass,
        double *k18, double *j6, double *a2, double *v, double *x)
{
    (void)dtj;
    if (!address || !index || !tj || !mass) return missing();
    return api_g6_calls_set_j(SESSION_ALL, *address, *index, *tj, *mass, k18, j6, a2, v, x);
}

FORTRAN(g6_set_j_particle_mxonly_all, int *address, int *index, double *mass, double *x)
{
    if (!address || !index || !mass) return missing();
    return api_g6_calls_set_j_at_rest(SESSION_ALL, *address, *index, *mass, x);
}

FORTRAN(g6calc_firsthalf_all, FIRST_ARGUMENTS) { return first(SESSION_ALL, FIRST, 0); }

FORTRAN(g6calc_firsthalf0_all, FIRST_ARGUMENTS, int *mode)
{
    (void)mode;
    return first(SESSION_ALL, FIRST, 1);
}

FORTRAN(g6calc_lasthalf_all, LAST_ARGUMENTS) { return last(SESSION_ALL, LAST, FORCES, NULL, NULL); }

FORTRAN(g6calc_lasthalf0_all, LAST_ARGUMENTS, int *mode)
{
    (void)mode;
    return last(SESSION_ALL, LAST, FORCES, NULL, NULL);
}

FORTRAN(g6calc_lasthalf2_all, LAST_ARGUMENTS, int *nnbindex)
{
    return last(SESSION_ALL, LAST, NEAREST, nnbindex, NULL);
}

FORTRAN(g6_initialize_jp_buffer_all, int *size)
{
    (void)size;
    return api_g6_calls_idle(SESSION_ALL);
}

FORTRAN(g6_flush_jp_buffer_all, void) { return api_g6_calls_idle(SESSION_ALL); }
FORTRAN(g6_read_neighbour_list_all, void) { return api_g6_calls_read_lists(SESSION_ALL); }

FORTRAN(g6_get_neighbour_list_all, int *ipipe, int *maxlength, int *nblen, int *nbl)
{
    if (!ipipe || !maxlength) return missing();
    return api_g6_calls_list(SESSION_ALL, *ipipe, *maxlength, nblen, nbl);
}
