/* host_device.h - the specifier of functions that C and CUDA share, and their headers. */
#ifndef GRAPE6_HOST_DEVICE_H
#define GRAPE6_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE __device__ __forceinline__
#else
#include "shared/arithmetic.h"

#include <math.h>
#include <stdint.h>
#define HOST_DEVICE static inline __attribute__((always_inline))
/* Vectors as they are only read: C has no conversion to this by itself. */
#define CONST3(p) ((const double (*)[3])(p))
#endif

#endif
