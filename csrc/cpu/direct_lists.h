/* direct_lists.h - neighbour lists of the direct sum on the CPU. */
#pragma once

#include "core/error.h"
#include "core/neighbour_lists.h"
#include "cpu/direct_kernel.h"

struct direct_lists {
    struct neighbour_memory memory;
    uint64_t *hits;
    int64_t hits_capacity;
};

/* As `neighbours` of struct backend, for the packed particles of a job. */
int cpu_direct_lists_find(struct direct_lists *d, const struct direct_kernel *kernel,
                          const struct direct_job *job, int threads, int first, int count,
                          const double *h2, struct neighbour_lists *lists, struct error *err);
void cpu_direct_lists_free(struct direct_lists *d);
