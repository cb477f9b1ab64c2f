/* walk.h - what every walk through a tree's cells needs: the kernels of an instruction set, the
 * memory of a thread, and where it begins. */
#pragma once

#include "tree/kernel.h"

/* The kernels for an instruction set (G6X_ISA_*) that the machine has. */
const struct tree_kernel *tree_walk_kernel(int isa);
/* Memory of one thread, or NULL; it may be `missing` some. */
struct tree_work *tree_walk_new(const struct tree *t);
void tree_walk_free(struct tree_work *w);
/* A walk begins at the root, and at those of other ranks' parts. */
void tree_walk_begin(const struct tree *t, struct tree_list *list);
/* The places of all cells as Barnes and Hut's walk takes them; those of other ranks' are so
 * already. NULL: no memory. */
struct tree_cell_centre *tree_walk_barnes_hut_places(const struct tree *t, double theta);
