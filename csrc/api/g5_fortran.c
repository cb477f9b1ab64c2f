/* g5_fortran.c - the GRAPE-5 calls for Fortran: every argument by pointer, lower-case names with
 * one underscore or two. api/g5_calls.c implements them. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g5_calls.h"

typedef double double3[3];
/* A null pointer becomes an id that no session has. */
#define CLUSTER (devid ? GRAPE5_CLUSTER(*devid) : SESSION_NONE)

static int zero;

/* Defines name, for cluster 0, and its MC form. */
#define BOTH(name, form, result, ...)                                                              \
    FORTRAN(name, __VA_ARGS__)                                                                     \
    {                                                                                              \
        UNUSED int *devid = &zero;                                                                 \
        return result;                                                                             \
    }                                                                                              \
    FORTRAN(form, UNUSED int *devid, __VA_ARGS__) { return result; }
#define CALLS(name, ...) BOTH(name, name##mc, __VA_ARGS__)
#define SYMMETRIC(name, ...) BOTH(name##0, name##mc0, __VA_ARGS__)
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
FORTRAN(g5_open_noinit, void) { return api_g5_calls_open(GRAPE5_CLUSTER(0)); }

CALLS0(g5_get_number_of_pipelines, options_process()->npipes)
FORTRAN(g5_get_number_of_pipelines_per_board, void) { return options_process()->npipes; }
FORTRAN(g5_get_number_of_boards, void) { return 1; }
FORTRAN(g5_get_firstcluster, void) { return 0; }
CALLS0(g5_get_number_of_real_pipelines, 1)
CALLS0(g5_get_pcibus_freq, 1)
CALLS0(g5_get_jmemsize, GRAPE5_J_MEMORY)
CALLS(g5_set_range, 0, UNUSED double *xmin, UNUSED double *xmax, UNUSED double *mmin)
CALLS(g5_set_eta, eta ? api_g5_calls_set_eta(CLUSTER, *eta) : missing(), double *eta)

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

#define SET_XI(each, eps) (ni ? api_g5_calls_set_xi(CLUSTER, *ni, CONST3(x), each, eps) : missing())
CALLS(g5_set_xi, SET_XI(OF_ALL, NULL), int *ni, double3 *x)
CALLS(g5_set_xei, SET_XI(SQUARED, eps2), int *ni, double3 *x, double *eps2)
CALLS(g5_set_ip, SET_XI(LENGTHS, eps), int *ni, double3 *x, double *eps, UNUSED double *h)
CALLS0(g5_run, api_g5_calls_run(CLUSTER, 0))
CALLS(g5_get_force, ni ? api_g5_calls_get_force(CLUSTER, *ni, a, p) : missing(), int *ni,
      double3 *a, double *p)
#define CALCULATE(symmetric, each, eps2)                                                           \
    (ni ? api_g5_calls_calculate(CLUSTER, symmetric, *ni, CONST3(x), each, eps2, a, p) : missing())
CALLS(g5_calculate_force_on_x, CALCULATE(0, OF_ALL, NULL), double3 *x, double3 *a, double *p,
      int *ni)
CALLS(g5_calculate_force_on_xe, CALCULATE(0, SQUARED, eps2), double3 *x, double *eps2, double3 *a,
      double *p, int *ni)
SYMMETRIC(g5_set_xmj,
          adr &&nj ? api_g5_calls_set_j0(CLUSTER, *adr, *nj, CONST3(x), m, epsj2) : missing(),
          int *adr, int *nj, double3 *x, double *m, double *epsj2)
FORTRAN(g5_set_ximc0, int *devid, int *ni, double3 *x, double *eps2)
{
    return SET_XI(SQUARED, eps2);
}
FORTRAN(g5_runmc0, int *devid) { return api_g5_calls_run(CLUSTER, 1); }
SYMMETRIC(g5_calculate_force_on_x, CALCULATE(1, SQUARED, eps2), double3 *x, double3 *a, double *p,
          int *ni, double *eps2)
