/* origin.c - see origin.h. */
#include "core/origin.h"

#include <math.h>
#include <string.h>

#include "core/scale.h"

/* Beyond, there is no origin: differences might overflow. */
#define FARTHEST 0x1p900

/* Sorts a few numbers. */
static void sort(double *a, int n)
{
    for (int i = 1; i < n; i++) {
        const double moved = a[i];
        int k = i;
        for (; k && a[k - 1] > moved; k--) a[k] = a[k - 1];
        a[k] = moved;
    }
}

static double median(const double *a, int n)
{
    double sorted[ORIGIN_SAMPLE];
    memcpy(sorted, a, (size_t)n * sizeof *a);
    sort(sorted, n);
    return sorted[n / 2];
}

int origin_choose(const double (*sample)[3], int n, double origin[3])
{
    double middle[3], distance[ORIGIN_SAMPLE] = {0};
    for (int k = 0; k < 3; k++) {
        double a[ORIGIN_SAMPLE];
        for (int i = 0; i < n; i++) a[i] = sample[i][k];
        middle[k] = n ? median(a, n) : 0.0;
        if (!(fabs(middle[k]) < FARTHEST)) middle[k] = 0.0;
        for (int i = 0; i < n; i++) distance[i] = fmax(distance[i], fabs(a[i] - middle[k]));
    }
    const double size = n ? median(distance, n) : 0.0; /* of the inner half */
    for (int k = 0; k < 3; k++) origin[k] = 0.0;
    if (!(size > 0x1p-900 && size < FARTHEST)) return EXPONENT_NONE;
    const double step = scale_power_of_two(exponent_of(size) + 1);
    for (int k = 0; k < 3; k++)
        if (fabs(middle[k]) < 0x1p52 * step) origin[k] = rint(middle[k] / step) * step + 0.0;
    return exponent_of(size);
}
