/* tree_net_force.h - the net force of a closed system, taken out of what a tree gives: its forces
 * and counter-forces differ by their errors, so that the system would drift.
 *
 * Every acceleration a changes by a vector, the same for all, times |a| and the sign of the mass m.
 * Of all changes that make the sum of m a zero none has a smaller largest |change|/|a|, which is
 * |sum m a| / sum |m a|: 1e-5 in a usual sum of 10^5 particles, far below its errors. */
#ifndef GRAPE6_TREE_NET_FORCE_H
#define GRAPE6_TREE_NET_FORCE_H

#include "shared/tree_moments.h"

struct tree_net_force {
    double sum[3], sizes; /* of m a, and of |m a| */
};

/* a is in a unit in which squares fit. */
HOST_DEVICE void tree_net_force_add(struct tree_net_force *net, double m, const double a[3])
{
    for (int c = 0; c < 3; c++) net->sum[c] += m * a[c];
    net->sizes += fabs(m) * sqrt(tree_square(a));
}

HOST_DEVICE void tree_net_force_remove(const struct tree_net_force *net, double m, double a[3])
{
    const double share = net->sizes > 0.0 ? copysign(sqrt(tree_square(a)), m) / net->sizes : 0.0;
    for (int c = 0; c < 3; c++) a[c] -= share * net->sum[c];
}

#endif
