/* fpenv.h - the floating-point environment that the library computes in: no traps, round to
 * nearest. The host's is put back as it was. */
#pragma once

#include <fenv.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static inline void fpenv_enter(fenv_t *host)
{
    (void)fegetenv(host);
    (void)fesetenv(FE_DFL_ENV);
}

/* Whether denormal numbers are flushed to zero, as an octree needs it: its higher moments are
 * often that small, and would be slow. */
#if defined(__SSE2__)
enum { FPENV_FLUSH = 0x8040 };
static inline int fpenv_flushes(void) { return (_mm_getcsr() & FPENV_FLUSH) != 0; }
static inline void fpenv_flush(int on)
{
    _mm_setcsr((_mm_getcsr() & ~(unsigned)FPENV_FLUSH) | (on ? FPENV_FLUSH : 0));
}
#elif defined(__aarch64__)
enum { FPENV_FLUSH = 1 << 24 };
static inline uint64_t fpenv_fpcr(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}
static inline int fpenv_flushes(void) { return (fpenv_fpcr() & FPENV_FLUSH) != 0; }
static inline void fpenv_flush(int on)
{
    const uint64_t others = fpenv_fpcr() & ~(uint64_t)FPENV_FLUSH;
    __asm__ volatile("msr fpcr, %0" : : "r"(others | (on ? FPENV_FLUSH : 0)));
}
#else
static inline int fpenv_flushes(void) { return 0; }
static inline void fpenv_flush(int on) { (void)on; }
#endif

static inline void fpenv_leave(const fenv_t *host) { (void)fesetenv(host); }
