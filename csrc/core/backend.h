/* backend.h - what computes forces: one table of functions per kind of machine.
 *
 * A session calls, per force call: reserve (if the j memory grew), set_j, submit; and then, as the
 * host asks, collect and neighbours. Only collect promises that anything was computed: the work may
 * begin with set_j and submit (GPU) or wait for collect, which knows what is requested (CPU).
 * Behind the results are partial sums (partial.h), so that shares of j can be merged exactly.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/jmemory.h"
#include "core/neighbour_lists.h"
#include "core/options.h"
#include "core/partial.h"

enum backend_capability {
    CAN_DEVICE_POINTERS = 1, /* targets may lie in device memory */
    CAN_OVERLAP = 2,         /* submit returns before the work is done */
    CAN_APPROXIMATE = 4      /* forces of distant particles are approximate */
};

/* What a force call needs of the j side. */
struct upload {
    struct jmemory *memory; /* settled; the backend clears the stale bits it has used */
    int64_t nj;
    double time;
    struct scale scale;
    const struct options *options;
};

/* The i particles of a force call, in the caller's units. Before submit looks at index, x and v of
 * some, it calls fill, if there is one, for them, once for each. */
struct targets {
    int ni;
    void (*fill)(void *context, int first, int count);
    void *context;
    const int32_t *index;
    const double (*x)[3], (*v)[3];
    const double *eps2; /* [ni] */
    /* index, x and v lie in the device's memory, after what the stream has to do; eps2 is one
     * value, of the host; h2 is on the device, too, or NULL. There is no fill, and WANT_* is known.
     */
    int on_device;
    unsigned want;
    const double *h2;
    void *stream;
};

enum want {
    WANT_JERK = 1,
    WANT_NEAREST = 2,
    WANT_DISTANCE = 4 /* of the nearest: the session's */
};

enum { DONE_SUMS = 0x100 }; /* beside WANT_*: something has been computed */

/* What a force call has found, a number per target, in the caller's units. */
struct results {
    const double *sum[NSUM];        /* each rounded once from the partial sums */
    const int32_t *nearest, *index; /* address of the nearest neighbour, -1 if there is none; its
                                       index */
};

struct device_arrays;
struct walk_engine;

struct backend {
    unsigned capabilities;
    int most_rows; /* i particles that may be summed ahead: more are no faster. 0: none, as rows
                    * depend on others */
    const char *name;
    /* 0 and a state, or an error code with its text. Of several devices, number `choice` modulo
     * how many there are. */
    int (*open)(const struct options *options, int choice, void **state, struct error *f);
    /* Reserves a number of j slots. */
    int (*reserve)(void *state, int64_t slots, struct error *f);
    /* The j particles of the next force call. */
    int (*set_j)(void *state, const struct upload *upload, struct error *f);
    /* Its i particles, which stay valid until the next submit. */
    int (*submit)(void *state, const struct targets *targets, struct error *f);
    /* Waits for the results of the first `count` targets at least, with what is requested (WANT_*).
     * 1: only all of them can be had. They hold until the next submit. May be called again for more
     * targets, and for what was not requested before while the j memory is unchanged. */
    int (*collect)(void *state, unsigned want, int count, struct results *results, struct error *f);
    /* The partial sums behind the results, all of which were waited for. */
    int (*partials)(void *state, const struct partial_row **rows, struct error *f);
    /* The j particles within s^2 <= h2[k] of target first + k, itself among them, for k below
     * `count`, or for fewer targets, one at least, where their lists are long. In memory of the
     * backend that holds until the next call; those of the last submit, whatever was written to the
     * j memory since. */
    int (*neighbours)(void *state, int first, int count, const double *h2,
                      struct neighbour_lists *lists, struct error *f);
    /* Pairs of different particles at one place met since the last call. */
    int64_t (*zero_distances)(void *state);
    /* Name with device or instruction set. */
    void (*describe)(void *state, const struct options *options, char *buffer, int length);
    void (*close)(void *state);
    const struct device_arrays *arrays; /* NULL, or CAN_DEVICE_POINTERS */
    const struct walk_engine *walks;    /* NULL: the CPU sums walks */
};

extern const struct backend cpu_direct_backend; /* direct sum on the CPU */
extern const struct backend cuda_backend;       /* direct sum on a GPU */
extern const struct backend tree_backend_cpu;   /* octree on the CPU */
extern const struct backend tree_backend_cuda;  /* octree on a GPU */

/* Limbs of a partial row in a mode. */
static inline int limbs_of(int mode) { return mode == MODE_DOUBLE ? 3 : 2; }
