/* g5_list.h - the GRAPE-5 calls, each written once: g5.c implements them, and includes this list
 * for each of its forms. g5lib.h documents them.
 *
 *   FORM(name, result, arguments)  one function; MC(name): its name with a device's number
 *   CALLS, CALLS0                  name, for cluster 0, and its MC form; without arguments
 *   SYMMETRIC                      the same of the calls whose names end in 0
 *   IN, VALUE, GIVEN               as in g6_list.h
 */

#define OF_ZERO(result)                                                                            \
    __extension__({                                                                                \
        UNUSED DEVICE_ZERO;                                                                        \
        result;                                                                                    \
    })
#define BOTH(name, form, result, ...)                                                              \
    FORM(name, OF_ZERO(result), __VA_ARGS__)                                                       \
    FORM(form, result, UNUSED IN(int, devid), __VA_ARGS__)
#define CALLS(name, ...) BOTH(name, MC(name), __VA_ARGS__)
#define SYMMETRIC(name, ...) BOTH(name##0, MC0(name), __VA_ARGS__)
#define CALLS0(name, result)                                                                       \
    FORM(name, OF_ZERO(result), void)                                                              \
    FORM(MC(name), result, UNUSED IN(int, devid))

CALLS0(g5_open, GIVEN(devid, open_by_environment(CLUSTER)))
CALLS0(g5_close, session_registry_close(CLUSTER))
FORM(g5_open_special,
     GIVEN(ndevice, open_special(GRAPE5_CLUSTER(0), VALUE(ndevice), list, "g5_open_special")),
     IN(int, ndevice), int *list)
FORM(g5_open_noinit, open_by_environment(GRAPE5_CLUSTER(0)), void)

CALLS0(g5_get_number_of_pipelines, options_process()->npipes)
FORM(g5_get_number_of_pipelines_per_board, options_process()->npipes, void)
FORM(g5_get_number_of_boards, 1, void)
FORM(g5_get_firstcluster, 0, void)
CALLS0(g5_get_number_of_real_pipelines, 1)
CALLS0(g5_get_pcibus_freq, 1)
CALLS0(g5_get_jmemsize, GRAPE5_J_MEMORY)
CALLS(g5_set_range, 0, UNUSED IN(double, xmin), UNUSED IN(double, xmax), UNUSED IN(double, mmin))
CALLS(g5_set_eta, GIVEN(eta, ON_SESSION(CLUSTER, set_eta, VALUE(eta))), IN(double, eta))

/* ---- j particles ------------------------------------------------------------------------- */

#define SET_J(halves, x, m)                                                                        \
    GIVEN(adr &&nj, ON_CLUSTER(set_j, halves, VALUE(adr), VALUE(nj), CONST3(x), m))
CALLS(g5_set_n, GIVEN(n, ON_CLUSTER(set_n, VALUE(n))), IN(int, n))
CALLS(g5_set_xmj, SET_J(GRAPE5_BOTH, x, m), IN(int, adr), IN(int, nj), double3 *x, double *m)
CALLS(g5_set_jp, SET_J(GRAPE5_BOTH, x, m), IN(int, adr), IN(int, nj), double *m, double3 *x)
CALLS(g5_set_xj, SET_J(GRAPE5_POSITIONS, x, NULL), IN(int, adr), IN(int, nj), double3 *x)
CALLS(g5_set_mj, SET_J(GRAPE5_MASSES, NULL, m), IN(int, adr), IN(int, nj), double *m)
SYMMETRIC(g5_set_xmj,
          GIVEN(adr &&nj, ON_CLUSTER(set_j0, VALUE(adr), VALUE(nj), CONST3(x), m, epsj2)),
          IN(int, adr), IN(int, nj), double3 *x, double *m, double *epsj2)

/* ---- i particles and forces -------------------------------------------------------------- */

FORM(g5_set_eps_to_all, GIVEN(eps, set_eps_everywhere(VALUE(eps), 0)), IN(double, eps))
FORM(g5_set_eps2_to_all, GIVEN(eps2, set_eps_everywhere(VALUE(eps2), 1)), IN(double, eps2))
FORM(MC(g5_set_eps_to_all), GIVEN(eps, ON_CLUSTER(set_eps_to_all, VALUE(eps), 0)), IN(int, devid),
     IN(double, eps))
FORM(MC(g5_set_eps2_to_all), GIVEN(eps2, ON_CLUSTER(set_eps_to_all, VALUE(eps2), 1)),
     IN(int, devid), IN(double, eps2))
CALLS(g5_set_eps, GIVEN(ni, ON_CLUSTER(set_eps, VALUE(ni), eps)), IN(int, ni), double *eps)

#define NO_FORCES session_output_nan(VALUE(ni), a, NULL, p, NULL, NULL)
#define SET_XI(each, eps) GIVEN(ni, ON_CLUSTER(set_xi, VALUE(ni), CONST3(x), each, eps))
CALLS(g5_set_xi, SET_XI(OF_ALL, NULL), IN(int, ni), double3 *x)
CALLS(g5_set_xei, SET_XI(SQUARED, eps2), IN(int, ni), double3 *x, double *eps2)
CALLS(g5_set_ip, SET_XI(LENGTHS, eps), IN(int, ni), double3 *x, double *eps, UNUSED double *h)
FORM(MC0(g5_set_xi), SET_XI(SQUARED, eps2), IN(int, devid), IN(int, ni), double3 *x, double *eps2)
CALLS0(g5_run, ON_CLUSTER(run, 0))
FORM(MC0(g5_run), ON_CLUSTER(run, 1), IN(int, devid))
CALLS(g5_get_force, GIVEN(ni, ON_CLUSTER_OR(NO_FORCES, get_force, VALUE(ni), a, p)), IN(int, ni),
      double3 *a, double *p)

#define CALCULATE(symmetric, each, eps2)                                                           \
    GIVEN(ni,                                                                                      \
          ON_CLUSTER_OR(NO_FORCES, calculate, symmetric, VALUE(ni), CONST3(x), each, eps2, a, p))
CALLS(g5_calculate_force_on_x, CALCULATE(0, OF_ALL, NULL), double3 *x, double3 *a, double *p,
      IN(int, ni))
CALLS(g5_calculate_force_on_xe, CALCULATE(0, SQUARED, eps2), double3 *x, double *eps2, double3 *a,
      double *p, IN(int, ni))
SYMMETRIC(g5_calculate_force_on_x, CALCULATE(1, SQUARED, eps2), double3 *x, double3 *a, double *p,
          IN(int, ni), double *eps2)
