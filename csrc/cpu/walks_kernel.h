/* walks_kernel.h - the walk kernel of each instruction set: forces on a tile of targets. */
#pragma once

#include "core/walks.h"

enum {
    WALK_ROWS = 512, /* most targets of a tile */
    WALK_CHUNK = 128 /* entries summed in the precision of the pairs */
};

/* Workspace of one thread. */
struct walk_work {
    double row[3][WALK_ROWS]; /* targets, relative and scaled */
    double sum[4][WALK_ROWS]; /* their sums: acc, pot */
    /* entries of a chunk: x, y, z, m as given; relative and scaled */
    double place[4][WALK_CHUNK], source[4][WALK_CHUNK];
};

enum walk_error { WALK_FINE, WALK_BAD_ENTRY, WALK_BAD_NUMBER };

struct walks_kernel {
    /* Writes acc and pot of a group's targets first .. first + count - 1 to work->sum: NaN if the
     * target has NaN or Inf, infinite if they do not fit a double. */
    enum walk_error (*tile)(const struct walks *w, const struct walk_group *g, int64_t first,
                            int count, struct walk_work *work);
};
