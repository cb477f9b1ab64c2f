/* device.h - a GPU as the CUDA backend (cuda/device.c) sees it, and the bridge to the
 * Python side that opens it, compiles its kernels and owns its memory.
 *
 * Python fills a struct device once, at open. After that, cuda/device.c launches kernels and copies
 * through the driver's entry points, so that no call of a block step enters Python. Both the core
 * and the bridge module compile these declarations.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DEVICE_TEXT = 256 };
enum { MEMORY_DEVICE, MEMORY_PINNED }; /* pinned: host memory that the device can access */

/* Entry points of the CUDA driver, or of a fake driver in tests; 0 is success. */
struct driver {
    int (*push_context)(void *context); /* cuCtxPushCurrent_v2 */
    int (*pop_context)(void **context); /* cuCtxPopCurrent_v2 */
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **arguments, void **extra); /* cuLaunchKernel */
    /* cuMemcpyHtoDAsync_v2 */
    int (*copy_in)(uint64_t to, const void *from, size_t bytes, void *stream);
    /* cuMemcpyDtoHAsync_v2 */
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
    int64_t cookie; /* handle of the Python side, positive while the device is open */
    void *context, *stream[DEVICE_STREAMS], *event;
    struct driver driver;
    int32_t multiprocessors;
    int32_t capability;   /* 90 for compute capability 9.0 */
    int32_t shared_bytes; /* shared memory that a block may request */
    int32_t usable;       /* number of devices to choose from */
    int32_t number;       /* CUDA's number of this device */
    char name[DEVICE_TEXT];
    char text[DEVICE_TEXT]; /* error text of the last call */
};

/* Request to an octree of sources for the forces on targets, or for what is near them: host arrays,
 * the caller's units. */
struct tree_request {
    int64_t sources, targets; /* how many */
    const double *x, *v, *m;  /* sources: [][3], [][3] or NULL, [] */
    int32_t changed;          /* whether the sources differ from those of the last request */
    int32_t order;            /* order of expansions; 0: Barnes-Hut */
    double theta;
    const double *at, *velocity, *eps2; /* targets: [][3], [][3] if jerk is requested, [] */
    const int32_t *self;                /* the source that is the target itself, or -1 */
    double *acc, *jerk, *pot;           /* [][3], [][3] or NULL, []; all NULL: no forces */
    int32_t *nearest;                   /* []: the nearest source, or -1; or NULL */
    const double *h2;                   /* []: neighbours have r^2 <= h2; or NULL */
    int64_t *length;                    /* []: how many they are; or NULL */
    int32_t *list;                      /* the neighbours, those of a target together; or NULL */
    int64_t zero_distances;             /* zero-distance pairs without softening, left out */
    int32_t unresolved; /* if set, one box cannot resolve the sources: nothing was done */
};

/* Functions of the Python side. Each returns a positive number on success; minus the error's row
 * number in docs/errors.md, with device->text; or 0 if Python itself failed. */
struct bridge {
    /* Opens usable device number `choice` modulo their number. */
    int64_t (*open)(int32_t choice, struct device *device);
    /* Finds kernels of a precision (MODE_*) by name; compiles those not compiled before. */
    int64_t (*kernels)(struct device *device, int32_t mode, int32_t count, const char *const *names,
                       void **functions);
    /* Allocates zeroed memory of a kind (MEMORY_*). */
    int64_t (*allocate)(struct device *device, int32_t kind, uint64_t bytes, uint64_t *address);
    int64_t (*release)(struct device *device, uint64_t address);
    int64_t (*tree)(struct device *device, struct tree_request *request);
    /* Releases everything that was allocated, unless the device is `lost`. */
    int64_t (*close)(struct device *device, int32_t lost);
};

struct error;

/* Returns the bridge and starts it at the first call. Returns NULL with G6X_E_NO_DEVICE,
 * G6X_E_RUNTIME or G6X_E_PYTHON and a text if there is no device, or no Python that can open it.
 * Any thread may call; calls are serialized. `requested`: the user asked for cuda, so search
 * thoroughly. */
const struct bridge *python_bridge_start(int requested, struct error *err);
/* Whether an NVIDIA driver is present, so that there may be a GPU. Starts nothing. */
int python_bridge_may_find_gpu(void);
/* Whether this thread is inside a call of the bridge. */
int python_bridge_runs(void);
/* In a forked child: no other thread is starting Python. */
void python_bridge_after_fork(void);
