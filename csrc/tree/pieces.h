/* pieces.h - sets of particles that no one box resolves: some stand far away from others, or
 * many at one site. They are divided into pieces, each with a tree in a box and units of its own,
 * or, of a few, with none. Particles at one site are one source of their pieces, their site.
 */
#pragma once

#include "tree/tree.h"

struct tree_piece {
    struct tree tree;            /* of more than TREE_LEAF sites */
    int32_t n, *site;            /* sites, ascending */
    double (*x)[3], (*v)[3], *m; /* of the sites: sums of masses, mean velocities */
    /* What far targets see: mass, and sums of m (x - centre) and m v; and the sum of |m|. */
    double centre[3], radius, mass, dipole[3], momentum[3], weight;
};

struct tree_pieces {
    int count;
    struct tree_piece *piece;
    /* Sites: their particles, ascending; and by site and particle, where it is. */
    int32_t sites, *first, *particle, *site_of, *piece_of, *number_in_piece;
    double (*x)[3], (*v)[3], *m; /* the caller's particles; v NULL: velocities are not known */
    int unfit;                   /* the mass of a site is no double: no force is known */
};

/* Whether a tree resolves its particles, and has no crowded leaf. */
int tree_pieces_is_resolved(const struct tree *t, const struct tree_input *in);
/* Divides a set; 0 or G6X_E_MEMORY. */
int tree_pieces_make(struct tree *t, const struct tree_input *in);
void tree_pieces_free(struct tree_pieces *p);
