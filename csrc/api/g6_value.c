/* g6_value.c - the historical calls by value: those of g6_list.h, and some of their own. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g6_calls.h"
#include "g6lib.h"
#include "session/force.h"
#include "session/quick_write.h"
#include "session/registry.h"

#define IN(type, name) type name
#define VALUE(name) name
#define ADDRESS(name) &name
#define GIVEN(pointers, result) result
#define GIVEN_OR(otherwise, pointers, result) result
#define FORM(name, result, ...)                                                                    \
    int name(__VA_ARGS__) { return result; }
#define CALL(name, result, ...)                                                                    \
    int name(int clusterid, ##__VA_ARGS__)                                                         \
    {                                                                                              \
        const int64_t id = clusterid;                                                              \
        return result;                                                                             \
    }

#include "api/g6_list.h"

int g6_open(int clusterid) { return open_by_environment(clusterid); }
int g6_close(int clusterid) { return session_registry_close(clusterid); }

/* Takes the exported call's arguments in the same order, so that none is moved or saved. */
static __attribute__((noinline)) int set_j_quickly(int clusterid, int address, int index, double tj,
                                                   UNUSED double dtj, double mass, double k18[3],
                                                   double j6[3], double a2[3], double v[3],
                                                   double x[3])
{
    if (quick_write(clusterid, address, index, tj, mass, k18, j6, a2, v, x)) return 0;
    return api_g6_calls_set_j(clusterid, address, index, tj, mass, k18, j6, a2, v, x);
}

int g6_set_j_particle(int clusterid, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3])
{
    if (quick_may())
        return set_j_quickly(clusterid, address, index, tj, dtj, mass, k18, j6, a2, v, x);
    return api_g6_calls_set_j(clusterid, address, index, tj, mass, k18, j6, a2, v, x);
}
