/* sum.h - the state of one tree_sum, for the files that make it. */
#pragma once

#include <stdatomic.h>

#include "shared/tree_opening.h"
#include "tree/walk.h"

struct tree_sum {
    struct tree_job job;
    struct tree_opening opening;
    const struct tree_kernel *kernel;
    const struct tree_forces *out;
    int lone; /* each group walks from the root */
    /* factors, in two halves: the whole could overflow */
    double phi_unit[2], acc_unit[2], jerk_unit[2];
    _Atomic int missing; /* memory */
    _Atomic int64_t pairs, points, locals, zero_distances;
};

/* The forces of a tree in one box on targets. 0 or G6X_E_MEMORY. */
int tree_sum_one(const struct tree *t, const struct tree_setting *setting,
                 const struct tree_targets *targets, const struct tree_forces *out,
                 struct tree_counts *counts);

/* tree/accuracy.c: estimates the accelerations of all targets of the job, in units of the box. 0 or
 * G6X_E_MEMORY. */
int tree_accuracy_estimate(struct tree_sum *s, int threads, float *last_acc);
