/* iparticles.c - transfer of i particles to the device. From host memory they go through pinned
 * memory: other threads pack them while the caller's thread launches kernels. */
#include <pthread.h>
#include <string.h>

#include "cuda/force.h"
#include "util/memory.h"
#include "util/threads.h"

enum { ROWS_AT_ONCE = 256, ROWS_PER_THREAD = 1024, MOST_COPIERS = 4, THREADS = 256 };

int cuda_iparticles_reserve(struct cuda *c, int ni, struct error *err)
{
    const uint64_t n = (uint64_t)(ceil_div(ni, WIDE_ROWS) * WIDE_ROWS),
                   bytes = n * sizeof(struct cuda_target);
    const int code = cuda_device_reserve(c, &c->pinned_targets, MEMORY_PINNED, bytes, err);
    return code ? code : cuda_device_reserve(c, &c->device_targets, MEMORY_DEVICE, bytes, err);
}

/* ---- from memory of the host ------------------------------------------------------------ */

struct packing {
    struct cuda *c;
    int (*meanwhile)(struct cuda *c, struct error *f);
    struct error *f;
    int code, chunks;
    pthread_t caller;
    _Atomic int next;
    _Atomic unsigned char *done; /* [chunks] */
    int there;                   /* all chunks before this one are packed */
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
        p->code = p->meanwhile(p->c, p->f);
    else
        while (pack_next(p, p->chunks)) continue;
}

/* Waits until the i particles below `count` are packed. */
static void wait_for(struct cuda *c, int count)
{
    struct packing *p = c->packing;
    const int limit = (count + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    while (p->there < limit)
        if (atomic_load_explicit(&p->done[p->there], memory_order_acquire))
            p->there++;
        else if (!pack_next(p, limit))
            threads_pause();
}

int cuda_iparticles_pack(struct cuda *c, int (*meanwhile)(struct cuda *, struct error *),
                         struct error *err)
{
    struct packing p = {.c = c,
                        .meanwhile = meanwhile,
                        .f = err,
                        .chunks = (c->targets.ni + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE,
                        .caller = pthread_self()};
    const int cores = options_threads(c->threads);
    const int most = cores < MOST_COPIERS ? cores : MOST_COPIERS;
    const int useful = c->targets.ni / ROWS_PER_THREAD;
    p.done = memory_zeroed((size_t)p.chunks);
    if (!p.done)
        return error_set(err, G6X_E_MEMORY, "out of memory for %d particles", c->targets.ni);
    c->packing = &p;
    threads_run(useful < most ? useful : most, pack_task, &p);
    memory_free((void *)p.done);
    return p.code;
}

int cuda_iparticles_copy(struct cuda *c, int stream, int first, int count, struct error *err)
{
    const struct driver *d = &c->device.driver;
    const struct cuda_target *pinned = cuda_pointer(&c->pinned_targets);
    const uint64_t to = c->device_targets.address + (uint64_t)first * sizeof *pinned;
    wait_for(c, first + count);
    return cuda_device_check(
        c, d->copy_in(to, pinned + first, (size_t)count * sizeof *pinned, c->device.stream[stream]),
        "copy", err);
}

int cuda_iparticles_are_in_job(const struct cuda *c)
{
    return !c->targets.on_device && c->kernel != KERNEL_WIDE && c->targets.ni <= CUDA_IN_JOB &&
           c->soft_alike;
}

void cuda_iparticles_pack_in_job(const struct cuda *c, struct cuda_small_job *job)
{
    const struct targets *t = &c->targets;
    const size_t n = (size_t)t->ni;
    struct cuda_packed_targets *to = &job->targets;
    job->sum.targets = NULL;
    if (t->fill) t->fill(t->context, 0, t->ni);
    memcpy(to->x, t->x, n * sizeof *to->x);
    memcpy(to->v, t->v, n * sizeof *to->v);
    memcpy(to->index, t->index, n * sizeof *to->index);
    to->eps2 = t->eps2[0];
}

/* ---- from memory of the device ---------------------------------------------------------- */

int cuda_iparticles_load(struct cuda *c, struct error *err)
{
    const struct targets *t = &c->targets;
    int code = cuda_device_clear_notes(c, err);
    if (!code) code = cuda_device_wait_for_caller(c, t->stream, err);
    c->guess = t->want & WANT_NEAREST;
    if (code || !t->ni) return code;
    if (t->rows) {
        code = cuda_device_reserve(c, &c->list, MEMORY_PINNED, (uint64_t)t->ni * 4, err);
        if (code) return code;
        memcpy(cuda_pointer(&c->list), t->rows, (size_t)t->ni * 4);
    }
    struct cuda_read_targets_job job = {.list = t->rows ? cuda_pointer(&c->list) : NULL,
                                        .index = t->index,
                                        .x = (const double *)t->x,
                                        .v = (const double *)t->v,
                                        .eps2 = t->eps2[0],
                                        .targets = cuda_pointer(&c->device_targets),
                                        .notes = cuda_notes(c),
                                        .rows = t->ni};
    c->unread = 1;
    return cuda_device_launch(c, 0, KERNEL_READ_TARGETS, ceil_div(t->ni, THREADS), 1, &job, err);
}
