/* g5_calls.h - implements each GRAPE-5 call once, for all its exported names.
 *
 * A GRAPE-5 cluster is a session with an id that no GRAPE-6 call can name. Its j particles are at
 * rest. Its i particles have an index that no j particle has, so each feels itself, too. Its pipes
 * keep the i particles between g5_set_xi and g5_run.
 */
#pragma once

#include <stdint.h>

#include "session/output.h"
#include "session/registry.h"

#define GRAPE5_CLUSTER(devid) (SESSION_GRAPE5 + (int64_t)(devid))

/* J particles that a program is advised to send at a time. Arrays of this length are affordable,
 * and a large set is sent at once, so that its tree is not built in pieces. */
enum { GRAPE5_J_MEMORY = 1 << 24 };

/* The open, locked session of a cluster, with the softening for all; as session_registry_take. */
struct session *api_g5_calls_take(int64_t id, int *code);
/* As ON_SESSION and ON_SESSION_OR, of a cluster. */
#define ON_CLUSTER(call, ...) ON_CLUSTER_OR((void)0, call, __VA_ARGS__)
#define ON_CLUSTER_OR(missing, call, ...)                                                          \
    __extension__({                                                                                \
        int code_of_id;                                                                            \
        struct session *session_of_id = api_g5_calls_take(CLUSTER, &code_of_id);                   \
        if (!session_of_id) missing;                                                               \
        session_of_id ? session_registry_leave(session_of_id, call(session_of_id, __VA_ARGS__))    \
                      : code_of_id;                                                                \
    })

int api_g5_calls_set_eta(struct session *s, double eta);
int api_g5_calls_set_n(struct session *s, int n);
/* Sets eps or, if `squared`, eps^2 of all clusters. */
int api_g5_calls_set_eps_everywhere(double eps, int squared);
/* The same for one cluster. */
int api_g5_calls_set_eps_to_all(struct session *s, double eps, int squared);
int api_g5_calls_set_eps(struct session *s, int ni, const double *eps);
int api_g5_calls_set_j(struct session *s, int halves, int address, int n, const double (*x)[3],
                       const double *mass);
/* The same for the calls that end in 0. */
int api_g5_calls_set_j0(struct session *s, int address, int n, const double (*x)[3],
                        const double *mass, const double *eps2);
enum { OF_ALL, SQUARED, LENGTHS }; /* softenings: of g5_set_eps etc., or in `eps` */
int api_g5_calls_set_xi(struct session *s, int ni, const double (*x)[3], int each,
                        const double *eps);
/* `symmetric`: the run of the calls that end in 0. */
int api_g5_calls_run(struct session *s, int symmetric);
int api_g5_calls_get_force(struct session *s, int ni, double (*a)[3], double *p);
/* The last three in one call, which no other thread can interrupt. */
int api_g5_calls_calculate(struct session *s, int symmetric, int ni, const double (*x)[3], int each,
                           const double *eps2, double (*a)[3], double *p);
