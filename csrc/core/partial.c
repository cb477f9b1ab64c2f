/* partial.c - scalar arithmetic on the bins of partial.h. */
#include "core/partial.h"

#include <math.h>

void partial_clear(struct partial_row *row)
{
    memset(row, 0, sizeof *row);
    for (int w = 0; w < NWINDOW; w++) row->top[w] = BIN_LOWEST;
}

void partial_raise(struct partial_row *row, const int32_t top[NWINDOW], int limbs)
{
    for (int w = 0; w < NWINDOW; w++) {
        const int by = top[w] - row->top[w];
        if (by <= 0) continue;
        row->top[w] = top[w];
        for (int k = 3 * w; k < NSUM && window_of(k) == w; k++) {
            int64_t *limb = row->limb[k];
            limb[2] = limbs < MAX_LIMBS ? 0 : by == 1 ? limb[1] : by == 2 ? limb[0] : 0;
            limb[1] = by == 1 ? limb[0] : 0;
            limb[0] = 0;
        }
    }
}

void partial_add_block(struct partial_row *row, const double sum[NSUM], int limbs)
{
    int32_t top[NWINDOW] = {BIN_LOWEST, BIN_LOWEST, BIN_LOWEST};
    int64_t bin[NSUM];
    for (int k = 0; k < NSUM; k++) {
        bin[k] = bin_of(sum[k]);
        if ((bits_of(sum[k]) >> 52 & 0x7ff) == 0x7ff)
            row->invalid |= 1u << window_of(k);
        else if (bin[k] > top[window_of(k)])
            top[window_of(k)] = (int32_t)bin[k];
    }
    partial_raise(row, top, limbs);
    for (int k = 0; k < NSUM; k++) {
        if (row->invalid >> window_of(k) & 1) continue;
        double rest = sum[k] * bin_inverse(bin[k]);
        for (int64_t d = row->top[window_of(k)] - bin[k]; d < limbs; d++) {
            int64_t q;
            rest = (rest - bin_round(rest, &q)) * 0x1p40;
            row->limb[k][d] += q;
        }
    }
}

void partial_merge(struct partial_row *row, const struct partial_row *other, int limbs)
{
    struct partial_row moved = *other;
    if (memcmp(row->top, other->top, sizeof row->top) != 0) {
        partial_raise(row, other->top, limbs);
        partial_raise(&moved, row->top, limbs);
    }
    for (int k = 0; k < NSUM; k++)
        for (int d = 0; d < limbs; d++) row->limb[k][d] += moved.limb[k][d];
    row->invalid |= other->invalid;
}

static int is_exact_double(int64_t a) { return a > -((int64_t)1 << 53) && a < (int64_t)1 << 53; }

static double times_power_of_two(double a, int shift)
{
    if (shift > 1023 || shift < -1022) return ldexp(a, shift);
    return a * from_bits((uint64_t)(shift + 1023) << 52);
}

/* limb[0] 2^80 + limb[1] 2^40 + limb[2], rounded once: by one addition of exact doubles; or as one
 * integer if it fits 128 bits; otherwise with the lowest limb as a sticky bit. */
static double limbs_value(const int64_t limb[MAX_LIMBS], int top)
{
    if (limb[2] == 0 && is_exact_double(limb[0]) && is_exact_double(limb[1]))
        return times_power_of_two((double)limb[0] * 0x1p40 + (double)limb[1], BIN_BITS * (top - 1));
    const int64_t carry = limb[2] >> BIN_BITS;
    const int64_t low = limb[2] - carry * ((int64_t)1 << BIN_BITS);
    const __int128 high =
        (__int128)limb[0] * ((int64_t)1 << BIN_BITS) + limb[1] + carry; /* in 2^(40 (top - 1)) */
    const __int128 limit = (__int128)1 << 80;
    if (high > -limit && high < limit)
        return times_power_of_two((double)(high * ((int64_t)1 << BIN_BITS) + low),
                                  BIN_BITS * (top - 2));
    return times_power_of_two((double)(high * 2 + (low != 0)), BIN_BITS * (top - 1) - 1);
}

void partial_value(const struct partial_row *row, double sum[NSUM])
{
    for (int k = 0; k < NSUM; k++)
        sum[k] = row->invalid >> window_of(k) & 1
                     ? NAN
                     : limbs_value(row->limb[k], row->top[window_of(k)]);
}
