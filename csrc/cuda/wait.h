/* wait.h - how the host waits for a device: it spins for a moment, in which short work ends, and
 * then sleeps. The time of a sum is estimated from earlier sums. */
#pragma once

#include <stdint.h>

/* Measured times of one kind of sum, in nanoseconds per pair; 0: unknown. `least` is the lesser of
 * the last two, since one may be that of a first launch or of a device that others use. */
struct cuda_pace {
    double last, least;
};

/* One wait. Until `sure` the work cannot be over; 0 if nothing is known. */
struct cuda_wait {
    int64_t sure, spin_end;
    int slept, looked; /* has slept until `sure`; has polled after `sure` */
};

/* To be called while the work is not over. */
void cuda_wait_moment(struct cuda_wait *w);

/* Starts the wait for a sum of `pairs` pairs, launched at that time. */
struct cuda_wait cuda_wait_for_sum(const struct cuda_pace *pace, int64_t launched, double pairs);
/* Updates the pace when that wait is over. */
void cuda_wait_learn(struct cuda_pace *pace, const struct cuda_wait *w, int64_t launched,
                     double pairs);
