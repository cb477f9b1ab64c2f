/* tree_few.h - few particles, whose pairs are summed one by one: to find a tree's bound on errors,
 * and to walk it, would take longer. */
#ifndef GRAPE6_TREE_FEW_H
#define GRAPE6_TREE_FEW_H

#include "shared/host_device.h"
#include "shared/tree_numbers.h"

enum {
    TREE_FEW = 4096,          /* particles, on any number of targets */
    TREE_FEW_PAIRS = 1 << 24, /* of more particles, where the bound is still to be found */
    TREE_FEW_ON_DEVICE = 8192 /* particles; few targets of more would leave nearly all of it idle */
};

HOST_DEVICE int tree_few(long long particles, long long targets, int on_device)
{
    if (on_device) return particles <= TREE_FEW_ON_DEVICE;
    return particles <= TREE_FEW || particles * targets <= TREE_FEW_PAIRS;
}

#endif
