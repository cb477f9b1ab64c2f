/* base.cuh - the arithmetic of the kernels: the operations that pair.h and rsqrt.h are written in,
 * in the precision of MODE. Every operation is rounded by itself, so that all kernels give the same
 * bits for the same pair. */
#ifdef GRAPE6_ON_CPU
#include GRAPE6_ON_CPU /* tests run these kernels on the CPU: "fake_gpu.h" */
#else
#ifdef __CUDACC_RTC__
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif
/* -DONLY -DONLY_few=0,1 compiles kernel `few` alone: ONLY_few is then two arguments, the second of
 * which is 1. Every other kernel becomes an unused template. */
#define KERNEL_SECOND(a, b, ...) b
#define KERNEL_SECOND_OF(...) KERNEL_SECOND(__VA_ARGS__)
#define KERNEL_JOIN(a, b) a##b
#define KERNEL_IF(yes) KERNEL_JOIN(KERNEL_, yes)
#define KERNEL_1(name, job_type, threads, blocks)                                                  \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        name(const __grid_constant__ job_type job)
#define KERNEL_0(name, job_type, threads, blocks)                                                  \
    template <class> static __device__ void name(const job_type &job)
#ifdef ONLY
#define KERNEL_ONLY(name, ...) KERNEL_IF(KERNEL_SECOND_OF(ONLY_##name, 0, 0))(name, __VA_ARGS__)
#define KERNEL(name, ...) KERNEL_ONLY(name, __VA_ARGS__) /* a name may be a macro's */
#else
#define KERNEL(name, ...) KERNEL_1(name, __VA_ARGS__)
#endif
/* Dynamic shared memory: the launch sets its size, which may exceed the static limit. */
#define SHARED_BY_LAUNCH(type, name)                                                               \
    extern __shared__ float4 shared_by_launch[];                                                   \
    type *const name = (type *)shared_by_launch
#endif

#include "shared/host_device.h"
#define DEVICE_FN HOST_DEVICE
#define DEVICE_CALL __device__ __noinline__ /* rarely executed, must not cost registers */

#include "shared/cuda_args.h"
#include "shared/hermite_step.h"
#include "shared/predictor.h"

enum { SUM_AX, SUM_AY, SUM_AZ, SUM_JX, SUM_JY, SUM_JZ, SUM_POT, NSUM };
enum { WINDOW_ACC, WINDOW_JERK, WINDOW_POT, NWINDOW };
enum { BIN_BITS = 40 };

#define DOUBLE_MODE (MODE == 1)
#define SPLIT (MODE == 0) /* positions are hi + lo */

#if DOUBLE_MODE
#define REAL_BITS 64
typedef double real;
enum { BINS = CUDA_BINS_DOUBLE, LIMBS = 3 };
#else
#define REAL_BITS 32
typedef float real;
#define PAIR_LEAST_H2 1e-30
enum { BINS = CUDA_BINS, LIMBS = 2 };
#endif
typedef real vec;
typedef bool vmask;

/* The operations of pair.h in both precisions: close.cuh always uses double. */
DEVICE_FN float op_add(float a, float b) { return __fadd_rn(a, b); }
DEVICE_FN float op_sub(float a, float b) { return __fsub_rn(a, b); }
DEVICE_FN float op_mul(float a, float b) { return __fmul_rn(a, b); }
DEVICE_FN float op_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE_FN double op_add(double a, double b) { return __dadd_rn(a, b); }
DEVICE_FN double op_sub(double a, double b) { return __dsub_rn(a, b); }
DEVICE_FN double op_mul(double a, double b) { return __dmul_rn(a, b); }
DEVICE_FN double op_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
#define v_set1(a) ((vec)(a))
#define v_add(a, b) op_add(a, b)
#define v_sub(a, b) op_sub(a, b)
#define v_mul(a, b) op_mul(a, b)
#define v_fma(a, b, c) op_fma(a, b, c)
#define v_fnma(a, b, c) op_fma(-(a), b, c)
#define v_select(m, a, b) ((m) ? (a) : (b))
#define v_lt(a, b) ((a) < (b))

/* Mean fraction by which the hardware's estimate, in single precision the result, is too small in
 * forces (measured: pot on Plummer spheres against double precision). */
#ifdef GRAPE6_ON_CPU
#define RSQRT_LACKS 0.0
#else
#define RSQRT_LACKS 5.7e-9
#endif
DEVICE_FN float rsqrt_estimate(float x)
{
#ifdef GRAPE6_ON_CPU
    return (float)(1.0 / sqrt((double)x));
#else
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
DEVICE_FN double rsqrt_estimate(double x)
{
#ifdef GRAPE6_ON_CPU
    return 1.0 / sqrt(x);
#else
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
#endif
}

#define RSQRT_SEED_BITS 20
#if DOUBLE_MODE
#include "shared/rsqrt.h"
#define v_rsqrt(x) rsqrt_refine(x, rsqrt_estimate(x))
#else
#define v_rsqrt(x) rsqrt_estimate(x)
#endif
#include "shared/pair.h"

DEVICE_FN int window_of(int sum) { return sum / 3; }
DEVICE_FN uint64_t bits_of(double a) { return (uint64_t)__double_as_longlong(a); }
DEVICE_FN double from_bits(uint64_t u) { return __longlong_as_double((int64_t)u); }

/* frexp's exponent of |a|, as scale.h's exponent_of. */
DEVICE_FN int exponent_of(double a)
{
    const int biased = (int)(bits_of(a) >> 52 & 0x7ff);
    if (biased == 0x7ff) return EXPONENT_HUGE;
    if (biased) return biased - 1022;
    const uint64_t mantissa = bits_of(a) << 12;
    return mantissa ? -1022 - __clzll((int64_t)mantissa) : EXPONENT_NONE;
}

DEVICE_FN int exponent_of(float a)
{
    const int bits = __float_as_int(a) & 0x7fffffff, biased = bits >> 23;
    if (biased == 0xff) return EXPONENT_HUGE;
    if (biased) return biased - 126;
    return bits ? -117 - __clz(bits) : (int)EXPONENT_NONE;
}

/* A position as the kernels store it. Mode grape: hi is on the grid of scale.h, lo is the rest. */
DEVICE_FN void split_position(double x, real *hi, real *lo)
{
#if SPLIT
    const double on_grid = fabs(x) < 0x1p51 ? rint(x) : x;
    *hi = (float)on_grid;
    *lo = (float)(x - (double)*hi);
#else
    *hi = (real)x;
    *lo = 0;
#endif
}

DEVICE_FN real power_of_two(int exponent)
{
#if DOUBLE_MODE
    return from_bits((uint64_t)(exponent + 1023) << 52);
#else
    return __int_as_float((exponent + 127) << 23);
#endif
}

/* The larger magnitude, never negative; Inf and NaN count as the largest. */
DEVICE_FN real larger_bits(real a, real b)
{
#if DOUBLE_MODE
    const uint64_t i = bits_of(a) & 0x7fffffffffffffffu, j = bits_of(b) & 0x7fffffffffffffffu;
    return from_bits(i > j ? i : j);
#else
    const int i = __float_as_int(a) & 0x7fffffff, j = __float_as_int(b) & 0x7fffffff;
    return __int_as_float(max(i, j));
#endif
}

DEVICE_FN int max_of_warp(int a)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#pragma unroll
    for (int o = 16; o; o /= 2) a = max(a, __shfl_xor_sync(0xffffffffu, a, o));
    return a;
#else
    return __reduce_max_sync(0xffffffffu, a);
#endif
}
DEVICE_FN int min_of_warp(int a) { return ~max_of_warp(~a); }
