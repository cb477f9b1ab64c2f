/* tree_share.h - what ranks exchange of their trees. All trees have one box, that of the particles
 * of all ranks. A rank sends each other one a subtree of its tree: all cells that the other's
 * targets may look at, and the particles of leaves that may act one by one (the locally essential
 * tree of Warren and Salmon 1992, Supercomputing '92, 570). The others' targets are known by
 * regions: boxes of some of them. What no target of a region looks into comes without what is in
 * it, as a leaf without particles; such a leaf always acts as a whole. Also compiled for GPUs. */
#ifndef GRAPE6_TREE_SHARE_H
#define GRAPE6_TREE_SHARE_H

#include "shared/host_device.h"
#include "shared/tree_box.h"
#include "shared/tree_opening.h"

/* The particles of all ranks, in the caller's units: corners of their box, the largest |mass|, how
 * many there are, the largest component of a velocity (negative: none are known), the mean
 * velocity, weighted with |mass|, and the sum of |mass|. */
struct tree_whole {
    double low[3], high[3], mass, count, fastest, velocity[3], total;
};

/* Some targets of another rank: corners of their box, and the least of their last accelerations, or
 * 0 if there are none. */
struct tree_region {
    double low[3], high[3], least_acc;
};

/* A subtree of a tree is these numbers, then, for its cells, struct tree_cell, tree_cell_multipole
 * and tree_cell_centre (as the method wants it) and, if `moving`, tree_motion; then, for its
 * particles, four floats x y z m, four xl yl zl 0 and, if `moving`, four vx vy vz 0. Children and
 * particles are numbered in the subtree; cell 0 is the root. Of cells without their particles
 * `first` and `end` say how many these are (subtree_bodies), of leaves `child_end`. */
struct subtree_header {
    int64_t cells, particles, moving, bytes; /* bytes: of all, with this */
};

HOST_DEVICE void tree_whole_box(struct tree_box *box, const struct tree_whole *w)
{
    tree_box_of(box, w->low, w->high, w->mass, w->count);
    box->usual_mass = tree_usual_mass(tree_mass_in_box(box, w->total), w->count);
    box->velocity = w->fastest < 0.0 ? 0 : tree_speed_exponent(w->fastest);
    for (int c = 0; c < 3; c++)
        box->frame[c] = w->fastest < 0.0 ? 0.0 : tree_scaled(w->velocity[c], -box->velocity);
}

/* The group of targets that fills a region: what it accepts, each group within it accepts. Its unit
 * is still to be found (tree_unit). eps2: the largest of the targets, in units of the box. */
HOST_DEVICE void tree_region_group(const struct tree_box *box, const struct tree_region *r,
                                   float eps2, struct tree_group *g)
{
    float centre[3], half[3];
    double r2 = 0.0;
    for (int c = 0; c < 3; c++) {
        const double low = tree_in_box(box, c, r->low[c]), high = tree_in_box(box, c, r->high[c]);
        centre[c] = (float)(0.5 * (low + high));
        const double above = high - (double)centre[c], below = (double)centre[c] - low;
        half[c] = (float)(above > below ? above : below) * (1.0f + 0x1p-22f) + 0x1p-40f;
        r2 += (double)half[c] * (double)half[c];
    }
    g->x = centre[0], g->y = centre[1], g->z = centre[2];
    g->half_x = half[0], g->half_y = half[1], g->half_z = half[2];
    g->radius = (float)sqrt(r2);
    g->least_acc = r->least_acc > 0.0
                       ? (float)tree_scaled(r->least_acc, 2 * box->length - box->mass)
                       : INFINITY;
    g->eps2 = eps2, g->eps2_spread = g->reach = 0.0f;
    g->first = g->count = 0;
    g->self_first = 0x7fffffff, g->self_end = 0;
}

#endif
