/* neighbour_lists.c - see neighbour_lists.h. */
#include "core/neighbour_lists.h"

#include <stdlib.h>

#include "g6lib.h"
#include "util/memory.h"

int neighbour_lists_reserve_starts(struct neighbour_memory *m, int64_t count)
{
    if (count < m->starts) return 0;
    int64_t *more = memory_grown(m->start, (size_t)(count + 1) * sizeof *more);
    if (!more) return G6X_E_MEMORY;
    m->start = more;
    m->starts = count + 1;
    return 0;
}

int neighbour_lists_reserve(struct neighbour_memory *m, int64_t total)
{
    if (total <= m->indices) return 0;
    const int64_t capacity = total > m->indices + m->indices / 2 ? total : 3 * m->indices / 2;
    int32_t *more = memory_grown(m->index, (size_t)capacity * sizeof *more);
    if (!more) return G6X_E_MEMORY;
    m->index = more;
    m->indices = capacity;
    return 0;
}

void neighbour_lists_free(struct neighbour_memory *m)
{
    memory_free(m->start);
    memory_free(m->index);
    *m = (struct neighbour_memory){0};
}

int neighbour_lists_place(int64_t *start, int count)
{
    int fit = 0;
    for (int k = 0; k < count; k++) {
        start[k + 1] += start[k];
        if (start[k] == 0 || start[k + 1] <= NEIGHBOURS_AT_ONCE) fit = k + 1;
    }
    return fit;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Most lists are short or already sorted. */
enum { SHORT = 32 };

void neighbour_lists_sort(int32_t *index, int64_t n)
{
    int64_t sorted = 1;
    while (sorted < n && index[sorted] >= index[sorted - 1]) sorted++;
    if (sorted < n && n > SHORT) {
        qsort(index, (size_t)n, sizeof *index, ascending);
        return;
    }
    for (int64_t k = sorted; k < n; k++) {
        const int32_t own = index[k];
        int64_t at = k;
        for (; at > 0 && index[at - 1] > own; at--) index[at] = index[at - 1];
        index[at] = own;
    }
}
