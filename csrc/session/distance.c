/* distance.c - see distance.h. */
#include "session/distance.h"

#include "cpu/exact.h"
#include "util/threads.h"

/* Prefetch distance in rows: the neighbours are scattered in memory. */
enum { AHEAD = 8 };

static void find_rows(const struct force_call *c, const struct direct_job *job, int first, int end)
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

struct distances {
    const struct force_call *call;
    const struct direct_job *job;
};

static void some(void *distances, int64_t first, int64_t end)
{
    const struct distances *d = distances;
    const int before = d->call->distances;
    find_rows(d->call, d->job, before + (int)first, before + (int)end);
}

void session_distance_up_to(struct force_call *c, const struct direct_job *job, int end,
                            int threads)
{
    enum { ROWS = 256, ROWS_PER_THREAD = 512 };
    struct distances d = {c, job};
    const int rows = end - c->distances;
    threads_each(options_threads_for(rows / ROWS_PER_THREAD, threads), rows, ROWS, some, &d);
    c->distances = end;
}
