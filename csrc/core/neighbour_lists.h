/* neighbour_lists.h - neighbour lists of several i particles, stored one after another. */
#pragma once

#include <stdint.h>

/* i particle k has the j particles index[start[k]] .. index[start[k + 1] - 1], ascending. */
struct neighbour_lists {
    int count; /* number of i particles */
    const int64_t *start;
    const int32_t *index;
};

/* The memory of such lists. */
struct neighbour_memory {
    int64_t *start;
    int32_t *index;
    int64_t starts, indices; /* capacities */
};

/* Most neighbours that a backend finds at a time, unless one i particle has more. */
enum { NEIGHBOURS_AT_ONCE = 1 << 24 };

/* Reserves capacity for the starts of `count` lists. Returns 0 or G6X_E_MEMORY. */
int neighbour_lists_reserve_starts(struct neighbour_memory *m, int64_t count);
/* Reserves capacity for lists of a total length, and keeps their content. 0 or G6X_E_MEMORY. */
int neighbour_lists_reserve(struct neighbour_memory *m, int64_t total);
void neighbour_lists_free(struct neighbour_memory *m);
/* On entry start[k + 1] is the length of list k and start[0] the beginning of the first list; makes
 * start[k + 1] the end of list k. Returns how many of the `count` lists end at or before
 * NEIGHBOURS_AT_ONCE; at least the first list that is not empty is included. */
int neighbour_lists_place(int64_t *start, int count);
/* Sorts a list. */
void neighbour_lists_sort(int32_t *index, int64_t n);
