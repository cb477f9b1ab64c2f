/* walks.h - many walks in one call (Hamada and others 2009, SC09): forces on groups of targets,
 * each from a list of its own, whatever the j memory holds. Treecodes that keep their own tree ask
 * so. session/walks.c has the calls; cpu/walks.c and cuda/walks.c sum.
 *
 * A tile of a group's targets is summed from first to last entry of its list, in places relative to
 * the tile's box, so that the bits of a walk's forces depend on that walk alone.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/error.h"

/* Entry k is row list[k] of x and m or, without a list, row k. */
struct walk_part {
    int64_t n;
    const double (*x)[3], *m;
    const int32_t *list;
};
enum { WALK_PARTS = 2 }; /* particles; and cells, if they lie apart */

struct walk_group {
    int64_t ni;
    const double (*x)[3];
    struct walk_part part[WALK_PARTS];
    double (*acc)[3], *pot; /* where results go */
};

struct walks {
    int64_t count, ni; /* walks, and targets of all of them */
    struct walk_group *group;
    double eps2;
    int precision, isa, threads;
    /* what all lists choose from, or NULL: each part has arrays of its own */
    int64_t common;
    const double (*common_x)[3], *common_m;
    /* the lowest walk in which there is such a thing, or NO_WALK */
    _Atomic int64_t bad_target, bad_entry, bad_number, out_of_range;
};
#define NO_WALK INT64_MAX

/* How a backend other than the CPU sums walks. */
enum { WALK_TAGS = 8 }; /* dispatches that may wait to be retrieved */
struct walk_engine {
    int (*sum)(void *state, struct walks *w, struct error *f);
    /* The same in two halves, for number 0 to WALK_TAGS - 1: the inputs are free again when start
     * returns; of the groups finish reads only ni, acc and pot. */
    int (*start)(void *state, int number, struct walks *w, struct error *f);
    int (*finish)(void *state, int number, struct walks *w, struct error *f);
};

/* Notes a walk in one of the places above. */
void walks_note(_Atomic int64_t *lowest, int64_t walk);
/* Centre of the box of a tile's targets, and half its diagonal; of those without a NaN or an
 * infinity.
 */
void walks_box(const double (*x)[3], int64_t count, double centre[3], double *radius);
/* Writes results of a group's target: NaN if the target had one, infinite if they do not fit a
 * double, both of which is noted. */
void walks_output(struct walks *w, int64_t walk, int64_t i, const double acc[3], double pot);
