/* cuda_args.h - what the kernels of a GPU (grape6py/cuda) are given: one structure
 * per launch, by value. Pointers are to the GPU's memory unless they are said to be pinned. */
#ifndef GRAPE6_CUDA_ARGS_H
#define GRAPE6_CUDA_ARGS_H

#include "shared/host_device.h"
#include "shared/hermite_step.h"
#include "shared/particle.h"
#include "shared/range.h"

/* How the sum of a block of 1024 addresses is made, whatever kernel makes it: runs of 32 addresses
 * (mode double: 64) one after another in the precision of the pair terms; two runs are a group;
 * four groups, one after another, a chunk; the four chunks are added with compensation, in mode
 * double without. */
enum {
    CUDA_BLOCK = 1024,
    CUDA_CHUNK = 256,
    CUDA_GROUP = 64,
    CUDA_PLACE = 16, /* where a nearest neighbour is looked for again */
    CUDA_CHUNKS = CUDA_BLOCK / CUDA_CHUNK,
    CUDA_GROUPS = CUDA_BLOCK / CUDA_GROUP,
    CUDA_QUARTER = CUDA_CHUNK /* addresses that are predicted together */
};

/* Absolute bins (partial.h) of a row in the GPU's memory: as many as block sums can reach. */
enum { CUDA_BINS = 9, CUDA_BINS_DOUBLE = 15 };
/* Block sums of mode double beyond these powers of two, in scaled units, are left to the host. */
enum { CUDA_LOWEST = -280, CUDA_HIGHEST = 199 };
/* Added to the number of a row's top bin: zeroed memory is then an empty row. */
enum { CUDA_TOP_ZERO = 64 };

/* A particle on its way to the GPU, in pinned memory. */
struct cuda_sent {
    struct jparticle body;
    double k18[4];
    int32_t address, unused[7];
};

/* Origin, drift and units by which the caller's numbers become scaled ones: scale.h. */
struct cuda_frame {
    double origin[3], drift[3], x_unit, v_unit, m_unit;
};

/* An i particle, in the caller's units. */
struct cuda_target {
    double x[3], v[3], eps2;
    int32_t index, invalid; /* a NaN was in it; set by kernel take alone */
};

/* Smallest and largest index of a group. */
struct cuda_span {
    int32_t low, high;
};

/* The j particles on the GPU: word w of struct jparticle at address a is body[w slots + a], so
 * that neighbouring threads read neighbouring words. */
enum { CUDA_WORDS = 15 };
struct cuda_store {
    unsigned long long *body; /* [CUDA_WORDS][slots] */
    double *k18;              /* [3][slots], or NULL */
    int64_t slots;
};

/* Particles at rest on their way to addresses first .. first + count - 1, in pinned memory. */
struct cuda_at_rest {
    const double (*xm)[4]; /* x, y, z, mass */
    const int32_t *index;
    double time;
    int32_t first, count;
};

/* Kernel receive: writes particles to their slots. Kernel receive_at_rest: those of `rest`. */
struct cuda_receive_job {
    struct cuda_store store;
    const struct cuda_sent *sent; /* pinned */
    int32_t count, unused;
    struct cuda_at_rest rest;
};

/* What sums read of the j particles, predicted. */
struct cuda_sources {
    void *pairs;                /* sources.cuh */
    int32_t *index;             /* by address */
    struct cuda_span *spans;    /* per group */
    struct block_range *ranges; /* per quarter of a block */
};

/* Particles that come with a prediction: it reads them from here, and stores them in their slots.
 */
enum { CUDA_FEW = 64 };
struct cuda_arrivals {
    const struct cuda_sent *sent; /* pinned; kernels few and some: NULL if they are in the job */
    int32_t few, address[CUDA_FEW], unused;
};

/* Kernel predict, a CUDA block per quarter of a block, from first_block on. */
struct cuda_predict_job {
    struct cuda_store store;
    struct cuda_sources sources;
    struct cuda_frame frame;
    double time;
    int32_t nj, snap, first_block, unused;
    struct cuda_arrivals arrivals;
    struct cuda_at_rest rest; /* particles at rest that come with it, too */
};

/* Work for the host: a row, and runs of a block as bits, or CUDA_WHOLE_BLOCK. */
enum { CUDA_WHOLE_BLOCK = -1 };
struct cuda_left {
    int32_t row, block, runs;
};
/* Addresses of a run: those that are left out together if one of them is close. */
enum { CUDA_RUN = 32, CUDA_RUN_DOUBLE = CUDA_GROUP };

/* Kernels that sum all addresses on `rows` i particles. CUDA blocks with one blockIdx.y share a
 * tile of rows; the last of them to end gives out the results and sets flag[tile] to `step`. */
