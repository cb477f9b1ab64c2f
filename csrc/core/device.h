/* device.h - a GPU as the CUDA backend (cuda/device.c) sees it, and the bridge to the
 * Python side that opens it, compiles its kernels and owns its memory.
 *
 * Python fills a struct device once, at open; from then on cuda/device.c launches the kernels and
 * copies by the driver's own entry points, so that no call of a block step enters Python.
 * These declarations are compiled into the core and into the bridge module alike.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DEVICE_TEXT = 256 };
enum { MEMORY_DEVICE, MEMORY_PINNED }; /* pinned: the host's, and the device may use it, too */

/* Entry points of the CUDA driver, or of what stands in for it; 0 is success. */
struct driver {
    int (*push_context)(void *context); /* cuCtxPushCurrent_v2 */
    int (*pop_context)(void **context); /* cuCtxPopCurrent_v2 */
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **arguments, void **extra); /* cuLaunchKernel */
    int (*copy_in)(uint64_t to, const void *from, size_t bytes, void *stream);
    /* cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2 */
    int (*copy_out)(void *to, uint64_t from, size_t bytes, void *stream);
    int (*fill)(uint64_t to, unsigned char value, size_t bytes, void *stream); /* cuMemsetD8Async */
    int (*query)(void *stream);               /* cuStreamQuery: 0 if all is done, 600 if not */
    int (*record)(void *event, void *stream); /* cuEventRecord */
    int (*follow)(void *stream, void *event, unsigned nothing); /* cuStreamWaitEvent */
    int (*error_text)(int error, const char **text);            /* cuGetErrorString */
};

enum { DRIVER_NOT_READY = 600 };
enum { DEVICE_STREAMS = 4 };

struct device {
    int64_t cookie; /* the Python side's, positive while it is open */
    void *context, *stream[DEVICE_STREAMS], *event;
    struct driver driver;
    int32_t multiprocessors;
    int32_t capability;   /* 90 for compute capability 9.0 */
    int32_t shared_bytes; /* shared memory that a block may ask for */
    int32_t usable;       /* how many devices there are to choose from */
    int32_t number;       /* among the devices that CUDA shows */
    char name[DEVICE_TEXT];
    char text[DEVICE_TEXT]; /* what went wrong in the last call */
};

/* Forces of an octree of some sources on targets: arrays of the host, in the caller's units. */
struct tree_request {
    int64_t sources, targets; /* how many */
    const double *x, *v, *m;  /* of the sources: [][3], [][3] or NULL, [] */
    int32_t changed;          /* they are not those of the last request */
    int32_t order;            /* of expansions; 0: Barnes and Hut's walk */
    double theta;
    const double *at, *velocity, *eps2; /* of the targets: [][3], [][3] if jerk is requested, [] */
    const int32_t *self;                /* the source that each is, or -1 */
    double *acc, *jerk, *pot;           /* [][3], [][3] or NULL, [] */
    int64_t zero_distances;             /* pairs at one place without softening, left out */
    int32_t unresolved;                 /* no one box resolves the sources: nothing was summed */
};

/* What the Python side does. Each call returns a positive number; or minus the number of the
 * error's row in docs/errors.md, with device->text; or 0 if Python itself has failed. */
struct bridge {
    /* Opens one of the usable devices, number `choice` modulo how many there are. */
    int64_t (*open)(int32_t choice, struct device *device);
    /* Finds kernels of a precision (MODE_*) by their names, and compiles those that have not been
     * compiled before. */
    int64_t (*kernels)(struct device *device, int32_t mode, int32_t count, const char *const *names,
                       void **functions);
    /* Zeroed memory of a kind (MEMORY_*). */
    int64_t (*allocate)(struct device *device, int32_t kind, uint64_t bytes, uint64_t *address);
    int64_t (*release)(struct device *device, uint64_t address);
    int64_t (*tree)(struct device *device, struct tree_request *request);
    /* Releases everything that was allocated, unless the device is `lost`. */
    int64_t (*close)(struct device *device, int32_t lost);
};

struct error;

/* The bridge, started at the first call; NULL with G6X_E_NO_DEVICE, G6X_E_RUNTIME or
 * G6X_E_PYTHON and a text where there is no device, or no Python that could open it. Calls
 * come one at a time, and from any thread. `requested`: cuda was asked for, so look closely. */
const struct bridge *python_bridge_start(int requested, struct error *err);
/* Whether an NVIDIA driver is there, so that it may find a GPU; nothing is started. */
int python_bridge_may_find_gpu(void);
/* Whether this thread is inside a call of the bridge. */
int python_bridge_runs(void);
