/* multi_device.h - the devices of a session, a layer above one device (cuda.h), which knows nothing
 * of it. The first one does alone whatever does not pay to be shared, or cannot be. */
#pragma once

#include "cuda/cuda.h"

struct cuda_multi_device {
    struct cuda *device[MOST_MIRRORS]; /* each has its own list of what is dirty of j */
    int devices;
    int sharing;     /* how many took part in the last force call; 0: the first alone */
    int merged;      /* up to here what all have found is in the first one's results, */
    int rows_merged; /* and in its rows */
    int64_t sharing_threshold;
    int merges_early;       /* for tests, whose devices have always ended */
    struct upload upload;   /* the last one, of which each that takes part makes what it needs, */
    struct options options; /* with these */
};

/* Opens the first device, and the others if GRAPE6_DEVICES names several and this is no rank of
 * MPI. */
int cuda_multi_device_open(struct cuda_multi_device *m, const struct options *o, int choice,
                           struct error *err);
void cuda_multi_device_close(struct cuda_multi_device *m);
/* Among how many devices a force call pays to be shared. */
int cuda_multi_device_count(const struct cuda_multi_device *m, int ni, int64_t nj);
/* See struct backend. */
int cuda_multi_device_set_j(void *state, const struct upload *u, struct error *err);
int cuda_multi_device_submit(void *state, const struct targets *targets, struct error *err);
int cuda_multi_device_collect(void *state, unsigned want, int count, struct results *results,
                              struct error *err);
int cuda_multi_device_partials(void *state, const struct partial_row **rows, struct error *err);
