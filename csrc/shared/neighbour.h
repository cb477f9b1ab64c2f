/* neighbour.h - which of two j particles is an i particle's nearest neighbour. */
#ifndef GRAPE6_NEIGHBOUR_H
#define GRAPE6_NEIGHBOUR_H

#include "shared/host_device.h"

/* Whether (r2, address) is nearer than the neighbour found so far (found < 0: none). At equal
 * distances the lower address is preferred. */
HOST_DEVICE int neighbour_is_nearer(double r2, int64_t address, double found_r2, int64_t found)
{
    return found < 0 || r2 < found_r2 || (r2 == found_r2 && address < found);
}

#endif
