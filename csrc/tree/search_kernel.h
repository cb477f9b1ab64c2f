/* search_kernel.h - the nearest particles of those of a tree itself, some targets at once. */
#pragma once

#include "tree/tree.h"

enum {
    SEARCH_TARGETS = 32,      /* at most, that follow each other along the curve */
    SEARCH_K = 64,            /* as many nearest at most */
    SEARCH_CANDIDATES = 4096, /* of a group: with more, its targets lie too far apart */
    SEARCH_LEAVES = 512,      /* likewise */
    SEARCH_NEAR = 1024,       /* of a target: with more, very many are equally far */
    SEARCH_PAD = 16           /* numbers behind the last that are read and not used */
};

/* Bounds of a cell's particles in the caller's unit, and the particles by place, or the cells in it
 * if `end` is negative: up to before -end. */
struct tree_search_cell {
    double low[3], high[3];
    int32_t first, end;
};

/* What is searched: a tree that is not in parts, and the caller's positions by place. */
struct tree_search {
    const struct tree *tree;
    double *x[3];
    struct tree_search_cell *cell;
};

/* Particles of leaves that are near one of the targets, each leaf's filled up to whole vectors with
 * such as are infinitely far. */
struct tree_candidates {
    double x[3][SEARCH_CANDIDATES + SEARCH_PAD];
    int32_t place[SEARCH_CANDIDATES + SEARCH_PAD];
    double low[3][SEARCH_LEAVES + SEARCH_PAD], high[3][SEARCH_LEAVES + SEARCH_PAD];
    int32_t first[SEARCH_LEAVES + 1];
    int leaves;
};

/* Particles that may be among the nearest of a target. */
struct tree_near {
    double r2[SEARCH_NEAR + SEARCH_PAD];
    int32_t place[SEARCH_NEAR + SEARCH_PAD];
    int count;
};

/* Memory of one thread. */
struct tree_search_work {
    struct tree_candidates candidates;
    struct tree_near near;
};

struct tree_search_kernel {
    /* The k nearest, nearest first, of the particles at `count` places from `first` on, into the
     * rows of their numbers. 0 if there are too many candidates: nothing was written then, or a
     * part of it. */
    int (*nearest)(const struct tree_search *s, int64_t first, int count, int k, int32_t *number,
                   double *r2, struct tree_search_work *w);
};

/* 0 or G6X_E_MEMORY. */
int tree_search_prepare(const struct tree *t, const double (*x)[3], struct tree_search *s);
void tree_search_free(struct tree_search *s);
const struct tree_search_kernel *tree_search_kernel(int isa);
