/* tree.cu - the tree's kernels, compiled with -DMODE=2: those of an order of expansions by
 * themselves, with -DTREE_ORDER=5 or so, and -DTREE_SOFT=1 for softened ones, or -DTREE_OWN=1 where
 * particles have their own softening; and all others. */
#include "base.cuh"
#include "tree/tree.cuh"
#include "tree/load.cuh"
#ifdef TREE_ORDER
#include "tree/far.cu"
#include "tree/rate.cu"
#else
#include "tree/core.cuh"
#include "tree/build.cu"
#include "tree/traverse.cu"
#include "tree/share.cu"
#include "tree/near.cu"
#include "tree/motion.cu"
#include "tree/pull.cu"
#include "tree/distant.cu"
#include "tree/sites.cu"
#include "tree/softened.cu"
#include "tree/net_force.cu"
#include "tree/jerk.cu"
#include "tree/search.cu"
#endif
