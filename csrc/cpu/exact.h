/* exact.h - pairs in extended precision and the caller's units, for the few that the kernels cannot
 * compute: very close pairs, and numbers beyond their exponent range. */
#pragma once

#include "cpu/direct_kernel.h"

/* Adds n pairs, given by their offsets in a block (ascending; NULL: 0..n-1). Writes the nearest of
 * them to *nearest; address -1 if there is none. */
void cpu_exact_pairs(const struct direct_job *job, int i, int64_t block, const int16_t *place,
                     int n, double sum[NSUM], struct nearest *nearest);
/* Distance between i and the particle at an address. */
double cpu_exact_distance(const struct direct_job *job, int i, int64_t address);
/* The total force on i in the caller's units, and, as a scale for comparisons, sums of the
 * magnitudes of the terms of acc, jerk and pot. Uses only the job's memory, nj, time, snap, index,
 * x, v, eps2 and zero_distances. */
void cpu_exact_row(const struct direct_job *job, int i, double sum[NSUM], double size[NWINDOW]);
/* Adds to `sum` a pair of which x_i - x_j, v_i - v_j and both eps^2 are given; `term` is of pair.h.
 */
void cpu_exact_softened(int term, const double r[3], const double v[3], const double eps2[2],
                        double m, long double sum[NSUM]);