struct cuda_sum_job {
    struct cuda_sources sources;
    struct cuda_frame frame;
    struct cuda_store store; /* of the same j particles, for close pairs */
    double time;
    int32_t snap;
    int32_t nj, rows;
    int32_t tile_rows;              /* rows of a tile */
    int32_t step_blocks;            /* blocks of addresses that a CUDA block takes */
    int32_t first_block, end_block; /* blocks of addresses that are summed */
    int32_t unit[3]; /* exponents of block sums of acc, jerk, pot in the caller's units */
    int32_t base[3]; /* number of the lowest bin of acc, jerk, pot */
    int32_t stride;  /* rows of the arrays below */
    const struct cuda_target *targets; /* NULL: they are in the job */
    /* per row, zeroed before and after */
    long long *bin;                        /* [sum][bin][stride] */
    int32_t *top;                          /* [window][stride] */
    unsigned long long *nearest;           /* [stride] */
    int32_t *nearest_place, *nearest_lock; /* [stride], mode double */
    /* [3][tile]: CUDA blocks that have ended, rows and blocks left to the host, zero distances */
    unsigned *ended;
    int32_t *left_count;    /* number of entries for `left`, also beyond its capacity */
    struct cuda_left *left; /* pinned, [left_capacity] */
    int32_t left_capacity;
    /* the results, in pinned memory */
    int32_t first;      /* first row of this launch among all */
    int32_t out_stride; /* rows of the arrays below */
    int32_t unused;
    double *sum;              /* [sum][out_stride], in the caller's units */
    int32_t *nearest_address; /* -1: none */
    int32_t *nearest_index;
    double *nearest_r2; /* scaled */
    /* rows of partial.h, if they are requested, or NULL */
    long long *limbs; /* [sum][limb][out_stride] */
    int32_t *tops; /* [window][out_stride] number of the top bin + CUDA_TOP_ZERO, 0: an empty row */
    int32_t *left_of_tile;           /* [tile]: entries of `left` */
    int32_t *zero_distances_of_tile; /* [tile]: pairs at one place */
    unsigned long long *flag;
    unsigned long long step;
};

/* Shared memory of kernels few and some, and of kernel middle. */
enum { CUDA_SMALL_SHARED = 58 * 1024, CUDA_MIDDLE_SHARED = 50 * 1024 };

/* A small call has its i particles in the kernel's parameters, of which there may be 4096 bytes;
 * they then have one softening. A very small one has there also the j particles that arrive. */
enum { CUDA_IN_JOB = 64, CUDA_FEW_IN_JOB = 8, CUDA_SENT_IN_JOB = 7 };
struct cuda_packed_targets {
    union {
        double x[CUDA_IN_JOB][3];
        struct {
            double x[CUDA_FEW_IN_JOB][3];
            struct cuda_sent sent[CUDA_SENT_IN_JOB];
        } few;
    };
    double v[CUDA_IN_JOB][3], eps2;
    int32_t index[CUDA_IN_JOB];
};
struct cuda_small_job {
    struct cuda_sum_job sum;
    struct cuda_packed_targets targets;
    struct cuda_arrivals arrivals; /* kernels few and some, which then predict */
    int32_t predicts;
};
/* An i particle that looks for neighbours. */
struct cuda_list_target {
    double x[3], eps2, h2;
};
/* Kernel neighbours: pairs of a row and an index with s^2 <= h2, in any order. A CUDA block takes
 * CUDA_BLOCK addresses and so many rows. */
enum { CUDA_LIST_ROWS = 64 };
struct cuda_list_job {
    struct cuda_sources sources;
    struct cuda_frame frame;
    int32_t nj, rows;
    int64_t capacity;
    const struct cuda_list_target *targets; /* [rows] */
    unsigned long long *count;              /* how many there are, also beyond the capacity */
    struct cuda_listed *listed;             /* pinned, [capacity] */
};
struct cuda_listed {
    int32_t row, index;
};

/* ---- callers' arrays on the GPU (arrays.cu), rows of three where there are vectors ---- */

/* What kernels find, in pinned memory: the lowest row that is so, or CUDA_NO_ROW. */
enum { CUDA_NO_ROW = 0x7fffffff };
struct cuda_notes {
    int32_t invalid, out_of_range;
    int32_t clamped; /* how many want a step below the smallest */
    int32_t count;   /* of the next block, */
    double time;     /* and when its steps end */
    /* of kernel turn: its sums are not all there; and the number of the launch that is through */
    int32_t incomplete, unused;
    unsigned long long step;
};

/* Kernel take: i particles. One with a NaN is noted, and computed at the origin. */
struct cuda_take_job {
    const int32_t *index;
    const double *x, *v;
    double eps2;
    struct cuda_target *targets;
    struct cuda_notes *notes;
    int32_t rows, unused;
};

