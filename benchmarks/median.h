/* median.h - the median of some numbers, which are sorted. */
#ifndef MEDIAN_H
#define MEDIAN_H

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *take, int count)
{
    qsort(take, (size_t)count, sizeof *take, ascending);
    return take[count / 2];
}

#endif
