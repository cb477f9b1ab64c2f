/* boxes.h - trees of particles that one box resolves, or several: see tree/pieces.h. */
#pragma once

#include "tree/tree.h"

/* Builds the tree of some particles, all of which are finite, in a box of their own or, with
 * `whole`, in that of all ranks' (shared/tree_share.h). 0 or an error code. */
int tree_boxes_build(struct tree *t, const struct tree_input *in, const struct tree_whole *whole,
                     int threads, struct error *err);
void tree_boxes_free(struct tree *t);
/* Forces of the tree on targets. 0 or an error code. */
int tree_boxes_sum(const struct tree *t, const struct tree_setting *s,
                   const struct tree_targets *targets, const struct tree_forces *out,
                   struct tree_counts *counts, struct error *err);
