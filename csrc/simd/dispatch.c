/* dispatch.c - which kernel this machine can run. */
#include <stddef.h>

#include "cpu/grape5_kernel.h"
#include "g6lib.h"
#include "cpu/direct_kernel.h"
#include "tree/kernel.h"
#include "cpu/walks_kernel.h"

#define DECLARE(isa)                                                                               \
    extern const struct kernel kernel_##isa##_32, kernel_##isa##_64;                               \
    extern const struct tree_kernel tree_kernel_##isa;                                             \
    extern const struct acc_kernel acc_kernel_##isa;                                               \
    extern const struct walk_kernel walk_kernel_##isa##_32, walk_kernel_##isa##_64

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

/* The instruction set to take for the one asked for; 0 if the machine lacks it. */
static int available(int isa)
{
#ifdef __x86_64__
    const int best = has_avx512() ? G6X_ISA_AVX512 : has_avx2() ? G6X_ISA_AVX2 : G6X_ISA_BASE;
#else
    const int best = G6X_ISA_BASE;
#endif
    return isa == G6X_ISA_BEST ? best : isa <= best ? isa : 0;
}

#define OF(isa) (mode == MODE_DOUBLE ? &kernel_##isa##_64 : &kernel_##isa##_32)
#define WALKS_OF(isa) (mode == MODE_DOUBLE ? &walk_kernel_##isa##_64 : &walk_kernel_##isa##_32)

const struct kernel *kernel_choose(int isa, int mode)
{
    switch (available(isa)) {
#ifdef __x86_64__
    case G6X_ISA_AVX512: return OF(avx512);
    case G6X_ISA_AVX2: return OF(avx2);
#endif
    case G6X_ISA_BASE: return OF(base);
    default: return NULL;
    }
}

const struct acc_kernel *acc_kernel_choose(int isa)
{
    switch (available(isa)) {
#ifdef __x86_64__
    case G6X_ISA_AVX512: return &acc_kernel_avx512;
    case G6X_ISA_AVX2: return &acc_kernel_avx2;
#endif
    case G6X_ISA_BASE: return &acc_kernel_base;
    default: return NULL;
    }
}

const struct tree_kernel *tree_kernel_choose(int isa)
{
    switch (available(isa)) {
#ifdef __x86_64__
    case G6X_ISA_AVX512: return &tree_kernel_avx512;
    case G6X_ISA_AVX2: return &tree_kernel_avx2;
#endif
    case G6X_ISA_BASE: return &tree_kernel_base;
    default: return NULL;
    }
}

const struct walk_kernel *walk_kernel_choose(int isa, int mode)
{
    switch (available(isa)) {
#ifdef __x86_64__
    case G6X_ISA_AVX512: return WALKS_OF(avx512);
    case G6X_ISA_AVX2: return WALKS_OF(avx2);
#endif
    case G6X_ISA_BASE: return WALKS_OF(base);
    default: return NULL;
    }
}
