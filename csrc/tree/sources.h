/* sources.h - the j particles as a tree takes them: those that are set, in the order of their
 * addresses, predicted to a time. */
#pragma once

#include "core/jmemory.h"
#include "tree/tree.h"

struct sources {
    int64_t n, capacity;
    double (*x)[3], (*v)[3], *m; /* v is NULL if it was not wanted */
    int32_t *address, *index;
    int moving; /* another time gives other places */
    int finite; /* prediction can overflow */
};

/* Collects the slots below nj; 0 or G6X_E_MEMORY. */
int tree_sources_collect(struct sources *s, const struct jmemory *j, int64_t nj, double time,
                         int snap, int velocities, int threads);
/* Number of the particle at an address, or -1. */
int32_t tree_sources_number(const struct sources *s, int32_t address);
struct tree_input tree_sources_input(const struct sources *s);
void tree_sources_free(struct sources *s);
