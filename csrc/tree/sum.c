/* sum.c - forces of a tree on targets: what a setting means, and how the work is shared out.
 */
#include "tree/sum.h"

#include <math.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "tree/parts.h"
#include "util/threads.h"
#include "simd/dispatch.h"
#include "util/numbers.h"

#define DECLARE(isa, ...) extern const struct tree_kernel tree_kernel_##isa;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) &tree_kernel_##isa,
static const struct tree_kernel *const KERNELS[] = {SIMD_COMPILED(ROW)};

const struct tree_kernel *tree_sum_kernel(int isa) { return KERNELS[simd_dispatch(isa)]; }

enum { IN_LEVEL2 = TREE_GROUP * TREE_LEVEL1 * TREE_LEVEL2 };

static void put(const struct tree_sum *s, const struct tree_group *g, const struct tree_sums *sums)
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

static int32_t count_from(const struct tree_sum *s, int64_t first, int64_t most)
{
    const int64_t left = s->job.targets->n - first;
    return (int32_t)(left < most ? left : most);
}

void tree_sum_begin(const struct tree_sum *s, struct tree_list *list)
{
    const struct tree *t = s->job.tree;
    list->cell[0] = 0;
    if (t->roots) memcpy(list->cell + 1, t->root, (size_t)t->roots * sizeof *t->root);
    list->count = 1 + t->roots;
}

static void sum_level1_group(const struct tree_sum *s, const struct tree_group *level1,
                             struct tree_work *w, int number)
{
    const struct tree_kernel *k = s->kernel;
    const int fmm = s->job.order > 0;
    struct tree_group group[TREE_LEVEL1];
    struct tree_sums sums;
    int count = 0;
    if (fmm) {
        k->walk(&s->job, &s->opening, level1, 1, w);
        k->expand(&s->job, level1, w, w->level1, number);
    }
    for (int32_t at = 0; at < level1->count; at += TREE_GROUP)
        k->group(&s->job, &s->opening, level1->first + at,
                 count_from(s, level1->first + at, TREE_GROUP), &group[count++]);
    if (fmm)
        k->shift(&s->job, level1, (const float (*)[TREE_LEVEL1])w->level1, number, group, count,
                 w->group);
    for (int g = 0; g < count && !w->missing; g++) {
        k->walk(&s->job, &s->opening, &group[g], 2, w);
        if (fmm) k->expand(&s->job, &group[g], w, w->group, g);
        k->sum(&s->job, &group[g], w, (const float (*)[TREE_LEVEL1])w->group, g, &sums);
        put(s, &group[g], &sums);
    }
}

static void sum_level2_group(const struct tree_sum *s, int64_t first, struct tree_work *w)
{
    const struct tree_kernel *k = s->kernel;
    struct tree_group level2, level1[TREE_LEVEL2];
    int count = 0;
    k->group(&s->job, &s->opening, (int32_t)first, count_from(s, first, IN_LEVEL2), &level2);
    for (int32_t at = 0; at < level2.count; at += TREE_GROUP * TREE_LEVEL1)
        k->group(&s->job, &s->opening, level2.first + at,
                 count_from(s, level2.first + at, TREE_GROUP * TREE_LEVEL1), &level1[count++]);
    if (s->job.order) {
        tree_sum_begin(s, &w->from[0]);
        k->walk(&s->job, &s->opening, &level2, 0, w);
        memset(w->level2, 0, sizeof w->level2);
        k->expand(&s->job, &level2, w, w->level2, 0);
        k->shift(&s->job, &level2, (const float (*)[TREE_LEVEL1])w->level2, 0, level1, count,
                 w->level1);
    } else {
        tree_sum_begin(s, &w->from[2]);
    }
    for (int n = 0; n < count && !w->missing; n++) sum_level1_group(s, &level1[n], w, n);
}

