/* origin.c - see origin.h. */
#include "core/origin.h"

#include <math.h>
#include <string.h>

#include "core/scale.h"

/* Beyond this there is no origin, since differences might overflow. */
#define FARTHEST 0x1p900

/* Columns are read in pairs; an odd one ends with an infinity. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_count __attribute__((vector_size(16)));

static pair pair_of(const double *a)
{
    pair p;
    memcpy(&p, a, sizeof p);
    return p;
}

/* Replaces distances by those along one more axis, where these are larger. */
static void farther(double distance[ORIGIN_COLUMN], const double column[ORIGIN_COLUMN], int n,
                    double middle)
{
    const pair_count sign = {INT64_MIN, INT64_MIN};
    for (int i = 0; i < n; i += 2) {
        const pair_count old = (pair_count)pair_of(distance + i);
        const pair_count now = (pair_count)(pair_of(column + i) - (pair){middle, middle}) & ~sign;
        const pair_count more = (pair)now > (pair)old;
        const pair_count larger = (now & more) | (old & ~more);
        memcpy(distance + i, &larger, sizeof larger);
    }
}

/* The median of n > 0 numbers; *place, a guess at its place, becomes its place. */
static double median(const double column[ORIGIN_COLUMN], int n, int *place)
{
    const double guess = column[*place < n ? *place : 0];
    pair_count below = {0, 0}, not_above = {0, 0};
    for (int i = 0; i < n; i += 2) {
        below -= pair_of(column + i) < (pair){guess, guess};
        not_above -= pair_of(column + i) <= (pair){guess, guess};
    }
    if (below[0] + below[1] <= n / 2 && n / 2 < not_above[0] + not_above[1]) return guess;
    double a[ORIGIN_COLUMN];
    for (int k = 0; k < n; k++) { /* by insertion: the numbers are few */
        int at = k;
        for (; at > 0 && a[at - 1] > column[k]; at--) a[at] = a[at - 1];
        a[at] = column[k];
    }
    for (*place = 0; column[*place] != a[n / 2];) ++*place;
    return a[n / 2];
}

int origin_choose(double sample[3][ORIGIN_COLUMN], int n, double origin[3],
                  struct origin_hint *hint)
{
    double distance[ORIGIN_COLUMN] = {0}, middle[3];
    memset(origin, 0, 3 * sizeof *origin);
    if (!n) return EXPONENT_NONE;
    for (int k = 0; k < 3; k++) {
        if (n % 2) sample[k][n] = INFINITY;
        middle[k] = median(sample[k], n, &hint->median[k]);
        if (!(fabs(middle[k]) < FARTHEST)) middle[k] = 0.0;
        farther(distance, sample[k], n, middle[k]);
    }
    const double size = median(distance, n, &hint->median[3]); /* of the inner half */
    if (!(size > 0x1p-900 && size < FARTHEST)) return EXPONENT_NONE;
    const int e = exponent_of(size);
    const double step = scale_power_of_two(e + 1), inverse = scale_power_of_two(-1 - e);
    for (int k = 0; k < 3; k++)
        if (fabs(middle[k]) < 0x1p52 * step) origin[k] = rint(middle[k] * inverse) * step + 0.0;
    return e;
}
