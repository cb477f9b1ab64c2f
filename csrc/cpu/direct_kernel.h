/* direct_kernel.h - the direct sum on the CPU: data that the kernels of each instruction set
 * share, and the table of functions that each of them fills.
 *
 * j particles lie in chunks of 16: a chunk is NROW rows (x y z m vx vy vz, and in mode
 * grape the low halves xl yl zl) of 16 values. A block is 64 chunks: 1024 addresses.
 *
 * The order of a block sum, the same for every way of computing it: lane l of a chunk
 * gives sub-sums over 32 chunks in the precision of the pair terms; the sub-sums are
 * added in double, first half of the block l = 0..15, then second half l = 0..15.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/jmemory.h"
#include "core/partial.h"
#include "core/scale.h"

enum {
    SUB_CHUNKS = 32, /* chunks of a sub-sum */
    MAX_TILE = 32,   /* i particles that a kernel may take in one pass */
    I_FIELDS = 11    /* x y z xl yl zl vx vy vz eps2, and the r^2 below which a pair is close */
};

static inline int rows_per_chunk(int mode) { return mode == MODE_GRAPE ? 10 : 7; }

/* Nearest neighbour so far: squared distance, without softening, in scaled units. */
struct nearest {
    double r2;
    int64_t address; /* -1: none */
};

/* Addresses that carry an i particle's index: count of them, or -1 if there are
 * more than fit, in which case every block is searched. */
enum { MAX_SELF = 4 };
/* Of a sum, and of a prediction: with less for each of them, more threads cost more than they
 * bring. */
enum { DIRECT_PAIRS_PER_THREAD = 8192, DIRECT_CHUNKS_PER_THREAD = 128 };
struct self_places {
    int32_t count;
    int32_t address[MAX_SELF];
};

struct direct_job {
    int mode, jerk, limbs;
    int nearest; /* 0, 1, or 2 if some eps2 is not zero: then r^2 is taken apart from s^2 */
    int shared;  /* several threads add to the same rows, which begin cleared */
    int64_t nj;
    const void *rows;                 /* real [chunk][NROW][16] */
    const int32_t *jindex;            /* by address */
    const struct block_range *ranges; /* per block */
    const struct jmemory *memory;     /* for prediction, and pairs that are done exactly */
    double time;
    int snap;
    struct scale scale;
    double unit[NSUM][2]; /* block sums times both are in the caller's units */

    int ni;
    const void *fields[I_FIELDS]; /* real [ni padded by MAX_TILE], scaled */
    const int32_t *index;         /* padded likewise */
    const struct body_range *body_range;
    const struct self_places *self;
    const double (*x)[3], (*v)[3], *eps2; /* [ni], the caller's units */
    _Atomic int64_t *zero_distances;      /* pairs at one place that were met */
    atomic_flag *lock;                    /* [ROW_LOCKS], for shared rows */
};

enum { ROW_LOCKS = 64, HITS_AT_ONCE = 64, HIT_WORDS = BLOCK / 64 };

/* Chunks of a block that hold addresses below nj. */
static inline int chunks_of_block(const struct direct_job *job, int64_t block)
{
    const int64_t left = job->nj - block * BLOCK;
    return left >= BLOCK ? BLOCK_CHUNKS : (int)ceil_div(left, CHUNK);
}

struct direct_kernel {
    int tile; /* i particles that fill one pass */
    /* Predicts the stale chunks of blocks first..last-1 and converts them to rows. */
    void (*pack)(const struct direct_job *job, void *rows, int32_t *index,
                 struct block_range *ranges, uint64_t *stale, int64_t first, int64_t last);
    /* Converts i particles first..last-1. */
    void (*pack_targets)(const struct direct_job *job, void *const fields[I_FIELDS],
                         struct body_range *range, int first, int last);
    /* Force of blocks first..last-1 on i..i+n-1, added to rows[0..n-1] if job->shared, else
     * written there. nearest keeps the nearer of what it has and what is found. */
    void (*sum)(const struct direct_job *job, int i, int n, int64_t first, int64_t last,
                struct partial_row *rows, struct nearest *nearest);
    /* Which addresses of blocks first..last-1 are within s^2 <= h2[k] of i particle i + k, for k
     * below n <= HITS_AT_ONCE: of address a, bit a % 64 of hits[k stride + a / 64]. */
    void (*hits)(const struct direct_job *job, int i, int n, const double *h2, int64_t first,
                 int64_t last, uint64_t *hits, int64_t stride);
    /* Independent FMA vector instructions a second, for benchmarks; 0 if there are none. */
    double (*fma_rate)(void);
};

/* The best kernel that the machine has of the requested instruction set (G6X_ISA_*), NULL if
 * it lacks it. */
const struct direct_kernel *cpu_direct_kernel_choose(int isa, int mode);