void tree_sum_free_work(struct tree_work *w)
{
    if (!w) return;
    struct tree_list *lists[] = {&w->from[0],  &w->from[1], &w->from[2], &w->front[0],
                                 &w->front[1], &w->local,   &w->point,   &w->leaf};
    for (int k = 0; k < 8; k++) memory_free(lists[k]->cell);
    memory_free(w);
}

struct tree_work *tree_sum_new_work(const struct tree *t)
{
    struct tree_work *w = memory_zeroed(sizeof *w);
    for (int k = 0; k < 3 && w; k++) {
        struct tree_list *from = &w->from[k];
        from->capacity = 64 + t->roots;
        from->cell = memory_zeroed((size_t)from->capacity * sizeof *from->cell);
        w->missing |= !from->cell;
    }
    return w;
}

/* A group whose walk begins at the root. */
static void sum_lone_group(const struct tree_sum *s, int64_t first, struct tree_work *w)
{
    const struct tree_kernel *k = s->kernel;
    struct tree_group group;
    struct tree_sums sums;
    tree_sum_begin(s, &w->from[2]);
    k->group(&s->job, &s->opening, (int32_t)first, count_from(s, first, TREE_GROUP), &group);
    k->walk(&s->job, &s->opening, &group, 2, w);
    if (s->job.order) {
        memset(w->group, 0, sizeof w->group);
        k->expand(&s->job, &group, w, w->group, 0);
    }
    if (w->missing) return;
    k->sum(&s->job, &group, w, (const float (*)[TREE_LEVEL1])w->group, 0, &sums);
    put(s, &group, &sums);
}

static void sum_pieces(struct tree_sum *s, int64_t first, int64_t end, int64_t targets,
                       void (*sum)(const struct tree_sum *, int64_t, struct tree_work *))
{
    struct tree_work *w = tree_sum_new_work(s->job.tree);
    if (w) {
        for (int64_t k = first; k < end && !w->missing; k++) sum(s, k * targets, w);
        atomic_fetch_add(&s->pairs, w->counts.pairs);
        atomic_fetch_add(&s->points, w->counts.points);
        atomic_fetch_add(&s->locals, w->counts.locals);
        atomic_fetch_add(&s->zero_distances, w->counts.zero_distances);
    }
    if (!w || w->missing) s->missing = 1;
    tree_sum_free_work(w);
}

static void sum_level2_groups(void *context, int64_t first, int64_t end)
{
    sum_pieces(context, first, end, IN_LEVEL2, sum_level2_group);
}

static void sum_lone_groups(void *context, int64_t first, int64_t end)
{
    sum_pieces(context, first, end, TREE_GROUP, sum_lone_group);
}

int tree_sum_run(struct tree_sum *s, int lone, int threads)
{
    const int64_t n = s->job.targets->n;
    if (lone)
        threads_each(threads, ceil_div(n, TREE_GROUP), 1, sum_lone_groups, s);
    else
        threads_each(threads, ceil_div(n, IN_LEVEL2), 1, sum_level2_groups, s);
    return s->missing ? G6X_E_MEMORY : 0;
}

/* ---- settings ------------------------------------------------------------------- */

struct tree_cell_centre *tree_sum_barnes_hut_places(const struct tree *t, double theta)
{
    struct tree_cell_centre *place = memory_zeroed(((size_t)t->cells + 16) * sizeof *place);
    for (int level = 0; place && level < t->levels; level++) {
        const double side = ldexp(t->box.side, -level);
        const int32_t end = level + 1 < t->levels ? t->level_first[level + 1] : t->own_cells;
        for (int32_t k = t->level_first[level]; k < end; k++) {
            place[k] = t->place[k];
            place[k].size = tree_barnes_hut_size(&t->moments[k], t->box.low, side, theta);
        }
    }
    for (int32_t k = t->own_cells; place && k < t->cells; k++) place[k] = t->place[k];
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

static double mean(const double *a, int64_t n)
{
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) sum += a[k] / (double)n;
    return sum;
}

