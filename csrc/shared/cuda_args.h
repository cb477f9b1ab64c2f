/* cuda_args.h - arguments of the GPU kernels (grape6py/cuda): one structure per launch, by value.
 * Pointers are to device memory unless marked as pinned. */
#ifndef GRAPE6_CUDA_ARGS_H
#define GRAPE6_CUDA_ARGS_H

#include "shared/host_device.h"
#include "shared/hermite_step.h"
#include "shared/hermite_pair.h"
#include "shared/hermite_watch.h"
#include "shared/particle.h"
#include "shared/range.h"

/* The order of the sum of a block of 1024 addresses, the same in all kernels. A run of 32 addresses
 * (mode double: 64) is summed in sequence in the precision of the pair terms. Two runs make a
 * group, and four groups in sequence a chunk. The four chunks are added with compensation (mode
 * double: without). */
enum {
    CUDA_BLOCK = 1024,
    CUDA_CHUNK = 256,
    CUDA_GROUP = 64,
    CUDA_CHUNKS = CUDA_BLOCK / CUDA_CHUNK,
    CUDA_GROUPS = CUDA_BLOCK / CUDA_GROUP,
    CUDA_QUARTER = CUDA_CHUNK /* addresses predicted together */
};

/* Absolute bins (partial.h) of a row in device memory: enough for all block sums. */
enum { CUDA_BINS = 9, CUDA_BINS_DOUBLE = 15 };
/* Block sums of mode double outside these powers of two, in scaled units, use the host fallback. */
enum { CUDA_LOWEST = -280, CUDA_HIGHEST = 199 };
/* Added to the number of a row's top bin, so that zeroed memory is an empty row. */
enum { CUDA_TOP_ZERO = 64 };

/* A j particle to be sent to the GPU, in pinned memory; or CUDA_NOT_SENT, an empty slot. */
enum { CUDA_NOT_SENT = -1 };
struct cuda_sent {
    struct jparticle body;
    double k18[4];
    int32_t address, unused[7];
};

/* Origin, drift and units that convert the caller's numbers to scaled ones: scale.h. */
struct cuda_units {
    double origin[3], drift[3], x_unit, v_unit, m_unit;
};

