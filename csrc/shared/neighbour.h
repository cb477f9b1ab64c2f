/* neighbour.h - which of two j particles is an i particle's nearest neighbour. */
#ifndef GRAPE6_NEIGHBOUR_H
#define GRAPE6_NEIGHBOUR_H

#include "shared/host_device.h"

/* Whether (r2, address) goes before what was found so far, at address -1 if that is nothing: the
 * nearer, of equally near ones the lower address. */
HOST_DEVICE int neighbour_is_nearer(double r2, int64_t address, double found_r2, int64_t found)
{
    return found < 0 || r2 < found_r2 || (r2 == found_r2 && address < found);
}

#endif
