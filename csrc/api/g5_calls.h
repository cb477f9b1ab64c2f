/* g5_calls.h - implements each GRAPE-5 call once, for all its exported names.
 *
 * A GRAPE-5 cluster is a session with an id that no GRAPE-6 call can name. Its j particles are at
 * rest. Its i particles have an index that no j particle has, so each feels itself, too. Its pipes
 * keep the i particles between g5_set_xi and g5_run.
 */
#pragma once

#include <stdint.h>

#include "session/registry.h"

#define GRAPE5_CLUSTER(devid) (SESSION_GRAPE5 + (int64_t)(devid))

/* J particles that a program is advised to send at a time. Arrays of this length are affordable,
 * and a large set is sent at once, so that its tree is not built in pieces. */
enum { GRAPE5_J_MEMORY = 1 << 24 };

int api_g5_calls_open(int64_t id);
int api_g5_calls_open_special(int n, const int *list);
int api_g5_calls_set_eta(int64_t id, double eta);
int api_g5_calls_set_n(int64_t id, int n);
/* Sets eps or, if `squared`, eps^2 of all clusters. */
int api_g5_calls_set_eps_everywhere(double eps, int squared);
/* The same for one cluster. */
int api_g5_calls_set_eps_to_all(int64_t id, double eps, int squared);
int api_g5_calls_set_eps(int64_t id, int ni, const double *eps);
int api_g5_calls_set_j(int64_t id, int halves, int address, int n, const double (*x)[3],
                       const double *mass);
/* The same for the calls that end in 0. */
int api_g5_calls_set_j0(int64_t id, int address, int n, const double (*x)[3], const double *mass,
                        const double *eps2);
enum { OF_ALL, SQUARED, LENGTHS }; /* softenings: of g5_set_eps etc., or in `eps` */
int api_g5_calls_set_xi(int64_t id, int ni, const double (*x)[3], int each, const double *eps);
/* `symmetric`: the run of the calls that end in 0. */
int api_g5_calls_run(int64_t id, int symmetric);
int api_g5_calls_get_force(int64_t id, int ni, double (*a)[3], double *p);
/* The last three in one call, which no other thread can interrupt. */
int api_g5_calls_calculate(int64_t id, int symmetric, int ni, const double (*x)[3], int each,
                           const double *eps2, double (*a)[3], double *p);
int api_g5_calls_last_error(int64_t id, char *buffer, int length);
