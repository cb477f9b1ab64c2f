/* softening.c - particles with softening of their own, and splines: what a tree knows of it, and
 * direct sums. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/softened.h"
#include "g6lib.h"
#include "tree/tree.h"
#include "util/memory.h"
#include "util/numbers.h"
#include "util/threads.h"

enum { TARGETS_AT_ONCE = 16 };

void tree_softening_free(struct tree_softening *own)
{
    const struct memory_array all[] = {
        MEMORY_ARRAY(own->eps, 0), MEMORY_ARRAY(own->eps2, 0), MEMORY_ARRAY(own->cell, 0), {0}};
    memory_free_all(all);
}

/* Of a leaf from its particles, of another cell from its children. */
static struct tree_cell_eps2 of_cell(const struct tree *t, const struct tree_cell *c)
{
    struct tree_eps2_sum sum = tree_eps2_begin();
    for (int32_t k = c->first; k < c->end && c->child < 0; k++) {
        const float e = t->own.eps2[k];
        const struct tree_cell_eps2 one = {e, e, e};
        tree_eps2_add(&sum, fabs((double)t->points.m[k]), &one);
    }
    for (int32_t k = c->child; k < c->child_end && c->child >= 0; k++)
        tree_eps2_add(&sum, t->moments[k].total, &t->own.cell[k]);
    return tree_eps2_of(&sum);
}

int tree_softening_set(struct tree *t, int64_t n, const double eps[])
{
    const size_t places = (size_t)n + 2 * TREE_GROUP, cells = (size_t)t->cells + 16;
    const struct memory_array all[] = {MEMORY_ARRAY(t->own.eps, n),
                                       MEMORY_ARRAY(t->own.eps2, places),
                                       MEMORY_ARRAY(t->own.cell, cells),
                                       {0}};
    if (memory_grow_all(all)) {
        tree_softening_free(&t->own);
        return G6X_E_MEMORY;
    }
    memcpy(t->own.eps, eps, (size_t)n * sizeof *eps);
    if (t->pieces || !n) return 0;
    for (int64_t k = 0; k < n; k++) {
        const double e = ldexp(eps[t->points.order[k]], -t->box.length);
        t->own.eps2[k] = (float)(e * e);
    }
    for (int32_t k = t->cells; k-- > 0;) { /* levels, from the deepest one on */
        t->own.cell[k] = of_cell(t, &t->cell[k]);
        t->far[k].eps2 = t->own.cell[k].mean;
    }
    return 0;
}

float *tree_softening_reaches(const struct tree *t, int term, int soft, int jerk, double bound)
{
    float *reach = memory_zeroed(((size_t)t->cells + 16) * sizeof *reach);
    for (int32_t k = 0; k < t->cells && reach && t->own.eps; k++)
        reach[k] = tree_own_reach(&t->own.cell[k], term, soft, jerk, (float)bound);
    return reach;
}

struct work {
    struct softened set;
    const struct tree_input *sources;
    const struct tree_targets *targets;
    const struct tree_forces *out;
    _Atomic int64_t zero_distances;
};

static void sum_some(void *context, int64_t first, int64_t end)
{
    struct work *w = context;
    const struct tree_targets *in = w->targets;
    const double (*x)[3] = in->x ? in->x : w->sources->x, (*v)[3] = in->x ? in->v : w->sources->v;
    for (int64_t i = first; i < end; i++) {
        struct softened_target t = {.eps2 = in->eps2[i],
                                    .self = !in->x     ? i
                                            : in->self ? in->self[i]
                                                       : -1};
        double sum[NSUM];
        memcpy(t.x, x[i], sizeof t.x);
        if (v) memcpy(t.v, v[i], sizeof t.v);
        w->zero_distances += cpu_softened_sum(&w->set, &t, sum);
        w->out->pot[i] = -sum[SUM_POT];
        for (int c = 0; c < 3; c++) {
            w->out->acc[i][c] = sum[SUM_AX + c];
            if (w->out->jerk) w->out->jerk[i][c] = sum[SUM_JX + c];
        }
    }
}

int tree_softening_direct(const struct tree_input *sources, const double eps[], int term,
                          const struct tree_targets *targets, const struct tree_forces *out,
                          int threads, struct tree_counts *counts)
{
    const int64_t n = sources->n, padded = ceil_div(n, SOFTENED_LANES) * SOFTENED_LANES;
    struct work w = {.sources = sources, .targets = targets, .out = out};
    double *all = memory_zeroed((size_t)padded * SOFTENED_NUMBERS * sizeof *all);
    if (!all) return G6X_E_MEMORY;
    w.set.n = n;
    w.set.term = term | (out->jerk ? PAIR_JERK : 0);
    for (int k = 0; k < SOFTENED_NUMBERS; k++) w.set.of[k] = all + k * padded;
    for (int64_t k = 0; k < n; k++) {
        w.set.of[SOFTENED_M][k] = sources->m[k];
        w.set.of[SOFTENED_EPS2][k] = eps ? eps[k] * eps[k] : 0.0;
        for (int c = 0; c < 3; c++) {
            w.set.of[SOFTENED_X + c][k] = sources->x[k][c];
            if (sources->v) w.set.of[SOFTENED_V + c][k] = sources->v[k][c];
        }
    }
    threads_each(threads, targets->n, TARGETS_AT_ONCE, sum_some, &w);
    counts->pairs = n * targets->n;
    counts->zero_distances = w.zero_distances;
    memory_free(all);
    return 0;
}
