/* g6x_tree.h - what the g6x_tree_ calls share. */
#pragma once

#include <stdatomic.h>

#include "tree/tree.h"

/* A tree that a program has opened. */
struct tree_handle {
    int handle, users, closed;
    int n, moving; /* moving: velocities were given */
    int of_ranks;  /* in a box of all ranks' particles */
    _Atomic int threads, isa;
    struct tree tree;
    double (*x)[3], *mass; /* as the caller gave them */
    struct tree_handle *next;
};

/* Acquires the tree of a handle, which is there until it is released; NULL with *code if there is
 * none. */
struct tree_handle *api_g6x_tree_acquire(int handle, int *code);
void api_g6x_tree_release(struct tree_handle *const *p);
/* `p` is that tree to the end of the block. */
#define TREE_HERE(p, handle, code)                                                                 \
    __attribute__((cleanup(api_g6x_tree_release))) struct tree_handle *const p =                   \
        api_g6x_tree_acquire(handle, code)
/* The numbers of all ranks' particles, checked. 0 or an error code. */
int api_g6x_tree_whole(const double whole[], struct tree_whole *to);
/* Checks the targets; x NULL: the tree's own particles. 0 or an error code. */
int api_g6x_tree_check_targets(const struct tree_handle *p, int ni, const double (*x)[3],
                               const int self[]);
/* The first of n rows that has a NaN or Inf; n if there is none. */
int api_g6x_tree_first_bad(int n, const double *a, int columns);
