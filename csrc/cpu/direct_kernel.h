/* direct_kernel.h - the direct sum on the CPU: data that the kernels of each instruction set
 * share, and the table of functions that each of them fills.
 *
 * j particles are stored in chunks of 16: a chunk is NROW rows (x y z m vx vy vz, and in mode
 * grape the low halves xl yl zl) of 16 values. A block is 64 chunks: 1024 addresses.
 *
 * The order of a block sum is the same in both arrangements (direct_kernel.c): lane l of a chunk
 * gives sub-sums over 32 chunks in the precision of the pair terms; the sub-sums are added in
 * double, l = 0..15 of the first half of the block, then l = 0..15 of the second half.
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

enum { MAX_SELF = 4 };
/* Least work of a thread, in a sum and in a prediction. With less, more threads do not pay. */
enum { DIRECT_PAIRS_PER_THREAD = 8192, DIRECT_CHUNKS_PER_THREAD = 128 };
/* Addresses of j particles with an i particle's index. count is -1 if there are more than MAX_SELF:
 * every block is then searched. */
struct self_places {
    int32_t count;
    int32_t address[MAX_SELF];
};

struct direct_job {
    int mode, jerk, limbs;
    int nearest; /* 0: no; 1: yes; 2: yes, with some eps2 > 0, so that r^2 differs from s^2 */
    int shared;  /* several threads add to the same rows, which are cleared before */
    int alone;   /* there is one block: its sums go to `block`, and not to rows but rounded to `sum`
                  */
    double *block[NSUM], *sum[NSUM]; /* [ni] */
    int64_t nj;
    void *rows;                   /* real [chunk][NROW][16] */
    int32_t *jindex;              /* by address */
    struct block_range *ranges;   /* per block */
    const struct jmemory *memory; /* for prediction and exact pairs */
    double time;
    int snap;
    struct scale scale;
    double unit[NSUM][2]; /* two factors that convert block sums to the caller's units */

    int ni;
    void *fields[I_FIELDS]; /* real [ni padded by MAX_TILE], scaled */
    const int32_t *index;   /* padded likewise */
    struct body_range *body_range;
    struct self_places *self;
    const double (*x)[3], (*v)[3], *eps2; /* [ni], the caller's units */
    _Atomic int64_t *zero_distances;      /* zero-distance pairs found */
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
    int tile; /* i particles of one pass */
    /* Predicts the stale chunks of blocks first..last-1 and converts them to rows. */
    void (*pack)(const struct direct_job *job, uint64_t *stale, int64_t first, int64_t last);
    /* Converts all i particles to fields and body_range. */
    void (*pack_targets)(const struct direct_job *job);
    /* Sums the force of blocks first..last-1 on i..i+n-1; adds it to rows[0..n-1] if job->shared,
     * else writes it there, but if job->alone. Updates `nearest` if a nearer neighbour is found. */
    void (*sum)(const struct direct_job *job, int i, int n, int64_t first, int64_t last,
                struct partial_row *rows, struct nearest *nearest);
    /* Finds the addresses of blocks first..last-1 within s^2 <= h2[k] of i particle i + k, for k <
     * n <= HITS_AT_ONCE. Address a is bit a % 64 of hits[k stride + a / 64]. */
    void (*hits)(const struct direct_job *job, int i, int n, const double *h2, int64_t first,
                 int64_t last, uint64_t *hits, int64_t stride);
    /* Independent FMA vector instructions per second, for benchmarks; 0 if there are none. */
    double (*fma_rate)(void);
};

/* The kernel of the requested instruction set (G6X_ISA_*); NULL if the machine lacks it. */
const struct direct_kernel *cpu_direct_kernel_choose(int isa, int mode);
