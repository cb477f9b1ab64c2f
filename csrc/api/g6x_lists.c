/* g6x_lists.c - the g6x_ call for the neighbour lists of a whole force call. */
#include "g6lib.h"
#include "session/force.h"
#include "session/registry.h"

int g6x_get_neighbour_lists(int clusterid, int ni, long long capacity, long long start[],
                            int list[])
{
    int code;
    struct session *s = session_registry_take(clusterid, &code);
    if (s) return session_registry_leave(s, session_force_lists(s, ni, capacity, start, list));
    session_force_no_lists(ni, start);
    return code;
}
