/* jmemory_find.c - see jmemory.h: where the particles with an index are; that at an address. */
#include <string.h>

#include "core/jmemory.h"

static uint32_t bucket_of(const struct jmemory *j, int32_t index)
{
    /* Neighbouring labels stay neighbours; multiples of large powers of two spread. */
    const uint32_t u = (uint32_t)index;
    return (u + (u >> 10) * 0x9e3779b1u + (u >> 20) * 0x85ebca77u) & j->head_mask;
}

void jmemory_link(struct jmemory *j, int64_t a)
{
    int32_t *head = &j->head[bucket_of(j, j->note[a].index)];
    if (*head) j->previous[*head - 1] = (int32_t)(a + 1);
    j->previous[a] = 0;
    j->next[a] = *head;
    *head = (int32_t)(a + 1);
}

void jmemory_unlink(struct jmemory *j, int64_t a)
{
    const int32_t next = j->next[a], previous = j->previous[a];
    if (next) j->previous[next - 1] = previous;
    if (previous)
        j->next[previous - 1] = next;
    else
        j->head[bucket_of(j, j->note[a].index)] = next;
}

void jmemory_map(struct jmemory *j)
{
    if (!j->unmapped) return;
    memset(j->head, 0, ((size_t)j->head_mask + 1) * sizeof *j->head);
    for (int64_t a = 0; a < j->capacity; a++)
        if (j->note[a].state != SLOT_EMPTY) jmemory_link(j, a);
    j->unmapped = 0;
}

int jmemory_find(const struct jmemory *j, int32_t index, int64_t nj, int max, int32_t *address)
{
    int found = 0;
    if (!j->capacity) return 0;
    for (int32_t at = j->head[bucket_of(j, index)]; at && found <= max; at = j->next[at - 1]) {
        const int32_t a = at - 1;
        if (j->note[a].index != index || a >= nj || j->note[a].state != SLOT_SET) continue;
        if (found < max) address[found] = a;
        found++;
    }
    return found;
}

int jmemory_look(const struct jmemory *j, int64_t address, struct jmemory_seen *seen)
{
    static const double none[3];
    const struct at_rest *r = &j->rest;
    if (address >= r->first && address < r->end) {
        *seen = (struct jmemory_seen){r->xm[address], none, r->time, r->index[address]};
        return 1;
    }
    if (address >= j->capacity) return 0;
    const struct jparticle *p = &j->body[address];
    *seen = (struct jmemory_seen){p->x, p->v, p->time, p->index};
    return p->state == SLOT_SET;
}