static int prepare(const struct tree *t, const struct tree_input *targets, const int32_t *self,
                   const double *eps2, const double *last_acc, int wants_last_acc,
                   struct prepared *p, struct tree_sum *s)
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
    if (wants_last_acc) p->last_acc = memory_zeroed(padded * sizeof *p->last_acc);
    if (targets) p->self = memory_zeroed(padded * sizeof *p->self);
    if (!p->eps2 || (wants_last_acc && !p->last_acc) || (targets && !p->self)) return G6X_E_MEMORY;
    const double least = last_acc ? TREE_LEAST_ACC * mean(last_acc, n) : 0.0;
    for (int64_t k = 0; k < (int64_t)padded; k++) {
        const int32_t i = points->order[k < n ? k : n - 1];
        p->eps2[k] = (float)ldexp(eps2[i], -2 * t->box.length);
        if (last_acc)
            p->last_acc[k] =
                (float)ldexp(fmax(least, last_acc[i]), 2 * t->box.length - t->box.mass);
        if (targets) p->self[k] = self && self[i] >= 0 ? t->rank[self[i]] : -1;
    }
    s->job.targets = points;
    s->job.self = targets ? p->self : NULL;
    s->job.eps2 = p->eps2;
    s->job.last_acc = p->last_acc;
    return 0;
}

/* The errors that the setting allows; `given`: last accelerations were. */
static int set_opening(struct tree_sum *s, const struct tree_setting *setting, int given,
                       float *last_acc, int threads)
{
    const int by_accuracy = setting->accuracy > 0.0;
    const double bound =
        by_accuracy ? tree_bound_of(s->job.order, setting->accuracy) : setting->bound;
    const struct tree *t = s->job.tree;
    s->opening = tree_opening_of(by_accuracy ? TREE_WIDEST : setting->theta, s->job.order, bound,
                                 t->box.usual_mass);
    return by_accuracy && !given ? tree_accuracy_estimate(s, threads, last_acc) : 0;
}

int tree_sum(const struct tree *t, const struct tree_setting *setting,
             const struct tree_input *targets, const int32_t *self, const double *eps2,
             const double *last_acc, const struct tree_forces *out, struct tree_counts *counts,
             struct error *err)
{
    const int64_t n = targets ? targets->n : t->points.n;
    const int barnes_hut = setting->method == TREE_BARNES_HUT;
    struct tree_sum s = {.out = out, .kernel = tree_sum_kernel(setting->isa)};
    struct prepared p = {0};
    struct tree_cell_centre *place = NULL;
    int code = 0;
    if (!n) return 0;
    if (out->jerk && (!t->points.vx || (targets && !targets->v)))
        return error_set(err, G6X_E_NULL, "jerks of a tree without velocities");
    if (t->parts)
        return tree_parts_sum(t, setting, targets, self, eps2, last_acc, out, counts, err);
    s.job.tree = t;
    s.job.place = t->place;
    s.job.jerk = out->jerk != NULL;
    s.job.order = barnes_hut ? 0 : setting->order;
    tree_halves(s.phi_unit, t->box.mass - t->box.length);
    tree_halves(s.acc_unit, t->box.mass - 2 * t->box.length);
    if (barnes_hut && !(setting->bound > 0.0)) { /* a bound goes by radii, as in all estimates */
        s.job.place = place = tree_sum_barnes_hut_places(t, setting->theta);
        if (!place) code = G6X_E_MEMORY;
    }
    if (!code)
        code =
            prepare(t, targets, self, eps2, last_acc, last_acc || setting->accuracy > 0.0, &p, &s);
    if (!code) code = set_opening(&s, setting, last_acc != NULL, p.last_acc, t->threads);
    if (!code) code = tree_sum_run(&s, setting->lone, t->threads);
    if (counts) *counts = (struct tree_counts){s.pairs, s.points, s.locals, s.zero_distances};
    free_prepared(&p);
    memory_free(place);
    if (code)
        return error_set(err, G6X_E_MEMORY,
                         "out of memory for the forces of a tree on %lld targets", (long long)n);
    return 0;
}
