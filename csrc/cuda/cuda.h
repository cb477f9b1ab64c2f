/* cuda.h - the state of the CUDA backend, which cuda*.c share.
 *   cuda/device.c            opening, memory, launches
 *   cuda/jparticles.c  j particles on their way to the card
 *   cuda/iparticles.c    i particles on their way to it
 *   cuda/launch_config.c     which kernel takes a force call
 *   cuda/sum.c        force calls
 *   cuda/multi_device.c     force calls on several cards
 *   cuda/partials.c       what takes partial sums to the host: exact pairs, shares of j
 *   cuda/neighbours.c      neighbour lists
 *   cuda/arrays.c, cuda/arrays_j.c   callers' arrays on the card
 *   cuda/hermite.c    integrations whose particles live there
 *   cuda/tree.c       octrees
 *   cuda/walks.c      many lists in one call
 */
#ifndef GRAPE6_CUDA_H
#define GRAPE6_CUDA_H

#include <sys/types.h>

#include "core/backend.h"
#include "shared/cuda_args.h"
#include "core/device.h"
#include "core/backend_device.h"
#include "core/walks.h"

enum { VARIANTS = 8 }; /* of wide sums: 4 with jerk, 2 with nearest neighbour, 1 with softening */
/* Of each kernel but the wide ones there is one without and one with jerk. */
enum {
    KERNEL_RECEIVE,
    KERNEL_RECEIVE_AT_REST,
    KERNEL_PREDICT,
    KERNEL_NEIGHBOURS,
    KERNEL_TAKE,
    KERNEL_GIVE,
    KERNEL_EXAMINE,
    KERNEL_COLLECT,
    KERNEL_PREDICTED,
    KERNEL_NEXT_TIME,
    KERNEL_NEXT_COUNT,
    KERNEL_NEXT_LIST,
    KERNEL_HERMITE_PREDICT,
    KERNEL_HERMITE_CORRECT,
    KERNEL_WALKS,
    KERNEL_FEW,
    KERNEL_SOME = KERNEL_FEW + 2,
    KERNEL_MIDDLE = KERNEL_SOME + 2,
    KERNEL_WIDE = KERNEL_MIDDLE + 2,
    NKERNEL = KERNEL_WIDE + VARIANTS
};
enum {
    WIDE_ROWS = 256,       /* i particles of a CUDA block of the wide kernels, */
    MIDDLE_ROWS = 64,      /* and of kernel middle */
    PIECE = 65536,         /* i particles of a launch */
    FIRST_PIECE = 1024,    /* of the first of several: the next are copied meanwhile, */
    NEXT_PIECE = 4,        /* each so many times as large; */
    FEW_PIECES = 32768,    /* of fewer i particles, the second size is the first */
    SENT_ROOM = 8192,      /* j particles that go to the card at a time, */
    SENT_AT_REST = 32768,  /* and of those at rest */
    SMALLEST_LEFT = 65536, /* room for pairs of row and block that are left to the host */
    ROWS_CALLS = 64        /* so many calls give their rows after one whose rows were wanted */
};

/* Results: 7 sums, r^2, address and index of the nearest neighbour per target, in this order. */
enum { BYTES_PER_TARGET = 8 * (NSUM + 1) + 4 * 2 };

/* Memory of the card or pinned memory, by its address there. */
struct cuda_memory {
    uint64_t address, bytes;
};

/* Walks on their way to the card and back: targets, entries and tiles; results [acc, pot][targets].
 * A piece of a call uses one of the first, a dispatch one of the others. */
enum { WALK_PIECES = DEVICE_STREAMS, WALK_FLIGHTS = WALK_PIECES + WALK_TAGS };
struct cuda_flight {
    struct cuda_memory pinned_in, card_in, card_out, pinned_out;
};

struct cuda {
    const struct bridge *bridge;
    struct device device;
    int lost; /* the card failed: it is not called any more */
    pid_t pid;
    int follower; /* of the j memory */

    void *function[NMODE][NKERNEL];
    int mode;

    /* the j side */
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
    int64_t first_block, end_block; /* what this card sums of it, and has predicted */

    /* the force call */
    struct targets targets;
    struct packing *packing; /* of them, while it goes on */
    int jerk, soft, threads;
    int kernel;     /* KERNEL_FEW, _SOME, _MIDDLE or _WIDE */
    int soft_alike; /* all have the same softening */
    int tile_rows;
    int launched; /* targets whose results come from the card: all, or none if there are no j */
    unsigned guess, has; /* WANT_* that the next start computes unasked, and the last computed */
    int rows_guess, has_rows; /* the same of rows of partial sums */
    int cut_short;            /* a launch has failed after others may have left something there */
    int64_t tiles_there;      /* whose end was seen, */
    int any_left;             /* and whether they left something to the host; */
    int64_t coincident;       /* pairs at one place that they met */
    int settled;              /* rows are in `rows`, and whatever was left to the host is done */
    unsigned long long step;
    int unread; /* results of the last launch were not waited for */
    int busy;   /* lanes that may have something to do */
    struct cuda_memory pinned_targets, card_targets, results, partial, left_count, left;
    struct cuda_memory bins[DEVICE_STREAMS], ended[DEVICE_STREAMS];
    int64_t stride; /* of the results */
    struct partial_row *rows;
    int64_t rows_room;
    _Atomic int64_t coincidences;

