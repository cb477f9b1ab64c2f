/* cuda.h - one device: its state, and device.c, which opens it, owns its memory and launches.
 * Above it; no file calls one of those above:
 *   backend.c        what a session calls
 *   multi_device.c   a force call shared by several devices
 *   force.h          a force call of one: force.c, then partials.c, sum.c, launch_config.c,
 *                    iparticles.c and results.c; the lists of neighbours.c
 *   arrays.h         callers' arrays on the device, integrations there, and walks
 *   jparticles.h     j particles on their way to the device, and their prediction
 */
#pragma once

#include <sys/types.h>

#include "core/backend.h"
#include "core/backend_device.h"
#include "core/device.h"
#include "core/walks.h"
#include "cuda/wait.h"
#include "shared/cuda_args.h"

/* The kernels of kernels/direct: KERNEL_<first> is <second> there. Of sums there is one without and
 * then one with jerk; wide: 4 further with jerk, 2 with nearest neighbour, 1 with softening. */
#define CUDA_KERNELS(KERNEL)                                                                       \
    KERNEL(RECEIVE, receive), KERNEL(RECEIVE_AT_REST, receive_at_rest), KERNEL(PREDICT, predict),  \
        KERNEL(NEIGHBOURS, neighbours), KERNEL(TAKE, take), KERNEL(GIVE, give),                    \
        KERNEL(EXAMINE, examine), KERNEL(COLLECT, collect), KERNEL(PREDICTED, predicted),          \
        KERNEL(NEXT_TIME, next_time), KERNEL(NEXT_COUNT, next_count),                              \
        KERNEL(NEXT_LIST, next_list), KERNEL(HERMITE_PREDICT, hermite_predict),                    \
        KERNEL(HERMITE_CORRECT, hermite_correct), KERNEL(TURN, turn), KERNEL(WALKS, walks),        \
        KERNEL(FEW, few), KERNEL(FEW_JERK, few_jerk), KERNEL(SOME, some),                          \
        KERNEL(SOME_JERK, some_jerk), KERNEL(MIDDLE, middle), KERNEL(MIDDLE_JERK, middle_jerk),    \
        KERNEL(WIDE, wide_plain), KERNEL(WIDE_SOFT, wide_soft), KERNEL(WIDE_NEAR, wide_near),      \
        KERNEL(WIDE_NEAR_SOFT, wide_near_soft), KERNEL(WIDE_JERK, wide_jerk),                      \
        KERNEL(WIDE_JERK_SOFT, wide_jerk_soft), KERNEL(WIDE_JERK_NEAR, wide_jerk_near),            \
        KERNEL(WIDE_JERK_NEAR_SOFT, wide_jerk_near_soft)
#define CUDA_KERNEL_NUMBER(number, name) KERNEL_##number
enum { CUDA_KERNELS(CUDA_KERNEL_NUMBER), NKERNEL };
enum {
    WIDE_ROWS = 256,      /* i particles of a CUDA block of the wide kernels, */
    MIDDLE_ROWS = 64,     /* and of kernel middle */
    MOST_ROWS = 65536,    /* of a launch */
    SMALLEST_TILE = 8,    /* i particles whose end is seen together */
    MOST_SENT = 8192,     /* j particles that go to the device at a time, */
    SENT_AT_REST = 32768, /* and of those at rest */
    ROWS_CALLS = 64       /* so many calls give their rows after one whose rows were asked for */
};

/* Memory of the device or pinned memory, by its address there. */
struct cuda_memory {
    uint64_t address, bytes;
};

/* Walks on their way to the device and back: targets, entries and tiles; results [acc,
 * pot][targets]. A piece of a call uses one of the first, a dispatch one of the others. */
enum { WALK_PIECES = DEVICE_STREAMS, WALK_FLIGHTS = WALK_PIECES + WALK_TAGS };
struct cuda_pending {
    struct cuda_memory pinned_in, device_in, device_out, pinned_out;
};

struct cuda {
    /* device.c */
    const struct bridge *bridge;
    struct device device;
    int lost; /* it has failed, and is not called any more */
    pid_t pid;
    void *function[NMODE][NKERNEL]; /* NULL until it is needed */
    int mode;                       /* whose kernels are launched */
    int busy;                       /* streams that may have something to do */
    int unread;                     /* something was launched and not waited for */
    struct cuda_memory notes;       /* cuda_notes, pinned */

    /* jparticles.c */
    int mirror; /* of the j memory */
    int64_t slots;
    struct jmemory *memory;
    struct cuda_memory body, k18, pairs, index, spans, ranges;
    struct cuda_memory sent; /* pinned */
    int few;                 /* particles in `sent` that the next prediction takes to their slots */
    int64_t few_first, few_end; /* the lowest of their addresses, and beyond the highest */
    struct cuda_at_rest rest;   /* or those that are there instead, if any */
    int outdated;               /* what lies in the slots is newer than the sources */
    int predicted;              /* the sources are those of these: */
    double time;
    int snap, on_host, predicted_mode;
    int64_t nj;
    struct scale scale;
    int64_t first_block, end_block; /* what this device sums of it, and has predicted */

