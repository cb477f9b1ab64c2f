/* threads.h - a pool of threads that wait for short work. */
#pragma once

#include <stdint.h>

/* Calls work(argument) on up to n threads at once, the caller being one, and returns when
 * all are through. The work must be such that any number of callers, also one alone,
 * get it done: fewer take part if the pool is busy, cannot grow, or after a fork. */
void threads_run(int n, void (*work)(void *argument), void *argument);

/* Calls work(context, first, end) for pieces of 0..n-1 of `grain` at most, on several threads. */
void threads_each(int threads, int64_t n, int64_t grain,
                  void (*work)(void *context, int64_t first, int64_t end), void *context);

/* Lets this thread sleep for so many nanoseconds, and hardly longer. */
void threads_nap(int64_t nanoseconds);

/* One processor's hint that it is waiting. */
static inline void threads_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
