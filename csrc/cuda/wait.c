/* wait.c - see wait.h. */
#include "cuda/wait.h"

#include "util/clock.h"
#include "util/threads.h"

enum {
    SPIN = 50000, /* nanoseconds */
    NAP = 2000,   /* nanoseconds between two polls afterwards */
    LATE = 40000  /* nanoseconds by which a thread may wake up late */
};
/* CERTAIN: fraction of the expected time of a sum before the first poll. LESS: factor on the
 * expected time after a sleep that may have been longer than the sum. */
static const double CERTAIN = 0.95, LESS = 0.5;

void cuda_wait_moment(struct cuda_wait *w)
{
    const int64_t now = clock_nanoseconds();
    if (w->sure - now > 2 * LATE) {
        threads_nap(w->sure - now - LATE);
        w->slept = 1;
        return;
    }
    w->looked = 1;
    if (!w->spin_end) w->spin_end = now + SPIN;
    if (now >= w->spin_end) threads_nap(NAP);
    for (int k = 0; k < 16 && now < w->spin_end; k++) threads_pause();
}

struct cuda_wait cuda_wait_for_sum(const struct cuda_pace *pace, int64_t launched, double pairs)
{
    return (struct cuda_wait){.sure = launched + (int64_t)(CERTAIN * pace->least * pairs)};
}

void cuda_wait_learn(struct cuda_pace *pace, const struct cuda_wait *w, int64_t launched,
                     double pairs)
{
    if (w->slept && !w->looked) { /* the sum may have ended long before */
        pace->last = pace->least = LESS * pace->least;
    } else if (w->looked) {
        const double now = (double)(clock_nanoseconds() - launched) / pairs;
        pace->least = now < pace->last ? now : pace->last;
        pace->last = now;
    }
}
