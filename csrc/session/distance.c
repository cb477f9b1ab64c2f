/* distance.c - see distance.h. */
#include "session/distance.h"

#include "cpu/exact.h"
#include "util/threads.h"

/* Particles that are read into the cache before they are needed: they lie anywhere. */
enum { AHEAD = 8 };

void session_distance_rows(const struct force_call *c, const struct direct_job *job, int first,
                           int end)
{
    const int32_t *nearest = c->results.nearest;
    for (int i = first; i < end; i++) {
        if (i + AHEAD < end && nearest[i + AHEAD] >= 0) {
            const char *next = (const char *)&job->memory->body[nearest[i + AHEAD]];
            __builtin_prefetch(next);
            __builtin_prefetch(next + 64);
        }
        if (nearest[i] >= 0) c->distance[i] = cpu_exact_distance(job, i, nearest[i]);
    }
}

struct others {
    const struct force_call *call;
    const struct direct_job *job;
};

static void some(void *others, int64_t first, int64_t end)
{
    const struct others *o = others;
    const int before = o->call->distances;
    session_distance_rows(o->call, o->job, before + (int)first, before + (int)end);
}

void session_distance_others(struct force_call *c, const struct direct_job *job, int threads)
{
    enum { ROWS = 512, ROWS_WORTH_A_THREAD = 2048 };
    struct others o = {c, job};
    const int rows = c->ni - c->distances, worth = rows / ROWS_WORTH_A_THREAD;
    threads_each(worth < threads ? worth : threads, rows, ROWS, some, &o);
    c->distances = c->ni;
}
