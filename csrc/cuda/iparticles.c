/* iparticles.c - i particles on their way to pinned memory: other threads copy while the caller's
 * launches what can be launched. */
#include <pthread.h>
#include <string.h>

#include "cuda/cuda.h"
#include "util/memory.h"
#include "util/threads.h"

enum { ROWS_AT_ONCE = 256, ROWS_WORTH_A_THREAD = 1024, MOST_COPIERS = 4 };

struct packing {
    struct cuda *c;
    int (*meanwhile)(struct cuda *c, void *argument, struct fault *f);
    void *argument;
    struct fault *f;
    int code, chunks;
    pthread_t caller;
    _Atomic int next;
    _Atomic unsigned char *done; /* [chunks] */
    int there;                   /* chunks before this one are */
};

static void pack_chunk(struct packing *p, int chunk)
{
    const struct targets *t = &p->c->targets;
    struct cuda_target *to = cuda_pointer(&p->c->pinned_targets);
    const int first = chunk * ROWS_AT_ONCE,
              end = t->ni - first < ROWS_AT_ONCE ? t->ni : first + ROWS_AT_ONCE;
    if (t->fill) t->fill(t->context, first, end - first);
    for (int i = first; i < end; i++) {
        memcpy(to[i].x, t->x[i], sizeof to->x);
        memcpy(to[i].v, t->v[i], sizeof to->v);
        to[i].eps2 = t->eps2[i];
        to[i].index = t->index[i];
    }
    atomic_store_explicit(&p->done[chunk], 1, memory_order_release);
}

/* Packs the next chunk, if it is before `limit`. */
static int pack_next(struct packing *p, int limit)
{
    int chunk = atomic_load(&p->next);
    while (chunk < limit)
        if (atomic_compare_exchange_weak(&p->next, &chunk, chunk + 1)) {
            pack_chunk(p, chunk);
            return 1;
        }
    return 0;
}

static void pack_task(void *packing)
{
    struct packing *p = packing;
    if (pthread_equal(pthread_self(), p->caller))
        p->code = p->meanwhile(p->c, p->argument, p->f);
    else
        while (pack_next(p, p->chunks)) continue;
}

void cuda_iparticles_wait(struct cuda *c, int count)
{
    struct packing *p = c->packing;
    const int limit = (count + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    while (p->there < limit)
        if (atomic_load_explicit(&p->done[p->there], memory_order_acquire))
            p->there++;
        else if (!pack_next(p, limit))
            threads_pause();
}

int cuda_iparticles_pack(struct cuda *c, int (*meanwhile)(struct cuda *, void *, struct fault *),
                         void *argument, struct fault *f)
{
    struct packing p = {.c = c,
                        .meanwhile = meanwhile,
                        .argument = argument,
                        .f = f,
                        .chunks = (c->targets.ni + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE,
                        .caller = pthread_self()};
    const int cores = options_threads(c->threads);
    const int most = cores < MOST_COPIERS ? cores : MOST_COPIERS;
    const int worth = c->targets.ni / ROWS_WORTH_A_THREAD;
    p.done = memory_zeroed((size_t)p.chunks);
    if (!p.done) return error_set(f, G6X_E_MEMORY, "out of memory for %d particles", c->targets.ni);
    c->packing = &p;
    threads_run(worth < most ? worth : most, pack_task, &p);
    memory_free((void *)p.done);
    return p.code;
}
