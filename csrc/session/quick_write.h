/* quick_write.h - writes the next particle at rest of a list without the session's lock.
 *
 * An atomic exchange and the wait for it cost more than the rest of such a write. So after a write
 * under the lock, its thread may write the following addresses with plain stores
 * (session_quick_write_allow): it sets `writing`, and then checks again whether it still may. A
 * thread that locks the session first ends this (session_quick_write_stop): if it is another
 * thread, it withdraws the permission, makes the kernel issue a memory barrier in all threads
 * (membarrier), and waits while `writing` is set. So a thread that holds the lock sees each of
 * these writes as if it had been made under the lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "session/session.h"

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

/* A value that differs between all running threads. */
static inline void *quick_thread(void)
{
#if __has_builtin(__builtin_thread_pointer)
    return __builtin_thread_pointer();
#else
    return (void *)(uintptr_t)pthread_self();
#endif
}

/* Whether this thread probably may write quickly. This check is all that other writes cost. */
static inline int quick_may(void)
{
    struct session *s = atomic_load_explicit(&session_used_last, memory_order_acquire);
    return s && atomic_load_explicit(&s->quick.thread, memory_order_relaxed) == quick_thread();
}

/* Begins a quick write to a session; 0 if this thread may not. A signal handler that interrupts a
 * quick write and locks the session waits for ever, as for a lock that its thread holds. */
static inline int quick_begin(struct session *s, void *self)
{
    struct quick *q = &s->quick;
    if (atomic_load_explicit(&q->thread, memory_order_relaxed) != self ||
        atomic_load_explicit(&q->writing, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&q->writing, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* for the compiler; membarrier does the rest */
    if (atomic_load_explicit(&q->thread, memory_order_acquire) == self) return 1;
    atomic_store_explicit(&q->writing, 0, memory_order_release);
    return 0;
}

/* Checks whether the system supports it. Call it once per process, also in a forked child. */
void session_quick_write_prepare(void);
/* After a write of a particle at rest under the lock: this thread may make the next without it. */
void session_quick_write_allow(struct session *s);
/* Ends that permission, if a thread has it. Call it right after locking the session. */
void session_quick_write_stop(struct session *s);

/* Writes a particle without the lock; 0 if the write needs the lock. */
static inline int quick_write(int64_t id, int address, int index, double time, double mass,
                              const double *k18, const double *j6, const double *a2,
                              const double *v, const double *x)
{
    struct session *s = atomic_load_explicit(&session_used_last, memory_order_acquire);
    if (!s || !quick_begin(s, quick_thread())) return 0;
    struct quick *q = &s->quick;
    const int32_t next = q->next;
    int written = 0;
    if (address == next && next < q->end && s->id == id && bits_of(time) == q->time && x && v &&
        ((k18 == v && j6 == v && a2 == v) || (k18 && j6 && a2)) && is_at_rest(k18, j6, a2, v) &&
        at_rest_store(q->xm[next], x, mass)) {
        q->index[next] = index;
        q->next = next + 1;
        written = 1;
    }
    atomic_store_explicit(&q->writing, 0, memory_order_release);
    return written;
}
