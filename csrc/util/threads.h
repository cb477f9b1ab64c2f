/* threads.h - a thread pool for short tasks. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Calls work(argument) on up to n threads at once, including the caller, and returns when all have
 * finished. Any number of threads, even one, must be able to do all the work: fewer take part if
 * the pool is busy, cannot grow, or after a fork. */
void threads_run(int n, void (*work)(void *argument), void *argument);

/* Work for n threads comes within some tens of microseconds: their workers wake up, and wait. */
void threads_wake(int n);

/* From now on the first workers wait for work awake for so long, at least as long as usual: short
 * work then finds so many threads, with the caller. More take longer to begin than they save. */
enum { THREADS_AT_HAND = 8 };
void threads_linger(int64_t nanoseconds);

/* Divides 0..n-1 into pieces of at most `grain` and calls work(context, first, end) for each, on
 * several threads. */
void threads_each(int threads, int64_t n, int64_t grain,
                  void (*work)(void *context, int64_t first, int64_t end), void *context);

/* Starts a thread with all signals blocked: the host's handlers run in its own. 0 if it runs. */
int threads_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);

/* Makes this thread sleep for so many nanoseconds, and hardly longer. */
void threads_nap(int64_t nanoseconds);

/* Tells the processor that this is a spin-wait loop. */
static inline void threads_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
