/* session.c - see session.h. */
#include "session/session.h"

#include <stdio.h>
#include <string.h>

#include "util/memory.h"

_Atomic(struct session *) session_used_last;

const char *session_name(int64_t id, char name[SESSION_NAME])
{
    if (session_is_grape5(id))
        (void)snprintf(name, SESSION_NAME, "GRAPE-5 cluster %lld",
                       (long long)(id - SESSION_GRAPE5));
    else
        (void)snprintf(name, SESSION_NAME, "cluster %lld", (long long)id);
    return name;
}

void session_free_pipes(struct pipes *p)
{
    const struct memory_array all[] = {ARRAYS_OF_ROWS(&p->rows, 0), {0}};
    memory_free_all(all);
    memset(p, 0, sizeof *p);
}

int session_grow_pipes(struct pipes *p, int capacity)
{
    const struct memory_array all[] = {ARRAYS_OF_ROWS(&p->rows, capacity), {0}};
    return memory_reserve(all, capacity, &p->capacity);
}
