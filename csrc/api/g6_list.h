/* g6_list.h - the historical calls, each written once: g6.c implements them, and includes this list
 * for each of its forms. g6lib.h documents them.
 *
 *   FORM(name, result, arguments)  one function
 *   CALL                           one with a cluster first, which is `id` in its result
 *   CALLS, CALLS0                  and name_all, whose cluster is SESSION_ALL; without arguments
 *   IN(type, name)                 an argument that goes by value or by address: VALUE(name)
 *   GIVEN(pointers, result)        an error for Fortran if one of its addresses is null
 */

#define OF_ALL(result)                                                                             \
    __extension__({                                                                                \
        const int64_t id = SESSION_ALL;                                                            \
        result;                                                                                    \
    })
#define CALLS(name, result, ...)                                                                   \
    CALL(name, result, __VA_ARGS__)                                                                \
    FORM(name##_all, OF_ALL(result), __VA_ARGS__)
#define CALLS0(name, result)                                                                       \
    CALL(name, result)                                                                             \
    FORM(name##_all, OF_ALL(result), void)

/* ---- opening and closing ----------------------------------------------------------------- */

FORM(g6_open_all, open_by_environment(SESSION_ALL), void)
FORM(g6_close_all, session_registry_close(SESSION_ALL), void)
FORM(g6_npipes, options_process()->npipes, void)
FORM(get_device_count, 1, void)
FORM(g6_open_special, GIVEN(ndevice, open_special(0, VALUE(ndevice), list, "g6_open_special")),
     IN(int, ndevice), int *list)
FORM(g6_open_special2, GIVEN(ndevice, open_special(0, VALUE(ndevice), list, "g6_open_special")),
     IN(int, ndevice), int *list, UNUSED IN(int, nmax))
CALLS0(g6_reset, (session_registry_reset(id), 0))

/* Recovery and set-up calls of host programs, allowed before open. Callers pass units as int or
 * double; the arguments are ignored. */
FORM(g6_reset_fofpga, 0, UNUSED IN(int, clusterid))
FORM(g6_reset_fofpga_all, 0, void)
FORM(g6_reinitialize, 0, UNUSED IN(int, clusterid))
FORM(g6_set_tunit, 0, UNUSED IN(int, newtunit))
FORM(g6_set_xunit, 0, UNUSED IN(int, newxunit))
FORM(g6_set_overflow_flag_test_mode, 0, UNUSED IN(int, aflag), UNUSED IN(int, jflag),
     UNUSED IN(int, pflag))
FORM(g6_changed_index, -1, UNUSED IN(int, clusterid))

/* They do nothing, on an open cluster. */
CALLS(g6_initialize_jp_buffer, idle(id, 0), UNUSED IN(int, size))
CALLS0(g6_flush_jp_buffer, idle(id, 0))
CALL(g6_flush_jp_buffer_and_multisend, idle(id, 0), UNUSED IN(int, nclusters))
CALL(g6_setup_njdata, idle(id, 0), UNUSED IN(int, nj))
CALL(g6_print_chip_status, idle(id, 0))
CALL(g6_set_i_particle_scales_from_real_value, idle(id, 0), UNUSED IN(int, address),
     UNUSED double acc[3], UNUSED double jerk[3], UNUSED IN(double, phi),
     UNUSED IN(double, jfactor), UNUSED IN(double, ffactor))
FORM(force_j_particle_send, idle(session_registry_recent(), 0), void)

/* ---- j particles; g6_set_j_particle is in each file ------------------------------------------ */

CALLS(g6_set_ti, GIVEN(ti, ON_SESSION(id, set_ti, VALUE(ti))), IN(double, ti))
FORM(g6_set_j_particle_all,
     GIVEN(address && index && tj && mass, api_g6_set_j(SESSION_ALL, VALUE(address), VALUE(index),
                                                        VALUE(tj), VALUE(mass), k18, j6, a2, v, x)),
     IN(int, address), IN(int, index), IN(double, tj), UNUSED IN(double, dtj), IN(double, mass),
     double k18[3], double j6[3], double a2[3], double v[3], double x[3])
CALLS(g6_set_j_particle_mxonly,
      GIVEN(address && index && mass,
            set_j_at_rest(id, VALUE(address), VALUE(index), VALUE(mass), x)),
      IN(int, address), IN(int, index), IN(double, mass), double x[3])
CALL(g6_getnjmax, idle(id, 0x7fffffff)) /* there is no other limit */
CALL(g6_get_predicted_j_particles, GIVEN(nj, ON_SESSION(id, predicted, 0, VALUE(nj), x, v, 1)),
     IN(int, nj), double3 *x, double3 *v)
FORM(get_j_part_data,
     GIVEN(addr &&nj, ON_SESSION(session_registry_recent(), predicted, VALUE(addr), VALUE(nj),
                                 (double3 *)x6, x6 ? (double3 *)x6 + 1 : NULL, 2)),
     IN(int, addr), IN(int, nj), double *x6)

/* ---- forces ------------------------------------------------------------------------------ */

/* eps2: of all i particles, by value or by address, or of each. */
#define FIRST_ARGUMENTS(eps2)                                                                      \
    IN(int, nj), IN(int, ni), int *index, double3 *xi, double3 *vi, UNUSED double3 *aold,          \
        UNUSED double3 *j6old, UNUSED double *phiold, eps2, double *h2
#define LAST_ARGUMENTS(eps2)                                                                       \
    IN(int, nj), IN(int, ni), UNUSED int *index, UNUSED double3 *xi, UNUSED double3 *vi,           \
        UNUSED eps2, UNUSED double *h2, double3 *acc, double3 *jerk, double *pot
#define FIRST(eps2, each)                                                                          \
    GIVEN_OR(ON_SESSION(id, first_null), nj && ni && eps2,                                         \
             ON_SESSION(id, session_force_first, VALUE(nj), VALUE(ni), index, CONST3(xi),          \
                        CONST3(vi), eps2, each, h2))
#define LAST(want, nearest, distance)                                                              \
    GIVEN_OR(null_pointer(ni ? VALUE(ni) : 0, acc, jerk, pot, nearest, distance), nj &&ni,         \
             ON_SESSION_OR(session_output_nan(VALUE(ni), acc, jerk, pot, nearest, distance), id,   \
                           session_force_last, want, VALUE(nj), VALUE(ni), acc, jerk, pot,         \
                           nearest, distance))

CALLS(g6calc_firsthalf, FIRST(ADDRESS(eps2), 0), FIRST_ARGUMENTS(IN(double, eps2)))
CALLS(g6calc_firsthalf0, FIRST(eps2, 1), FIRST_ARGUMENTS(double *eps2), UNUSED IN(int, mode))
CALLS(g6calc_lasthalf, LAST(0, NULL, NULL), LAST_ARGUMENTS(IN(double, eps2)))
CALLS(g6calc_lasthalf0, LAST(0, NULL, NULL), LAST_ARGUMENTS(double *eps2), UNUSED IN(int, mode))
CALLS(g6calc_lasthalf2, LAST(WANT_NEAREST, nnbindex, NULL), LAST_ARGUMENTS(IN(double, eps2)),
      int *nnbindex)
CALL(g6calc_lasthalfn, LAST(0, NULL, NULL), LAST_ARGUMENTS(IN(double, eps2)))
CALL(g6calc_lasthalf2n, LAST(WANT_NEAREST, nnbindex, NULL), LAST_ARGUMENTS(IN(double, eps2)),
     int *nnbindex)
CALL(g6calc_lasthalf2p, LAST(WANT_NEAREST | WANT_DISTANCE, nnbindex, rnnb),
     LAST_ARGUMENTS(IN(double, eps2)), int *nnbindex, float *rnnb)
CALL(g6calc_lasthalf2np, LAST(WANT_NEAREST | WANT_DISTANCE, nnbindex, rnnb),
     LAST_ARGUMENTS(IN(double, eps2)), int *nnbindex, float *rnnb)

/* ---- neighbour lists --------------------------------------------------------------------- */

CALLS0(g6_read_neighbour_list, ON_SESSION(id, read_lists))
CALL(g6_read_neighbour_list_old, ON_SESSION(id, read_lists))
CALLS(g6_get_neighbour_list,
      GIVEN(ipipe &&maxlength, ON_SESSION_OR(if (nblen) *nblen = 0, id, session_force_list,
                                             VALUE(ipipe), VALUE(maxlength), nblen, nbl)),
      IN(int, ipipe), IN(int, maxlength), int *nblen, int *nbl)
FORM(g6_set_neighbour_list_sort_mode, GIVEN(mode, (atomic_store(&sort_mode, VALUE(mode)), 0)),
     IN(int, mode))
FORM(g6_get_neighbour_list_sort_mode, atomic_load(&sort_mode), void)

/* ---- the halves in parts ----------------------------------------------------------------- */

CALL(g6_set_nip, GIVEN(nip, ON_SESSION(id, set_count, 0, VALUE(nip))), IN(int, nip))
CALL(g6_set_njp, GIVEN(njp, ON_SESSION(id, set_count, 1, VALUE(njp))), IN(int, njp))
CALL(g6_set_i_particle,
     GIVEN(address && index && eps2 && h2,
           ON_SESSION(id, set_i, VALUE(address), VALUE(index), x, v, VALUE(eps2), VALUE(h2))),
     IN(int, address), IN(int, index), double x[3], double v[3], IN(double, eps2), IN(double, h2))
CALL(g6_get_force, ON_SESSION(id, get_force, acc, jerk, phi, 0, NULL, flag), double3 *acc,
     double3 *jerk, double *phi, int *flag)
CALL(g6_get_force_etc, ON_SESSION(id, get_force, acc, jerk, phi, 1, nnbindex, flag), double3 *acc,
     double3 *jerk, double *phi, int *nnbindex, int *flag)
