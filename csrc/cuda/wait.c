/* wait.c - see wait.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cuda/wait.h"

#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "util/threads.h"

enum {
    SPIN = 50000, /* nanoseconds */
    NAP = 2000,   /* between two looks afterwards */
    LATE = 40000  /* by which a thread may wake up too late */
};
/* Sums vary by that. */
static const double CERTAIN = 0.95, LESS = 0.5;

int64_t cuda_wait_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The system may let a thread sleep 50 us longer than it asks for, unless the thread minds: for the
 * while it does, and then what its owner has chosen holds again. */
static void nap(int64_t nanoseconds)
{
    const struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
#ifdef __linux__
    const int slack = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)nanosleep(&t, NULL);
    if (slack > 0) (void)prctl(PR_SET_TIMERSLACK, slack);
#else
    (void)nanosleep(&t, NULL);
#endif
}

void cuda_wait_moment(struct cuda_wait *w)
{
    const int64_t now = cuda_wait_now();
    if (w->sure - now > 2 * LATE) {
        nap(w->sure - now - LATE);
        w->slept = 1;
        return;
    }
    w->looked = 1;
    if (!w->spin_end) w->spin_end = now + SPIN;
    if (now >= w->spin_end) nap(NAP);
    for (int k = 0; k < 16 && now < w->spin_end; k++) threads_pause();
}

struct cuda_wait cuda_wait_for_sum(const struct cuda_pace *pace, int64_t launched, double pairs)
{
    return (struct cuda_wait){.sure = launched + (int64_t)(CERTAIN * pace->least * pairs)};
}

void cuda_wait_learn(struct cuda_pace *pace, const struct cuda_wait *w, int64_t launched,
                     double pairs)
{
    if (w->slept && !w->looked) { /* it may have been over for long */
        pace->last = pace->least = LESS * pace->least;
    } else if (w->looked) {
        const double now = (double)(cuda_wait_now() - launched) / pairs;
        pace->least = now < pace->last ? now : pace->last;
        pace->last = now;
    }
}
