/* wait.h - how the host waits for a device: it spins for a moment, in which short work ends, and
 * then sleeps. Of a sum it knows when about that ends, from the sums before. */
#pragma once

#include <stdint.h>

/* One wait. Until `sure` the work cannot be over; 0 if nothing is known. */
struct cuda_wait {
    int64_t sure, spin_end;
    int slept, looked; /* whether it has slept until `sure`, and found the work not over since */
};

/* Nanoseconds of a clock that is never set. */
int64_t cuda_wait_now(void);
/* To be called while the work is not over. */
void cuda_wait_moment(struct cuda_wait *w);

/* What sums of a kind have taken: nanoseconds for each pair, 0 if there was none. */
struct cuda_wait cuda_wait_for_sum(double pair_time, int64_t launched, double pairs);
/* The same when the sum is over, for which w has waited. */
double cuda_wait_learned(double pair_time, const struct cuda_wait *w, int64_t launched,
                         double pairs);
