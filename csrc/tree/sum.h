/* sum.h - the state of one tree_sum, for the files that make it. */
#pragma once

#include <stdatomic.h>

#include "shared/tree_opening.h"
#include "tree/kernel.h"

struct tree_sum {
    struct tree_job job;
    struct tree_opening opening;
    const struct tree_kernel *kernel;
    const struct tree_forces *out;
    /* factors, in two halves: the whole could overflow */
    double phi_unit[2], acc_unit[2], jerk_unit[2];
    _Atomic int missing; /* memory */
    _Atomic int64_t pairs, points, locals, zero_distances;
};

/* The kernels for an instruction set (G6X_ISA_*) that the machine has. */
const struct tree_kernel *tree_sum_kernel(int isa);

/* Sums the job on all its targets. lone: their groups are not near each other, and each begins at
 * the root. 0 or G6X_E_MEMORY. */
int tree_sum_run(struct tree_sum *s, int lone, int threads);

/* Memory of one thread, or NULL; it may be `missing` some. */
struct tree_work *tree_sum_new_work(const struct tree *t);
void tree_sum_free_work(struct tree_work *w);
/* A walk begins at the root, and at those of other ranks' parts. */
void tree_sum_begin(const struct tree_sum *s, struct tree_list *list);
/* The places of all cells as Barnes and Hut's walk takes them; those of other ranks' are so
 * already. NULL: no memory. */
struct tree_cell_centre *tree_sum_barnes_hut_places(const struct tree *t, double theta);

/* tree/accuracy.c: estimates the accelerations of all targets of the job, in units of the box. 0 or
 * G6X_E_MEMORY. */
int tree_accuracy_estimate(struct tree_sum *s, int threads, float *last_acc);
