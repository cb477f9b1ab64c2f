/* sum.c - forces of a tree on targets: what a setting means, and how the work is shared out.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "tree/tree.h"
#include "tree/kernel.h"
#include "tree/parts.h"
#include "shared/tree_opening.h"
#include "util/threads.h"
#include "simd/dispatch.h"
#include "util/numbers.h"

#define DECLARE(isa, ...) extern const struct tree_kernel tree_kernel_##isa;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) &tree_kernel_##isa,
static const struct tree_kernel *const KERNELS[] = {SIMD_COMPILED(ROW)};

enum { HYPER = TREE_GROUP * TREE_SUPER * TREE_HYPER };

struct sum {
    struct tree_job job;
    struct tree_opening opening;
    const struct tree_kernel *kernel;
    const struct tree_forces *out;
    /* factors, in two halves: the whole could overflow */
    double phi_unit[2], acc_unit[2], jerk_unit[2];
    _Atomic int missing;
    _Atomic int64_t pairs, points, locals, zero_distances;
};

static void put(const struct sum *s, const struct tree_group *g, const struct tree_sums *sums)
{
    for (int32_t i = 0; i < g->count; i++) {
        const int32_t to = s->job.targets->order[g->first + i];
        s->out->pot[to] = -sums->phi[i] * s->phi_unit[0] * s->phi_unit[1];
        for (int c = 0; c < 3; c++)
            s->out->acc[to][c] = sums->acc[c][i] * s->acc_unit[0] * s->acc_unit[1];
        for (int c = 0; c < 3 && s->job.jerk; c++)
            s->out->jerk[to][c] = sums->jerk[c][i] * s->jerk_unit[0] * s->jerk_unit[1];
    }
}

static int32_t count_from(const struct sum *s, int64_t first, int64_t most)
{
    const int64_t left = s->job.targets->n - first;
    return (int32_t)(left < most ? left : most);
}

static void sum_super(const struct sum *s, const struct tree_group *super, struct tree_work *w,
                      int number)
{
    const struct tree_kernel *k = s->kernel;
    const int fmm = s->job.order > 0;
    struct tree_group group[TREE_SUPER];
    struct tree_sums sums;
    int count = 0;
    if (fmm) {
        k->walk(&s->job, &s->opening, super, 1, w);
        k->expand(&s->job, super, w, w->super, number);
    }
    for (int32_t at = 0; at < super->count; at += TREE_GROUP)
        k->group(&s->job, &s->opening, super->first + at,
                 count_from(s, super->first + at, TREE_GROUP), &group[count++]);
    if (fmm)
        k->shift(&s->job, super, (const float (*)[TREE_SUPER])w->super, number, group, count,
                 w->group);
    for (int g = 0; g < count && !w->missing; g++) {
        k->walk(&s->job, &s->opening, &group[g], 2, w);
        if (fmm) k->expand(&s->job, &group[g], w, w->group, g);
        k->sum(&s->job, &group[g], w, (const float (*)[TREE_SUPER])w->group, g, &sums);
        put(s, &group[g], &sums);
    }
}

static void sum_hyper(const struct sum *s, int64_t first, struct tree_work *w)
{
    const struct tree_kernel *k = s->kernel;
    struct tree_group hyper, super[TREE_HYPER];
    int count = 0;
    k->group(&s->job, &s->opening, (int32_t)first, count_from(s, first, HYPER), &hyper);
    for (int32_t at = 0; at < hyper.count; at += TREE_GROUP * TREE_SUPER)
        k->group(&s->job, &s->opening, hyper.first + at,
                 count_from(s, hyper.first + at, TREE_GROUP * TREE_SUPER), &super[count++]);
    if (s->job.order) {
        w->from[0].cell[0] = 0;
        w->from[0].count = 1;
        k->walk(&s->job, &s->opening, &hyper, 0, w);
        memset(w->hyper, 0, sizeof w->hyper);
        k->expand(&s->job, &hyper, w, w->hyper, 0);
        k->shift(&s->job, &hyper, (const float (*)[TREE_SUPER])w->hyper, 0, super, count, w->super);
    } else {
        w->from[2].cell[0] = 0;
        w->from[2].count = 1;
    }
    for (int n = 0; n < count && !w->missing; n++) sum_super(s, &super[n], w, n);
}

static void free_work(struct tree_work *w)
{
    struct tree_list *lists[] = {&w->from[0],  &w->from[1], &w->from[2], &w->front[0],
                                 &w->front[1], &w->local,   &w->point,   &w->leaf};
    for (int k = 0; k < 8; k++) memory_free(lists[k]->cell);
    memory_free(w);
}

static void sum_hypers(void *context, int64_t first, int64_t end)
{
    struct sum *s = context;
    struct tree_work *w = memory_zeroed(sizeof *w);
    if (w) {
        for (int k = 0; k < 3; k++) {
            w->from[k].cell = memory_zeroed(64 * sizeof *w->from[k].cell);
            w->from[k].capacity = 64;
            w->missing |= !w->from[k].cell;
        }
        for (int64_t h = first; h < end && !w->missing; h++) sum_hyper(s, h * HYPER, w);
        atomic_fetch_add(&s->pairs, w->counts.pairs);
        atomic_fetch_add(&s->points, w->counts.points);
        atomic_fetch_add(&s->locals, w->counts.locals);
        atomic_fetch_add(&s->zero_distances, w->counts.zero_distances);
    }
    if (!w || w->missing) s->missing = 1;
    if (w) free_work(w);
}

