/* tree_numbers.h - limits and usual values of the settings of trees, for C, CUDA and Python, which
 * reads this file. */
#ifndef GRAPE6_TREE_NUMBERS_H
#define GRAPE6_TREE_NUMBERS_H

enum {
    TREE_LEAST_ORDER = 2, /* of expansions */
    TREE_LARGEST_ORDER = 6,
    TREE_USUAL_ORDER = 5,
    TREE_GROUP = 32,  /* targets in a group, */
    TREE_LEVEL1 = 16, /* groups in a level-1 group, */
    TREE_LEVEL2 = 8   /* these in a level-2 group */
};

/* theta: above it, a cell may act on targets next to it; */
#define TREE_WIDEST 1.5
/* the same where a bound on errors is what limits it; */
#define TREE_WIDEST_BY_BOUND 1.4
/* that at which no cell stands for its particles. */
#define TREE_PAIR_BY_PAIR 0x1p-20
/* Errors that may be asked for: pairs are summed in single precision. */
#define TREE_LEAST_ERROR 1e-6
#define TREE_LARGEST_ERROR 0.1
/* Last accelerations below this share of the mean count as this: at a point of balance, nearly all
 * particles would be summed one by one. */
#define TREE_LEAST_ACC 0x1p-20
/* Terms are soft where eps is at least this share of the sides of cells (with a bound on errors,
 * the second; with jerks, the third), of all but the largest and this share of the smallest cells.
 */
#define TREE_SOFT_FROM 0.5
#define TREE_SOFT_FROM_BY_BOUND 0.2
#define TREE_SOFT_FROM_OF_JERKS 0.01
#define TREE_SOFT_LEFT 0.05
/* Estimated ones, in units of the box, are no less than this. */
#define TREE_LEAST_ESTIMATE 0x1p-100

#endif
