/* walks.h - many walks in one call (Hamada and others 2009, SC09): forces on groups of targets,
 * each from its own list, independent of the j memory. For treecodes that keep their own tree.
 * session/walks.c has the calls; cpu/walks.c and cuda/walks.c sum.
 *
 * A tile of a group's targets is summed from first to last entry of its list, with positions
 * relative to the tile's box, so that the bits of a walk's forces depend only on that walk.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/error.h"

/* Entry k is row list[k] of x and m or, without a list, row k. */
struct walk_list {
    int64_t n;
    const double (*x)[3], *m;
    const int32_t *list;
};
enum { WALK_LISTS = 2 }; /* particles; and cells, if they are in separate arrays */

struct walk_group {
    int64_t ni;
    const double (*x)[3];
    struct walk_list list[WALK_LISTS];
    double (*acc)[3], *pot; /* results */
};

struct walks {
    int64_t count, ni; /* number of walks, and of targets of all walks */
    struct walk_group *group;
    double eps2;
    int precision, isa, threads;
    /* rows of the arrays below */
    int64_t common;
    /* arrays that all lists refer to; NULL: each part has its own arrays */
    const double (*common_x)[3], *common_m;
    /* the lowest walk with such an error, or NO_WALK */
    _Atomic int64_t bad_target, bad_entry, bad_number, out_of_range;
};
#define NO_WALK INT64_MAX

/* How a backend other than the CPU sums walks. */
enum { WALK_TAGS = 8 }; /* most submitted calls whose results are not yet collected */
struct walk_engine {
    int (*sum)(void *state, struct walks *w, struct error *f);
    /* The same in two steps, for number 0 to WALK_TAGS - 1. The caller may reuse the inputs when
     * start returns; finish reads only ni, acc and pot of the groups. */
    int (*start)(void *state, int number, struct walks *w, struct error *f);
    int (*finish)(void *state, int number, struct walks *w, struct error *f);
};

/* cpu/walks.c: on the CPU's threads. */
int cpu_walks_sum(struct walks *w, struct error *err);

/* Records a walk in one of the error fields of struct walks. */
void walks_note(_Atomic int64_t *lowest, int64_t walk);
/* Centre of the box of a tile's targets, and half its diagonal. Ignores targets with NaN or Inf. */
void walks_box(const double (*x)[3], int64_t count, double centre[3], double *radius);
/* Writes the results of a group's target, NaN if they are not finite. Then records the walk: in
 * bad_target if pot is NaN, else in out_of_range. */
void walks_output(struct walks *w, int64_t walk, int64_t i, const double acc[3], double pot);
