/* bins.cuh - block sums into the absolute bins of partial.h, and rows of bins into doubles.
 *
 * A block sum is cut at the bins' borders with integer operations alone. Its parts in its two (mode
 * double: three) highest bins are added to the row's bins in the GPU's memory. The result is read
 * after all block sums are added, from the row's top bin and those below it. */

/* A block sum: hi + lo, in scaled units; mode double: hi. */
struct block_sum {
#if DOUBLE_MODE
    real hi;
#else
    real hi, lo;
#endif
};

DEVICE_FN struct block_sum no_sum(void) { return {}; }

/* Adds a chunk sum, in the order of addresses (Kahan's compensated sum; lo corrects hi); in mode
 * double a group sum. */
DEVICE_FN void add_chunk(struct block_sum *s, real chunk)
{
#if DOUBLE_MODE
    s->hi = v_add(s->hi, chunk);
#else
    const real y = v_add(chunk, s->lo), t = v_add(s->hi, y);
    s->lo = v_sub(y, v_sub(t, s->hi));
    s->hi = t;
#endif
}

/* floor(e / 40) */
DEVICE_FN int bin_of_exponent(int e) { return (int)((unsigned)(e + 4000) / BIN_BITS) - 100; }

/* Bin of the leading bit of a block sum whose exponent in the caller's units is `unit` higher. */
DEVICE_FN int bin_of(double sum, int unit)
{
    const int field = (int)(bits_of(sum) >> 52 & 0x7ff);
    return bin_of_exponent((field ? field : 1) - 1023 + unit);
}

#if !DOUBLE_MODE
DEVICE_FN int bin_of(float hi, int unit)
{
    const int field = __float_as_int(hi) >> 23 & 0xff;
    return bin_of_exponent((field ? field : 1) - 127 + unit);
}
#endif

/* Normalizes a sum: |lo| <= ulp(hi) / 2, and hi is 0 only if the sum is. Corrects the mean error of
 * the estimated root, which enters pot in the first power, acc and jerk in the third (jerk partly
 * in the fifth). */
DEVICE_FN struct block_sum settled(struct block_sum s, int window)
{
#if !DOUBLE_MODE
    s.lo = v_fma(s.hi, window == WINDOW_POT ? (real)RSQRT_LACKS : (real)(3 * RSQRT_LACKS), s.lo);
    const real hi = v_add(s.hi, s.lo), b = v_sub(hi, s.hi);
    s.lo = v_add(v_sub(s.hi, v_sub(hi, b)), v_sub(s.lo, b));
    s.hi = hi;
#endif
    return s;
}

/* Whether the bins can hold a settled sum. A sum of 0 (no mass, no motion, no jerk requested) needs
 * no bin. */
DEVICE_FN bool fits_bins(real hi, int unit)
{
    if (hi == 0) return true;
    const int b = bin_of(hi, unit);
#if DOUBLE_MODE
    const int e = (int)(bits_of(hi) >> 52 & 0x7ff) - 1023;
    const bool held = e >= CUDA_LOWEST && e <= CUDA_HIGHEST;
#else
    const bool held = (__float_as_int(hi) >> 23 & 0xff) != 0xff;
#endif
    return held && b > -24 && b < 25;
}

/* Whether a row has bins for a sum of a window. */
DEVICE_FN bool has_bins(const struct cuda_sum_job &job, double sum, int window)
{
    if (sum == 0.0) return true;
    if ((bits_of(sum) >> 52 & 0x7ff) == 0x7ff) return false;
    const int b = bin_of(sum, job.unit[window]), at = b - job.base[window];
    return at >= LIMBS - 1 && at < BINS && b > -24 && b < 25;
}

/* Integers that a sum adds to bin b = bin_of(sum) and to those below it. */
DEVICE_FN void cut(double sum, int unit, int b, int64_t q[LIMBS])
{
    const uint64_t bits = bits_of(sum);
    const int field = (int)(bits >> 52 & 0x7ff);
    const uint64_t m = (bits & 0xfffffffffffffu) | (field ? (uint64_t)1 << 52 : 0);
    const int n = 52 - ((field ? field : 1) - 1023 + unit - BIN_BITS * b); /* bits below bin b */
    const uint64_t rest = m & (((uint64_t)1 << n) - 1);
    q[0] = (int64_t)(m >> n);
    q[1] = (int64_t)(n >= BIN_BITS ? rest >> (n - BIN_BITS) : rest << (BIN_BITS - n));
    if (LIMBS == 3)
        q[LIMBS - 1] = n > BIN_BITS ? (int64_t)((rest & (((uint64_t)1 << (n - BIN_BITS)) - 1))
                                                << (2 * BIN_BITS - n))
                                    : 0;
    if (bits >> 63)
        for (int d = 0; d < LIMBS; d++) q[d] = -q[d];
}

