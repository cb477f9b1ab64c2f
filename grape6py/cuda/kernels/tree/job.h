/* job.h - what the kernels of the tree are told: one structure for all of them. Python reads
 * this file, and fills the structure by the names of its fields (cuda/tree/build.py). */
#pragma once

enum { TREE_COUNTERS = 64, LOCAL_TERMS = 84 /* of an expansion, at most */ };

/* What is summed at once: groups; such of them as need longer lists; eights of the targets of groups
 * that need still longer ones, or are scattered; single targets; such of them as need longer lists. */
enum { GROUPS, LONG_GROUPS, EIGHTS, SINGLES, LONG_SINGLES, KINDS };

/* What the device finds out on the way, for the host. */
struct tree_status {
    uint64_t low[3], high[3], mass; /* as ordered bits; see tree/build.cu */
    int32_t bad;                    /* one more than the lowest number of a particle that is not finite */
    int32_t cells;                  /* there are, or would be */
    int32_t level_first[24];
    int32_t need_large[3], need_long[3]; /* longest lists: of level-2 and level-1 groups; of groups taken again */
    int32_t need_singles[3];             /* of single targets */
    int32_t again[KINDS]; /* how many have to be summed as what; as groups, none */
    int32_t close;        /* targets with a pair too close for single precision */
    int32_t too_large;    /* rows less the first of results that does not fit; or 0 */
    int32_t distant, closer; /* particles beyond the box, and those of them not far beyond it */
    int32_t listed;          /* targets of tree/distant.cu's list */
    int32_t crowds;          /* of more than TREE_CROWD particles with one key */
    int32_t unresolved;   /* particles stand closer together than their coordinates resolve */
    uint64_t zero_distances;
    uint64_t done[TREE_COUNTERS][4]; /* pairs, points, locals, targets; for fewer collisions in parts */
};

/* Velocities, for jerks. */
struct tree_flow {
    uint64_t fastest, targets_fastest; /* the largest components, as bits */
    struct tree_box wide;              /* whose unit of velocity holds those of the targets, too */
    float speed;                       /* the tree's unit of velocity in that */
};

/* A particle beyond the box, as it acts on targets in its units; the unit of velocity is wide's. */
struct distant_source {
    double x[3], v[3], m;
};

/* Groups of one size. */
struct tree_level_job {
    struct tree_group *group;
    float *local;   /* [groups][84] expansions; as all that follows, of those at once */
    float *rate;    /* [groups][56]: of psi, for jerks (shared/tree_expansion.h) */
    int32_t *lists; /* of each: rest and local; of the smallest: local, point, leaf */
    int32_t *count; /* [groups][4]: of the lists, and own leaves; -1 where they were too short */
    int32_t capacity[3];
    int32_t padding;
};

struct tree_device_job {
    const double *x, *m; /* [n][3], [n]: the caller's */
    const double *targets; /* [targets][3], or NULL: the particles themselves */
    const int32_t *self;   /* number of the particle that a target is, or -1; or NULL */
    struct tree_status *status;
    struct tree_box *box;
    float *eps2; /* in units of the box */
    struct tree_opening *opening;

    uint64_t *key, *sorted; /* as they come and in order */
    float4 *packed;         /* high and low of each, as they come */
    const int64_t *order;   /* from sorting: the caller's number by place; distant ones come last */
    float4 *high, *low;     /* by place: x y z m; x y z and the key's first 32 digits as bits */
    uint16_t *levels;       /* of the leaf, and from which on cells begin with this particle */
    int32_t *counts, *summed; /* [22][blocks]: cells that begin, before and after summing up */
    int32_t *leaf_at; /* number of the leaf that begins with each particle, or -1 */
    struct tree_cell *cell;
    int32_t *above, *complete; /* of cells, while moments are summed: the one they are in (-1: none),
                                  and how many of their own are done */
    struct tree_moments *moments;
    struct tree_cell_multipole *far;
    struct tree_cell_centre *place, *barnes_hut;

    const double *v, *target_v; /* [n][3], [targets][3]: the caller's. v is NULL: no jerks; else
                                   target_v is NULL: targets are at rest */
    struct tree_flow *flow;
    double *momenta;                    /* [256][4]: and mass, of pieces of the particles; or forces
                                           and their sizes (shared/tree_net_force.h); or what tree/pull.cu
                                           and tree/distant.cu sum */
    float4 *velocity, *target_velocity; /* by place */
    struct tree_rates *rates;
    struct tree_motion *motion;
    float4 *far_jerk; /* by place: of what is far */
    double *jerk;     /* result */

    const int64_t *target_order;
    float4 *target_high, *target_low;
    int32_t *target_self, *rank;
    float *last_acc; /* by place; or NULL */
    struct tree_level_job level[4]; /* level-2, level-1 and plain groups, other kinds */
    int32_t *again[KINDS];          /* first targets of what has to be summed as what */
    float4 *far_sum; /* by place: acc and phi of what is far */
    int32_t *close;

    const struct tree_whole *whole;   /* of all ranks' particles; or NULL: there is one rank */
    struct tree_region *region;       /* of targets, here or on another rank (tree/share.cu) */
    unsigned char *opened;            /* of cells: whether those targets may look into them */
    int32_t *in_part, *in_leaf; /* of cells: whether they are in a part, and their particles there; before
                                   and after summing up */
    char *part;
    const int32_t *roots;             /* cells with which walks begin, if there are parts of other ranks' trees */

    double *acc, *pot; /* results */
    double *vectors;   /* acc or jerk, whose net force is taken out */
    const double *own_eps;             /* [n]: the caller's softening of each particle; or NULL */
    float *source_eps2, *target_eps2;  /* by place, if term is not 0; source_eps2 NULL: zeros */
    struct tree_cell_eps2 *cell_eps2;  /* of cells, */
    float *reach;                      /* and how far each is to be away (shared/tree_softening.h) */
    double *near_acc, *near_pot, *near_jerk; /* of the closer distant particles, by all others */
    struct distant_source *source; /* distant particles, */
    int32_t *listed;               /* and targets that need pairs with all of them */
    const double *last; /* the caller's last accelerations; or NULL */
    double eps2_given, theta, bound;
    int32_t n, target_count, blocks;
    int32_t level2_groups, level1_groups, first_level2; /* that are traversed at once */
    int32_t groups, first_group;
    int32_t kind, again_capacity;
    int32_t slots, first_slot; /* of other kinds than groups, for as many at once, from there on */
    int32_t close_capacity, order_of_expansion; /* 0: Barnes-Hut */
    int32_t soft; /* TREE_SOFT_FROM */
    int32_t term, cell_level; /* PAIR_OWN or PAIR_SPLINE, if particles have such softening; of cells */
    int32_t seeks_core, distant, closer, merged, rows; /* n is without the distant and merged; rows: of results */
    int32_t from_root; /* traversals of groups begin at the root: there are no larger groups */
    int32_t region_count;
    int32_t root_count; /* 0: walks begin with cell 0 */
    int32_t joined_n, joined_cells; /* particles and cells with those of other ranks behind them; or 0 */
};
