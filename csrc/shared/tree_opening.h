/* tree_opening.h - groups of targets, and what a setting of the tree comes to for them. */
#ifndef GRAPE6_TREE_OPENING_H
#define GRAPE6_TREE_OPENING_H

#include "shared/host_device.h"

/* Of a group of targets: centre and radius, half the sides of its box, least and largest eps^2, and
 * the least of the targets' last accelerations. */
struct tree_group {
    float x, y, z, radius;
    float half_x, half_y, half_z, least_acc;
    float eps2, eps2_spread;
    float unit; /* of expansions about the centre: a power of two near the radius, since their
                   terms go with its powers */
    int32_t first, count;         /* targets */
    int32_t self_first, self_end; /* where they are among the particles, in between */
};

/* What a setting comes to. Lengths in units of the box. */
struct tree_opening {
    float by_theta_point;           /* 1/theta of particle-cell terms */
    float by_theta_local[3];        /* of cell-cell terms of hypers, supers and groups */
    float bound_point, bound_local; /* of a term, as a share of the last acceleration; or 0 */
    float size_weight;              /* of a cell's size beside the group's radius */
    float least_distance2;          /* of a cell-cell term, in units of eps^2 */
    float passed_on; /* a cell smaller than this share of a large group's radius is left to its
                        parts */
    float guard;     /* error of a distance between single precision places */
    int least_count; /* leaves of fewer particles are summed one by one */
};

/* theta is that of cell-cell terms, d > (0.8 s + r)/theta between the centres, s and r being the
 * radii of cell and group: the error of a term falls faster with the cell's size than with the
 * group's, since its octupoles are there. That of particle-cell terms, d > s/theta from the group's
 * box, is chosen such that both give like errors; larger groups are kept a little stricter, since
 * all below have their terms. Barnes-Hut has particle-cell terms alone, its sizes being such that
 * s/theta is l/theta + delta. bound: see tree_error_below. (Found by trial on Plummer spheres.) */
HOST_DEVICE struct tree_opening tree_opening_of(double theta, int barnes_hut, double bound)
{
    struct tree_opening o;
    o.by_theta_point = (float)(barnes_hut ? 1.0 / theta : 1.0 / (0.93 * theta));
    for (int level = 0; level < 3; level++)
        o.by_theta_local[level] =
            barnes_hut ? (float)INFINITY : (float)((level < 2 ? 1.15 : 1.0) / theta);
    o.bound_point = o.bound_local = (float)bound;
    o.size_weight = 0.8f;
    o.least_distance2 = 64.0f;
    o.passed_on = 1.2f;
    o.guard = 0x1p-21f;
    o.least_count = barnes_hut ? 1 : 6;
    return o;
}

#endif
