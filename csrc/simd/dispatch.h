/* dispatch.h - the instruction sets that kernels are compiled for, and those that this machine has.
 *
 * How to add one: ARCHITECTURE.md. */
#pragma once

/* The processor's family; name, number G6X_ISA_..., what the processor must have. In the order of
 * the numbers, from which words of GRAPE6_ISA follow; of two that a processor has, the later is
 * better. */
#define SIMD_SETS(ANY, X86, ARM)                                                                   \
    ANY(base, BASE, 1)                                                                             \
    X86(avx2, AVX2, HAS("avx2") && HAS("fma"))                                                     \
    X86(avx512, AVX512,                                                                            \
        HAS("avx2") && HAS("fma") && HAS("avx512f") && HAS("avx512dq") && HAS("avx512vl") &&       \
            HAS("avx512bw"))                                                                       \
    ARM(neon, NEON, 1)

#define SIMD_ALL(ROW) SIMD_SETS(ROW, ROW, ROW)
/* The rows that a library for this processor's family has kernels of. */
#define SIMD_NO_ROW(...)
#ifdef __x86_64__
#define SIMD_COMPILED(ROW) SIMD_SETS(ROW, ROW, SIMD_NO_ROW)
#elif defined(__aarch64__)
#define SIMD_COMPILED(ROW) SIMD_SETS(ROW, SIMD_NO_ROW, ROW)
#else
#define SIMD_COMPILED(ROW) SIMD_SETS(ROW, SIMD_NO_ROW, SIMD_NO_ROW)
#endif

/* In a file that is compiled for each instruction set: the name of what it defines, once for each
 * set and width, or once for each set. */
#define SIMD_NAME(family) SIMD_JOIN(SIMD_NAME_OF_SET(family), REAL_BITS)
#define SIMD_NAME_OF_SET(family) SIMD_JOIN(family, ISA)
#define SIMD_JOIN(a, b) SIMD_PASTE(a, b)
#define SIMD_PASTE(a, b) a##_##b

/* Which of SIMD_COMPILED to take for G6X_ISA_*, or -1 if the machine lacks it. */
int simd_dispatch(int isa);
/* The name of that one, and its number G6X_ISA_*, which no set of another processor has. */
const char *simd_dispatch_name(int isa);
int simd_dispatch_number(int isa);
