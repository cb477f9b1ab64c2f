/* ireg.c - see ireg.h. */
#include "session/ireg.h"

#include <string.h>

#include "g6lib.h"
#include "util/memory.h"

void session_ireg_free(struct pipes *p)
{
    memory_free(p->index);
    memory_free(p->x);
    memory_free(p->v);
    memory_free(p->eps2);
    memory_free(p->h2);
    memset(p, 0, sizeof *p);
}

int session_ireg_grow(struct pipes *p, int room)
{
    if (room <= p->room) return 0;
    const size_t n = (size_t)room, old = (size_t)p->room;
    struct pipes more = {.nip = p->nip, .njp = p->njp, .room = room};
    more.index = memory_zeroed(n * sizeof *more.index);
    more.x = memory_zeroed(n * sizeof *more.x);
    more.v = memory_zeroed(n * sizeof *more.v);
    more.eps2 = memory_zeroed(n * sizeof *more.eps2);
    more.h2 = memory_zeroed(n * sizeof *more.h2);
    if (!more.index || !more.x || !more.v || !more.eps2 || !more.h2) {
        session_ireg_free(&more);
        return G6X_E_MEMORY;
    }
    if (old) {
        memcpy(more.index, p->index, old * sizeof *p->index);
        memcpy(more.x, p->x, old * sizeof *p->x);
        memcpy(more.v, p->v, old * sizeof *p->v);
        memcpy(more.eps2, p->eps2, old * sizeof *p->eps2);
        memcpy(more.h2, p->h2, old * sizeof *p->h2);
    }
    struct pipes gone = *p;
    *p = more;
    session_ireg_free(&gone);
    return 0;
}
