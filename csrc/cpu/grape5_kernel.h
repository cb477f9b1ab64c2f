/* grape5_kernel.h - kernels of each instruction set for acc and pot of GRAPE-5 points, in mode
 * grape.
 *
 * Positions are integers: multiples ("steps") of 2^-27 of the length scale L from the origin, below
 * 8 L. Their differences are exact, and rounded to single precision once. For a pair nearer than
 * ACC_NEAR steps (2^-5 L) one step matters. If a group of 16 to 64 addresses has at most ACC_FEW of
 * these, they are left out and computed in double; else the whole group also uses the remainders
 * of the positions, and leaves out only pairs nearer than ACC_CLOSE steps, and up to ACC_FEW that
 * are nearer than ACC_RULES steps (2^-12 L): their terms may be so large that others in the same
 * lanes could be lost. Targets beyond 8 L are summed in double. Points there are in single
 * precision from the origin on, which is as good for a target within 4 L; if there are too many or
 * the target is not, in double.
 *
 * Lanes hold j, for one i particle at a time, so that the order of a block sum does not depend on
 * the rest of the call. Lane l takes every VL-th address, in sub-sums of 32 of them; then the lanes
 * are added in halves, in double. While the last group of a target is added, the first of the next
 * is begun.
 */
#pragma once

#include "cpu/direct_kernel.h"

enum { ACC_AX, ACC_AY, ACC_AZ, ACC_POT, NACC };
/* Chunks are packed and summed in groups of this many; the last is filled with empty chunks. */
enum { ACC_GROUP = 4 };

#define ACC_NEAR 0x1p22f
#define ACC_CLOSE 0x1p3f
#define ACC_RULES 0x1p15f
enum { ACC_FEW = 4 };
#define ACC_REACH 0x1p30 /* limit of positions */
#define ACC_FARTHEST 0x1p39
enum { ACC_DISTANT = 64 };
#define ACC_EPS2 0x1p62f /* limit of eps^2, so that adding ACC_NEAR^2 has an effect */
/* Added to length_shift: positions are in steps. */
enum { ACC_SHIFT = 7 };

/* Points at rest as GRAPE-5 sends them. NaN marks a missing number. */
struct acc_points {
    const double (*x)[3];
    const double *m;
};

/* Frame of packed points: x_unit (x - origin), m_unit m. */
struct acc_units {
    double origin[3], x_unit, m_unit;
};

struct acc_chunk {
    int32_t x[3][CHUNK];
    float m[CHUNK];
};

/* Points of a block that do not fit integers or single precision masses, by their offsets. The
 * first ACC_DISTANT of which only the position does not are in single precision, too, if they are
 * nearer than ACC_FARTHEST; the last vector is filled up. */
struct acc_unpacked {
    int16_t count, place[BLOCK], distant, distant_place[ACC_DISTANT];
    float x[3][ACC_DISTANT], m[ACC_DISTANT];
};

struct acc_target {
    double x[3], eps2; /* x in the caller's units; eps2 in steps squared */
    int32_t place[3];  /* position in steps */
    float low[3];      /* remainder of the position */
    int fits;          /* position and eps2 are within ACC_REACH and ACC_EPS2 */
    int central;       /* the position is within half of ACC_REACH */
};

/* Targets that are summed at a time. */
enum { ACC_TILE = 64 };

/* Offsets in a block of particles whose pairs are left out; those of target k end before end[k]. */
struct acc_close {
    int count, end[ACC_TILE];
    int16_t place[2 * BLOCK];
};

struct grape5_kernel {
    /* Copies n numbers; returns whether none is NaN or Inf. */
    int (*copy)(double *to, const double *from, int64_t n);
    /* Packs points first .. end - 1 of a block into chunks; `chunk` is that of the first. Points
     * with a NaN mass (none if `whole`), and the rest of the last group, become empty. */
    void (*pack)(const struct acc_points *p, const struct acc_units *f, int64_t first, int64_t end,
                 int whole, struct acc_chunk *chunk, struct acc_unpacked *unpacked);
    /* Sums `chunks` chunks of points x, a multiple of ACC_GROUP, on up to ACC_TILE targets, in
     * scaled units. The caller multiplies the sums by correction(), those of acc by its negative.
     * To central targets, the points of `unpacked` in single precision are added. Sums of targets
     * that do not fit are of no use. Returns the number of targets done, fewer than `count` but not
     * 0 if `close` is full. */
    int (*block)(const struct acc_chunk *chunk, int chunks, const double (*x)[3],
                 const struct acc_units *f, const struct acc_unpacked *unpacked,
                 const struct acc_target *t, int count, double (*sum)[NACC],
                 struct acc_close *close);
    /* Factor that corrects the processor's estimates of 1/s. Compute it once. */
    double (*correction)(void);
};
