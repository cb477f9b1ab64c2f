/* g5_fortran.c - the GRAPE-5 calls for Fortran: every argument by pointer, lower-case names with
 * one underscore or two. api/g5_calls.c implements them. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g5_calls.h"

typedef double double3[3];
/* A null pointer becomes an id that no session has. */
#define CLUSTER (devid ? GRAPE5_CLUSTER(*devid) : SESSION_NONE)

static int zero;

/* Defines name, for cluster 0, and namemc. */
#define CALLS(name, result, ...)                                                                   \
    FORTRAN(name, __VA_ARGS__)                                                                     \
    {                                                                                              \
        UNUSED int *devid = &zero;                                                                 \
        return result;                                                                             \
    }                                                                                              \
    FORTRAN(name##mc, UNUSED int *devid, __VA_ARGS__) { return result; }
#define CALLS0(name, result)                                                                       \
    FORTRAN(name, void)                                                                            \
    {                                                                                              \
        UNUSED int *devid = &zero;                                                                 \
        return result;                                                                             \
    }                                                                                              \
    FORTRAN(name##mc, UNUSED int *devid) { return result; }

CALLS0(g5_open, devid ? api_g5_calls_open(CLUSTER) : missing())
CALLS0(g5_close, session_registry_close(CLUSTER))
FORTRAN(g5_open_special, int *ndevice, int *list)
{
    return ndevice ? api_g5_calls_open_special(*ndevice, list) : missing();
}

CALLS0(g5_get_number_of_pipelines, options_process()->npipes)
CALLS0(g5_get_number_of_real_pipelines, 1)
CALLS0(g5_get_pcibus_freq, 1)
CALLS0(g5_get_jmemsize, GRAPE5_J_MEMORY)
CALLS(g5_set_range, 0, UNUSED double *xmin, UNUSED double *xmax, UNUSED double *mmin)

CALLS(g5_set_n, n ? api_g5_calls_set_n(CLUSTER, *n) : missing(), int *n)

#define SET_J(halves, x, m)                                                                        \
    (adr && nj ? api_g5_calls_set_j(CLUSTER, halves, *adr, *nj, CONST3(x), m) : missing())
CALLS(g5_set_xmj, SET_J(GRAPE5_BOTH, x, m), int *adr, int *nj, double3 *x, double *m)
CALLS(g5_set_jp, SET_J(GRAPE5_BOTH, x, m), int *adr, int *nj, double *m, double3 *x)
CALLS(g5_set_xj, SET_J(GRAPE5_POSITIONS, x, NULL), int *adr, int *nj, double3 *x)
CALLS(g5_set_mj, SET_J(GRAPE5_MASSES, NULL, m), int *adr, int *nj, double *m)

FORTRAN(g5_set_eps_to_all, double *eps)
{
    return eps ? api_g5_calls_set_eps_everywhere(*eps, 0) : missing();
}
FORTRAN(g5_set_eps2_to_all, double *eps2)
{
    return eps2 ? api_g5_calls_set_eps_everywhere(*eps2, 1) : missing();
}
FORTRAN(g5_set_eps_to_allmc, int *devid, double *eps)
{
    return eps ? api_g5_calls_set_eps_to_all(CLUSTER, *eps, 0) : missing();
}
FORTRAN(g5_set_eps2_to_allmc, int *devid, double *eps2)
{
    return eps2 ? api_g5_calls_set_eps_to_all(CLUSTER, *eps2, 1) : missing();
}
CALLS(g5_set_eps, ni ? api_g5_calls_set_eps(CLUSTER, *ni, eps) : missing(), int *ni, double *eps)

CALLS(g5_set_xi, ni ? api_g5_calls_set_xi(CLUSTER, *ni, CONST3(x), 0, NULL) : missing(), int *ni,
      double3 *x)
CALLS(g5_set_xei, ni ? api_g5_calls_set_xi(CLUSTER, *ni, CONST3(x), 1, eps2) : missing(), int *ni,
      double3 *x, double *eps2)
CALLS0(g5_run, api_g5_calls_run(CLUSTER))
CALLS(g5_get_force, ni ? api_g5_calls_get_force(CLUSTER, *ni, a, p) : missing(), int *ni,
      double3 *a, double *p)
CALLS(g5_calculate_force_on_x,
      ni ? api_g5_calls_calculate(CLUSTER, *ni, CONST3(x), 0, NULL, a, p) : missing(), double3 *x,
      double3 *a, double *p, int *ni)
CALLS(g5_calculate_force_on_xe,
      ni ? api_g5_calls_calculate(CLUSTER, *ni, CONST3(x), 1, eps2, a, p) : missing(), double3 *x,
      double *eps2, double3 *a, double *p, int *ni)