/* ---- settings ------------------------------------------------------------------- */

/* The places of all cells as Barnes and Hut's walk takes them; NULL: no memory. */
static struct tree_place *barnes_hut_places(const struct tree *t, double theta)
{
    struct tree_place *place = memory_zeroed(((size_t)t->cells + 16) * sizeof *place);
    for (int level = 0; place && level < t->levels; level++) {
        const double side = ldexp(t->box.side, -level);
        const int32_t end = level + 1 < t->levels ? t->level_first[level + 1] : t->cells;
        for (int32_t k = t->level_first[level]; k < end; k++) {
            place[k] = t->place[k];
            place[k].size = tree_barnes_hut_size(&t->moments[k], t->box.low, side, theta);
        }
    }
    return place;
}

/* ---- targets -------------------------------------------------------------------- */

/* What is made of the targets for a sum. */
struct prepared {
    struct tree_points points;
    uint64_t *key;
    int32_t *self;
    float *eps2, *last_acc;
};

static void free_prepared(struct prepared *p)
{
    tree_build_free_points(&p->points);
    memory_free(p->key);
    memory_free(p->self);
    memory_free(p->eps2);
    memory_free(p->last_acc);
}

static int prepare(const struct tree *t, const struct tree_input *targets, const int32_t *self,
                   const double *eps2, const double *last_acc, struct prepared *p, struct sum *s)
{
    const int64_t n = targets ? targets->n : t->points.n;
    const size_t padded = (size_t)n + 2 * TREE_GROUP;
    struct tree_input in = targets ? *targets : (struct tree_input){0};
    struct tree_box box = t->box;
    if (!s->job.jerk) in.v = NULL;
    s->job.speed = tree_motion_widen_frame(&box, &in, t->threads);
    tree_halves(s->jerk_unit, box.mass + box.velocity - 3 * box.length);
    if (targets && tree_build_load_points(&box, &in, &p->key, &p->points, t->threads))
        return G6X_E_MEMORY;
    const struct tree_points *points = targets ? &p->points : &t->points;
    p->eps2 = memory_zeroed(padded * sizeof *p->eps2);
    if (last_acc) p->last_acc = memory_zeroed(padded * sizeof *p->last_acc);
    if (targets) p->self = memory_zeroed(padded * sizeof *p->self);
    if (!p->eps2 || (last_acc && !p->last_acc) || (targets && !p->self)) return G6X_E_MEMORY;
    for (int64_t k = 0; k < (int64_t)padded; k++) {
        const int32_t i = points->order[k < n ? k : n - 1];
        p->eps2[k] = (float)ldexp(eps2[i], -2 * t->box.length);
        if (last_acc) p->last_acc[k] = (float)ldexp(last_acc[i], 2 * t->box.length - t->box.mass);
        if (targets) p->self[k] = self && self[i] >= 0 ? t->rank[self[i]] : -1;
    }
    s->job.targets = points;
    s->job.self = targets ? p->self : NULL;
    s->job.eps2 = p->eps2;
    s->job.last_acc = p->last_acc;
    return 0;
}

int tree_sum(const struct tree *t, const struct tree_setting *setting,
             const struct tree_input *targets, const int32_t *self, const double *eps2,
             const double *last_acc, const struct tree_forces *out, struct tree_counts *counts,
             struct error *err)
{
    const int64_t n = targets ? targets->n : t->points.n;
    struct sum s = {.out = out, .kernel = KERNELS[simd_dispatch(setting->isa)]};
    struct prepared p = {0};
    struct tree_place *place = NULL;
    int code = 0;
    if (!n) return 0;
    if (out->jerk && (!t->points.vx || (targets && !targets->v)))
        return error_set(err, G6X_E_NULL, "jerks of a tree without velocities");
    if (t->parts)
        return tree_parts_sum(t, setting, targets, self, eps2, last_acc, out, counts, err);
    s.opening = tree_opening_of(setting->theta, setting->method == TREE_BARNES_HUT, setting->bound);
    s.job.tree = t;
    s.job.place = t->place;
    s.job.jerk = out->jerk != NULL;
    s.job.order = setting->method == TREE_BARNES_HUT ? 0 : setting->order;
    tree_halves(s.phi_unit, t->box.mass - t->box.length);
    tree_halves(s.acc_unit, t->box.mass - 2 * t->box.length);
    if (setting->method == TREE_BARNES_HUT) {
        s.job.place = place = barnes_hut_places(t, setting->theta);
        if (!place) code = G6X_E_MEMORY;
    }
    if (!code) code = prepare(t, targets, self, eps2, last_acc, &p, &s);
    if (!code) threads_each(t->threads, ceil_div(n, HYPER), 1, sum_hypers, &s);
    if (counts) *counts = (struct tree_counts){s.pairs, s.points, s.locals, s.zero_distances};
    free_prepared(&p);
    memory_free(place);
    if (code || s.missing)
        return error_set(err, G6X_E_MEMORY,
                         "out of memory for the forces of a tree on %lld targets", (long long)n);
    return 0;
}
