/* kernels.cu - all kernels of one precision: -DMODE=0 grape, 1 double, 2 single. */
#include "base.cuh"
#include "sources.cuh"
#include "bins.cuh"
#include "finish.cuh"
#include "predict.cu"
#include "wide.cu"
#include "small.cu"
#include "neighbours.cu"
