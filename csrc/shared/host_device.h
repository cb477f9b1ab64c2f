/* host_device.h - how functions are declared whose text C and CUDA share, and what they need. */
#ifndef GRAPE6_HOST_DEVICE_H
#define GRAPE6_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE __device__ __forceinline__
#else
#include <math.h>
#include <stdint.h>
#define HOST_DEVICE static inline __attribute__((always_inline))
#endif

#endif
