/* state.c - the j particles and their tree, here or on the device: see state.h. */
#include "tree/state.h"

#include <math.h>
#include <string.h>

#include "cuda/cuda.h"
#include "g6lib.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"

/* ---- j particles ------------------------------------------------------------------- */

enum { GRAIN = 4096 };

#define ARRAYS(s, n)                                                                               \
    MEMORY_ARRAY((s)->x, n), MEMORY_ARRAY((s)->m, n), MEMORY_ARRAY((s)->address, n),               \
        MEMORY_ARRAY((s)->index, n)

void tree_state_free(struct sources *s)
{
    const struct memory_array all[] = {ARRAYS(s, 0), MEMORY_ARRAY(s->v, 0), {0}};
    memory_free_all(all);
    memset(s, 0, sizeof *s);
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

int tree_state_collect(struct sources *s, const struct jmemory *j, int64_t nj, double time,
                       int snap, int velocities, int threads)
{
    if (nj > s->capacity || !velocities != !s->v) tree_state_free(s);
    const struct memory_array at_rest[] = {ARRAYS(s, nj), {0}}, v[] = {MEMORY_ARRAY(s->v, nj), {0}};
    if (!s->capacity && (memory_grow_all(at_rest) || (velocities && memory_grow_all(v)))) {
        tree_state_free(s);
        return G6X_E_MEMORY;
    }
    if (!s->capacity) s->capacity = nj;
    struct collection c = {.s = s, .j = j, .time = time, .snap = snap};
    s->n = 0;
    for (int64_t a = 0; a < nj; a++)
        if (j->note[a].state == SLOT_SET) s->address[s->n++] = (int32_t)a;
    threads_each(threads, s->n, GRAIN, collect, &c);
    s->moving = c.moving;
    s->finite = !c.infinite;
    return 0;
}

int32_t tree_state_number(const struct sources *s, int32_t address)
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

struct tree_input tree_state_input(const struct sources *s)
{
    return (struct tree_input){s->n, CONST3(s->x), CONST3(s->v), s->m};
}

/* ---- the tree ------------------------------------------------------------------------ */

int tree_state_no_memory(struct error *err, const char *what, int64_t n)
{
    return error_set(err, G6X_E_MEMORY, "out of memory for %lld %s", (long long)n, what);
}

int tree_state_build_here(struct octree *t, struct error *err)
{
    const struct tree_input in = tree_state_input(&t->sources);
    if (t->searchable) return 0;
    fpenv_flush(1);
    const int code =
        tree_boxes_build(&t->tree, &in, NULL, options_threads(t->options.threads), err);
    fpenv_flush(0);
    t->searchable = !code;
    return code;
}

int tree_state_by_device(struct octree *t, struct tree_request *request, int *done,
                         struct error *err)
{
    const struct sources *s = &t->sources;
    *done = 0;
    if (!t->on_device || t->in_pieces) return 0;
    request->sources = s->n;
    request->x = &s->x[0][0];
    request->v = s->v ? &s->v[0][0] : NULL;
    request->m = s->m;
    request->changed = t->fresh;
    const int code = cuda_backend_tree(t->direct, request, err);
    if (code) return code;
    t->fresh = 0;
    t->in_pieces = request->unresolved;
    *done = !t->in_pieces;
    return 0;
}
