/* symmetric.h - GRAPE-5 sums with a softening that both particles have (Saitoh & Makino 2012, New
 * Astronomy 17, 76): r^2 + eps_i^2 + eps_j^2, of the calls that end in 0: see cpu/softened.h. */
#pragma once

#include <stdint.h>

#include "cpu/grape5_sum.h"
#include "cpu/softened.h"

/* J particles. Addresses never written have no mass, bad ones a NaN. */
struct symmetric {
    struct softened all;
    int64_t capacity;
    int64_t lost, lost_end; /* sent, but there was no memory for them; none if equal */
};

void cpu_symmetric_free(struct symmetric *s);
/* Writes n particles. Returns 0, or an error code and the first address affected. */
int cpu_symmetric_set(struct symmetric *s, int64_t address, int64_t n, const double (*x)[3],
                      const double *m, const double *eps2, int64_t *which);
/* The first address below n that no force may use, or -1. */
int64_t cpu_symmetric_first_bad(const struct symmetric *s, int64_t n);
/* Sums the forces of n valid particles; the bits do not depend on the number of threads. */
void cpu_symmetric_run(const struct symmetric *s, int64_t n, int threads, struct grape5_sum *sum);
