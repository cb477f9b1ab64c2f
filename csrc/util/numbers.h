/* numbers.h - tests of doubles by bits, since a comparison with NaN may trap; and integers. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t bits_of(double a)
{
    uint64_t u;
    memcpy(&u, &a, sizeof u);
    return u;
}

static inline double from_bits(uint64_t u)
{
    double a;
    memcpy(&a, &u, sizeof a);
    return a;
}

/* Neither NaN nor infinite. */
static inline int is_finite(double a) { return (bits_of(a) >> 52 & 0x7ff) != 0x7ff; }

static inline int all_finite(const double *a, size_t n)
{
    uint64_t any = 0;
    for (size_t k = 0; k < n; k++)
        any |= (bits_of(a[k]) & 0x7ff0000000000000u) + 0x0010000000000000u;
    return !(any >> 63);
}

/* Below zero, or NaN with the sign bit set. */
static inline int is_negative(double a) { return bits_of(a) >> 63 && bits_of(a) << 1; }

/* n / step, rounded up. */
static inline int64_t ceil_div(int64_t n, int64_t step) { return (n + step - 1) / step; }
