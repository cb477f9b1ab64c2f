/* backend.h - what computes forces: one table of functions per kind of machine.
 *
 * A session calls, per force call: grow (if the j memory grew), upload, start; and then,
 * as the host asks, finish and neighbours. Behind the results are partial sums (partial.h), so
 * that shares of j can be merged exactly.
 */
#ifndef GRAPE6_BACKEND_H
#define GRAPE6_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/jmemory.h"
#include "core/options.h"
#include "core/partial.h"

enum { BACKEND_ABI = 4 };

enum backend_capability {
    CAN_MANY_WALKS = 1,      /* start takes more than one walk */
    CAN_DEVICE_POINTERS = 2, /* targets may lie in device memory */
    CAN_OVERLAP = 4,         /* start returns before the work is done */
    CAN_APPROXIMATE = 8      /* forces of distant particles are approximate */
};

/* What a force call needs of the j side. */
struct upload {
    struct jmemory *memory; /* settled; the backend clears the stale bits it has used */
    int64_t nj;
    double time;
    struct scale scale;
    const struct options *options;
};

/* The i particles of all walks, in the caller's units. Before start looks at index, x and v of
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

/* Particles i_first.. of the targets feel those at j addresses j_first.. : one walk with all
 * of both is a plain force call. */
struct walk {
    int64_t i_first, i_count, j_first, j_count;
};

enum want {
    WANT_JERK = 1,
    WANT_NEAREST = 2,
    WANT_DISTANCE = 4 /* of the nearest: the session's */
};

enum { DONE_SUMS = 0x100 }; /* beside WANT_*: something has been computed */

/* What a start has found, a number per target, in the caller's units. */
struct results {
    const double *sum[NSUM];        /* each rounded once from the partial sums */
    const int32_t *nearest, *index; /* address of the nearest neighbour, -1 if there is none; its
                                       index */
};

struct device_arrays;
struct walk_engine;

struct backend {
    int abi;
    unsigned capabilities;
    const char *name;
    /* 0 and a state, or a fault code with its text. Of several devices, number `choice` modulo
     * how many there are. */
    int (*open)(const struct options *options, int choice, void **state, struct fault *f);
    /* Makes room for a number of j slots. */
    int (*grow)(void *state, int64_t slots, struct fault *f);
    /* Brings the device's j memory up to date, predicted to upload->time. */
    int (*upload)(void *state, const struct upload *upload, struct fault *f);
    /* Begins a sum. The targets stay valid until the next start. */
    int (*start)(void *state, const struct targets *targets, const struct walk *walks, int nwalks,
                 struct fault *f);
    /* Waits for the results of the first `count` targets at least, with what is wanted (WANT_*).
     * 1: only all of them can be had. They hold until the next start. May be called again for more
     * targets, and for what was not wanted before while the j memory is unchanged. */
    int (*finish)(void *state, unsigned want, int count, struct results *results, struct fault *f);
    /* The partial sums behind the results, all of which were waited for. */
    int (*partials)(void *state, const struct partial_row **rows, struct fault *f);
    /* Indices of the j particles within s^2 <= h2[i] of target i, itself among them, in memory of
     * the backend that holds until the next call; those of the last start, whatever was
     * written to the j memory since. */
    int (*neighbours)(void *state, int i, const double *h2, const int32_t **index, int64_t *count,
                      struct fault *f);
    /* Pairs of different particles at one place met since the last call. */
    int64_t (*coincidences)(void *state);
    /* Name with device or instruction set. */
    void (*describe)(void *state, const struct options *options, char *buffer, int length);
    void (*close)(void *state);
    const struct device_arrays *arrays; /* NULL, or CAN_DEVICE_POINTERS */
    const struct walk_engine *walks;    /* NULL: the CPU sums walks */
};

extern const struct backend cpu_direct_backend;  /* direct sum on the CPU */
extern const struct backend cuda_device_backend; /* direct sum on a graphics card */
extern const struct backend tree_backend_cpu;    /* octree on the CPU */
extern const struct backend tree_backend_cuda;   /* octree on a graphics card */

/* Limbs of a partial row in a mode. */
static inline int limbs_of(int mode) { return mode == MODE_DOUBLE ? 3 : 2; }

#endif
