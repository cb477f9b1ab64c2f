/* tree_mac.h - the multipole acceptance criterion (MAC): compares the distance of a cell from a
 * group of targets with its size, over the named operations of pair.h. C and CUDA use the same
 * steps, so that both accept the same cells. */
#ifndef GRAPE6_TREE_MAC_H
#define GRAPE6_TREE_MAC_H

#include "shared/tree_opening.h"

/* Length unit of the expansions of a group. At least 2^-13 of the box: expansions compute s^-13 for
 * distances s from the guard to the width of the box, which must fit single precision. For the same
 * reason at least 2^-22 of the distance of targets far outside the box. */
HOST_DEVICE float tree_unit(const struct tree_opening *o, const struct tree_group *g)
{
    const float far = 0x1p-22f * (fabsf(g->x) + fabsf(g->y) + fabsf(g->z));
    float length = 256.0f * o->guard;
    if (length < g->radius) length = g->radius;
    if (length < far) length = far;
    return ldexpf(1.0f, ilogbf(length));
}

/* Squared distances of a cell's centre from the group's centre and from its box. */
struct tree_distance {
    vec centre, box;
};

HOST_DEVICE struct tree_distance tree_distance_of(const struct tree_group *g, vec x, vec y, vec z)
{
    const vec dx = v_abs(v_sub(x, v_set1(g->x))), dy = v_abs(v_sub(y, v_set1(g->y)));
    const vec dz = v_abs(v_sub(z, v_set1(g->z))), zero = v_set1(0);
    const vec bx = v_max(v_sub(dx, v_set1(g->half_x)), zero);
    const vec by = v_max(v_sub(dy, v_set1(g->half_y)), zero);
    const vec bz = v_max(v_sub(dz, v_set1(g->half_z)), zero);
    struct tree_distance d;
    d.centre = v_fma(dz, dz, v_fma(dy, dy, v_mul(dx, dx)));
    d.box = v_fma(bz, bz, v_fma(by, by, v_mul(bx, bx)));
    return d;
}

/* Least squared distance from the group's box at which a cell of this size may act on a point
 * (M2P). Includes the error of single precision positions relative to the group's centre. */
HOST_DEVICE vec tree_reach_point(const struct tree_opening *o, const struct tree_group *g, vec size)
{
    const vec guard = v_set1(o->guard + 0x1p-6f * g->radius);
    const vec r = v_fma(size, v_set1(o->by_theta_point), guard);
    return v_mul(r, r);
}

/* Least squared distance between centres for an expansion of the cell about the group's centre
 * (M2L). The two never overlap. */
HOST_DEVICE vec tree_reach_local(const struct tree_opening *o, int level,
                                 const struct tree_group *g, vec size)
{
    const vec radius = v_set1(g->radius), both = v_fma(size, v_set1(o->size_weight), radius);
    const vec r = v_fma(both, v_set1(o->by_theta_local[level]), v_set1(o->guard));
    const vec least = v_max(v_max(r, v_add(size, radius)), v_mul(v_set1(o->least_radii), radius));
    return v_mul(least, least);
}

/* Least squared distance of cell-cell terms because of softening, since they assume harmonic
 * functions. If the targets' eps differ, the group's eps is used for all. */
HOST_DEVICE float tree_reach_soft(const struct tree_opening *o, const struct tree_group *g)
{
    return o->least_distance2 * (g->eps2 + 100.0f * g->eps2_spread);
}

/* Whether the estimated error of a term is below `most`:
 *   m/d^2 (s/d)^p / (1 - (s/d)^2)^2
 * p is 6, or 4 in Barnes-Hut and for expansions of order 2 and 3; the denominator is for all orders
 * beyond it, which a near cell has. (As in Dehnen 2014, Comput. Astrophys. 1, 1, and in Gadget-4,
 * but for powers found by experiment: they give the smallest errors in a given time, and the fewest
 * large ones.) Lengths are in the group's unit, in which the powers fit single precision. */
HOST_DEVICE vmask tree_error_below(const struct tree_group *g, int sixth_power, vec mass, vec size,
                                   vec distance2, float most)
{
    const vec per_unit = v_set1(1.0f / g->unit), d = v_mul(v_mul(distance2, per_unit), per_unit);
    const vec s = v_mul(size, per_unit), s2 = v_mul(s, s);
    const vec apart = v_max(v_sub(d, s2), v_set1(0)), near = v_mul(apart, apart);
    vec error = v_mul(mass, v_mul(s2, s2));
    vec bound = v_mul(v_set1(most * g->unit * g->unit), v_mul(d, near));
    if (sixth_power) {
        error = v_mul(error, s2);
        bound = v_mul(bound, d);
    }
    return v_lt(error, bound);
}

HOST_DEVICE vmask tree_within_point(const struct tree_opening *o, const struct tree_group *g,
                                    vec mass, vec size, vec distance2)
{
    return tree_error_below(g, o->sixth_point, mass, size, distance2,
                            o->bound_point * g->typical_acc);
}

HOST_DEVICE vmask tree_within_local(const struct tree_opening *o, const struct tree_group *g,
                                    vec mass, vec size, vec distance2)
{
    const vec both = v_fma(size, v_set1(o->size_weight), v_set1(g->radius));
    return tree_error_below(g, o->sixth_local, mass, both, distance2,
                            o->bound_local * g->typical_acc);
}

#endif
