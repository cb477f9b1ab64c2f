/* tree.cu - the tree's kernels, compiled with -DMODE=2: those of an order of expansions by themselves,
 * with -DTREE_ORDER=5 or so, and all others. */
#include "base.cuh"
#include "tree.cuh"
#include "tree_take.cuh"
#ifdef TREE_ORDER
#include "tree_far.cu"
#include "tree_rate.cu"
#else
#include "tree_build.cu"
#include "tree_walk.cu"
#include "tree_near.cu"
#include "tree_motion.cu"
#include "tree_jerk.cu"
#include "tree_search.cu"
#endif
