/* g6x_lists.c - the g6x_ call for the neighbour lists of a whole force call. */
#include "g6lib.h"
#include "session/force.h"
#include "session/registry.h"

int g6x_get_neighbour_lists(int clusterid, int ni, long long capacity, long long start[],
                            int list[])
{
    return ON_SESSION_OR(session_force_no_lists(ni, start), clusterid, session_force_lists, ni,
                         capacity, start, list);
}
