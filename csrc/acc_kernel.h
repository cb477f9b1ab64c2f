/* acc_kernel.h - acc and pot of GRAPE-5's points, in mode grape: what each instruction set
 * supplies.
 *
 * Points lie in chunks of 16 as in kernel.h, without velocities. Lanes hold j, for one i particle
 * at a time, so that the order of a block sum is the same whatever else is computed: lane l takes
 * every VL-th address, in sub-sums of 32 of them in single precision that are added in double; then
 * the lanes are added in halves.
 */
#ifndef GRAPE6_ACC_KERNEL_H
#define GRAPE6_ACC_KERNEL_H

#include "kernel.h"

enum { ACC_AX, ACC_AY, ACC_AZ, ACC_POT, NACC };
enum { ACC_FIELDS = 8, ACC_ROWS = 7 }; /* x y z xl yl zl eps2 close; x y z m xl yl zl */
/* Chunks are packed, and summed, in groups of 4: of other lengths the last ones are empty. */
enum { ACC_GROUP = 4 };

/* r^2 below which pairs of a particle are close: 8 steps of the grid, or more beyond it (range.h).
 */
static inline float acc_close_r2(const struct body_range *r)
{
    return 32.0f * (float)power_of_two(close_exponent(MODE_GRAPE, r->x));
}

/* Points at rest as GRAPE-5 sends them. Numbers that are none mark what is not there. */
struct acc_points {
    const double (*x)[3];
    const double *m;
};

/* Where a packed set of points is: x_unit (x - origin), m_unit m. */
struct acc_frame {
    double origin[3], x_unit, m_unit;
};

/* Places in a block, in order, of the particles that are too close to i for single precision; their
 * pairs are left out. */
struct acc_close {
    int count;
    int16_t place[BLOCK];
};

struct acc_kernel {
    /* Whether none of n numbers is NaN or Inf. */
    int (*finite)(const double *a, int64_t n);
    /* Points first .. end - 1, first a multiple of 64, into chunks of ACC_ROWS, rows being that of
     * point 0; those whose mass is no number (there is none if `whole`), and the others up to the
     * next multiple of 64, as empty. */
    void (*pack)(const struct acc_points *p, const struct acc_frame *f, int64_t first, int64_t end,
                 int whole, float *rows);
    /* Exponents of a packed block of n particles. */
    struct block_range (*range)(const float *rows, int n);
    /* Sums of a block of n points on a target, in scaled units. */
    void (*block)(const float *rows, int n, const float target[ACC_FIELDS], double sum[NACC],
                  struct acc_close *close);
};

/* As kernel_choose. */
const struct acc_kernel *acc_kernel_choose(int isa);

#endif
