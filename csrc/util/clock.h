/* clock.h - a monotonic clock. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_nanoseconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double clock_seconds(void) { return 1e-9 * (double)clock_nanoseconds(); }
