/* walks_kernel.h - what each instruction set supplies to walks: the forces on a tile of targets. */
#pragma once

#include "core/walks.h"

enum {
    WALK_ROWS = 512, /* targets of a tile */
    WALK_CHUNK = 128 /* entries that are summed in the precision of the pairs */
};

/* Memory of one thread: targets, relative and scaled; their sums acc, pot; entries of a chunk as
 * given (x, y, z, m), and relative and scaled. */
struct walk_work {
    double row[3][WALK_ROWS];
    double sum[4][WALK_ROWS];
    double place[4][WALK_CHUNK], source[4][WALK_CHUNK];
};

enum walk_error { WALK_FINE, WALK_BAD_ENTRY, WALK_BAD_NUMBER };

struct walks_kernel {
    /* acc and pot of a group's targets first..first + count - 1 to work->sum: NaN if the target has
     * a NaN or an infinity, infinite if they do not fit a double. */
    enum walk_error (*tile)(const struct walks *w, const struct walk_group *g, int64_t first,
                            int count, struct walk_work *work);
};
