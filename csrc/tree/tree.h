/* tree.h - an octree of particles, and forces from it: particles and cells in single precision in
 * units of the box, so that any units of the caller's do.
 *
 * Building: keys along a Hilbert curve, sort, cells level by level, moments from the leaves up.
 * Forces: targets in groups of 32 along the curve, 16 of them to a level-1 group, 8 of those to a
 * level-2 group; a traversal for each group of each level decides which cells act on it as
 * expansions, and what is left to its pieces; in the end leaves act particle by particle.
 */
#pragma once

#include <stdint.h>

#include "core/error.h"
#include "shared/tree_box.h"
#include "shared/tree_moments.h"
#include "shared/tree_numbers.h"
#include "shared/tree_share.h"
#include "shared/tree_softening.h"

/* Places and masses in the order of the keys, in units of the box; velocities in its frame. */
struct tree_points {
    int64_t n, capacity;
    int32_t *order;                      /* [n]: the caller's number of each */
    float *x, *y, *z, *xl, *yl, *zl, *m; /* [n and a group more] */
    float *vx, *vy, *vz;                 /* behind these, or NULL: none are known */
};

/* Particles' own softening: eps in the caller's units and order; by place and of cells, in units of
 * the box. */
struct tree_softening {
    double *eps;
    float *eps2;
    struct tree_cell_eps2 *cell;
};

struct tree {
    struct tree_box box;
    struct tree_points points;
    uint64_t *key; /* [n] */
    int32_t *rank; /* [n]: the place of each of the caller's particles among the points */
    int32_t levels, cells, cell_capacity, level_first[24];
    int32_t own_cells;    /* those behind them are of other ranks: tree/share.h */
    int32_t roots, *root; /* of theirs: walks begin there too */
    struct tree_cell *cell;
    struct tree_moments *moments;
    struct tree_cell_multipole *far;
    struct tree_cell_centre *place;
    struct tree_motion *motion; /* of cells; NULL: velocities are not known */
    int threads;
    struct tree_softening own; /* all NULL: one eps is given with each sum */
    struct tree_pieces
        *pieces; /* of particles that one box does not resolve (tree/pieces.h), or NULL */
};

/* Where the cells of a level end. */
static inline int32_t tree_level_end(const struct tree *t, int level)
{
    return level + 1 < t->levels ? t->level_first[level + 1] : t->own_cells;
}

/* A caller's particles. m is NULL for targets; v for all, if no jerk is wanted. */
struct tree_input {
    int64_t n;
    const double (*x)[3], (*v)[3], *m;
};

/* Targets of a sum; x NULL: the tree's own particles. */
struct tree_targets {
    int64_t n;
    const double (*x)[3], (*v)[3];
    const int32_t *self; /* the number of the particle that each is, or -1; NULL: none is one */
    const double *eps2, *last_acc; /* of each; last_acc may be NULL. If particles have their own
                                      softening, such a target's is that */
};

enum tree_method { TREE_FMM, TREE_BARNES_HUT };
struct tree_setting {
    int method, order;
    double theta;
    double bound;    /* of a term's error as a share of the last acceleration, or 0 */
    double accuracy; /* wanted relative error, in place of theta and bound, or 0 */
    int isa;
    int spline; /* softening is compact */
    int lone;   /* targets share no walks: their groups are shared out one by one */
};

/* What was done, all targets together. */
struct tree_counts {
    int64_t pairs, points, locals; /* pairs, cells on targets, cells on groups */
    int64_t zero_distances;        /* pairs at one place with eps = 0, left out */
};

struct tree_forces {
    double (*acc)[3], *pot, (*jerk)[3]; /* jerk may be NULL; else all velocities are wanted. Its
                                           relative error is near ten times that of acc. */
};

/* The forces of a tree in one box on targets. 0 or G6X_E_MEMORY. */
int tree_sum_one(const struct tree *t, const struct tree_setting *setting,
                 const struct tree_targets *targets, const struct tree_forces *out,
                 struct tree_counts *counts);

