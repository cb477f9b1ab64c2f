/* fake_gpu.h - a GPU on the CPU: enough of CUDA's language for the kernels in
 * grape6py/cuda, so that their every line runs in tests without a GPU.
 *
 * The threads of a CUDA block are fibres of one thread, which change over where a block or a warp
 * waits for its members. Compiled with -DGRAPE6_ON_CPU -DFAKE_GPU_MODE=grape (double, single). */
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __CUDACC__ 1
#define __device__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define FAKE_GPU_JOIN(a, b) a##_##b
#define FAKE_GPU_NAME(name, mode) FAKE_GPU_JOIN(name, mode)
#define KERNEL(name, job_type, threads, blocks)                                                    \
    extern "C" __attribute__((visibility("default"))) void FAKE_GPU_NAME(name, FAKE_GPU_MODE)(     \
        const job_type &job)

#define SHARED_BY_LAUNCH(type, name)                                                               \
    static type shared_by_launch;                                                                  \
    type *const name = &shared_by_launch

#pragma GCC visibility push(hidden)
struct fake_gpu_dim {
    unsigned x, y, z;
};
extern struct fake_gpu_dim threadIdx, blockIdx, blockDim, gridDim;

void fake_gpu_wait_for_block(void);
void fake_gpu_wait_for_warp(void);
extern uint64_t fake_gpu_exchange[2][32 * 32]; /* a word per thread, in two turns */
extern unsigned fake_gpu_turn;
#pragma GCC visibility pop

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};

static inline void __syncthreads(void) { fake_gpu_wait_for_block(); }
static inline void __syncwarp(void) { fake_gpu_wait_for_warp(); }
static inline void __threadfence(void) {}
static inline void __threadfence_system(void) {}

/* Words that the threads of a warp have given each other, by thread of the block. A change of turns
 * keeps the next ones from those that are still read. */
static inline const uint64_t *fake_gpu_give(uint64_t mine)
{
    fake_gpu_exchange[fake_gpu_turn][threadIdx.x] = mine;
    fake_gpu_wait_for_warp();
    return fake_gpu_exchange[fake_gpu_turn ^ 1];
}

static inline unsigned __ballot_sync(unsigned, bool mine)
{
    const unsigned first = threadIdx.x / 32 * 32;
    const uint64_t *given = fake_gpu_give(mine);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32 && first + l < blockDim.x; l++)
        bits |= (unsigned)given[first + l] << l;
    return bits;
}

static inline bool __all_sync(unsigned all, bool mine) { return __ballot_sync(all, !mine) == 0; }
static inline bool __any_sync(unsigned all, bool mine) { return __ballot_sync(all, mine) != 0; }

/* Whether any thread of the block says so. */
static inline int __syncthreads_or(int mine)
{
    static int some;
    __syncthreads();
    some = 0;
    __syncthreads();
    if (mine) some = 1;
    __syncthreads();
    const int any = some;
    __syncthreads();
    return any;
}

static inline int __reduce_max_sync(unsigned, int mine)
{
    const unsigned first = threadIdx.x / 32 * 32;
    const uint64_t *given = fake_gpu_give((uint64_t)mine);
    int most = mine;
    for (unsigned l = 0; l < 32 && first + l < blockDim.x; l++)
        if ((int)given[first + l] > most) most = (int)given[first + l];
    return most;
}

/* A number of at most 64 bits of the thread `from` of the block. */
template <class T> static inline T fake_gpu_of_thread(T mine, unsigned from)
{
    static_assert(sizeof mine <= 8, "");
    uint64_t bits = 0;
    memcpy(&bits, &mine, sizeof mine);
    bits = fake_gpu_give(bits)[from];
    memcpy(&mine, &bits, sizeof mine);
    return mine;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T mine, int by)
{
    return fake_gpu_of_thread(mine, threadIdx.x ^ (unsigned)by);
}
template <class T> static inline T __shfl_sync(unsigned, T mine, int lane)
{
    return fake_gpu_of_thread(mine, threadIdx.x / 32 * 32 + (unsigned)lane % 32);
}
template <class T> static inline T __shfl_up_sync(unsigned, T mine, int by)
{
    const unsigned lane = threadIdx.x % 32;
    return fake_gpu_of_thread(mine, lane < (unsigned)by ? threadIdx.x : threadIdx.x - (unsigned)by);
}

/* One thread runs at a time: it does to *to what is said, and has what was there. */
#define FAKE_GPU_ATOMIC(name, change)                                                              \
    template <class T> static inline T name(T *to, T by)                                           \
    {                                                                                              \
        const T old = *to;                                                                         \
        *to = change;                                                                              \
        return old;                                                                                \
    }
FAKE_GPU_ATOMIC(atomicAdd, old + by)
FAKE_GPU_ATOMIC(atomicOr, old | by)
FAKE_GPU_ATOMIC(atomicMax, by > old ? by : old)
FAKE_GPU_ATOMIC(atomicMin, by < old ? by : old)
FAKE_GPU_ATOMIC(atomicExch, by)
static inline int atomicCAS(int *to, int if_this, int by)
{
    const int old = *to;
    if (old == if_this) *to = by;
    return old;
}
template <class T> static inline T __ldcg(const T *from) { return *from; }

template <class To, class From> static inline To fake_gpu_same_bits(From a)
{
    To b;
    static_assert(sizeof a == sizeof b, "");
    memcpy(&b, &a, sizeof b);
    return b;
}
#define __float_as_int(a) fake_gpu_same_bits<int>((float)(a))
#define __int_as_float(a) fake_gpu_same_bits<float>((int)(a))
#define __double_as_longlong(a) fake_gpu_same_bits<long long>((double)(a))
#define __longlong_as_double(a) fake_gpu_same_bits<double>((long long)(a))
static inline int __popc(unsigned a) { return __builtin_popcount(a); }
static inline int __ffs(int a) { return __builtin_ffs(a); }
static inline int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
static inline int __clzll(int64_t a) { return a ? __builtin_clzll((uint64_t)a) : 64; }
#define __ull2double_rn(a) ((double)(a))

static inline float __double2float_rd(double a)
{
    const float nearest = (float)a;
    return nearest > a ? nextafterf(nearest, -INFINITY) : nearest;
}
static inline float __double2float_ru(double a) { return -__double2float_rd(-a); }

#define __fsqrt_rn(a) sqrtf((float)(a))
#define __fadd_rn(a, b) ((float)(a) + (float)(b))
#define __fsub_rn(a, b) ((float)(a) - (float)(b))
#define __fmul_rn(a, b) ((float)(a) * (float)(b))
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __dadd_rn(a, b) ((double)(a) + (double)(b))
#define __dsub_rn(a, b) ((double)(a) - (double)(b))
#define __dmul_rn(a, b) ((double)(a) * (double)(b))
#define __fma_rn(a, b, c) fma(a, b, c)

using std::fabs;
using std::fmax;
using std::ilogb;
using std::ldexp;
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
