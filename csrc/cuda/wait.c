/* wait.c - see wait.h. */
#include "cuda/wait.h"

#include <time.h>

#include "util/threads.h"

enum {
    SPIN = 50000, /* nanoseconds */
    NAP = 2000,   /* between two looks afterwards, to which the system adds its own 50000 */
    LATE = 70000  /* by which a thread may wake up too late */
};
/* Sums vary by that. */
static const double CERTAIN = 0.97, LESS = 0.8;

int64_t cuda_wait_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(int64_t nanoseconds)
{
    const struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    (void)nanosleep(&t, NULL);
}

void cuda_wait_moment(struct cuda_wait *w)
{
    const int64_t now = cuda_wait_now();
    if (w->sure - now > LATE) {
        nap(w->sure - now - LATE);
        w->slept = 1;
        return;
    }
    w->looked = 1;
    if (!w->spin_end) w->spin_end = now + SPIN;
    if (now >= w->spin_end) nap(NAP);
    for (int k = 0; k < 16 && now < w->spin_end; k++) threads_pause();
}

struct cuda_wait cuda_wait_for_sum(double pair_time, int64_t launched, double pairs)
{
    return (struct cuda_wait){.sure = launched + (int64_t)(CERTAIN * pair_time * pairs)};
}

double cuda_wait_learned(double pair_time, const struct cuda_wait *w, int64_t launched,
                         double pairs)
{
    if (w->slept && !w->looked) return LESS * pair_time; /* it may have been over for long */
    if (!w->looked) return pair_time;
    const double now = (double)(cuda_wait_now() - launched) / pairs;
    return pair_time > 0.0 ? pair_time + (now - pair_time) / 4 : now;
}
