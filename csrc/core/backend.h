/* backend.h - what computes forces: one table of functions per kind of machine.
 *
 * In a force call, a session calls set_j and submit; then collect and neighbours, as the host
 * program requests. Only collect guarantees that anything was computed: the work may begin with
 * set_j and submit (GPU) or in collect, which knows what is requested (CPU). Results are rounded
 * from partial sums (partial.h), so that the sums of several shares of the j particles can be
 * merged exactly.
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
    CAN_DEVICE_POINTERS = 1, /* i particles may be in device memory */
    CAN_OVERLAP = 2,         /* submit returns before the work is done */
    CAN_APPROXIMATE = 4      /* forces of distant particles are approximate */
};

/* The j side of a force call. What it points to stays valid until the next. */
struct upload {
    struct jmemory *memory; /* settled; the backend clears the stale bits it has used */
    int64_t nj;
    double time;
    const struct scale *scale;
    const struct scale *fine_scale; /* that of mode double, if the mode is auto */
    const struct options *options;
};

/* Arrays of i particles, by row. */
struct rows {
    int32_t *index;
    double (*x)[3], (*v)[3], *eps2, *h2;
    unsigned char *invalid; /* has a NaN: it is summed at the origin, and its result is NaN */
};
#define ARRAYS_OF_ROWS(r, n)                                                                       \
    MEMORY_ARRAY((r)->index, n), MEMORY_ARRAY((r)->x, n), MEMORY_ARRAY((r)->v, n),                 \
        MEMORY_ARRAY((r)->eps2, n), MEMORY_ARRAY((r)->h2, n), MEMORY_ARRAY((r)->invalid, n)

/* The caller's arrays of the first rows of a force call, from which `to` is copied. */
struct caller_arrays {
    int ni;
    const int *index;
    const double (*x)[3], (*v)[3], *h2; /* h2 may be NULL: no i particle has neighbours */
    const unsigned char *fine; /* which rows are summed in double; NULL: as their slots say */
    const struct rows *to;
    _Atomic int first_bad;         /* particle with a NaN, INT_MAX if there is none */
    _Atomic unsigned char *copied; /* of each run of rows, if several devices copy them; or NULL */
};

/* The i particles of a force call, in the caller's units. If `from` is not NULL, submit copies each
 * once (by_row_copy), before it reads its index, x and v. */
struct targets {
    int ni;
    struct caller_arrays *from;
    const int32_t *index;
    const double (*x)[3], (*v)[3];
    const double *eps2; /* [ni] */
    int alike;          /* all are equal; 0: perhaps */
    /* Which rows are summed in double, if the mode is auto; NULL: none. In host memory. */
    const unsigned char *fine;
    /* If set: index, x and v are in device memory and valid after the work already in `stream`. h2
     * is in device memory too, or NULL. eps2 is one value in host memory. `from` is NULL. `want`
     * is set. */
    int on_device;
    const int32_t *rows; /* in host memory: the targets are these rows of the arrays; NULL: all */
    unsigned want;
    const double *h2; /* on the host: of all rows, valid once they are copied */
    void *stream;
    /* If shares > 1, with on_device: sum only share number `share` of the j particles, in whole
     * blocks of 1024 addresses. The results are a part: see struct device_arrays. */
    int share, shares;
};

enum want {
    WANT_JERK = 1,
    WANT_NEAREST = 2,
    WANT_DISTANCE = 4 /* of the nearest neighbour: computed by the session */
};

enum { DONE_SUMS = 0x100 }; /* used with WANT_*: sums were computed */

/* Results of a force call, one number per target, in the caller's units. */
struct results {
    const double *sum[NSUM]; /* each rounded once from the partial sums */
    /* address of the nearest neighbour, or -1; its index */
    const int32_t *nearest, *index;
    const unsigned char *fine; /* as in the targets */
};

struct device_arrays;
struct walk_engine;

struct backend {
    unsigned capabilities;
    /* Most i particles to sum in advance: more are no faster. 0: none, since each row depends on
     * the other rows. */
    int most_rows;
    const char *name;
    /* Returns 0 and a state, or an error code with its text. Of n devices, it opens number `choice`
     * modulo n. */
    int (*open)(const struct options *options, int choice, void **state, struct error *f);
    /* Sets the j particles of the next force call. */
    int (*set_j)(void *state, const struct upload *upload, struct error *f);
    /* Sets the i particles of the force call. They must stay valid until the next submit. */
    int (*submit)(void *state, const struct targets *targets, struct error *f);
    /* Waits for the requested results (WANT_*) of at least the first `count` targets. Returns 1 if
     * only the results of all targets are available: call again with all. Results are valid until
     * the next submit. It may be called again for more targets, and, while the j memory is
     * unchanged, for results not requested before. */
    int (*collect)(void *state, unsigned want, int count, struct results *results, struct error *f);
    /* The partial sums of the results. All results must have been collected. */
    int (*partials)(void *state, const struct partial_row **rows, struct error *f);
    /* The j particles within s^2 <= h2[k] of target first + k, including itself, for k < count. If
     * lists are long, it gives the lists of fewer targets, at least one. The lists are in the
     * backend's memory and valid until the next call. They are those of the last submit: later
     * writes to the j memory have no effect. */
    int (*neighbours)(void *state, int first, int count, const double *h2,
                      struct neighbour_lists *lists, struct error *f);
    /* Number of zero-distance pairs of different particles found since the last call. */
    int64_t (*zero_distances)(void *state);
    /* Writes the name, with the device or instruction set. */
    void (*describe)(void *state, const struct options *options, char *buffer, int length);
    void (*close)(void *state);
    const struct device_arrays *arrays; /* not NULL if CAN_DEVICE_POINTERS */
    const struct walk_engine *walks;    /* NULL: the CPU sums walks */
};

extern const struct backend cpu_direct_backend; /* direct sum on the CPU */
extern const struct backend cuda_backend;       /* direct sum on a GPU */
extern const struct backend tree_backend_cpu;   /* octree on the CPU */
extern const struct backend tree_backend_cuda;  /* octree on a GPU */

/* Limbs of a partial row in a mode. */
static inline int limbs_of(int mode) { return mode == MODE_DOUBLE ? 3 : 2; }
