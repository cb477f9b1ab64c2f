/* origin.c - see origin.h. */
#include "core/origin.h"

#include <math.h>
#include <string.h>

#include "core/scale.h"

/* Beyond this there is no origin, since differences might overflow. */
#define FARTHEST 0x1p900

/* Columns are read in pairs, to their ends, which are filled with infinities. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_count __attribute__((vector_size(16)));

static pair pair_of(const double *a)
{
    pair p;
    memcpy(&p, a, sizeof p);
    return p;
}

/* Replaces distances by those along one more axis, where these are larger. */
static void farther(double distance[ORIGIN_COLUMN], const double column[ORIGIN_COLUMN],
                    double middle)
{
    const pair_count sign = {INT64_MIN, INT64_MIN};
    for (int i = 0; i < ORIGIN_COLUMN; i += 2) {
        const pair_count old = (pair_count)pair_of(distance + i);
        const pair_count now = (pair_count)(pair_of(column + i) - (pair){middle, middle}) & ~sign;
        const pair_count more = (pair)now > (pair)old;
        const pair_count larger = (now & more) | (old & ~more);
        memcpy(distance + i, &larger, sizeof larger);
    }
}

/* How many numbers are below another, without a branch. */
static inline int64_t count_below(const double column[ORIGIN_COLUMN], double a)
{
    pair_count below = {0, 0};
    for (int i = 0; i < ORIGIN_COLUMN; i += 2) below -= pair_of(column + i) < (pair){a, a};
    return below[0] + below[1];
}

/* The median of n > 0 numbers, the largest that at most half are below; *place, a guess at its
 * place, becomes its place. */
static double median(const double column[ORIGIN_COLUMN], int n, int *place)
{
    const double guess = column[*place < n ? *place : 0];
    pair_count not_above = {0, 0};
    for (int i = 0; i < ORIGIN_COLUMN; i += 2)
        not_above -= pair_of(column + i) <= (pair){guess, guess};
    if (not_above[0] + not_above[1] > n / 2 && count_below(column, guess) <= n / 2) return guess;
    double most = -INFINITY;
    for (int k = 0; k < n; k++) {
        const int larger = (count_below(column, column[k]) <= n / 2) & (column[k] > most);
        most = larger ? column[k] : most;
        *place = larger ? k : *place;
    }
    return most;
}

int origin_choose(double sample[3][ORIGIN_COLUMN], int n, double origin[3],
                  struct origin_hint *hint)
{
    double distance[ORIGIN_COLUMN] = {0}, middle[3];
    memset(origin, 0, 3 * sizeof *origin);
    if (!n) return EXPONENT_NONE;
    for (int k = 0; k < 3; k++) {
        for (int i = n; i < ORIGIN_COLUMN; i++) sample[k][i] = INFINITY;
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
