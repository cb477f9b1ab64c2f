/* choose.c - which kernel this machine can run. */
#include <stddef.h>

#include "g6lib.h"
#include "kernel.h"

#define DECLARE(isa) extern const struct kernel kernel_##isa##_32, kernel_##isa##_64

DECLARE(base);
#ifdef __x86_64__
DECLARE(avx2);
DECLARE(avx512);

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

#define OF(isa) (mode == MODE_DOUBLE ? &kernel_##isa##_64 : &kernel_##isa##_32)

const struct kernel *kernel_choose(int isa, int mode)
{
#ifdef __x86_64__
    const int best = has_avx512() ? G6X_ISA_AVX512 : has_avx2() ? G6X_ISA_AVX2 : G6X_ISA_BASE;
    if (isa == G6X_ISA_BEST) isa = best;
    if (isa > best) return NULL;
    if (isa == G6X_ISA_AVX512) return OF(avx512);
    if (isa == G6X_ISA_AVX2) return OF(avx2);
#else
    if (isa > G6X_ISA_BASE) return NULL;
#endif
    return OF(base);
}
