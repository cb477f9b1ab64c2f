/* parts.h - sets of particles that no one box resolves: some stand far away from others, or
 * many at one place. They are divided into parts, each with a tree in a box and units of its own,
 * or, of a few, with none. Particles at one place are one source of their parts, their place.
 */
#pragma once

#include "tree/tree.h"

struct tree_part {
    struct tree tree;            /* of more than TREE_LEAF places */
    int32_t n, *place;           /* places, ascending */
    double (*x)[3], (*v)[3], *m; /* of the places: sums of masses, mean velocities */
    /* What far targets see: mass, and sums of m (x - centre) and m v. */
    double centre[3], radius, mass, dipole[3], momentum[3];
};

struct tree_parts {
    int count;
    struct tree_part *part;
    /* Places: their particles, ascending; and by place and particle, where it is. */
    int32_t places, *first, *particle, *place_of, *part_of, *number_in_part;
    double (*x)[3], (*v)[3], *m; /* the caller's particles; v NULL: velocities are not known */
    int unfit;                   /* the mass of a place is no double: no force is known */
};

/* Whether a tree resolves its particles, and has no crowded leaf. */
int tree_parts_is_resolved(const struct tree *t, const struct tree_input *in);
/* Divides a set; 0 or G6X_E_MEMORY. */
int tree_parts_make(struct tree *t, const struct tree_input *in);
void tree_parts_free(struct tree_parts *p);

/* The forces of a tree that has parts. 0 or G6X_E_MEMORY. */
int tree_parts_sum(const struct tree *t, const struct tree_setting *s,
                   const struct tree_targets *targets, const struct tree_forces *out,
                   struct tree_counts *counts);
