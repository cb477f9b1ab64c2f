/* quick_write.h - the write of a list's next particle at rest without the session's lock.
 *
 * An atomic exchange and what it waits for cost more than the rest of such a write. After a write
 * that was made under the lock, its thread may therefore make those of the addresses that follow
 * with plain stores (session_quick_write_allow): it says so in `writing`, and then looks again
 * whether it still may. Whoever locks the session ends that first (session_quick_write_stop):
 * another thread withdraws the permission, lets the kernel put a memory barrier into all threads
 * (membarrier), and waits while `writing`. So under the lock all is as if each of these writes had
 * been made under it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "session/session.h"

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

/* Different for all threads that live. */
static inline void *quick_thread(void)
{
#if __has_builtin(__builtin_thread_pointer)
    return __builtin_thread_pointer();
#else
    return (void *)(uintptr_t)pthread_self();
#endif
}

/* Whether the calling thread seems to have a quick write: other writes cost no more than this. */
static inline int quick_may(void)
{
    struct session *s = atomic_load_explicit(&session_used_last, memory_order_acquire);
    return s && atomic_load_explicit(&s->quick.thread, memory_order_relaxed) == quick_thread();
}

/* Begins a quick write to a session; 0 if this thread may make none. One that a signal interrupts
 * is not begun again: the handler waits for ever, as it would for a lock that its thread holds. */
static inline int quick_begin(struct session *s, void *self)
{
    struct quick *q = &s->quick;
    if (atomic_load_explicit(&q->thread, memory_order_relaxed) != self ||
        atomic_load_explicit(&q->writing, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&q->writing, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* for the processor membarrier sees to it */
    if (atomic_load_explicit(&q->thread, memory_order_acquire) == self) return 1;
    atomic_store_explicit(&q->writing, 0, memory_order_release);
    return 0;
}

static inline void quick_end(struct session *s)
{
    atomic_store_explicit(&s->quick.writing, 0, memory_order_release);
}

/* Once a process, also a forked one: whether the system can do it. */
void session_quick_write_prepare(void);
/* After a write to what is at rest, under the lock: this thread may make those that follow without
 * it. */
void session_quick_write_allow(struct session *s);
/* Puts an end to that, if a thread may; for who has just locked the session. */
void session_quick_write_stop(struct session *s);

/* Writes a particle, if that can be done so; 0 if the write has to be made under the lock. */
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
    quick_end(s);
    return written;
}