    /* callers' arrays: the results of targets that lie there; cuda_notes, pinned */
    struct cuda_memory card_results, notes;
    struct cuda_memory next, rows_of_j; /* of integrations */
    struct cuda_flight flight[WALK_FLIGHTS];
    struct cuda_memory walk_bodies; /* [4] each: what the lists of a call choose from */

    /* lists */
    struct cuda_memory list_h2, listed, list_count;
    int32_t *list;
    int64_t *list_start;
    int64_t list_room;
    int list_first, list_rows, list_rows_room; /* rows that `list` holds */
};

static inline int cuda_bins(const struct cuda *c)
{
    return c->mode == MODE_DOUBLE ? CUDA_BINS_DOUBLE : CUDA_BINS;
}

/* Makes the card's context current, if the card may be used at all; 0 or a fault code. */
int cuda_device_enter(struct cuda *c, struct fault *f);
void cuda_device_leave(struct cuda *c);
/* 0, or the fault that an answer of the bridge is. */
int cuda_device_answer(struct cuda *c, int64_t answer, struct fault *f);
/* Turns a driver's error into a fault; any error means that the card is lost. */
int cuda_device_check(struct cuda *c, int error, const char *what, struct fault *f);
/* Sees to it that there is room; what was there is lost, and zero, if it has to grow. */
int cuda_device_reserve(struct cuda *c, struct cuda_memory *m, int kind, uint64_t bytes,
                        struct fault *f);
/* On one of the device's streams, which are called lanes here. */
int cuda_device_launch(struct cuda *c, int lane, int kernel, int64_t grid_x, int64_t grid_y,
                       void *job, struct fault *f);
/* On a caller's stream. */
int cuda_device_launch_for(struct cuda *c, void *stream, int kernel, int64_t grid_x, void *job,
                           struct fault *f);
/* Waits until the card has nothing to do for us. */
int cuda_device_idle(struct cuda *c, const char *what, struct fault *f);
/* Compiles the kernels of a mode, if that was not done, and uses them from now on. */
int cuda_device_set_mode(struct cuda *c, int mode, struct fault *f);
/* Zeroes memory; copies it to the host, and from there, on lane 0. */
int cuda_device_fill(struct cuda *c, uint64_t address, uint64_t bytes, struct fault *f);
int cuda_device_copy_out(struct cuda *c, void *to, uint64_t from, size_t bytes, struct fault *f);
int cuda_device_copy_in(struct cuda *c, uint64_t to, const void *from, size_t bytes,
                        struct fault *f);

static inline void *cuda_pointer(const struct cuda_memory *m)
{
    return (void *)(uintptr_t)m->address; /* of the card, or pinned and then the host's, too */
}

static inline struct fresh *cuda_fresh(const struct cuda *c, struct jmemory *j)
{
    return &j->fresh[c->follower];
}
/* Blocks of addresses that hold all that a force call uses. */
static inline int64_t cuda_all_blocks(const struct cuda *c) { return ceil_div(c->nj, CUDA_BLOCK); }
static inline int64_t cuda_blocks(const struct cuda *c) { return c->end_block - c->first_block; }
/* cuda/jparticles.c */
/* Reserves slots on the device. */
int cuda_jparticles_reserve(struct cuda *c, int64_t slots, struct fault *f);
/* Brings the device up to date with what a call needs. */
int cuda_jparticles_update(struct cuda *c, const struct upload *u, struct fault *f);
struct cuda_store cuda_jparticles_store(const struct cuda *c);
/* Lets the particles that wait for a prediction go to their slots without one;
 * cuda_jparticles_flush: and waits until `sent` is free. */
int cuda_jparticles_send_few(struct cuda *c, struct fault *f);
int cuda_jparticles_flush(struct cuda *c, struct fault *f);
/* Particles that wait for the next prediction. */
struct cuda_arrivals cuda_jparticles_arrivals(const struct cuda *c);
/* What the prediction that is due, if !c->predicted, needs. */
void cuda_jparticles_prediction(const struct cuda *c, struct cuda_predict_job *job);
struct cuda_sources cuda_jparticles_sources(const struct cuda *c);
/* What the kernels' numbers are relative to, and times what. */
struct cuda_frame cuda_jparticles_frame(const struct cuda *c);
/* To be called when it has been launched. */
void cuda_jparticles_has_predicted(struct cuda *c);

/* cuda/launch_config.c */
/* The kernel (KERNEL_FEW, _SOME, _MIDDLE or _WIDE) for so many i particles. */
int cuda_launch_config_kernel(const struct cuda *c, int ni);
/* Rows of a tile, and blocks of addresses for a CUDA block. */
void cuda_launch_config_blocks(const struct cuda *c, int rows, struct cuda_sum_job *job);

