/* state.h - the state of the backends cpu-tree and cuda-tree, and its tree, which two files share:
 * tree/backend.c has j particles and targets, and what of these the tree takes; tree/results.c
 * sums, nearest neighbours and lists. */
#pragma once

#include "core/backend.h"
#include "core/jmemory.h"
#include "tree/tree.h"

enum { TARGETS_AT_ONCE = 1024 }; /* that a thread takes */

/* The j particles as a tree takes them: those that are set, in the order of their addresses,
 * predicted to a time. */
struct sources {
    int64_t n, capacity;
    double (*x)[3], (*v)[3], *m; /* v is NULL if it was not wanted */
    int32_t *address, *index;
    int moving; /* another time gives other places */
    int finite; /* prediction can overflow */
};

struct thresholds;
struct tree_request;

struct octree {
    const struct backend *direct_backend; /* the direct sum, */
    void *direct;                         /* and its state */
    const struct thresholds *thresholds;
    struct tree tree; /* on a device, only its box may be known: */
    int on_device, searchable;
    int in_pieces; /* the device cannot sum it */
    struct sources sources;
    int fresh;     /* the device does not have them yet */
    int current;   /* the tree is that of the j particles as they were uploaded last */
    int useful;    /* and worth walking */
    int64_t asked; /* targets since they changed */

    struct jmemory *memory;
    struct options options;
    int64_t nj;
    double time;

    struct targets targets;
    int by_tree;         /* the targets of the last start: else all are the direct sum's */
    int capacity, plain; /* the first `plain` of the following are the tree's, the others the direct
                        sum's */
    int32_t *row, *index, *self; /* row: place among the targets. self: number of the source that
                                    has its index, or -1; */
    int32_t *number;             /* the same by place among the targets, or NOT_SERVED; then, of
                                    the tree's targets, the nearest source or -1 */
    double (*x)[3], (*v)[3], *eps2;
    double (*acc)[3], (*jerk)[3], *pot;

    unsigned done; /* as in direct.c */
    int with_jerk;
    struct partial_row *rows_of_i;
    double *sum[NSUM];
    int32_t *nearest_address, *nearest_index;
    struct neighbour_memory lists;
    int64_t zero_distances;
};

/* Collects the slots below nj; 0 or G6X_E_MEMORY. */
int tree_state_collect(struct sources *s, const struct jmemory *j, int64_t nj, double time,
                       int snap, int velocities, int threads);
/* Number of the particle at an address, or -1. */
int32_t tree_state_number(const struct sources *s, int32_t address);
struct tree_input tree_state_input(const struct sources *s);
void tree_state_free(struct sources *s);

/* Sets an error of memory for so many of what. */
int tree_state_no_memory(struct error *err, const char *what, int64_t n);
/* Builds the tree on the CPU, if it is not there. */
int tree_state_build_here(struct octree *t, struct error *err);
/* Has the device do it, if there is one. Not `done`: nor is it if the tree comes to be in parts. */
int tree_state_by_device(struct octree *t, struct tree_request *request, int *done,
                         struct error *err);

/* tree/results.c */
int tree_results_finish(void *state, unsigned want, int count, struct results *results,
                        struct error *err);
int tree_results_partials(void *state, const struct partial_row **rows, struct error *err);
int tree_results_lists(void *state, int first, int count, const double *h2,
                       struct neighbour_lists *lists, struct error *err);
