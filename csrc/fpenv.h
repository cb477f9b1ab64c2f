/* fpenv.h - the floating-point environment that the library computes in: no traps,
 * round to nearest, tiny numbers flushed. The host's is put back as it was. */
#ifndef GRAPE6_FPENV_H
#define GRAPE6_FPENV_H

#include <fenv.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static inline void fpenv_enter(fenv_t *host)
{
    (void)fegetenv(host);
    (void)fesetenv(FE_DFL_ENV);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | (uint64_t)1 << 24));
#endif
}

static inline void fpenv_leave(const fenv_t *host) { (void)fesetenv(host); }

#endif
