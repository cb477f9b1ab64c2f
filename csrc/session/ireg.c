/* ireg.c - see ireg.h. */
#include "session/ireg.h"

#include <string.h>

#include "g6lib.h"
#include "util/memory.h"

#define ARRAYS(p, n)                                                                               \
    {MEMORY_ARRAY((p)->index, n), MEMORY_ARRAY((p)->x, n),  MEMORY_ARRAY((p)->v, n),               \
     MEMORY_ARRAY((p)->eps2, n),  MEMORY_ARRAY((p)->h2, n), {0}}

void session_ireg_free(struct pipes *p)
{
    const struct memory_array all[] = ARRAYS(p, 0);
    memory_free_all(all);
    memset(p, 0, sizeof *p);
}

int session_ireg_grow(struct pipes *p, int capacity)
{
    const struct memory_array all[] = ARRAYS(p, capacity);
    if (capacity <= p->capacity) return 0;
    if (memory_grow_all(all)) return G6X_E_MEMORY;
    p->capacity = capacity;
    return 0;
}
