/* measure.h - clock, median and random numbers of the benchmarks; needs no library. */
#ifndef MEASURE_H
#define MEASURE_H

#include <math.h>
#include <stdlib.h>
#include <time.h>

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the numbers. */
static inline double median(double *take, int count)
{
    qsort(take, (size_t)count, sizeof *take, ascending);
    return take[count / 2];
}

static unsigned long long random_state = 1;
static inline double uniform(void)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(random_state >> 11) * 0x1p-53;
}

static inline void shuffle(int *list, int count)
{
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)(uniform() * (i + 1)), kept = list[i];
        list[i] = list[other], list[other] = kept;
    }
}

#endif
