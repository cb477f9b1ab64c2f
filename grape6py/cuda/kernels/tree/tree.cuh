/* tree.cuh - the headers of csrc that describe the tree, in CUDA. */
#define TREE_UNROLL _Pragma("unroll")
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

#define v_abs(a) fabsf(a)
#define v_max(a, b) fmaxf(a, b)
#define v_min(a, b) fminf(a, b)

#include "shared/tree_box.h"
#include "shared/tree_moments.h"
#include "shared/tree_expansion.h"
#include "shared/tree_hilbert.h"
#include "shared/tree_mac.h"
#include "shared/tree_pull.h"
#include "shared/tree_distance.h"
#include "shared/tree_net_force.h"
#include "shared/tree_softening.h"
#include "shared/tree_share.h"
#include "shared/walk_close.h"
#include "tree/job.h"

#ifndef TREE_SOFT
#define TREE_SOFT 0
#endif
#ifndef TREE_OWN
#define TREE_OWN 0
#endif
enum { IN_LEVEL1 = TREE_GROUP * TREE_LEVEL1, IN_LEVEL2 = IN_LEVEL1 * TREE_LEVEL2 };
#define EVERY 0xffffffffu