/* The same of a settled block sum. */
DEVICE_FN void cut(struct block_sum s, int unit, int b, int64_t q[LIMBS])
{
#if DOUBLE_MODE
    cut(s.hi, unit, b, q);
#else
    const int high = __float_as_int(s.hi), low = __float_as_int(s.lo);
    const int field = high >> 23 & 0xff, low_field = low >> 23 & 0xff;
    const uint64_t m = (uint64_t)((high & 0x7fffff) | (field ? 0x800000 : 0));
    const uint64_t shifted = m << ((field ? field : 1) - 127 + unit - BIN_BITS * b);
    q[0] = (int64_t)(shifted >> 23);
    q[1] = (int64_t)((shifted & 0x7fffff) << 17);
    if (high < 0) q[0] = -q[0], q[1] = -q[1];
    const int64_t low_m = (low & 0x7fffff) | (low_field ? 0x800000 : 0);
    const int up = (low_field ? low_field : 1) - 127 + unit - 23 - BIN_BITS * (b - 1);
    const int64_t more = up >= 0 ? low_m << up : up > -24 ? low_m >> -up : 0;
    q[1] += low < 0 ? -more : more;
    const int64_t carry = q[1] >> BIN_BITS;
    q[1] -= carry << BIN_BITS;
    q[0] += carry;
#endif
}

DEVICE_FN real leading(struct block_sum s) { return s.hi; }
DEVICE_FN double leading(double sum) { return sum; }

/* Adds to a row's bins a settled block sum that fits, or a sum in double that has bins. */
template <class sum> DEVICE_FN void deposit(const struct cuda_sum_job &job, int row, int k, sum s)
{
    const int w = window_of(k), unit = job.unit[w];
    int64_t q[LIMBS];
    if (leading(s) == 0) return;
    const int b = bin_of(leading(s), unit);
    cut(s, unit, b, q);
    for (int d = 0; d < LIMBS; d++) {
        const size_t bin = (size_t)(k * BINS + b - d - job.base[w]);
        atomicAdd((unsigned long long *)&job.bin[bin * job.stride + row], (unsigned long long)q[d]);
    }
    atomicMax(&job.top[w * job.stride + row], b + CUDA_TOP_ZERO);
}

/* (high 2^64 + low) 2^shift, rounded once. */
DEVICE_FN double rounded(int64_t high, uint64_t low, int shift)
{
    const bool negative = high < 0;
    uint64_t h = (uint64_t)high;
    if (negative) {
        low = 0 - low;
        h = ~h + (low == 0);
    }
    const int zeros = h ? __clzll((int64_t)h) : 64 + (low ? __clzll((int64_t)low) : 64);
    if (zeros == 128) return 0.0;
    /* the highest 64 bits; the lowest is also set if any bit cut off is */
    uint64_t top, cut_off;
    if (zeros >= 64) {
        top = low << (zeros - 64);
        cut_off = 0;
    } else {
        top = zeros ? h << zeros | low >> (64 - zeros) : h;
        cut_off = low << zeros;
    }
    const double a = __ull2double_rn(top | (cut_off != 0));
    const int by = shift + 64 - zeros;
    const double scaled =
        by >= -1022 && by <= 1023 ? a * from_bits((uint64_t)(by + 1023) << 52) : ldexp(a, by);
    return negative ? -scaled : scaled;
}

/* limb[0] 2^80 + limb[1] 2^40 + limb[2] in units of bin top - 2, rounded once, as partial.c. */
DEVICE_FN double limbs_value(int64_t limb0, int64_t limb1, int64_t limb2, int top)
{
    const int64_t carry2 = limb2 >> BIN_BITS, low = limb2 - (carry2 << BIN_BITS);
    const int64_t sum1 = limb1 + carry2, carry1 = sum1 >> BIN_BITS;
    const int64_t middle = sum1 - (carry1 << BIN_BITS), high = limb0 + carry1;
    const uint64_t both =
        (uint64_t)middle << BIN_BITS | (uint64_t)low; /* of 80 bits, the lower 64 */
    const int64_t limit = (int64_t)1 << 46;
    if (high < limit && high >= -limit)
        return rounded((int64_t)((uint64_t)high << 16) | (middle >> 24), both,
                       BIN_BITS * (top - 2));
    /* high 2^41 + 2 middle, with one bit for what is below */
    const uint64_t lower = (uint64_t)middle << 1 | (low != 0);
    return rounded(high >> 23, (uint64_t)high << 41 | lower, BIN_BITS * (top - 1) - 1);
}

/* A row's bins of a sum, all loaded before the top is known: a second access would take longer. */
struct row_bins {
    int top; /* number of its top bin + CUDA_TOP_ZERO, 0 if it is empty */
    int64_t bin[BINS];
};

DEVICE_FN struct row_bins load_bins(const struct cuda_sum_job &job, int k, int row)
{
    const long long *bins = &job.bin[(size_t)k * BINS * job.stride + row];
    struct row_bins r = {__ldcg(&job.top[window_of(k) * job.stride + row])};
#pragma unroll
    for (int b = 0; b < BINS; b++) r.bin[b] = __ldcg(bins + (int64_t)b * job.stride);
    return r;
}

/* The highest bins of a row. */
DEVICE_FN void highest_bins(const struct cuda_sum_job &job, int k, const struct row_bins &row,
                            int64_t limb[3])
{
    const int at = row.top - CUDA_TOP_ZERO - job.base[window_of(k)];
    limb[0] = limb[1] = limb[2] = 0;
#pragma unroll
    for (int b = 0; b < BINS; b++) {
        limb[0] |= row.bin[b] & -(int64_t)(b == at);
        limb[1] |= row.bin[b] & -(int64_t)(b == at - 1);
        if (LIMBS == 3) limb[2] |= row.bin[b] & -(int64_t)(b == at - 2);
    }
}
