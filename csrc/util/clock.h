/* clock.h - a monotonic clock. No result depends on it: in a test build with GRAPE6_TEST_CLOCK, a
 * number, it jumps ahead at random, by up to a second. */
#pragma once

#include <stdint.h>

int64_t clock_nanoseconds(void);
double clock_seconds(void);
