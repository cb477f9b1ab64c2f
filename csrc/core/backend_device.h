/* backend_device.h - callers' arrays in the memory of a backend's device: j particles that come
 * from there, i particles that lie there (struct targets with on_device), and forces that go there.
 *
 * Each call is over when it returns; what the caller's stream had been given before comes first.
 */
#pragma once

#include "core/backend.h"

/* n rows; address, index, time, k18, j6, a2 and v may be NULL, as in g6x_set_j_particles. */
struct device_particles {
    int n;
    int below; /* if not 0, addresses are known to ascend and to be below this, and rows to be sound
                */
    const int32_t *address, *index;
    const double *time, *mass;
    const double (*k18)[3], (*j6)[3], (*a2)[3], (*v)[3], (*x)[3];
    void *stream;
};

/* Where forces go; nearest and distance may be NULL. */
struct device_forces {
    int ni;
    double (*acc)[3], (*jerk)[3], *pot;
    int32_t *nearest;
    float *distance;
};

/* A row and its index; no row: -1. */
struct device_row {
    int row, index;
};

/* What write_outputs has found. */
struct device_found {
    struct device_row invalid;      /* the first i particle with a NaN */
    struct device_row out_of_range; /* the first force that does not fit a double */
    int left;                       /* some pairs are still to be added by finish */
};

/* Arrays of the host, for `ni` targets. */
struct fetched_targets {
    int32_t *index;
    double (*x)[3], (*v)[3], *eps2, *h2;
    unsigned char *invalid;
};

struct g6x_hermite;

struct device_turn {
    int ni;      /* of the block that is summed, 0 if there is none, */
    double time; /* its end, */
    double eps2; /* and the softening of the next one */
    /* what is found: a row that has left the numbers, or -1; sums that are not all there, and then
     * nothing was done; and how many want a smaller step than there is */
    int invalid, incomplete, clamped;
    int next_ni; /* of the next block, which is predicted; 0 if it is unusual */
    double next; /* and its end */
};

/* What is found of a block of a Hermite integration, and at its end. */
struct device_block {
    int ni;
    double time;
    int clamped; /* particles that want a smaller step than there is */
    int bad;     /* a particle whose step ends when it begins, or the row of one that has left the
                  * numbers; -1: there is none */
};

struct device_arrays {
    /* Number of the device among those of CUDA. */
    int (*number)(void *state);
    /* Writes particles to the device and to the j memory. A NaN, a negative address or too little
     * memory is an error, and nothing is written; a device that is lost may leave a part. */
    int (*receive)(void *state, struct jmemory *memory, const struct device_particles *from,
                   struct error *f);
    /* x and v of n addresses at the time of the last upload; zeros where no particle is. */
    int (*predicted)(void *state, int n, double (*x)[3], double (*v)[3], void *stream,
                     struct error *f);
    /* Writes the results of the last start, all rows of it, to the arrays of `to`. */
    int (*write_outputs)(void *state, const struct device_forces *to, struct device_found *found,
                         struct error *f);
    /* Fills with NaN what a call that has failed was to write, if the device still works. */
    void (*spoil)(void *state, const struct device_forces *to, void *stream);
    /* Brings targets, and results, of a start with on_device to the host: from now on it is as if
     * they had come from `to`, which has to stay. h2 becomes -1 if there is none. */
    int (*fetch)(void *state, const struct fetched_targets *to, struct error *f);

    /* Whether several devices had better share a call, which is then one of the host's; and what
     * takes its arrays there and back, after what the stream has to do. */
    int (*shares)(void *state, int ni, int nj);
    int (*to_host)(void *state, void *to, const void *from, size_t bytes, void *stream,
                   struct error *f);
    int (*from_host)(void *state, void *to, const void *from, size_t bytes, struct error *f);

    /* Blocks of an integration of few particles in turn: one launch ends a block and begins the
     * next, and then its sum is launched. Whether that can be, the j particles being its particles;
     */
    int (*can_turn)(void *state, struct jmemory *memory, const struct g6x_hermite *h, void *stream);
    int (*turn)(void *state, struct jmemory *memory, const struct g6x_hermite *h,
                struct device_turn *turn, struct error *f);
    /* the sum on what turn has found, at the time of the last set_j. */
    int (*sum_turn)(void *state, int ni, double eps2, struct error *f);

    /* A Hermite integration whose particles live there (g6x_hermite_*_device). The next block:
     * h->address, ni and time. */
    int (*next)(void *state, const struct g6x_hermite *h, void *stream, struct device_block *found,
                struct error *f);
    /* The block predicted; it need not be over at the end. */
    int (*predict)(void *state, const struct g6x_hermite *h, int ni, double time, void *stream,
                   struct error *f);
    /* The block corrected, and moved if `move`; as j particles if `rows` is not NULL, in memory
     * that is the backend's until the next call. Finds `clamped` and `bad`. */
    int (*correct)(void *state, const struct g6x_hermite *h, int ni, double time, int move,
                   void *stream, struct device_particles *rows, struct device_block *found,
                   struct error *f);
};
