/* handles.h - the trees that programs have opened, and the numbers by which they go. */
#pragma once

#include <stdatomic.h>

#include "tree/tree.h"

struct tree_handle {
    int handle, users, closed;
    int n, moving; /* moving: velocities were given */
    int of_ranks;  /* in a box of all ranks' particles */
    _Atomic int threads, isa;
    struct tree tree;
    double (*x)[3], *mass; /* as the caller gave them */
    struct tree_handle *next;
};

/* The number that a tree gets: no open tree has it, and no closed one had it lately. */
int tree_handles_add(struct tree_handle *p);
/* The tree of a number, which is there until it is released; NULL if there is none. */
struct tree_handle *tree_handles_acquire(int handle);
void tree_handles_release(struct tree_handle *p);
/* Frees the tree of a number, if there is one, when the last to have taken it releases it. */
void tree_handles_remove(int handle);
/* Frees one that was not added. */
void tree_handles_free(struct tree_handle *p);