/* An i particle, in the caller's units. */
struct cuda_target {
    double x[3], v[3], eps2;
    int32_t index, invalid; /* it had a NaN; set only by kernel read_targets */
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

/* Particles at rest to be sent to addresses first .. first + count - 1, in pinned memory. */
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

/* Predicted j particles, as the sums read them. */
struct cuda_sources {
    void *pairs;                /* sources.cuh */
    int32_t *index;             /* by address */
    struct cuda_span *spans;    /* per group */
    struct block_range *ranges; /* per quarter of a block */
};

/* Capacity of struct cuda_arrivals. */
enum { CUDA_FEW = 64 };
/* Particles sent together with a prediction, which reads them from here and stores them in their
 * slots. */
struct cuda_arrivals {
    const struct cuda_sent *sent; /* pinned; NULL if they are in the job (kernels few, some) */
    int32_t few, address[CUDA_FEW], unused;
};

/* Kernel predict: one CUDA block per quarter of a block, starting at first_block. */
struct cuda_predict_job {
    struct cuda_store store;
    struct cuda_sources sources;
    struct cuda_units units;
    double time;
    int32_t nj, snap, first_block, unused;
    struct cuda_arrivals arrivals;
    struct cuda_at_rest rest; /* particles at rest sent together with it */
};

enum { CUDA_WHOLE_BLOCK = -1 };
/* Work for the host fallback: a row, and runs of a block as bits, or CUDA_WHOLE_BLOCK. */
struct cuda_left {
    int32_t row, block, runs;
};
/* Addresses of a run. All are left out together if one of them is close. */
enum { CUDA_RUN = 32, CUDA_RUN_DOUBLE = CUDA_GROUP };

/* Kernels that sum the forces of all addresses on `rows` i particles. CUDA blocks with equal
 * blockIdx.y share a tile of rows; the last of them to end writes the results and sets flag[tile]
 * to `step`. */
struct cuda_sum_job {
    struct cuda_sources sources;
    struct cuda_units units;
    struct cuda_store store; /* the same j particles, for close pairs */
    double time;
    int32_t snap;
    int32_t nj, rows;
    int32_t tile_rows;                 /* rows of a tile */
    int32_t step_blocks;               /* blocks of addresses per CUDA block */
    int32_t first_block, end_block;    /* blocks of addresses to sum: first .. end - 1 */
    int32_t unit[3];                   /* exponents of the units of block sums of acc, jerk, pot */
    int32_t base[3];                   /* number of the lowest bin of acc, jerk, pot */
    int32_t stride;                    /* rows of the arrays below */
    const struct cuda_target *targets; /* NULL: they are in the job */
    /* arrays per row, zero before and after the kernel */
    long long *bin;                        /* [sum][bin][stride] */
    int32_t *top;                          /* [window][stride] */
    unsigned long long *nearest;           /* [stride] */
    unsigned long long *nearest_key;       /* [stride], mode double: r^2 of nearest_place */
    int32_t *nearest_place, *nearest_lock; /* [stride], mode double */
    /* [3][tile]: CUDA blocks that have ended; entries for the host fallback; zero-distance pairs */
    unsigned *ended;
    int32_t *left_count;    /* number of entries for `left`; may exceed its capacity */
    struct cuda_left *left; /* pinned, [left_capacity] */
    int32_t left_capacity;
    /* the results, in pinned memory */
    int32_t first;      /* first row of this launch among all rows */
    int32_t out_stride; /* rows of the arrays below */
    int32_t unused;
    double *sum;              /* [sum][out_stride], in the caller's units */
    int32_t *nearest_address; /* -1: none */
    int32_t *nearest_index;
    double *nearest_r2; /* scaled */
    /* rows of partial.h if requested, else NULL */
    long long *limbs; /* [sum][limb][out_stride] */
    int32_t *tops;    /* [window][out_stride] number of the top bin + CUDA_TOP_ZERO; 0: empty row */
    int32_t *left_of_tile;           /* [tile]: entries of `left` */
    int32_t *zero_distances_of_tile; /* [tile]: zero-distance pairs */
    unsigned long long *flag;
    unsigned long long step;
};

/* Bytes of shared memory of kernels few and some, and of kernel middle. */
enum { CUDA_SMALL_SHARED = 58 * 1024, CUDA_MIDDLE_SHARED = 51 * 1024 };

enum { CUDA_IN_JOB = 64, CUDA_FEW_IN_JOB = 8, CUDA_SENT_IN_JOB = 7 };
/* i particles of a small call, in the kernel parameters (at most 4096 bytes), with one softening
 * for all. A very small call also has the sent j particles there. */
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
    struct cuda_arrivals arrivals; /* for kernels few and some, which then also predict */
    int32_t predicts;
};
/* An i particle of a neighbour search. */
struct cuda_list_target {
    double x[3], eps2, h2;
};
/* Most rows of a CUDA block of kernel neighbours; it also takes CUDA_BLOCK addresses. */
enum { CUDA_LIST_ROWS = 64 };
/* Kernel neighbours: finds pairs of a row and an index with s^2 <= h2, in any order. */
struct cuda_list_job {
    struct cuda_sources sources;
    struct cuda_store store; /* the same j particles, some of which may be beyond the range */
    double time;
    struct cuda_units units;
    int32_t nj, rows, snap;
    int32_t tile_rows; /* of a CUDA block */
    int64_t capacity;
    const struct cuda_list_target *targets; /* [rows] */
    unsigned long long
        *count; /* number of pairs, and of CUDA blocks that have ended; zero before */
    struct cuda_listed *listed; /* pinned, [capacity] */
    unsigned long long *there;  /* pinned: number of pairs, perhaps above the capacity; the step */
    unsigned long long step;
};
struct cuda_listed {
    int32_t row, index;
};

/* ---- callers' arrays on the GPU (arrays.cu); vectors are rows of three ---------------- */

