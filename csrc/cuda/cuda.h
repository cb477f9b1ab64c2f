/* cuda.h - one device: its state, and the functions of device.c (open, memory, launches).
 * Layers above it, the highest first; no file calls a layer above its own:
 *   backend.c        what a session calls
 *   multi_device.c   a force call shared by several devices
 *   force.h          a force call of one device: force.c, then sum.c, launch_config.c and
 *                    results.c; neighbour lists: neighbours.c
 *   arrays.h         callers' arrays on the device, integrations there, and walks
 *   jparticles.h     transfer of j particles to the device, and their prediction
 */
#pragma once

#include <sys/types.h>

#include "core/backend.h"
#include "core/backend_device.h"
#include "core/device.h"
#include "core/walks.h"
#include "cuda/wait.h"
#include "shared/cuda_args.h"

/* The kernels of kernels/direct: KERNEL_<first> is kernel <second>. Each sum kernel without jerk is
 * followed by the one with jerk. KERNEL_WIDE: + 4 with jerk, + 2 with nearest neighbour, + 1 with
 * softening. */
#define CUDA_KERNELS(KERNEL)                                                                       \
    KERNEL(RECEIVE, receive), KERNEL(RECEIVE_AT_REST, receive_at_rest), KERNEL(PREDICT, predict),  \
        KERNEL(NEIGHBOURS, neighbours), KERNEL(READ_TARGETS, read_targets),                        \
        KERNEL(WRITE_FORCES, write_forces), KERNEL(EXAMINE, examine), KERNEL(COLLECT, collect),    \
        KERNEL(PREDICTED, predicted), KERNEL(NEXT_TIME, next_time),                                \
        KERNEL(NEXT_COUNT, next_count), KERNEL(NEXT_LIST, next_list),                              \
        KERNEL(HERMITE_PREDICT, hermite_predict), KERNEL(HERMITE_CORRECT, hermite_correct),        \
        KERNEL(HERMITE_WATCH, hermite_watch), KERNEL(FUSED_STEP, fused_step),                      \
        KERNEL(WALKS, walks), KERNEL(STORE_PART, store_part), KERNEL(MERGE_PARTS, merge_parts),    \
        KERNEL(FEW, few), KERNEL(FEW_JERK, few_jerk), KERNEL(SOME, some),                          \
        KERNEL(SOME_JERK, some_jerk), KERNEL(MIDDLE, middle), KERNEL(MIDDLE_JERK, middle_jerk),    \
        KERNEL(WIDE, wide_plain), KERNEL(WIDE_SOFT, wide_soft), KERNEL(WIDE_NEAR, wide_near),      \
        KERNEL(WIDE_NEAR_SOFT, wide_near_soft), KERNEL(WIDE_JERK, wide_jerk),                      \
        KERNEL(WIDE_JERK_SOFT, wide_jerk_soft), KERNEL(WIDE_JERK_NEAR, wide_jerk_near),            \
        KERNEL(WIDE_JERK_NEAR_SOFT, wide_jerk_near_soft)
#define CUDA_KERNEL_NUMBER(number, name) KERNEL_##number
enum { CUDA_KERNELS(CUDA_KERNEL_NUMBER), NKERNEL };
enum {
    THREADS = 256, /* of a CUDA block of all kernels without sums */
    MOST_COPIERS = 8,
    COPIED_ROWS = 4096,     /* i particles that several threads copy */
    WIDE_ROWS = 256,        /* i particles of a CUDA block of the wide kernels */
    MIDDLE_ROWS = 64,       /* i particles of a CUDA block of kernel middle */
    MOST_ROWS = 65536,      /* i particles of a launch */
    SMALLEST_TILE = 8,      /* fewest i particles with one completion flag */
    MOST_SENT = 8192,       /* j particles that are sent at a time */
    MOST_SENT_HALF = 32768, /* the same if there are more: half of the pinned memory */
    SENT_AT_REST = 32768,   /* particles at rest that are sent at a time */
    ROWS_CALLS = 64 /* calls that still compute partial sums after a call that needed them */
};

