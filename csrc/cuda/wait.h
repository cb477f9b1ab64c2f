/* wait.h - how the host waits for a device: it spins for a moment, in which short work ends, and
 * then sleeps. Of a sum it knows when about that ends, from the sums before. */
#pragma once

#include <stdint.h>

/* What sums of a kind have taken: nanoseconds for each pair. The lesser of the last two times,
 * since one alone may be that of a first launch or of a device that others use; 0 if not known. */
struct cuda_pace {
    double last, least;
};

/* One wait. Until `sure` the work cannot be over; 0 if nothing is known. */
struct cuda_wait {
    int64_t sure, spin_end;
    int slept, looked; /* whether it has slept until `sure`, and found the work not over since */
};

/* To be called while the work is not over. */
void cuda_wait_moment(struct cuda_wait *w);

/* The wait for a sum of so many pairs that was launched then, */
struct cuda_wait cuda_wait_for_sum(const struct cuda_pace *pace, int64_t launched, double pairs);
/* and what it tells when that is over. */
void cuda_wait_learn(struct cuda_pace *pace, const struct cuda_wait *w, int64_t launched,
                     double pairs);