enum { CUDA_NO_ROW = 0x7fffffff };
/* What kernels find, in pinned memory. */
struct cuda_notes {
    int32_t invalid, out_of_range; /* lowest such row, or CUDA_NO_ROW */
    int32_t clamped;               /* number of particles that need a step below dt_min */
    int32_t count;                 /* particles of the next block */
    double time;                   /* end of the steps of the next block */
    int32_t incomplete;            /* kernel fused_step: whether sums are missing */
    int32_t fine;                  /* and rows of the next block that are fine */
    int32_t acting;                /* rows of the block that are j particles: the first ones */
    int32_t watched, unknown;      /* kernel hermite_watch: whether a row is close or has left, and
                                    * whether a neighbour is no particle */
    unsigned long long step;       /* kernel fused_step: number of the completed launch */
};

/* Kernel read_targets: reads i particles, all or those of some rows of the arrays. Records one with
 * a NaN, and places it at the origin. */
struct cuda_read_targets_job {
    const int32_t *list; /* [rows], pinned; NULL: all */
    const int32_t *index;
    const double *x, *v;
    double eps2;
    struct cuda_target *targets;
    struct cuda_notes *notes;
    int32_t rows, unused;
};

/* Kernel write_forces: writes forces from the results of the sums, to these rows of the arrays. */
struct cuda_write_forces_job {
    const int32_t *list;     /* [rows], pinned; NULL: all */
    struct cuda_store store; /* predicted to `time`, for the distances */
    double time;
    const struct cuda_target *targets;
    const double *sum; /* [sum][stride] */
    const int32_t *nearest_address, *nearest_index;
    double *acc, *jerk, *pot;
    int32_t *nearest; /* may be NULL */
    float *distance;  /* may be NULL */
    struct cuda_notes *notes;
    int64_t stride;
    int32_t rows, snap;
    int32_t has_jerk;
    int32_t failed; /* no results: write NaN */
};

/* The number of the top bin where a NaN or Inf was added. */
enum { CUDA_TOP_INVALID = 0x7fffffff };
/* Kernel store_part: writes the rows of partial.h of a call, in device memory, as a part
 * (parts.cu).
 */
struct cuda_store_part_job {
    const long long *limbs; /* [sum][limb][stride] */
    const int32_t *tops;    /* [window][stride] */
    const double *r2;       /* [stride]; NULL: no nearest neighbours */
    const int32_t *address; /* [stride] */
    int64_t stride;
    void *part;
    int32_t rows, unused;
};
/* Kernel merge_parts: the results of a call from `count` parts. */
struct cuda_merge_parts_job {
    char *parts; /* one behind the other */
    int64_t part_bytes;
    struct cuda_store store; /* for the indices */
    double *sum;             /* [sum][stride] */
    double *nearest_r2;
    int32_t *nearest_address, *nearest_index;
    int64_t stride;
    int32_t rows, count;
};

/* Kernels examine and collect: read j particles. All pointers except mass and x may be NULL. */
struct cuda_collect_job {
    struct cuda_store store; /* body NULL: do not write it */
    const int32_t *address, *index;
    const double *time, *mass, *k18, *j6, *a2, *v, *x;
    struct cuda_sent *sent;   /* pinned */
    struct cuda_notes *notes; /* results of examine */
    int32_t first, count;     /* rows */
};

/* Kernel predicted: writes x and v of addresses below n. */
struct cuda_predicted_job {
    struct cuda_store store;
    double time;
    double *x, *v;
    int32_t n, snap;
};

/* ---- the Hermite scheme (hermite.cu) ------------------------------------------------------ */

enum { CUDA_NEXT_BLOCKS = 256 };
/* Kernels next_time, next_count and next_list, in sequence: find the particles whose steps end
 * first, in the order of their numbers. A CUDA block examines `share` particles, a multiple of 32.
 */
struct cuda_next_job {
    const double *t, *dt;
    double common; /* step shared by all particles, or 0 */
    int32_t n, share;
    double *earliest; /* [CUDA block] */
    int32_t *counts;  /* [CUDA block] */
    uint32_t *bits;   /* [n / 32, rounded up] */
    int32_t *address; /* [n] */
    struct cuda_notes *notes;
};

