/* quick_write.c - see quick_write.h. */
#include "session/quick_write.h"

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

/* Beyond this many, several threads use the session, and each write takes the lock. */
enum { MOST_DISTURBED = 16 };
static int possible;

void session_quick_write_prepare(void) { possible = barrier(REGISTER); }

void session_quick_write_allow(struct session *s)
{
    struct quick *q = &s->quick;
    const struct at_rest *r = &s->j.rest;
    if (!possible || q->disturbed >= MOST_DISTURBED) return;
    q->first = q->next = s->j.last + 1;
    q->end = r->capacity;
    q->time = bits_of(r->time);
    q->xm = r->xm;
    q->index = r->index;
    atomic_store_explicit(&q->thread, quick_thread(), memory_order_release);
}

void session_quick_write_stop(struct session *s)
{
    struct quick *q = &s->quick;
    void *thread = atomic_load_explicit(&q->thread, memory_order_relaxed);
    atomic_store(&q->thread, NULL);
    if (thread != quick_thread()) {
        /* Once registered it does not fail; if it did, the wait lets the other thread see it. */
        const struct timespec moment = {0, 10000000};
        if (!barrier(BARRIER)) (void)nanosleep(&moment, NULL);
        q->disturbed++;
    }
    while (atomic_load_explicit(&q->writing, memory_order_acquire)) threads_pause();
    if (q->first == q->next) return;
    at_rest_wrote(&s->j.rest, q->first, q->next);
    s->j.last = q->next - 1;
}