/* Memory of the device or pinned memory, by its address there. */
struct cuda_memory {
    uint64_t address, bytes;
};

/* Buffers of walks. In: targets, entries and tiles; out: [acc, pot][targets]. The first WALK_PIECES
 * are for the pieces of a call, the others for one pending request each. */
enum { WALK_PIECES = DEVICE_STREAMS, WALK_FLIGHTS = WALK_PIECES + WALK_TAGS };
struct cuda_pending {
    struct cuda_memory pinned_in, device_in, device_out, pinned_out;
};

/* The state of a force call's sums. */
enum cuda_sums {
    SUMS_SETTLED,  /* there are none; or `rows` has their partial sums, host fallback included */
    SUMS_LAUNCHED, /* the tiles that are there left no pairs to the host */
    SUMS_LEFT,     /* these tiles left pairs to the host */
    SUMS_CUT_SHORT /* a launch failed; others may have left pairs to the host */
};
enum { WANT_ROWS = 0x100 }; /* besides WANT_*: partial sums */

struct cuda {
    /* device.c */
    const struct bridge *bridge;
    struct device device;
    int lost; /* it has failed and is not called any more */
    pid_t pid;
    void *function[NMODE][NKERNEL]; /* NULL until loaded */
    int mode;                       /* precision of the kernels to launch */
    int busy;                       /* streams that may have work */
    int unread;                     /* no wait yet for the last launch */
    struct cuda_memory notes;       /* cuda_notes, pinned */

    /* jparticles.c */
    struct cuda *owner; /* its slots are this one's, too; NULL: it has its own */
    int64_t changes;    /* how often slots have changed */
    int64_t seen;       /* those of the owner at the last prediction */
    int mirror;         /* number of its dirty list in the j memory */
    int64_t slots;
    struct jmemory *memory;
    struct cuda_memory body, k18, pairs, index, spans, ranges;
    struct cuda_memory sent; /* pinned */
    int few; /* particles in `sent` that the next prediction stores in their slots */
    int64_t few_first, few_end; /* their addresses are in [few_first, few_end) */
    struct cuda_at_rest rest;   /* particles at rest that the next prediction reads, if any */
    int outdated;               /* the slots are newer than the predicted particles */
    int predicted;              /* particles are predicted, for the values of the next six fields */
    double time;
    int snap, on_host, predicted_mode;
    int64_t nj;
    struct scale scale;
    int64_t first_block, end_block; /* blocks of 1024 that this device predicts and sums */

    /* a force call: force.h */
    struct targets targets;
    int jerk, soft, threads;
    int kernel;     /* KERNEL_FEW, _SOME, _MIDDLE or _WIDE */
    int soft_alike; /* all targets have the same softening */
    int tile_rows;
    int launched; /* targets with results from the device: all, or 0 without j particles */
    enum cuda_sums sums;
    unsigned has;               /* what they have: WANT_*, WANT_ROWS */
    unsigned guess;             /* WANT_* that the next start computes in advance */
    int rows_calls;             /* so many starts more also compute partial sums */
    int64_t tiles_there;        /* tiles with results */
    int64_t met_zero_distances; /* zero-distance pairs in these tiles */
    unsigned long long step;
    int64_t launched_at; /* nanoseconds, clock_nanoseconds() */
    int64_t copied_at;   /* when other threads are to wake up, which copy the results; 0: never */
    struct cuda_pace pace[NMODE][NKERNEL]; /* timings of each sum kernel: wait.h */
    int sum_kernel;                        /* kernel of the last launch */
    struct cuda_memory pinned_targets, device_targets, results, device_results;
    struct cuda_memory list; /* pinned: rows of the caller's arrays on the device */
    struct cuda_memory partial, left_count, left;
    struct cuda_memory device_partial; /* in place of `partial` for a share of a sum */
    int rows_on_device;                /* the last call's partial sums are in it */
    struct cuda_memory bins[DEVICE_STREAMS], ended[DEVICE_STREAMS];
    int64_t stride; /* of the results */
    struct partial_row *rows;
    int64_t rows_capacity;
    _Atomic int64_t zero_distances;

