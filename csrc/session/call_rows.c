/* call_rows.c - see call_rows.h. */
#include "session/call_rows.h"

#include <string.h>

#include "util/memory.h"

#define ARRAYS(r, n)                                                                               \
    {MEMORY_ARRAY((r)->index, n),    MEMORY_ARRAY((r)->x, n),    MEMORY_ARRAY((r)->v, n),          \
     MEMORY_ARRAY((r)->eps2, n),     MEMORY_ARRAY((r)->h2, n),   MEMORY_ARRAY((r)->invalid, n),    \
     MEMORY_ARRAY((r)->distance, n), MEMORY_ARRAY((r)->fine, n), {0}}

void session_call_rows_free(struct session *s)
{
    const struct memory_array all[] = ARRAYS(&s->call.all, 0);
    memory_free_all(all);
    memset(&s->call, 0, sizeof s->call);
}

int session_call_rows_reserve(struct session *s, int rows)
{
    struct force_call *c = &s->call;
    const struct memory_array all[] = ARRAYS(&c->all, rows);
    if (rows <= c->capacity) return 0;
    const int code = memory_grow_all(all);
    if (!code) c->capacity = rows;
    session_call_rows_window(s, 0); /* after an error, too, some arrays may have moved */
    return code;
}

void session_call_rows_window(struct session *s, int first)
{
    struct force_call *c = &s->call;
    const struct call_rows *all = &c->all;
    c->first = first;
    c->lists.count = 0;
    c->distances = 0;
    if (!c->capacity) return;
    c->index = all->index + first;
    c->x = all->x + first;
    c->v = all->v + first;
    c->eps2 = all->eps2 + first;
    c->h2 = all->h2 + first;
    c->invalid = all->invalid + first;
    c->distance = all->distance + first;
}

void session_call_rows_forget(struct session *s) { s->call.made = 0; }

int session_call_rows_collect(struct session *s, unsigned want, int count)
{
    struct force_call *c = &s->call;
    struct results *r = &c->results;
    const int first = c->first;
    const int code = s->backend->collect(s->state, want, first + count, r, &s->error);
    if (code || !first) return code;
    for (int k = 0; k < NSUM; k++) r->sum[k] += first;
    r->nearest += first;
    r->index += first;
    if (r->fine) r->fine += first;
    return 0;
}
