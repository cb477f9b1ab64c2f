/* kernel.h - what each instruction set supplies to the tree: walking a group of targets
 * through cells, and summing what the walk has found. */
#pragma once

#include "tree/tree.h"

struct tree_group;
struct tree_opening;

struct tree_list {
    int32_t count, capacity;
    int32_t *cell;
};

/* Particles of leaves, added up in single precision: beside a heavy one others lose digits. */
enum { TREE_SOURCES = 256 };
enum { TREE_RATE = 84, TREE_ROWS = 144 };

/* Memory of one thread. Expansions: term by term, of the groups of a level-1 group or those of a
 * level-2 group; for jerks, from TREE_RATE on, those of psi (shared/tree_expansion.h). */
struct tree_work {
    struct tree_list from[3],
        front[2]; /* cells left to level-2, level-1 and plain groups; and on the way */
    struct tree_list local, point, leaf;  /* what acts on a group: as an expansion about its centre,
                                             on each target, particle by particle */
    float source[4][TREE_SOURCES + 64];   /* x, y, z relative to the group, m */
    float motion[3][TREE_SOURCES + 64];   /* their velocities, for jerks */
    float source_eps2[TREE_SOURCES + 64]; /* their own, if they have any */
    int32_t source_at[TREE_SOURCES + 64];
    float level2[TREE_ROWS][TREE_LEVEL1], level1[TREE_ROWS][TREE_LEVEL1],
        group[TREE_ROWS][TREE_LEVEL1];
    int missing; /* memory */
    struct tree_counts counts;
};

/* What a sum needs, besides a group. */
struct tree_job {
    const struct tree *tree;
    const struct tree_cell_centre *place; /* as the method wants it */
    const struct tree_points *targets;
    const int32_t *self; /* place among the tree's points of each target, or -1; NULL: its own */
    const float *eps2, *last_acc; /* [targets], in units of the box; last_acc may be NULL */
    int order;                    /* of expansions; 0: Barnes-Hut, quadrupoles */
    int soft;                     /* tree_is_soft */
    int jerk;                     /* whether it is wanted */
    int term;                     /* of pairs: shared/pair_terms.h */
    const float *own_eps2;        /* of the tree's points; or NULL */
    const double *given_eps2;     /* of targets, in the caller's order and units */
    const float *reach;           /* of cells: tree_softening_reaches */
    float speed;                  /* the tree's unit of velocity in the targets' */
};

/* Forces on a small group's targets, in units of the box. */
struct tree_sums {
    double phi[TREE_GROUP], acc[3][TREE_GROUP], jerk[3][TREE_GROUP];
};

struct tree_kernel {
    /* Keys along the Hilbert curve of n positions; the same for each instruction set. */
    void (*keys)(const struct tree_box *box, const double (*x)[3], int64_t n, uint64_t *key);
    /* The group of `count` targets from `first` on. */
    void (*group)(const struct tree_job *job, const struct tree_opening *o, int32_t first,
                  int32_t count, struct tree_group *g);
    /* Walks from w->from[level]. Large groups (level 0 and 1) find w->local and leave the rest in
     * w->from[level + 1]; small ones (level 2) find all lists. */
    void (*walk)(const struct tree_job *job, const struct tree_opening *o,
                 const struct tree_group *g, int level, struct tree_work *w);
    /* Marks what the group, which is a region of another rank's, may look into: inner cells, and
     * leaves whose particles may act one by one. */
    void (*mark)(const struct tree_job *job, const struct tree_opening *o,
                 const struct tree_group *region, struct tree_work *w, unsigned char *opened);
    /* A lower estimate of the accelerations of a small group's targets; walks from w->from[2]. */
    float (*pull)(const struct tree_job *job, const struct tree_group *g, struct tree_work *w);
    /* Expansion about a group's centre of the cells in w->local, added to local[][at]. */
    void (*expand)(const struct tree_job *job, const struct tree_group *g, struct tree_work *w,
                   float (*local)[TREE_LEVEL1], int at);
    /* Moves an expansion local[][at] of `from` to the centres of some groups, into to[][0..]. */
    void (*shift)(const struct tree_job *job, const struct tree_group *from,
                  const float (*local)[TREE_LEVEL1], int at, const struct tree_group *to, int count,
                  float (*shifted)[TREE_LEVEL1]);
    /* Forces on a small group's targets from its expansion and its lists. */
    void (*sum)(const struct tree_job *job, const struct tree_group *g, struct tree_work *w,
                const float (*local)[TREE_LEVEL1], int at, struct tree_sums *sums);
};

/* tree/walk.c: what every walk through a tree's cells needs. */

/* The kernels for an instruction set (G6X_ISA_*) that the machine has. */
const struct tree_kernel *tree_walk_kernel(int isa);
/* Memory of one thread, or NULL; it may be `missing` some. */
struct tree_work *tree_walk_new(const struct tree *t);
void tree_walk_free(struct tree_work *w);
/* A walk begins at the root, and at those of other ranks' parts. */
void tree_walk_begin(const struct tree *t, struct tree_list *list);
/* The places of all cells as Barnes and Hut's walk takes them; those of other ranks' are so
 * already. NULL: no memory. */
struct tree_cell_centre *tree_walk_barnes_hut_places(const struct tree *t, double theta);
