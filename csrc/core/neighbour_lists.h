/* neighbour_lists.h - neighbour lists of several i particles, one behind the other. */
#pragma once

#include <stdint.h>

/* Those of i particle k are index[start[k]] to before index[start[k + 1]]: indices of j particles,
 * ascending. */
struct neighbour_lists {
    int count; /* of i particles */
    const int64_t *start;
    const int32_t *index;
};

/* The memory of such lists. */
struct neighbour_memory {
    int64_t *start;
    int32_t *index;
    int64_t starts, indices; /* that fit */
};

/* A backend finds so many neighbours at a time, or those of one i particle. */
enum { NEIGHBOURS_AT_ONCE = 1 << 24 };

/* Space for the lists of `count` i particles, and for a total length, which keeps what was there.
 * 0 or G6X_E_MEMORY. */
int neighbour_lists_reserve_starts(struct neighbour_memory *m, int64_t count);
int neighbour_lists_reserve(struct neighbour_memory *m, int64_t total);
void neighbour_lists_free(struct neighbour_memory *m);
/* start[k + 1] is the length of list k: makes it the end of list k, start[0] being where the first
 * begins. How many of the `count` lists end at NEIGHBOURS_AT_ONCE or before, or are the first that
 * is not empty. */
int neighbour_lists_place(int64_t *start, int count);
/* Sorts a list. */
void neighbour_lists_sort(int32_t *index, int64_t n);
