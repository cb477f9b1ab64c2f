/* clock.c - see clock.h. */
#include "util/clock.h"

#include <time.h>

#ifdef GRAPE6_TEST_HOOKS
#include <stdatomic.h>
#include <stdlib.h>

/* How far the clock is ahead, at one look in four farther than before. */
static int64_t jumped(void)
{
    static _Atomic int64_t ahead;
    static _Atomic uint64_t looks;
    const char *seed = getenv("GRAPE6_TEST_CLOCK");
    if (!seed) return 0;
    uint64_t random = atomic_fetch_add(&looks, 1) + strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15u;
    for (int k = 0; k < 3; k++) random = (random ^ random >> 31) * 0xd6e8feb86659fd93u;
    const int64_t jump = random % 4 ? 0 : (int64_t)(random >> 32) % 1000000000;
    return atomic_fetch_add(&ahead, jump) + jump;
}
#else
static int64_t jumped(void) { return 0; }
#endif

int64_t clock_nanoseconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + jumped();
}

double clock_seconds(void) { return 1e-9 * (double)clock_nanoseconds(); }