/* Gives a tree's n particles their own softening. 0 or G6X_E_MEMORY. */
int tree_softening_set(struct tree *t, int64_t n, const double eps[]);
void tree_softening_free(struct tree_softening *own);
/* How far each cell is to be away (shared/tree_softening.h), or NULL: there is no memory. */
float *tree_softening_reaches(const struct tree *t, int term, int soft, int jerk, double bound);
/* The term (shared/pair_terms.h) of a setting's sums. */
static inline int tree_pair_term(const struct tree *t, const struct tree_setting *s)
{
    return s->spline ? PAIR_SPLINE : t->own.eps ? PAIR_OWN : PAIR_FORCE;
}
/* Direct sums in double; eps: of the sources, or NULL. 0 or G6X_E_MEMORY. */
int tree_softening_direct(const struct tree_input *sources, const double eps[], int term,
                          const struct tree_targets *targets, const struct tree_forces *out,
                          int threads, struct tree_counts *counts);

/* Lets accelerations or jerks of the tree's own n particles add up to zero, by
 * shared/tree_net_force.h. */
void tree_sum_net_force(int64_t n, const double mass[], double (*a)[3]);

/* Searches in double precision among the coordinates x that the tree was built of, exact whatever
 * the tree's units resolve. r^2 is ((x-at)_x^2 + (x-at)_y^2) + (x-at)_z^2, unfused. */
/* Numbers of the particles with r^2 <= h2 without number `skip` (-1: none), ascending; the first
 * `capacity` of them are written. How many there are. */
int64_t tree_search_within(const struct tree *t, const double (*x)[3], const double at[3],
                           double h2, int32_t skip, int32_t *found, int64_t capacity);
/* The k nearest particles without number `skip` (-1: none), nearest first, ties to the lowest
 * number. How many there are, k at most. */
int tree_search_nearest(const struct tree *t, const double (*x)[3], const double at[3],
                        int32_t skip, int k, int32_t *number, double *r2);

/* Builds a tree of some particles, all of which are finite, in one box, whatever that resolves: one
 * of their own or, with `whole`, that of all ranks' (shared/tree_share.h). 0 or G6X_E_MEMORY. */
int tree_build_one(struct tree *t, const struct tree_input *in, const struct tree_whole *whole,
                   int threads);
void tree_build_free(struct tree *t);
/* The box of some particles, all of which are finite, and its frame. */
void tree_build_box(struct tree_box *box, const struct tree_input *in, int threads);
/* Lets a box's unit of velocity hold the targets' too; what its own come to in the new one. */
float tree_build_widen_frame(struct tree_box *box, const struct tree_input *targets, int threads);

/* Sorted points of some input within a box; 0 or G6X_E_MEMORY. */
int tree_build_load_points(const struct tree_box *box, const struct tree_input *in, uint64_t **key,
                           struct tree_points *p, int threads);
void tree_build_free_points(struct tree_points *p);
/* Memory for the columns of n points and a group more, with velocities if they are `moving`; 0 or
 * G6X_E_MEMORY. */
int tree_build_columns(struct tree_points *p, int64_t n, int moving);

/* tree/boxes.c: trees of particles that one box resolves, or several: see tree/pieces.h. */

/* Builds the tree of some particles, all of which are finite, in a box of their own or, with
 * `whole`, in that of all ranks' (shared/tree_share.h). 0 or an error code. */
int tree_boxes_build(struct tree *t, const struct tree_input *in, const struct tree_whole *whole,
                     int threads, struct error *err);
void tree_boxes_free(struct tree *t);
/* Forces of the tree on targets. 0 or an error code. */
int tree_boxes_sum(const struct tree *t, const struct tree_setting *s,
                   const struct tree_targets *targets, const struct tree_forces *out,
                   struct tree_counts *counts, struct error *err);

/* tree/share.c: trees of which each rank has a subtree: see shared/tree_share.h. */

/* The subtree of a tree that the targets of some regions may look at, or NULL: no memory. There is
 * nothing in it if there are no regions or particles. */
struct subtree_header *tree_share_subtree(const struct tree *t, const struct tree_setting *s,
                                          double eps2, int64_t regions,
                                          const struct tree_region *region);

/* A tree with subtrees of other ranks' behind it, made of copies; its particles, which are the
 * targets if none are given, are its own alone. 0 or an error code. */
int tree_share_join(const struct tree *t, int subtrees, const void *const subtree[],
                    struct tree *joined, struct error *err);
void tree_share_free(struct tree *joined);
