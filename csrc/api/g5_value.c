/* g5_value.c - the GRAPE-5 calls by value. api/g5_calls.c implements them; g5lib.h documents
 * them. */
#include <stddef.h>

#include "g5lib.h"
#include "api/arguments.h"
#include "api/g5_calls.h"

#define CLUSTER GRAPE5_CLUSTER(devid)

/* Defines name, for cluster 0, and its MC form. */
#define BOTH(name, form, result, ...)                                                              \
    int name(__VA_ARGS__)                                                                          \
    {                                                                                              \
        UNUSED const int devid = 0;                                                                \
        return result;                                                                             \
    }                                                                                              \
    int form(UNUSED int devid, __VA_ARGS__) { return result; }
#define CALLS(name, ...) BOTH(name, name##MC, __VA_ARGS__)
#define SYMMETRIC(name, ...) BOTH(name##0, name##MC0, __VA_ARGS__)
/* The same for a call without further arguments. */
#define CALLS0(name, result)                                                                       \
    int name(void)                                                                                 \
    {                                                                                              \
        UNUSED const int devid = 0;                                                                \
        return result;                                                                             \
    }                                                                                              \
    int name##MC(UNUSED int devid) { return result; }

CALLS0(g5_open, api_g5_calls_open(CLUSTER))
CALLS0(g5_close, session_registry_close(CLUSTER))
int g5_open_special(int ndevice, int *list) { return api_g5_calls_open_special(ndevice, list); }
int g5_open_noinit(void) { return api_g5_calls_open(GRAPE5_CLUSTER(0)); }

CALLS0(g5_get_number_of_pipelines, options_process()->npipes)
int g5_get_number_of_pipelines_per_board(void) { return options_process()->npipes; }
int g5_get_number_of_boards(void) { return 1; }
int g5_get_firstcluster(void) { return 0; }
CALLS0(g5_get_number_of_real_pipelines, 1)
CALLS0(g5_get_pcibus_freq, 1)
CALLS0(g5_get_jmemsize, GRAPE5_J_MEMORY)
CALLS(g5_set_range, 0, UNUSED double xmin, UNUSED double xmax, UNUSED double mmin)
CALLS(g5_set_eta, api_g5_calls_set_eta(CLUSTER, eta), double eta)

CALLS(g5_set_n, api_g5_calls_set_n(CLUSTER, n), int n)
CALLS(g5_set_xmj, api_g5_calls_set_j(CLUSTER, GRAPE5_BOTH, adr, nj, CONST3(x), m), int adr, int nj,
      double (*x)[3], double *m)
CALLS(g5_set_jp, api_g5_calls_set_j(CLUSTER, GRAPE5_BOTH, adr, nj, CONST3(x), m), int adr, int nj,
      double *m, double (*x)[3])
CALLS(g5_set_xj, api_g5_calls_set_j(CLUSTER, GRAPE5_POSITIONS, adr, nj, CONST3(x), NULL), int adr,
      int nj, double (*x)[3])
CALLS(g5_set_mj, api_g5_calls_set_j(CLUSTER, GRAPE5_MASSES, adr, nj, NULL, m), int adr, int nj,
      double *m)

int g5_set_eps_to_all(double eps) { return api_g5_calls_set_eps_everywhere(eps, 0); }
int g5_set_eps2_to_all(double eps2) { return api_g5_calls_set_eps_everywhere(eps2, 1); }
int g5_set_eps_to_allMC(int devid, double eps)
{
    return api_g5_calls_set_eps_to_all(CLUSTER, eps, 0);
}
int g5_set_eps2_to_allMC(int devid, double eps2)
{
    return api_g5_calls_set_eps_to_all(CLUSTER, eps2, 1);
}
CALLS(g5_set_eps, api_g5_calls_set_eps(CLUSTER, ni, eps), int ni, double *eps)

CALLS(g5_set_xi, api_g5_calls_set_xi(CLUSTER, ni, CONST3(x), OF_ALL, NULL), int ni, double (*x)[3])
CALLS(g5_set_xei, api_g5_calls_set_xi(CLUSTER, ni, CONST3(x), SQUARED, eps2), int ni,
      double (*x)[3], double *eps2)
CALLS(g5_set_ip, api_g5_calls_set_xi(CLUSTER, ni, CONST3(x), LENGTHS, eps), int ni, double (*x)[3],
      double *eps, UNUSED double *h)
CALLS0(g5_run, api_g5_calls_run(CLUSTER, 0))
CALLS(g5_get_force, api_g5_calls_get_force(CLUSTER, ni, a, p), int ni, double (*a)[3], double *p)
CALLS(g5_calculate_force_on_x,
      api_g5_calls_calculate(CLUSTER, 0, ni, CONST3(x), OF_ALL, NULL, a, p), double (*x)[3],
      double (*a)[3], double *p, int ni)
CALLS(g5_calculate_force_on_xe,
      api_g5_calls_calculate(CLUSTER, 0, ni, CONST3(x), SQUARED, eps2, a, p), double (*x)[3],
      double *eps2, double (*a)[3], double *p, int ni)
SYMMETRIC(g5_set_xmj, api_g5_calls_set_j0(CLUSTER, adr, nj, CONST3(x), m, epsj2), int adr, int nj,
          double (*x)[3], double *m, double *epsj2)
int g5_set_xiMC0(int devid, int ni, double (*x)[3], double *eps2)
{
    return api_g5_calls_set_xi(CLUSTER, ni, CONST3(x), SQUARED, eps2);
}
int g5_runMC0(int devid) { return api_g5_calls_run(CLUSTER, 1); }
SYMMETRIC(g5_calculate_force_on_x,
          api_g5_calls_calculate(CLUSTER, 1, ni, CONST3(x), SQUARED, eps2, a, p), double (*x)[3],
          double (*a)[3], double *p, int ni, double *eps2)

int g6x_g5_last_error(int devid, char *buffer, int length)
{
    return api_g5_calls_last_error(CLUSTER, buffer, length);
}
