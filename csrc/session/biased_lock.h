/* biased_lock.h - a session's lock, biased to the thread that had it last.
 *
 * An atomic exchange, and the wait for it, cost more than the rest of a short call. So the thread
 * that releases the lock may take the session again with plain stores: it sets `taken`, and then
 * checks again whether it still may. A thread that locks the session in the other way first ends
 * this (session_biased_lock_stop): if it is another thread, it withdraws the permission, makes the
 * kernel issue a memory barrier in all threads (membarrier), and waits while `taken` is set.
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
static inline void *biased_lock_thread(void)
{
#if __has_builtin(__builtin_thread_pointer)
    return __builtin_thread_pointer();
#else
    return (void *)(uintptr_t)pthread_self();
#endif
}

/* Changes only while a thread has the lock and no other has taken the session. */
static inline _Atomic int *biased_lock_flag(struct session *s)
{
    return &s->bias.taken[atomic_load_explicit(&s->bias.disturbed, memory_order_acquire)];
}

/* Whether the thread that has the session took it without the lock. */
static inline int biased_lock_is_taken(struct session *s)
{
    return atomic_load_explicit(biased_lock_flag(s), memory_order_relaxed);
}

static inline void biased_lock_leave(struct session *s)
{
    atomic_store_explicit(biased_lock_flag(s), 0, memory_order_release);
}

/* The open session of an id, which biased_lock_leave releases; NULL if this thread needs the lock.
 * A signal handler that interrupts a call and makes another waits for ever, as for a lock that its
 * thread holds. */
static inline struct session *biased_lock_take(int64_t id)
{
    struct session *s = atomic_load_explicit(&session_used_last, memory_order_acquire);
    void *self = biased_lock_thread();
    if (!s) return NULL;
    _Atomic int *const taken = biased_lock_flag(s); /* this thread's, if it may take the session */
    if (atomic_load_explicit(&s->bias.thread, memory_order_relaxed) != self || *taken) return NULL;
    atomic_store_explicit(taken, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* for the compiler; membarrier does the rest */
    if (atomic_load_explicit(&s->bias.thread, memory_order_acquire) == self && s->id == id &&
        s->open && !s->closing && !s->torn)
        return s;
    atomic_store_explicit(taken, 0, memory_order_release);
    return NULL;
}

/* Checks whether the system supports it. Call it once per process, also in a forked child. */
void session_biased_lock_prepare(void);
/* Before the lock is released: this thread may take the session without it. */
void session_biased_lock_allow(struct session *s);
/* Ends that permission, if a thread has it. Call it right after locking the session. */
void session_biased_lock_stop(struct session *s);
