/* dispatch.h - the instruction sets that kernels are compiled for, and those that this machine has.
 *
 * To add one: see ARCHITECTURE.md. */
#pragma once

/* Each row: processor family (name, number G6X_ISA_..., features the processor must have). Rows are
 * in the order of the numbers, which is also the order of the words of GRAPE6_ISA. Of two that a
 * processor has, the later is better. */
#define SIMD_SETS(ANY, X86, ARM)                                                                   \
    ANY(base, BASE, 1)                                                                             \
    X86(avx2, AVX2, HAS("avx2") && HAS("fma"))                                                     \
    X86(avx512, AVX512,                                                                            \
        HAS("avx2") && HAS("fma") && HAS("avx512f") && HAS("avx512dq") && HAS("avx512vl") &&       \
            HAS("avx512bw"))                                                                       \
    ARM(neon, NEON, 1)

#define SIMD_ALL(ROW) SIMD_SETS(ROW, ROW, ROW)
/* The rows that have kernels in a library for this processor family. */
#define SIMD_NO_ROW(...)
#ifdef __x86_64__
#define SIMD_COMPILED(ROW) SIMD_SETS(ROW, ROW, SIMD_NO_ROW)
#elif defined(__aarch64__)
#define SIMD_COMPILED(ROW) SIMD_SETS(ROW, SIMD_NO_ROW, ROW)
#else
#define SIMD_COMPILED(ROW) SIMD_SETS(ROW, SIMD_NO_ROW, SIMD_NO_ROW)
#endif

/* Names of definitions in a file that is compiled for each instruction set and width (SIMD_NAME),
 * or for each instruction set (SIMD_NAME_OF_SET). */
#define SIMD_NAME(family) SIMD_JOIN(SIMD_NAME_OF_SET(family), REAL_BITS)
#define SIMD_NAME_OF_SET(family) SIMD_JOIN(family, ISA)
#define SIMD_JOIN(a, b) SIMD_PASTE(a, b)
#define SIMD_PASTE(a, b) a##_##b

/* Row of SIMD_COMPILED for G6X_ISA_*, or -1 if the machine lacks it. */
int simd_dispatch(int isa);
/* Name of that row. */
const char *simd_dispatch_name(int isa);
/* Number G6X_ISA_* of that row; numbers are unique over all processor families. */
int simd_dispatch_number(int isa);
