/* g6_calls.h - implements each API call once, for all its exported names. Ids are 64 bits wide, so
 * that the calls without a cluster have their own id (SESSION_ALL). Calls that take a session are
 * made with ON_SESSION. The exported functions call only these, never each other: a host program
 * may define some of the exported names itself. */
#pragma once

#include "api/arguments.h"

/* `result`, but needs an open cluster. */
int api_g6_calls_idle(int64_t id, int result);

int api_g6_calls_set_ti(struct session *s, double ti);
int api_g6_calls_set_j(int64_t id, int address, int index, double tj, double mass,
                       const double *k18, const double *j6, const double *a2, const double *v,
                       const double *x);
int api_g6_calls_set_j_at_rest(int64_t id, int address, int index, double mass, const double *x);
int api_g6_calls_set_j_many(struct session *s, int n, const int *address, const int *index,
                            const double *tj, const double *mass, const double3 *k18,
                            const double3 *j6, const double3 *a2, const double3 *v,
                            const double3 *x);
/* n particles from address `first` on; particle k goes to x[step k] and v[step k]. */
int api_g6_calls_predicted(struct session *s, int first, int n, double3 *x, double3 *v,
                           size_t step);

/* A firsthalf with a null pointer for a scalar: no call is in progress then. */
int api_g6_calls_first_null(struct session *s);
/* A force call with a null pointer: sets the outputs that are not NULL to NaN. */
int api_g6_calls_null(int ni, double3 *acc, double3 *jerk, double *pot, int *nearest,
                      float *distance);

int api_g6_calls_read_lists(struct session *s);
int api_g6_calls_set_sort_mode(int mode);
int api_g6_calls_sort_mode(void);

/* How many j particles act, or i particles are in the pipes. */
int api_g6_calls_set_count(struct session *s, int of_j, int n);
int api_g6_calls_set_i(struct session *s, int address, int index, const double *x, const double *v,
                       double eps2, double h2);
/* `etc`: nearest neighbours are requested; `nearest` must not be NULL. */
int api_g6_calls_get_force(struct session *s, double3 *acc, double3 *jerk, double *pot, int etc,
                           int *nearest, int *flag);