    /* neighbours.c */
    struct cuda_memory list_pinned, list_targets, listed, list_count, list_there;
    unsigned long long list_step; /* searches launched */
    int lists_asked;              /* the last call's lists were requested */
    int listed_ahead;             /* i particles of the call that a search was launched for, or 0 */
    struct neighbour_memory lists;

    /* hermite.c, fused_step.c */
    struct cuda_memory next, rows_of_j;
    struct cuda_memory fused_fine;  /* where the fine rows of a block are among these */
    struct cuda_memory fine_rows;   /* pinned: which rows of a block are fine */
    unsigned long long fused_steps; /* launches of kernel fused_step */
    double turn_eps2;               /* softening of the sums between them */

    /* walks.c */
    struct cuda_pending pending[WALK_FLIGHTS];
    struct cuda_memory walk_bodies; /* [4] each: x, y, z, mass of the sources of a call's lists */
};

static inline void *cuda_pointer(const struct cuda_memory *m)
{
    return (void *)(uintptr_t)m->address; /* on the device; if pinned, on the host too */
}

static inline struct cuda_notes *cuda_notes(const struct cuda *c)
{
    return cuda_pointer(&c->notes);
}

int cuda_device_open(const struct options *o, int choice, int mirror, struct cuda **device,
                     struct error *err);
void cuda_device_close(struct cuda *c);
/* Those of the GPU that this process has opened last; 0: none. */
int cuda_device_multiprocessors(void);
/* Makes the device's context current, if the device may be used at all; 0 or an error code. */
int cuda_device_enter(struct cuda *c, struct error *err);
void cuda_device_leave(struct cuda *c);
/* Turns an answer of the bridge into 0 or an error. */
int cuda_device_answer(struct cuda *c, int64_t answer, struct error *err);
/* Turns a CUDA error number into 0 or an error; any error marks the device as lost. */
int cuda_device_check(struct cuda *c, int error, const char *what, struct error *err);
/* Ensures a capacity of `bytes`. A buffer that grows loses its contents and is zeroed. */
int cuda_device_reserve(struct cuda *c, struct cuda_memory *m, int kind, uint64_t bytes,
                        struct error *err);
/* Launches a kernel on one of the device's streams. Its first launch loads or compiles it, which
 * takes up to two seconds. */
int cuda_device_launch(struct cuda *c, int stream, int kernel, int64_t grid_x, int64_t grid_y,
                       void *job, struct error *err);
/* Launches a kernel on a caller's stream. */
int cuda_device_launch_for(struct cuda *c, void *stream, int kernel, int64_t grid_x, int64_t grid_y,
                           void *job, struct error *err);
/* Makes one of the device's streams wait for the work so far on another one, or on a caller's. */
int cuda_device_follow(struct cuda *c, int stream, void *other, struct error *err);
/* Waits for one of the device's streams. */
int cuda_device_wait(struct cuda *c, int stream, const char *what, struct error *err);
/* Waits for all of its streams that may have work. */
int cuda_device_idle(struct cuda *c, const char *what, struct error *err);
/* Zeroes device memory, on stream 0. */
int cuda_device_fill(struct cuda *c, uint64_t address, uint64_t bytes, struct error *err);
/* Copies device memory to the host, on stream 0, and waits. */
int cuda_device_copy_out(struct cuda *c, void *to, const void *from, size_t bytes,
                         struct error *err);
/* Copies host memory to the device, on stream 0, and waits. */
int cuda_device_copy_in(struct cuda *c, void *to, const void *from, size_t bytes,
                        struct error *err);
/* Waits until a caller's stream has finished its work. */
int cuda_device_wait_for_caller(struct cuda *c, void *stream, struct error *err);
/* Resets the notes; no running kernel may use them. */
int cuda_device_clear_notes(struct cuda *c, struct error *err);

/* backend.c: an octree's forces, by the devices of a session's `state`. */
int cuda_backend_tree(void *state, struct tree_request *request, struct error *err);
