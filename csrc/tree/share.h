/* share.h - trees of which each rank has a subtree: see shared/tree_share.h. */
#pragma once

#include "tree/tree.h"

/* The subtree of a tree that the targets of some regions may look at, or NULL: no memory. There is
 * nothing in it if there are no regions or particles. */
struct subtree_header *tree_share_subtree(const struct tree *t, const struct tree_setting *s,
                                          double eps2, int64_t regions,
                                          const struct tree_region *region);

/* A tree with subtrees of other ranks' behind it, made of copies; its particles, which are the
 * targets if none are given, are its own alone. 0 or an error code. */
int tree_share_join(const struct tree *t, int subtrees, const void *const subtree[],
                    struct tree *joined, struct error *err);
void tree_share_free(struct tree *joined);
