/* g6_fortran.c - the historical calls for Fortran, those of g6_list.h and some of their own: every
 * argument by pointer, names with one underscore or two. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g6_calls.h"
#include "session/force.h"
#include "session/quick_write.h"
#include "session/registry.h"

static int64_t id_of(const int *clusterid) { return clusterid ? *clusterid : SESSION_NONE; }

#define IN(type, name) type *name
#define VALUE(name) *name
#define ADDRESS(name) name
#define GIVEN(pointers, result) GIVEN_OR(missing(), pointers, result)
#define GIVEN_OR(otherwise, pointers, result) (pointers) ? (result) : (otherwise)
#define FORM(name, result, ...)                                                                    \
    FORTRAN(name, __VA_ARGS__) { return result; }
#define CALL(name, result, ...)                                                                    \
    FORTRAN(name, int *clusterid, ##__VA_ARGS__)                                                   \
    {                                                                                              \
        const int64_t id = id_of(clusterid);                                                       \
        return result;                                                                             \
    }

#include "api/g6_list.h"

/* A null pointer opens cluster 0: sapporo2's own test does so. */
FORTRAN(g6_open, int *clusterid) { return open_by_environment(clusterid ? *clusterid : 0); }
FORTRAN(g6_close, int *clusterid) { return session_registry_close(clusterid ? *clusterid : 0); }

/* Takes the exported call's arguments in the same order, so that none is moved or saved. */
static __attribute__((noinline)) int set_j(int *clusterid, int *address, int *index, double *tj,
                                           UNUSED double *dtj, double *mass, double *k18,
                                           double *j6, double *a2, double *v, double *x)
{
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
