/* lost.h - ranges of addresses whose particles were sent and are not here. */
#pragma once

#include <stdint.h>

/* Addresses to which a write was refused: first .. end - 1. More ranges than there is space for are
 * joined, with what is between them. */
enum { MOST_LOST = 8 };
struct lost {
    int64_t first, end;
};

/* Adds a range, that is not empty, to n of them. */
static inline void lost_note(struct lost *lost, int *n, int64_t first, int64_t end)
{
    int k = 0;
    while (k < *n && (first > lost[k].end || end < lost[k].first)) k++;
    if (k == *n && k < MOST_LOST) {
        lost[(*n)++] = (struct lost){first, end};
        return;
    }
    struct lost *l = &lost[k < *n ? k : k - 1];
    if (first < l->first) l->first = first;
    if (end > l->end) l->end = end;
}
