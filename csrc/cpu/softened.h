/* softened.h - direct sums with the terms of shared/pair.h that take both particles' softening. Few
 * programs want them: they are summed in double, by one loop. */
#pragma once

#include <stdint.h>

#include "core/partial.h"
#include "shared/pair_terms.h"

enum {
    SOFTENED_X = 0,
    SOFTENED_M = 3,
    SOFTENED_EPS2 = 4,
    SOFTENED_V = 5, /* if they are known */
    SOFTENED_NUMBERS = 8,
    SOFTENED_LANES = 8
};

/* Sources: the first n are summed, of arrays that are padded to a multiple of SOFTENED_LANES. */
struct softened {
    double *of[SOFTENED_NUMBERS];
    int64_t n;
    int term;     /* of shared/pair.h */
    int has_gaps; /* those without mass are none */
};

struct softened_target {
    double x[3], v[3], eps2;
    int64_t self; /* the source that it is, or -1 */
};

/* Sums the force on a target. Returns how many pairs are at one place without softening, which add
 * nothing. */
int64_t cpu_softened_sum(const struct softened *s, const struct softened_target *t,
                         double sum[NSUM]);
