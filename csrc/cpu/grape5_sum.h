/* grape5_sum.h - forces of a GRAPE-5 cluster's points on the CPU. */
#pragma once

#include "cpu/grape5_points.h"

/* Forces on ni targets, in the caller's units. Zero-distance pairs without softening are left out.
 * Those on targets with NaN or Inf are NaN. */
struct grape5_sum {
    int ni;
    const double (*x)[3], *eps2; /* eps2[each ? i : 0] */
    int each;
    double (*acc)[3], *pot; /* results; pot is the sum of m / s */
    int64_t zero_distances;
};

/* Sums the forces of n packed points. Returns 0 or G6X_E_MEMORY. */
int cpu_grape5_sum_run(const struct grape5_points *p, int64_t n, int threads,
                       struct grape5_sum *sum);
/* As cpu_direct_kernel_choose. */
const struct grape5_kernel *cpu_grape5_sum_kernel(int isa);
