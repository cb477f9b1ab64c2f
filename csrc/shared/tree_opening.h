/* tree_opening.h - groups of targets, and the parameters of the MAC. */
#ifndef GRAPE6_TREE_OPENING_H
#define GRAPE6_TREE_OPENING_H

#include "shared/host_device.h"
#include "shared/tree_box.h"
#include "shared/tree_numbers.h"

/* A group of targets: centre and radius, half the sides of its box, least and largest eps^2, and
 * the least of the targets' last accelerations, INFINITY if none are known. */
struct tree_group {
    float x, y, z, radius;
    float half_x, half_y, half_z, least_acc;
    float eps2, eps2_spread; /* of terms of cells */
    float reach;             /* of the targets' splines, within which no cell acts */
    /* length unit of expansions about the centre: a power of two near the radius, since terms scale
     * with its powers */
    float unit;
    int32_t first, count;         /* targets */
    int32_t self_first, self_end; /* range of particles that contains the targets */
};

/* The bound that gives an accuracy with expansions of an order (0: Barnes-Hut), whatever the shape
 * of the system: 99 of 100 errors are below four times the accuracy, half of them below the
 * accuracy itself. Smaller errors are sums of more terms. (Found on the shapes of
 * tests/tree/test_error_asked.py.) */
HOST_DEVICE double tree_bound_of(int order, double accuracy)
{
    const double factor = 1.3 * pow(accuracy / 1e-3, 0.45), most = factor < 4.0 ? factor : 4.0;
    const double share = order == 2 ? 0.4 : !order || order == 3 ? 0.6 : 1.0; /* more terms */
    return share * most * accuracy;
}

/* Parameters of the MAC. Lengths are in units of the box. */
struct tree_opening {
    float by_theta_point;    /* 1/theta of particle-cell terms */
    float by_theta_local[3]; /* of cell-cell terms: level-2, level-1 and plain groups */
    float bound;             /* error of a term over the least last acceleration; or 0 */
    int order;               /* of expansions; 0: Barnes-Hut */
    int own;  /* particles have their own softening, or splines (shared/tree_softening.h) */
    int soft; /* terms are those of softened distances, which the MAC then compares */
    float soft_share, most_eps2; /* of eps^2, by an angle alone; in units of the box */
    float usual_mass;  /* of bodies; a cell whose bodies have more than twice as much is heavy */
    float size_weight; /* of a cell's size compared with the group's radius */
    float least_radii; /* of the group, that the centres of a cell-cell term are apart */
    float least_distance2; /* of a cell-cell term that is not soft, squared, in units of eps^2 */
    /* a cell smaller than this fraction of a large group's radius is left to its subgroups */
    float passed_on;
    float guard;     /* error of a distance between single precision positions */
    int least_count; /* leaves with fewer particles are summed particle by particle */
};

/* At a distance d, a term that is not soft lacks the trace of its second derivatives, 3 eps^2 / d^2
 * of them: in forces this is of second order in the group's size, but it is what jerks are made of,
 * and all of it is in z. There it is to be small beside the errors that an angle or a bound lets
 * terms have. */
HOST_DEVICE float tree_least_distance2(double theta, int jerk, double bound)
{
    if (!jerk) return 64.0f;
    const double by_theta = 0x1p14 / (theta * theta), by_bound = bound > 0.0 ? 3.0 / bound : 0.0;
    return (float)fmin(1e30, fmax(by_theta, by_bound)); /* times eps^2 it is in range */
}

/* theta applies to cell-cell terms: d > (0.8 s + r)/theta between the centres; s and r are the
 * radii of cell and group. The weight 0.8 is because the error of a term falls faster with the
 * cell's size than with the group's, since the cell has octupoles. For particle-cell terms, d >
 * s/theta from the group's box, theta is adjusted so that both give similar errors. Larger groups
 * use a slightly stricter theta, since all their subgroups inherit their terms. Barnes-Hut has only
 * particle-cell terms, with sizes such that s/theta is l/theta + delta. bound: see
 * tree_within_point; with it, no group expands a cell, however light, nearer than least_radii: of
 * a wide group, the largest errors are such terms'. (Numbers found by experiment on Plummer
 * spheres.) */
/* order: of the expansions; 0: Barnes-Hut. soft: TREE_SOFT_FROM. Within eps the force falls as the
 * distance does, and with it what errors are shares of: an angle alone counts so much less of eps
 * that an error of the lowest power that is not known falls by 32, and no more of eps than the size
 * of the set. */
HOST_DEVICE struct tree_opening tree_opening_of(double theta, int order, int soft, int jerk,
                                                double bound, const struct tree_box *box)
{
    const int barnes_hut = !order;
    struct tree_opening o;
    o.by_theta_point = (float)(barnes_hut ? 1.0 / theta : 1.0 / (0.93 * theta));
    for (int level = 0; level < 3; level++)
        o.by_theta_local[level] = (float)((level < 2 ? 1.15 : 1.0) / theta);
    o.bound = (float)bound;
    o.order = order;
    o.own = 0;
    o.soft = soft;
    o.soft_share = exp2f(-10.0f / (float)(barnes_hut ? 3 : order));
    o.most_eps2 = (float)box->spread2;
    o.usual_mass = (float)box->usual_mass;
    o.size_weight = 0.8f;
    o.least_radii = bound > 0.0 ? 1.8f : 0.0f;
    o.least_distance2 = tree_least_distance2(theta, jerk, bound);
    o.passed_on = 1.2f;
    o.guard = 0x1p-21f;
    o.least_count = barnes_hut ? 1 : 6;
    return o;
}

#endif
