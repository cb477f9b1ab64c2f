/* grape5_kernel.h - acc and pot of GRAPE-5's points, in mode grape: what each instruction set
 * supplies.
 *
 * Places are integers: multiples of 2^-27 of the length scale L from the origin, below 8 L. Their
 * differences are exact, and rounded to single precision once. A pair nearer than ACC_NEAR steps
 * (2^-5 L) would feel the step: its group of 32 addresses takes what places are beside the
 * integers, too. A pair nearer than ACC_CLOSE steps is left out and done in double, as are points
 * and targets beyond 8 L; and so are pairs nearer than ACC_RULES steps (2^-12 L), softening
 * included, if a group has ACC_FEW of them at most, beside whose terms those of others in their
 * lanes may be lost.
 *
 * Lanes hold j, for one i particle at a time, so that the order of a block sum is the same whatever
 * else is computed: lane l takes every VL-th address, in sub-sums of 32 of them; then the lanes are
 * added in halves, in double.
 */
#pragma once

#include "cpu/direct_kernel.h"

enum { ACC_AX, ACC_AY, ACC_AZ, ACC_POT, NACC };
/* Chunks are packed, and summed, in groups: of other lengths the last ones are empty. */
enum { ACC_GROUP = 4 };

#define ACC_NEAR 0x1p22f
#define ACC_CLOSE 0x1p3f
#define ACC_RULES 0x1p15f
enum { ACC_FEW = 2 };
#define ACC_REACH 0x1p30 /* places are below */
#define ACC_EPS2 0x1p62f /* and eps^2, so that ACC_NEAR^2 counts beside it */
/* A step of places, as a shift of length_shift. */
enum { ACC_SHIFT = 7 };

/* Points at rest as GRAPE-5 sends them. Numbers that are none mark what is not there. */
struct acc_points {
    const double (*x)[3];
    const double *m;
};

/* Where a packed set of points is: x_unit (x - origin), m_unit m. */
struct acc_frame {
    double origin[3], x_unit, m_unit;
};

struct acc_chunk {
    int32_t x[3][CHUNK];
    float m[CHUNK];
};

/* What places are beside the integers of a chunk. */
struct acc_low {
    float x[3][CHUNK];
};

/* Places in a block of points that integers or single masses do not hold: they are not packed. */
struct acc_odd {
    int16_t count, place[BLOCK];
};

struct acc_target {
    double x[3], eps2; /* in the caller's units; in steps squared */
    int32_t place[3];
    float low[3]; /* beside them */
    int fits;     /* in integers and single precision */
};

/* Places in a block, in order, of particles whose pairs are left out. */
struct acc_close {
    int count;
    int16_t place[BLOCK];
};

struct grape5_kernel {
    /* Copies n numbers as long as none is NaN or Inf; whether that was all. */
    int (*copy)(double *to, const double *from, int64_t n);
    /* Points first .. end - 1 of a block into chunks, chunk being that of the first; those whose
     * mass is no number (there is none if `whole`), and the others up to whole groups, as empty. */
    void (*pack)(const struct acc_points *p, const struct acc_frame *f, int64_t first, int64_t end,
                 int whole, struct acc_chunk *chunk, struct acc_low *low, struct acc_odd *odd);
    /* Sums of `chunks` chunks, a multiple of ACC_GROUP, on a target that fits, in scaled units and
     * still to be multiplied by correction(). It reads half a group beyond. */
    void (*block)(const struct acc_chunk *chunk, const struct acc_low *low, int chunks,
                  const struct acc_target *t, double sum[NACC], struct acc_close *close);
    /* Adds pairs in double, in scaled units: points first + place[k], or first + k. Leaves those
     * out whose terms might not fit, and notes them. */
    void (*pairs)(const struct acc_points *p, const struct acc_frame *f, int64_t first,
                  const int16_t *place, int n, const struct acc_target *t, double sum[NACC],
                  struct acc_close *left);
    /* Of the processor's estimates of 1/s: to be found once. */
    double (*correction)(void);
};
