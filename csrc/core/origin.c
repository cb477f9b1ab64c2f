/* origin.c - see origin.h. */
#include "core/origin.h"

#include <math.h>
#include <string.h>

#include "core/scale.h"

/* Beyond this there is no origin, since differences might overflow. */
#define FARTHEST 0x1p900

/* Columns are read in fours, in what vectors there are. */
typedef double quad __attribute__((vector_size(32)));
typedef quad quad_at __attribute__((aligned(8), may_alias));
typedef int64_t counts __attribute__((vector_size(32)));
#define INLINE static inline __attribute__((always_inline))

/* Replaces distances by those along one more axis, where these are larger. */
INLINE void farther(double distance[ORIGIN_COLUMN], const double column[ORIGIN_COLUMN],
                    double middle)
{
    for (int i = 0; i < ORIGIN_COLUMN; i += 4) {
        const counts old = (counts) * (quad_at *)(distance + i);
        const counts now = (counts)(*(const quad_at *)(column + i) - middle) & INT64_MAX;
        const counts more = (quad)now > (quad)old, larger = (now & more) | (old & ~more);
        memcpy(distance + i, &larger, sizeof larger);
    }
}

/* The largest number below a limit; or, for sign = -1, the smallest one above it. */
INLINE double next_to(const double column[ORIGIN_COLUMN], double limit, double sign)
{
    double best = -INFINITY;
    for (int i = 0; i < ORIGIN_COLUMN; i++) {
        const double a = sign * column[i];
        best = a < sign * limit && a > best ? a : best;
    }
    return sign * best;
}

/* The median of n > 0 numbers; *place, a guess at its place, becomes its place. */
INLINE double median(const double column[ORIGIN_COLUMN], int n, int *place)
{
    for (double guess = column[*place];;) {
        counts below = {0}, not_above = {0};
        for (int i = 0; i < ORIGIN_COLUMN; i += 4) {
            below -= *(const quad_at *)(column + i) < guess;
            not_above -= *(const quad_at *)(column + i) <= guess;
        }
        const int64_t least = below[0] + below[1] + below[2] + below[3];
        const int64_t most = not_above[0] + not_above[1] + not_above[2] + not_above[3];
        if (least <= n / 2 && n / 2 < most) {
            while (column[*place] != guess) *place = (*place + 1) % ORIGIN_COLUMN;
            return guess;
        }
        guess = next_to(column, guess, least > n / 2 ? 1.0 : -1.0);
    }
}

INLINE int choose(double sample[3][ORIGIN_COLUMN], int n, double origin[3],
                  struct origin_hint *hint)
{
    double distance[ORIGIN_COLUMN], middle[3];
    for (int i = 0; i < ORIGIN_COLUMN; i += 4) *(quad_at *)(distance + i) = (quad){0.0};
    memset(origin, 0, 3 * sizeof *origin);
    if (!n) return EXPONENT_NONE;
    for (int k = 0; k < 3; k++) {
        middle[k] = median(sample[k], n, &hint->median[k]);
        if (!(fabs(middle[k]) < FARTHEST)) middle[k] = 0.0;
        farther(distance, sample[k], middle[k]);
    }
    const double size = median(distance, n, &hint->median[3]); /* of the inner half */
    if (!(size > 0x1p-900 && size < FARTHEST)) return EXPONENT_NONE;
    const int e = exponent_of(size);
    const double step = scale_power_of_two(e + 1), inverse = scale_power_of_two(-1 - e);
    for (int k = 0; k < 3; k++)
        if (fabs(middle[k]) < 0x1p52 * step) origin[k] = rint(middle[k] * inverse) * step + 0.0;
    return e;
}

#ifdef __x86_64__
/* The same with vectors of four numbers. */
__attribute__((target("avx2"))) static int
choose_by_avx2(double sample[3][ORIGIN_COLUMN], int n, double origin[3], struct origin_hint *hint)
{
    return choose(sample, n, origin, hint);
}
#endif

int origin_choose(double sample[3][ORIGIN_COLUMN], int n, double origin[3],
                  struct origin_hint *hint)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) return choose_by_avx2(sample, n, origin, hint);
#endif
    return choose(sample, n, origin, hint);
}
