/* lost.h - ranges of addresses whose particles were sent but could not be stored. */
#pragma once

#include <stdint.h>

/* More ranges than this are merged, with the addresses between them. */
enum { MOST_LOST = 8 };
/* Addresses to which a write failed for lack of memory: first .. end - 1. */
struct lost {
    int64_t first, end;
};

/* Adds a non-empty range to *n ranges. */
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
