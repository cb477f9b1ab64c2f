/* biased_lock.c - see biased_lock.h. */
#include "session/biased_lock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/threads.h"

/* A thread sanitizer does not know this kind of barrier. */
#if defined(SYS_membarrier) && !defined(__SANITIZE_THREAD__)
/* Commands of linux/membarrier.h, which old systems lack. */
enum { BARRIER = 1 << 3, REGISTER = 1 << 4 };
static int barrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
#else
enum { BARRIER, REGISTER };
static int barrier(int command)
{
    (void)command;
    return 0;
}
#endif

static int possible;

void session_biased_lock_prepare(void) { possible = barrier(REGISTER); }

void session_biased_lock_allow(struct session *s)
{
    if (possible && atomic_load(&s->bias.disturbed) < MOST_DISTURBED)
        atomic_store_explicit(&s->bias.thread, biased_lock_thread(), memory_order_release);
}

void session_biased_lock_stop(struct session *s)
{
    struct bias *b = &s->bias;
    _Atomic int *const taken = biased_lock_flag(s);
    const int is_other = atomic_load(&b->thread) != biased_lock_thread();
    const struct timespec moment = {0, 20000}, long_enough = {0, 10000000};
    atomic_store_explicit(&b->thread, NULL, memory_order_relaxed);
    if (is_other) {
        /* Once registered it does not fail; if it did, the wait lets the other thread see it. */
        atomic_thread_fence(memory_order_seq_cst);
        if (!barrier(BARRIER)) (void)nanosleep(&long_enough, NULL);
    }
    for (int spins = 0; atomic_load_explicit(taken, memory_order_acquire); spins++) {
        threads_pause();
        if (spins > 1000) (void)nanosleep(&moment, NULL);
    }
    /* Beyond MOST_DISTURBED, several threads use the session, and each call takes the lock. */
    if (is_other) atomic_fetch_add(&b->disturbed, 1);
}