/* Kernel give: forces, from the results of the sums. */
struct cuda_give_job {
    struct cuda_store store; /* as predicted to `time`, for the distances */
    double time;
    const struct cuda_target *targets;
    const double *sum; /* [sum][stride] */
    const int32_t *nearest_address, *nearest_index;
    double *acc, *jerk, *pot;
    int32_t *nearest; /* may be NULL, as */
    float *distance;
    struct cuda_notes *notes;
    int64_t stride;
    int32_t rows, snap;
    int32_t has_jerk;
    int32_t spoilt; /* there are no results: NaN */
};

/* Kernels examine and collect: j particles. Pointers but mass and x may be NULL. */
struct cuda_collect_job {
    struct cuda_store store; /* body NULL: not to be written */
    const int32_t *address, *index;
    const double *time, *mass, *k18, *j6, *a2, *v, *x;
    struct cuda_sent *sent;   /* pinned */
    struct cuda_notes *notes; /* of examine */
    int32_t first, count;     /* rows */
};

/* Kernel predicted: x and v of addresses below n. */
struct cuda_predicted_job {
    struct cuda_store store;
    double time;
    double *x, *v;
    int32_t n, snap;
};

/* ---- the Hermite scheme (hermite.cu) ------------------------------------------------------ */

/* Kernels next_time, next_count and next_list, one after another: particles whose steps end first,
 * in the order of their numbers. A CUDA block looks at `share` of them, a multiple of 32. */
enum { CUDA_NEXT_BLOCKS = 256 };
struct cuda_next_job {
    const double *t, *dt;
    double common; /* the step that all have, or 0 */
    int32_t n, share;
    double *earliest; /* [CUDA block] */
    int32_t *counts;  /* [CUDA block] */
    uint32_t *bits;   /* [n / 32, rounded up] */
    int32_t *address; /* [n] */
    struct cuda_notes *notes;
};

/* Kernels hermite_predict and hermite_correct: `rows` particles of a block. */
struct cuda_hermite_job {
    struct hermite_state state; /* dt NULL: the particles stay where they are */
    struct hermite_rule rule;
    double time;
    const int32_t *address;
    double (*xi)[3], (*vi)[3];
    /* of hermite_correct */
    const double (*acc)[3], (*jerk)[3], *pot;
    const double *rounding, *mass;                   /* by particle; rounding may be NULL */
    double *mass_out, *time_out, (*a2)[3], (*j6)[3]; /* as j particles; NULL: not requested */
    struct cuda_notes *notes;
    int32_t rows, unused;
};

/* Kernel turn, one CUDA block: ends a block whose sums are there, as hermite_correct and collect
 * do, finds the next one, as the three kernels above, predicts it and makes i particles of it. If
 * sums are missing, nothing is written but the notes; if a particle leaves the numbers, the block
 * has moved, and is not written as j particles. */
enum { CUDA_TURN_MOST = 8192 }; /* particles of an integration */
struct cuda_turn_job {
    struct hermite_state state;
    struct hermite_rule rule;
    double common, time; /* as above; when the block ends */
    int32_t n, rows;     /* of the block; 0: there is none */
    const double *mass, *rounding;
    int32_t *address;
    double (*xi)[3], (*vi)[3];
    const double *sum; /* [sum][stride] */
    int64_t stride;
    const int32_t *left_count; /* pairs that the sums have left to the host */
    struct cuda_store store;
    struct cuda_sent *sent; /* pinned, [rows]: what has moved */
    struct cuda_target *targets;
    double eps2;
    struct cuda_notes *notes; /* pinned */
    unsigned long long step;
};

/* ---- walks (walks.cu) --------------------------------------------------------------------- */

/* Threads of a CUDA block, targets of each at most, and of a tile. */
enum { CUDA_WALK_THREADS = 64, CUDA_WALK_EACH = 4, CUDA_WALK_ROWS = 256 };
/* Targets target.. of a launch feel entries entry.. of it. */
struct cuda_walk_tile {
    int64_t entry, entries;
    int32_t target, targets;
    double centre[3], radius; /* of the targets' box */
};
/* Kernel walks: a CUDA block for each tile. Results: NaN for a target with a NaN or an infinity,
 * infinite if they do not fit a double, and CUDA_WALK_BAD (its bits) if the list has a NaN. */
#define CUDA_WALK_BAD 0x7ff80000000000ffu
struct cuda_walks_job {
    const double *targets; /* [][3] */
    const double *bodies;  /* [][4] x, y, z, m: the entries, or those that the list chooses from */
    const int32_t *list;   /* or NULL */
    const struct cuda_walk_tile *tiles;
    double eps2;
    double *out; /* [acc, pot][stride] */
    int64_t stride;
};

#endif
