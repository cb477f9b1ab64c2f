/* sources.c - see sources.h. */
#include "tree/sources.h"

#include <math.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "util/threads.h"

enum { GRAIN = 4096 };

#define ARRAYS(s, n)                                                                               \
    MEMORY_ARRAY((s)->x, n), MEMORY_ARRAY((s)->m, n), MEMORY_ARRAY((s)->address, n),               \
        MEMORY_ARRAY((s)->index, n)

void tree_sources_free(struct sources *s)
{
    const struct memory_array all[] = {ARRAYS(s, 0), MEMORY_ARRAY(s->v, 0), {0}};
    memory_free_all(all);
    memset(s, 0, sizeof *s);
}

static int reserve(struct sources *s, int64_t n, int velocities)
{
    if (n > s->capacity || !velocities != !s->v) tree_sources_free(s);
    if (s->capacity) return 0;
    const struct memory_array at_rest[] = {ARRAYS(s, n), {0}}, v[] = {MEMORY_ARRAY(s->v, n), {0}};
    if (memory_grow_all(at_rest) || (velocities && memory_grow_all(v))) {
        tree_sources_free(s);
        return G6X_E_MEMORY;
    }
    s->capacity = n;
    return 0;
}

struct collection {
    struct sources *s;
    const struct jmemory *j;
    double time;
    int snap;
    _Atomic int moving, infinite;
};

static void collect(void *context, int64_t first, int64_t end)
{
    struct collection *c = context;
    struct sources *s = c->s;
    double v[3];
    int moving = 0, infinite = 0;
    for (int64_t k = first; k < end; k++) {
        const int32_t a = s->address[k];
        const struct jparticle *p = &c->j->body[a];
        jmemory_predict(c->j, a, c->time, c->snap, s->x[k], v);
        if (s->v) memcpy(s->v[k], v, sizeof v);
        s->m[k] = p->mass;
        s->index[k] = p->index;
        for (int d = 0; d < 3; d++) {
            moving |= p->v[d] != 0.0 || p->a2[d] != 0.0 || p->j6[d] != 0.0;
            moving |= c->snap && c->j->k18 && c->j->k18[a][d] != 0.0;
            infinite |= !isfinite(s->x[k][d]) || !isfinite(v[d]);
        }
    }
    if (moving) c->moving = 1;
    if (infinite) c->infinite = 1;
}

int tree_sources_collect(struct sources *s, const struct jmemory *j, int64_t nj, double time,
                         int snap, int velocities, int threads)
{
    if (reserve(s, nj, velocities)) return G6X_E_MEMORY;
    struct collection c = {.s = s, .j = j, .time = time, .snap = snap};
    s->n = 0;
    for (int64_t a = 0; a < nj; a++)
        if (j->note[a].state == SLOT_SET) s->address[s->n++] = (int32_t)a;
    threads_each(threads, s->n, GRAIN, collect, &c);
    s->moving = c.moving;
    s->finite = !c.infinite;
    return 0;
}

int32_t tree_sources_number(const struct sources *s, int32_t address)
{
    int64_t low = 0, high = s->n < (int64_t)address + 1 ? s->n : (int64_t)address + 1;
    if (high > address && s->address[address] == address) return address; /* all are set */
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (s->address[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && s->address[low] == address ? (int32_t)low : -1;
}

struct tree_input tree_sources_input(const struct sources *s)
{
    return (struct tree_input){s->n, CONST3(s->x), CONST3(s->v), s->m};
}
