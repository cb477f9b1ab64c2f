/* partial.h - order-free sums: block sums split into absolute bins of 40 bits.
 *
 * Bin b counts in units of 2^(40 b). A block sum s with b = floor(ilogb(s) / 40)
 * puts rint(s / 2^(40 b)) into bin b, the remainder into bin b - 1, and so on. A row
 * keeps the `limbs` highest bins that any of its values reached (2 if the block
 * sums come from single precision, 3 from double); the components of a vector share
 * one window. The splitting depends on the value alone, the top is a maximum and
 * integers add exactly, so neither order nor grouping can change a bit of the result.
 * A block sum is rounded by at most 2^-41 (2^-81) of the row's largest.
 */
#pragma once

#include "shared/arithmetic.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "util/numbers.h"

enum { SUM_AX, SUM_AY, SUM_AZ, SUM_JX, SUM_JY, SUM_JZ, SUM_POT, NSUM };
enum { WINDOW_ACC, WINDOW_JERK, WINDOW_POT, NWINDOW };
enum { MAX_LIMBS = 3 };

/* Bins cover 2^-1000 to 2^1000. A smaller value is rounded by rint in the lowest bins. */
#define BIN_BITS 40
#define BIN_LOWEST (-25)

struct partial_row {
    int64_t limb[NSUM][MAX_LIMBS]; /* limb[k][d] counts in 2^(40 (top - d)) */
    int32_t top[NWINDOW];
    uint32_t invalid; /* bit per window: a NaN or Inf was added */
};

static inline int window_of(int sum) { return sum / 3; }

/* floor(ilogb(s) / 40), never below BIN_LOWEST; the multiplication divides by 40. */
static inline int64_t bin_of(double s)
{
    const uint64_t biased = (bits_of(s) >> 52 & 0x7ff) + 17; /* 1023 + 17 = 26 * 40 */
    const int64_t b = (int64_t)(biased * 52429 >> 21) - 26;
    return b < BIN_LOWEST ? BIN_LOWEST : b;
}

/* 2^(-40 b) */
static inline double bin_inverse(int64_t b)
{
    return from_bits((uint64_t)(1023 - BIN_BITS * b) << 52);
}

/* rint(a) for |a| < 2^51 in round-to-nearest; the integer in *q. */
static inline double bin_round(double a, int64_t *q)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    const double shifted = a + magic;
    *q = (int64_t)(bits_of(shifted) - bits_of(magic));
    return shifted - magic;
}

void partial_clear(struct partial_row *row);
/* Moves windows up to the given tops; ignores tops that are lower than the window's. */
void partial_raise(struct partial_row *row, const int32_t top[NWINDOW], int limbs);
/* Adds the NSUM sums of one block. */
void partial_add_block(struct partial_row *row, const double sum[NSUM], int limbs);
void partial_merge(struct partial_row *row, const struct partial_row *other, int limbs);
/* The sums as doubles, each rounded once; quiet NaN where the window is invalid. */
void partial_value(const struct partial_row *row, double sum[NSUM]);

/* The values of n clear rows to which the sums of one block are added, `count` of them, those of a
 * window: sum k of row l is block[k n + l]. The window's largest one decides the lowest bin, of
 * whose unit all are multiples; below it is zero. Beneath the lowest bins all are rounded. */
static inline __attribute__((always_inline)) void
partial_round_window(const int n, const int count, const double *block, int limbs, double *value)
{
    const int64_t one = (int64_t)1 << 52;
    for (int l = 0; l < n; l++) {
        int64_t most = 0;
        for (int k = 0; k < count; k++) {
            const int64_t a = (int64_t)(bits_of(block[k * n + l]) << 1 >> 1);
            most = a > most ? a : most;
        }
        const int64_t low = bin_of(from_bits((uint64_t)most)) - limbs + 1;
        const int64_t exponent = 1023 + BIN_BITS * low;
        const int64_t unit = low > BIN_LOWEST ? exponent * one : 0;
        const int64_t whole = exponent > -52 ? (exponent + 52) * one : 0; /* from here on */
        for (int k = 0; k < count; k++) {
            const double s = block[k * n + l];
            const int64_t a = (int64_t)(bits_of(s) << 1 >> 1);
            const double shift = from_bits((uint64_t)whole | (bits_of(s) >> 63 << 63));
            const double finite = a < unit ? 0.0 : a < whole ? s + shift - shift : s + 0.0;
            value[k * n + l] = most < 0x7ff * one ? finite : NAN;
        }
    }
}

static inline __attribute__((always_inline)) void partial_round(const int n, const double *block,
                                                                int limbs, double *value)
{
    partial_round_window(n, 3, block + SUM_AX * n, limbs, value + SUM_AX * n);
    partial_round_window(n, 3, block + SUM_JX * n, limbs, value + SUM_JX * n);
    partial_round_window(n, 1, block + SUM_POT * n, limbs, value + SUM_POT * n);
}