/* Kernels hermite_predict, hermite_correct and hermite_watch: `rows` particles of a block. */
struct cuda_hermite_job {
    struct hermite_state state; /* dt NULL: the particles are not moved */
    struct hermite_rule rule;
    double time;
    const int32_t *address;
    double (*xi)[3], (*vi)[3];
    /* only for hermite_correct */
    const double (*acc)[3], (*jerk)[3], *pot;
    const double *rounding, *mass; /* by particle; rounding may be NULL */
    double eps2; /* softening of hard pairs; NaN: none is looked for (hermite_pair.h) */
    struct hermite_noise noise;
    unsigned char *fine; /* pinned, [rows]: for hermite_predict, which rows are fine */
    double *mass_out, *time_out, (*a2)[3], (*j6)[3]; /* as j particles; NULL: not requested */
    struct cuda_notes *notes;
    int32_t rows, acting; /* acting: particles below this are j particles */
    struct field field;
    double (*field_acc)[3], (*field_jerk)[3]; /* of the block; may be NULL */
    struct hermite_work work;
    int32_t given, n; /* whether field_acc and field_jerk are the caller's; all particles */
    /* only for hermite_watch, which has a CUDA block for each row */
    struct watch_row watch;
    int32_t *nearest; /* of those that are j particles, then of all; may be NULL */
    double *close, *left;
};

enum { CUDA_FUSED_STEP_MOST = 8192 }; /* most particles of an integration */
/* Kernel fused_step, one CUDA block: ends a block whose sums are complete, as hermite_correct and
 * collect do; finds the next block, as the three kernels above do; predicts it and makes i
 * particles of it. If sums are missing, it writes only the notes. If x or v of a particle is not
 * finite, the block is moved but not written as j particles. */
struct cuda_fused_step_job {
    struct hermite_state state;
    struct hermite_rule rule;
    double common, time;    /* common step or 0; end of the block */
    int32_t n, rows;        /* all particles; those of the block (0: no block) */
    int32_t acting, unused; /* particles below this are j particles */
    struct field field;
    struct hermite_work work;
    const double *mass, *rounding;
    struct hermite_noise noise;
    int32_t *address;
    double (*xi)[3], (*vi)[3];
    /* Sums [sum][stride], and numbers of entries for the host fallback. Rows summed in double are
     * in the second: row number fine[row], where this is not negative. */
    const double *sum[2];
    int64_t stride[2];
    const int32_t *left_count[2];
    int32_t *fine;                    /* [rows]; NULL: none is, nor of the next block */
    struct cuda_target *fine_targets; /* of those rows of the next block */
    struct cuda_store store;
    struct cuda_sent *sent; /* pinned, [rows]: moved particles */
    struct cuda_target *targets;
    double eps2;
    struct cuda_notes *notes; /* pinned */
    unsigned long long step;
};

/* ---- walks (walks.cu) --------------------------------------------------------------------- */

/* Threads of a CUDA block; most targets of a thread; most targets of a tile. */
enum { CUDA_WALK_THREADS = 64, CUDA_WALK_EACH = 4, CUDA_WALK_ROWS = 256 };
/* `targets` targets from `target` on, and the `entries` entries from `entry` on that act on them.
 */
struct cuda_walk_tile {
    int64_t entry, entries;
    int32_t target, targets;
    double centre[3], radius; /* of the targets' box */
};
/* Bits of a result if the list has a NaN. */
#define CUDA_WALK_BAD 0x7ff80000000000ffu
/* Kernel walks: one CUDA block per tile. Results are NaN for a target with NaN or Inf, infinite if
 * they do not fit a double, or CUDA_WALK_BAD. */
struct cuda_walks_job {
    const double *targets; /* [][3] */
    const double *bodies;  /* [][4] x, y, z, m: the entries, or the rows that `list` refers to */
    const int32_t *list;   /* may be NULL */
    const struct cuda_walk_tile *tiles;
    double eps2;
    double *out; /* [acc, pot][stride] */
    int64_t stride;
};

#endif
