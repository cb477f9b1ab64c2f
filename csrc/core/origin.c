/* origin.c - see origin.h. */
#include "core/origin.h"

#include <math.h>
#include <string.h>

#include "core/scale.h"

/* Beyond this there is no origin, since differences might overflow. */
#define FARTHEST 0x1p900

/* Median by quickselect (Hoare 1961, algorithm 65: find). */
static double median(const double *numbers, int n)
{
    double a[ORIGIN_SAMPLE];
    memcpy(a, numbers, (size_t)n * sizeof *a);
    for (int low = 0, high = n - 1; low < high;) {
        const double pivot = a[low + (high - low) / 2];
        int i = low, k = high;
        while (i <= k) {
            while (a[i] < pivot) i++;
            while (a[k] > pivot) k--;
            if (i > k) break;
            const double other = a[i];
            a[i++] = a[k];
            a[k--] = other;
        }
        if (k < n / 2) low = i;
        if (i > n / 2) high = k;
    }
    return a[n / 2];
}

int origin_choose(const double (*sample)[3], int n, double origin[3])
{
    double middle[3], distance[ORIGIN_SAMPLE] = {0};
    for (int k = 0; k < 3; k++) {
        double a[ORIGIN_SAMPLE];
        for (int i = 0; i < n; i++) a[i] = sample[i][k];
        middle[k] = n ? median(a, n) : 0.0;
        if (!(fabs(middle[k]) < FARTHEST)) middle[k] = 0.0;
        for (int i = 0; i < n; i++) {
            const double d = fabs(a[i] - middle[k]);
            if (d > distance[i]) distance[i] = d;
        }
    }
    const double size = n ? median(distance, n) : 0.0; /* of the inner half */
    for (int k = 0; k < 3; k++) origin[k] = 0.0;
    if (!(size > 0x1p-900 && size < FARTHEST)) return EXPONENT_NONE;
    const double step = scale_power_of_two(exponent_of(size) + 1);
    for (int k = 0; k < 3; k++)
        if (fabs(middle[k]) < 0x1p52 * step) origin[k] = rint(middle[k] / step) * step + 0.0;
    return exponent_of(size);
}
