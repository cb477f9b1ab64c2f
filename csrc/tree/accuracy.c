/* accuracy.c - the accelerations of which the errors of terms are to be small shares: of each group
 * of targets a lower estimate, by a short walk of its own (shared/tree_pull.h). */
#include <math.h>

#include "g6lib.h"
#include "tree/sum.h"
#include "util/numbers.h"
#include "util/threads.h"

struct estimates {
    struct tree_sum *s;
    float *last_acc;
};

static void estimate_groups(void *context, int64_t first, int64_t end)
{
    const struct estimates *e = context;
    const struct tree_sum *s = e->s;
    struct tree_work *w = tree_walk_new(s->job.tree);
    for (int64_t k = first; w && k < end && !w->missing; k++) {
        const int64_t at = k * TREE_GROUP, left = s->job.targets->n - at;
        struct tree_group g;
        s->kernel->group(&s->job, &s->opening, (int32_t)at,
                         (int32_t)(left < TREE_GROUP ? left : TREE_GROUP), &g);
        tree_walk_begin(s->job.tree, &w->from[2]);
        const float found = s->kernel->pull(&s->job, &g, w);
        for (int32_t i = 0; i < g.count; i++) e->last_acc[at + i] = found;
    }
    if (!w || w->missing) e->s->missing = 1;
    tree_walk_free(w);
}

int tree_accuracy_estimate(struct tree_sum *s, int threads, float *last_acc)
{
    const int64_t n = s->job.targets->n;
    struct estimates e = {s, last_acc};
    threads_each(threads, ceil_div(n, TREE_GROUP), 1, estimate_groups, &e);
    double mean = 0.0;
    for (int64_t k = 0; k < n; k++) mean += (double)last_acc[k] / (double)n;
    const float least = (float)fmax(TREE_LEAST_ESTIMATE, TREE_LEAST_ACC * mean);
    for (int64_t k = 0; k < n; k++) last_acc[k] = fmaxf(least, last_acc[k]);
    return s->missing ? G6X_E_MEMORY : 0;
}