    /* a force call: force.h */
    struct targets targets;
    struct packing *packing; /* of them, while it goes on */
    int jerk, soft, threads;
    int kernel;     /* KERNEL_FEW, _SOME, _MIDDLE or _WIDE */
    int soft_alike; /* all have the same softening */
    int tile_rows;
    int launched; /* targets whose results come from the device: all, or none if there are no j */
    unsigned guess, has; /* WANT_* that the next start computes unasked, and the last computed */
    int rows_guess, has_rows;   /* the same of rows of partial sums */
    int cut_short;              /* a launch has failed after others may have left something there */
    int64_t tiles_there;        /* whose end was seen, */
    int any_left;               /* and whether they left something to the host; */
    int64_t met_zero_distances; /* in the results that are there */
    int settled;                /* rows are in `rows`, and whatever was left to the host is done */
    unsigned long long step;
    int64_t launched_at;                   /* clock of wait.h */
    struct cuda_pace pace[NMODE][NKERNEL]; /* of sums by a kernel: wait.h */
    int sum_kernel;                        /* that of the last launch */
    struct cuda_memory pinned_targets, device_targets, results, device_results;
    struct cuda_memory partial, left_count, left;
    struct cuda_memory bins[DEVICE_STREAMS], ended[DEVICE_STREAMS];
    int64_t stride; /* of the results */
    struct partial_row *rows;
    int64_t rows_capacity;
    _Atomic int64_t zero_distances;

    /* neighbours.c */
    struct cuda_memory list_pinned, list_targets, listed, list_count;
    struct neighbour_memory lists;

    struct cuda_memory next, rows_of_j; /* hermite.c */
    unsigned long long turns;           /* turn.c: launches of kernel turn, */
    double turn_eps2;                   /* and the softening of its sums */
    struct cuda_pending pending[WALK_FLIGHTS];
    struct cuda_memory walk_bodies; /* walks.c: [4] each, what the lists of a call choose from */
};

static inline void *cuda_pointer(const struct cuda_memory *m)
{
    return (void *)(uintptr_t)m->address; /* of the device, or pinned and then the host's, too */
}

static inline struct cuda_notes *cuda_notes(const struct cuda *c)
{
    return cuda_pointer(&c->notes);
}

int cuda_device_open(const struct options *o, int choice, int mirror, struct cuda **device,
                     struct error *err);
void cuda_device_close(struct cuda *c);
/* Makes the device's context current, if the device may be used at all; 0 or an error code. */
int cuda_device_enter(struct cuda *c, struct error *err);
void cuda_device_leave(struct cuda *c);
/* 0, or the error that an answer of the bridge is. */
int cuda_device_answer(struct cuda *c, int64_t answer, struct error *err);
/* Turns a driver's error into an error; any error means that the device is lost. */
int cuda_device_check(struct cuda *c, int error, const char *what, struct error *err);
/* At least so many bytes; what was there is lost, and zero, if they have to grow. */
int cuda_device_reserve(struct cuda *c, struct cuda_memory *m, int kind, uint64_t bytes,
                        struct error *err);
/* On one of the device's streams. The first launch of a kernel finds its machine code or compiles
 * it, which takes up to two seconds. */
int cuda_device_launch(struct cuda *c, int stream, int kernel, int64_t grid_x, int64_t grid_y,
                       void *job, struct error *err);
/* On a caller's stream. */
int cuda_device_launch_for(struct cuda *c, void *stream, int kernel, int64_t grid_x, void *job,
                           struct error *err);
/* Waits for one of its streams, or until it has nothing to do for us. */
int cuda_device_wait(struct cuda *c, int stream, const char *what, struct error *err);
int cuda_device_idle(struct cuda *c, const char *what, struct error *err);
/* Zeroes memory; copies it to the host, and from there, on stream 0. */
int cuda_device_fill(struct cuda *c, uint64_t address, uint64_t bytes, struct error *err);
int cuda_device_copy_out(struct cuda *c, void *to, uint64_t from, size_t bytes, struct error *err);
int cuda_device_copy_in(struct cuda *c, uint64_t to, const void *from, size_t bytes,
                        struct error *err);
/* Waits for what a caller's stream has been given. */
int cuda_device_wait_for_caller(struct cuda *c, void *stream, struct error *err);
/* Notes with nothing in them; no kernel may be at work on them. */
int cuda_device_clear_notes(struct cuda *c, struct error *err);

/* backend.c: an octree's forces, by the first device of a session's `state`. */
int cuda_backend_tree(void *state, struct tree_request *request, struct error *err);
