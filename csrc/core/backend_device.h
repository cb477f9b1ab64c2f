/* backend_device.h - callers' arrays in the memory of a backend's device: j particles that are read
 * from it, i particles that are in it (struct targets with on_device), and forces that are written
 * to it.
 *
 * Each call runs after the work already in the caller's stream, and is complete when it returns.
 */
#pragma once

#include "core/backend.h"
#include "shared/hermite_step.h"

/* n rows; address, index, time, k18, j6, a2 and v may be NULL, as in g6x_set_j_particles. */
struct device_particles {
    int n;
    int below; /* if not 0: addresses ascend, are below this, and no row has a NaN */
    const int32_t *address, *index;
    const double *time, *mass;
    const double (*k18)[3], (*j6)[3], (*a2)[3], (*v)[3], (*x)[3];
    void *stream;
};

/* Where forces are written; nearest and distance may be NULL. */
struct device_forces {
    int ni;
    double (*acc)[3], (*jerk)[3], *pot;
    int32_t *nearest;
    float *distance;
};

/* A row (-1: none) and its index. */
struct device_row {
    int row, index;
};

/* What write_outputs found. */
struct device_found {
    struct device_row invalid;      /* the first i particle with a NaN */
    struct device_row out_of_range; /* the first force that does not fit a double */
    int left;                       /* finish must still add some pairs */
};

/* Bytes of a part of a force call (parts.cu): per row limbs, r^2, tops and an address. */
static inline int64_t part_bytes(int mode, int rows)
{
    return (int64_t)rows * (NSUM * limbs_of(mode) * 8 + 8 + NWINDOW * 4 + 4);
}

struct field;
struct g6x_hermite;
struct g6x_evolution;

struct device_fused_step {
    int ni;                    /* i particles of the summed block; 0: there is no block */
    double time;               /* end of that block */
    const struct field *field; /* at that time; NULL: there is no block */
    struct hermite_noise noise;
    double eps2; /* softening of the next block */
    /* results: a row whose x or v is no longer finite, or -1; whether sums are missing, so that
     * nothing was done; number of particles that need a step below dt_min */
    int invalid, incomplete, clamped;
    int fine;    /* how many of them are fine */
    int next_ni; /* i particles of the next block, which is predicted; 0: not handled here */
    double next; /* end of the next block */
};

/* A block of a Hermite integration, what is asked of its end, and what is found there. */
struct device_block {
    int ni;
    double time;
    void *stream;
    struct hermite_noise noise;
    const struct field *field; /* to be added; NULL: h->field_acc and h->field_jerk */
    int moves, writes;         /* its particles; them as j particles, to `rows` */
    double pairs;              /* the softening of hard pairs (hermite_pair.h) */

    const unsigned char *fine;    /* which rows are fine, in host memory; NULL: none */
    struct device_particles rows; /* in the backend's memory, valid until the next call */
    int clamped;                  /* number of particles that need a step below dt_min */
    /* a particle whose step does not advance its time, or the row of one whose x or v is no longer
     * finite; -1: none */
    int bad;
};

struct device_arrays {
    /* CUDA's number of the device. */
    int (*number)(void *state);
    /* Writes particles to the device and to the j memory. A NaN, a negative address or lack of
     * memory is an error: then nothing is written. If the device is lost, a part may be written. */
    int (*receive)(void *state, struct jmemory *memory, const struct device_particles *from,
                   struct error *f);
    /* Predicts x and v of addresses 0 .. n - 1 to the time of the last upload; zeros at empty
     * addresses. */
    int (*predicted)(void *state, int n, double (*x)[3], double (*v)[3], void *stream,
                     struct error *f);
    /* Writes the results of the last submit, for all its rows, to the arrays of `to`. */
    int (*write_outputs)(void *state, const struct device_forces *to, struct device_found *found,
                         struct error *f);
    /* Writes the sums of the last submit, which had shares, to device memory: a part of part_bytes.
     * It may still be written when the call returns, in `stream`. *left: nothing is written, since
     * pairs are left to the host: fetch, collect, and call again. */
    int (*store_part)(void *state, void *part, void *stream, int *left, struct error *f);
    /* Makes results of the last submit from `count` parts, one behind the other, of all shares;
     * write_outputs comes next. */
    int (*merge_parts)(void *state, void *parts, int count, void *stream, struct error *f);
    /* Fills the outputs of a failed call with NaN, if the device still works. */
    void (*fill_nan)(void *state, const struct device_forces *to, void *stream);
    /* Copies targets and results of a submit with on_device to the host. From then on the call is
     * as if its targets had come from `to`, which must stay valid. h2 becomes -1 if it is NULL. */
    int (*fetch)(void *state, const struct rows *to, struct error *f);

    /* Whether sharing a call among several devices is faster. Its arrays then pass through host
     * memory. */
    int (*shares)(void *state, int ni, int nj);
    /* Waits for the work already in a caller's stream. */
    int (*wait)(void *state, void *stream, struct error *f);
    /* Copies an array of such a call to the host, after the work already in `stream`. */
    int (*to_host)(void *state, void *to, const void *from, size_t bytes, void *stream,
                   struct error *f);
    /* Copies an array of such a call to the device. */
    int (*from_host)(void *state, void *to, const void *from, size_t bytes, struct error *f);

    /* Integration of few particles: one launch ends a block and begins the next, then a second
     * launch sums it. can_fuse_step: whether this is possible; the j particles are those of the
     * integration. */
    int (*can_fuse_step)(void *state, struct jmemory *memory, const struct g6x_hermite *h,
                         void *stream);
    /* Ends a block and begins the next. */
    int (*fused_step)(void *state, struct jmemory *memory, const struct g6x_hermite *h,
                      struct device_fused_step *step, struct error *f);
    /* Sums the forces on the block found by fused_step, at the time of the last set_j. */
    int (*sum_fused_step)(void *state, int ni, int fine, double eps2, struct error *f);

    /* For a Hermite integration with particles in device memory (g6x_hermite_*_device): finds the
     * next block, h->address, ni and time. */
    int (*next)(void *state, const struct g6x_hermite *h, struct device_block *b, struct error *f);
    /* Predicts the block, and finds which rows are fine. It may still be running when the call
     * returns. */
    int (*predict)(void *state, const struct g6x_hermite *h, struct device_block *b,
                   struct error *f);
    /* Adds the field, corrects the block with that roundoff, and its hard pairs, moves and writes
     * its particles. Finds `clamped` and `bad`. */
    int (*correct)(void *state, const struct g6x_hermite *h, struct device_block *b,
                   struct error *f);
    /* Sets h->close and h->left of the block of *e; *found: whether any is set, or -1: a nearest
     * neighbour is no particle. */
    int (*watch)(void *state, const struct g6x_hermite *h, const struct g6x_evolution *e,
                 void *stream, int *found, struct error *f);
};
