/* tree.cu - all kernels of the tree: compiled with -DMODE=2. */
#include "base.cuh"
#include "tree.cuh"
#include "tree_build.cu"
#include "tree_walk.cu"
#include "tree_far.cu"
#include "tree_near.cu"
#include "tree_motion.cu"
#include "tree_jerk.cu"
