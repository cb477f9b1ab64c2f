/* g5_calls.h - what each GRAPE-5 call does, once for all its spellings.
 *
 * A GRAPE-5 cluster is a session whose id no caller of GRAPE-6 has, whose j particles rest, and
 * whose i particles have an index that no j particle has: each feels itself, too. Its pipes keep
 * the i particles between g5_set_xi and g5_run.
 */
#pragma once

#include <stdint.h>

#include "session/registry.h"

#define GRAPE5_CLUSTER(devid) (SESSION_GRAPE5 + (int64_t)(devid))

/* j particles that a program is to send at a time, should it ask: its arrays of this length are no
 * burden, and the tree of a large set is not made in pieces. */
enum { GRAPE5_J_MEMORY = 1 << 24 };

int api_g5_calls_open(int64_t id);
int api_g5_calls_open_special(int n, const int *list);
int api_g5_calls_set_n(int64_t id, int n);
/* eps or, if `squared`, eps^2, of all clusters or of one. */
int api_g5_calls_set_eps_everywhere(double eps, int squared);
int api_g5_calls_set_eps_to_all(int64_t id, double eps, int squared);
int api_g5_calls_set_eps(int64_t id, int ni, const double *eps);
int api_g5_calls_set_j(int64_t id, int halves, int address, int n, const double (*x)[3],
                       const double *mass);
/* eps2: softening of each, if `each`; else that of g5_set_eps and the like holds. */
int api_g5_calls_set_xi(int64_t id, int ni, const double (*x)[3], int each, const double *eps2);
int api_g5_calls_run(int64_t id);
int api_g5_calls_get_force(int64_t id, int ni, double (*a)[3], double *p);
/* The last three in one, which no other thread comes between. */
int api_g5_calls_calculate(int64_t id, int ni, const double (*x)[3], int each, const double *eps2,
                           double (*a)[3], double *p);
int api_g5_calls_last_error(int64_t id, char *buffer, int length);
