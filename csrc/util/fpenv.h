/* fpenv.h - the floating-point environment of the library: no traps, round to nearest. On leaving,
 * the environment of the host program is restored. */
#pragma once

#include <fenv.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* The saved environment of the host program: control and flags of SSE; or all of it if the x87
 * control word is not the default. */
struct fpenv {
    fenv_t all;
#if defined(__x86_64__)
    unsigned mxcsr;
    int is_short;
#endif
};

#if defined(__x86_64__)
/* fegetenv and fesetenv take 0.1 microseconds each because of x87. The x87 control word is nearly
 * always this default; then only the x87 flags can change, in long double sums, which restore them
 * themselves: to read them takes longer than all else here. */
enum { FPENV_X87_START = 0x37f, FPENV_X87_FLAGS = 0x3f, FPENV_MXCSR_START = 0x1f80 };

static inline uint16_t fpenv_x87_control(void)
{
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}

static inline uint16_t fpenv_x87_flags(void)
{
    uint16_t word;
    __asm__ volatile("fnstsw %0" : "=a"(word) : : "memory"); /* before or after all sums */
    return word & FPENV_X87_FLAGS;
}

static inline void fpenv_restore_x87(const uint16_t *flags)
{
    uint32_t words[7]; /* the second one: status */
    if (fpenv_x87_flags() == *flags) return;
    __asm__ volatile("fnstenv %0" : "=m"(words));
    words[1] = (words[1] & ~(uint32_t)FPENV_X87_FLAGS) | *flags;
    __asm__ volatile("fldenv %0" : : "m"(words));
}

/* For long double sums: at the end of the block the flags of x87 are as here. */
#define FPENV_X87_HERE                                                                             \
    __attribute__((cleanup(fpenv_restore_x87), unused)) const uint16_t x87_flags = fpenv_x87_flags()

static inline void fpenv_enter(struct fpenv *host)
{
    host->is_short = fpenv_x87_control() == FPENV_X87_START;
    host->mxcsr = _mm_getcsr();
    if (host->is_short) {
        _mm_setcsr(FPENV_MXCSR_START);
    } else {
        (void)fegetenv(&host->all);
        (void)fesetenv(FE_DFL_ENV);
    }
}

static inline void fpenv_leave(const struct fpenv *host)
{
    if (!host->is_short) {
        (void)fesetenv(&host->all);
        return;
    }
    _mm_setcsr(host->mxcsr);
}
#else
static inline void fpenv_enter(struct fpenv *host)
{
    (void)fegetenv(&host->all);
    (void)fesetenv(FE_DFL_ENV);
}

static inline void fpenv_leave(const struct fpenv *host) { (void)fesetenv(&host->all); }
#define FPENV_X87_HERE (void)0
#endif

/* From here to the end of the block the environment is the library's. */
#define FPENV_HERE                                                                                 \
    __attribute__((cleanup(fpenv_leave))) struct fpenv host;                                       \
    fpenv_enter(&host)

/* Whether denormal numbers are flushed to zero. An octree needs this: its higher moments are often
 * denormal, and arithmetic on them is slow. */
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

/* As FPENV_HERE, with denormal numbers flushed to zero. */
#define FPENV_FLUSHED_HERE                                                                         \
    FPENV_HERE;                                                                                    \
    fpenv_flush(1)
