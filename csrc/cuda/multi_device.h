/* multi_device.h - the devices of a session, a layer above one device (cuda.h). The first device
 * alone does all work that cannot be shared or is too small to share. */
#pragma once

#include "cuda/cuda.h"

/* Of the mirrors of a j memory the second half are those of the fine rows of mode auto. */
enum { MOST_DEVICES = MOST_MIRRORS / 2 };

struct cuda_multi_device {
    struct cuda *device[MOST_DEVICES]; /* each has its own dirty list in the j memory */
    int devices;
    int sharing;     /* devices of the last force call; 0: the first alone */
    int merged;      /* rows that are merged into the first device's results */
    int rows_merged; /* all partial sums are merged into the first device's rows */
    int64_t sharing_threshold;
    int merges_early;       /* for tests: merge early even if no device is busy */
    struct upload upload;   /* the last one, for all devices */
    struct options options; /* upload.options */
};

/* Number of devices for a force call, by its size; its rows are on the host, or on a device. */
int cuda_multi_device_count(const struct cuda_multi_device *m, int ni, int64_t nj, int on_device);
/* The sums of one mode; a state is a struct cuda_multi_device. */
extern const struct backend cuda_multi_device_backend;
