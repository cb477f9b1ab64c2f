/* force_list.c - neighbour lists of the last force call. See force.h. */
#include <stdlib.h>
#include <string.h>

#include "session/force.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "core/mutants.h"

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int session_force_list(struct session *s, int pipe, int maxlength, int *length, int *list)
{
    struct force_call *c = &s->call;
    const int32_t *index;
    int64_t found, n = 0;
    if (!length || (!list && maxlength > 0))
        return error_set(&s->fault, G6X_E_NULL, "g6_get_neighbour_list: null pointer");
    *length = 0;
    if (!c->made)
        return error_set(&s->fault, G6X_E_NO_FIRSTHALF, "neighbour list without a force call");
    if (pipe < 0 || pipe >= c->ni)
        return error_set(&s->fault, G6X_E_PIPE, "neighbour list of pipe %d of %d", pipe, c->ni);
    if (c->code) return c->code;
    if (c->invalid[pipe]) return G6X_E_I_NAN;
    if (MISTAKE(lists_empty)) return 0;
    struct fpenv host;
    fpenv_enter(&host);
    int code =
        s->backend->neighbours(s->state, c->first + pipe, c->all.h2, &index, &found, &s->fault);
    if (code && !session_force_resume(s, code))
        code =
            s->backend->neighbours(s->state, c->first + pipe, c->all.h2, &index, &found, &s->fault);
    fpenv_leave(&host);
    if (code) return code;
    if (found > s->list_capacity) {
        int32_t *more = memory_zeroed((size_t)found * sizeof *more);
        if (!more)
            return error_set(&s->fault, G6X_E_MEMORY, "out of memory for a list of %lld neighbours",
                             (long long)found);
        memory_free(s->list);
        s->list = more;
        s->list_capacity = found;
    }
    for (int64_t k = 0; k < found; k++)
        if (s->options.neighbour_self || index[k] != c->index[pipe]) s->list[n++] = index[k];
    if (n) qsort(s->list, (size_t)n, sizeof *s->list, ascending);
    if (MISTAKE(lists_truncated) && n > 256) n = 256;
    *length = (int)n;
    if (n && maxlength > 0)
        memcpy(list, s->list, (size_t)(n < maxlength ? n : maxlength) * sizeof *list);
    return n > maxlength;
}