/* cuda/sum.c */
/* A force call of one device, or share number `share` of `shares` of its j particles: whole blocks
 * of addresses. */
int cuda_sum_start(struct cuda *c, const struct upload *u, const struct targets *targets, int share,
                   int shares, struct fault *f);
/* See struct backend's collect; the results are those of cuda_sum_results. */
int cuda_sum_finish(struct cuda *c, unsigned want, int count, struct fault *f);
/* Exponents of block sums in the caller's units, and numbers of the lowest bins. */
void cuda_sum_units(const struct cuda *c, int32_t unit[NWINDOW], int32_t base[NWINDOW]);
/* Blocks of addresses that are to be summed. */
void cuda_sum_set_blocks(struct cuda *c, int64_t first, int64_t end);
/* Launches their prediction. */
int cuda_sum_predict(struct cuda *c, struct fault *f);
/* Launches the call's sums, also of rows of partial.h if these are wanted. */
int cuda_sum_all(struct cuda *c, unsigned want, int rows, struct fault *f);
/* Where these go. */
struct cuda_sum_job cuda_sum_row_arrays(const struct cuda *c);
/* Whether the last rows' results are there. */
int cuda_sum_is_done(const struct cuda *c);
/* Waits until the results of targets below `count` are there, and notes whether something of them
 * was left to the host. */
int cuda_sum_wait(struct cuda *c, int count, struct fault *f);
struct results cuda_sum_results(const struct cuda *c);

/* cuda/iparticles.c */
/* Brings all targets to pinned memory, and does `meanwhile`, which may wait for those it needs. */
int cuda_iparticles_pack(struct cuda *c, int (*meanwhile)(struct cuda *, void *, struct fault *),
                         void *argument, struct fault *f);
void cuda_iparticles_wait(struct cuda *c, int count);

/* cuda/device.c */
int cuda_device_open(const struct options *o, int choice, int follower, struct cuda **device,
                     struct fault *f);
void cuda_device_close(struct cuda *c);

/* cuda/partials.c */
/* Rows of partial sums of a call that is through and gives them. */
void cuda_partials_read(const struct cuda *c, int first, int count, struct partial_row *rows);
int cuda_partials_reserve(struct cuda *c, struct fault *f);
/* Takes a neighbour for a row's if it is nearer than the one that it has. */
void cuda_partials_take_nearer(struct cuda *c, int row, double r2, int64_t address);
/* Fetches the partial sums and adds what was left to the host, also to the results. */
int cuda_partials_settle(struct cuda *c, struct fault *f);

/* cuda/arrays.c: see core/backend_device.h */
int cuda_arrays_hand_over(struct cuda *c, const struct device_forces *to,
                          struct device_found *found, struct fault *f);
int cuda_arrays_fill_nan(struct cuda *c, const struct device_forces *to, void *stream,
                         struct fault *f);
int cuda_arrays_fetch(struct cuda *c, const struct fetched_targets *to, struct fault *f);
/* Waits for what a caller's stream has been given. */
int cuda_arrays_wait_for_caller(struct cuda *c, void *stream, struct fault *f);
/* Notes with nothing in them; no kernel may be at work on them. */
int cuda_arrays_clear_notes(struct cuda *c, struct fault *f);
/* Takes the targets of a start from the caller's arrays; their results stay on the card. */
int cuda_arrays_load_targets(struct cuda *c, struct fault *f);
void cuda_arrays_keep_on_device(const struct cuda *c, struct cuda_sum_job *job);

/* cuda/arrays_j.c: see core/backend_device.h */
int cuda_arrays_j_receive(struct cuda *c, struct jmemory *j, const struct device_particles *from,
                          struct fault *f);
int cuda_arrays_j_predicted(struct cuda *c, int n, double (*x)[3], double (*v)[3], void *stream,
                            struct fault *f);

/* cuda/hermite.c: see core/backend_device.h */
int cuda_hermite_next(struct cuda *c, const struct g6x_hermite *h, void *stream, int *ni,
                      double *time, struct fault *f);
int cuda_hermite_predict(struct cuda *c, const struct g6x_hermite *h, int ni, double time,
                         void *stream, struct fault *f);
int cuda_hermite_correct(struct cuda *c, const struct g6x_hermite *h, int ni, double time, int move,
                         void *stream, struct device_particles *rows, int *held, struct fault *f);

/* cuda/walks.c: see core/walks.h */
int cuda_walks_sum(struct cuda *c, struct walks *w, struct fault *f);
int cuda_walks_start(struct cuda *c, int number, struct walks *w, struct fault *f);
int cuda_walks_finish(struct cuda *c, int number, struct walks *w, struct fault *f);

/* cuda/neighbours.c: see struct backend */
int cuda_neighbours(struct cuda *c, int i, const double *h2, const int32_t **index, int64_t *count,
                    struct fault *f);

/* cuda/backend.c */
/* An octree's forces, by the first device of a session's `state`. */
int cuda_tree(void *state, struct tree_errand *errand, struct fault *f);

#endif
