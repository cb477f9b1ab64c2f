/* tree_upward.h - the moments of a cell, and how they change: of a leaf from its particles, of
 * another cell from its children. Positions are sums of both single parts. Where this is included,
 * a TREE_SOURCE, which TREE_OF_ANY introduces, has tree_point, tree_velocity, tree_child,
 * tree_moments_at and tree_rates_at. Also compiled for GPUs. */
#ifndef GRAPE6_TREE_UPWARD_H
#define GRAPE6_TREE_UPWARD_H

#include "shared/tree_moments.h"

TREE_OF_ANY HOST_DEVICE void tree_leaf_moments(TREE_SOURCE t, const struct tree_cell *cell,
                                               struct tree_moments *c)
{
    double origin[3], x[3], d[3], m, r2 = 0.0;
    tree_point(t, cell->first, origin, &m);
    for (int32_t k = cell->first; k < cell->end; k++) {
        tree_point(t, k, x, &m);
        tree_add_mass(c, m, fabs(m), x, origin, x, x);
    }
    tree_centre(c, origin);
    for (int32_t k = cell->first; k < cell->end; k++) {
        tree_point(t, k, x, &m);
        for (int a = 0; a < 3; a++) d[a] = x[a] - c->x[a];
        tree_add_particle(c, m, d);
        r2 = tree_larger(r2, tree_square(d));
    }
    c->radius = sqrt(r2);
}

TREE_OF_ANY HOST_DEVICE void tree_inner_moments(TREE_SOURCE t, const struct tree_cell *cell,
                                                struct tree_moments *c)
{
    double origin[3] = {0.0, 0.0, 0.0}, d[3];
    for (int32_t k = cell->child; k < cell->child_end; k++) {
        const struct tree_moments child = tree_child(t, k);
        for (int a = 0; a < 3 && k == cell->child; a++) origin[a] = child.x[a];
        tree_add_mass(c, child.m, child.total, child.x, origin, child.low, child.high);
    }
    tree_centre(c, origin);
    for (int32_t k = cell->child; k < cell->child_end; k++) {
        const struct tree_moments child = tree_child(t, k);
        for (int a = 0; a < 3; a++) d[a] = child.x[a] - c->x[a];
        tree_add_cell(c, &child, d);
    }
}

TREE_OF_ANY HOST_DEVICE void tree_leaf_rates(TREE_SOURCE t, const struct tree_cell *cell,
                                             const struct tree_moments *c, struct tree_rates *r)
{
    double x[3], v[3], d[3], w[3], m;
    for (int32_t k = cell->first; k < cell->end; k++) {
        tree_velocity(t, k, v);
        tree_point(t, k, x, &m);
        for (int a = 0; a < 3; a++) r->v[a] += m * v[a];
    }
    tree_motion_centre(c, r);
    for (int32_t k = cell->first; k < cell->end; k++) {
        tree_velocity(t, k, v);
        tree_point(t, k, x, &m);
        for (int a = 0; a < 3; a++) d[a] = x[a] - c->x[a], w[a] = v[a] - r->v[a];
        tree_add_rates(r, m, 0, 0, d, w);
    }
}

TREE_OF_ANY HOST_DEVICE void tree_inner_rates(TREE_SOURCE t, const struct tree_cell *cell,
                                              const struct tree_moments *c, struct tree_rates *r)
{
    double d[3], w[3];
    for (int32_t k = cell->child; k < cell->child_end; k++)
        for (int a = 0; a < 3; a++) r->v[a] += tree_moments_at(t, k)->m * tree_rates_at(t, k)->v[a];
    tree_motion_centre(c, r);
    for (int32_t k = cell->child; k < cell->child_end; k++) {
        const struct tree_moments *child = tree_moments_at(t, k);
        const struct tree_rates *own = tree_rates_at(t, k);
        for (int a = 0; a < 3; a++) d[a] = child->x[a] - c->x[a], w[a] = own->v[a] - r->v[a];
        tree_add_rates(r, child->m, child, own, d, w);
    }
}

#endif
