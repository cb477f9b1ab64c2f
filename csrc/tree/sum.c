/* sum.c - forces of a tree on targets: what a setting means, and how work is shared out. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "g6lib.h"
#include "shared/tree_net_force.h"
#include "shared/tree_opening.h"
#include "tree/kernel.h"
#include "util/memory.h"
#include "util/threads.h"
#include "util/numbers.h"

/* The state of one sum. */
struct tree_sum {
    struct tree_job job;
    struct tree_opening opening;
    const struct tree_kernel *kernel;
    const struct tree_forces *out;
    int lone; /* each group walks from the root */
    /* factors, in two halves: the whole could overflow */
    double phi_unit[2], acc_unit[2], jerk_unit[2];
    _Atomic int missing; /* memory */
    _Atomic int64_t pairs, points, locals, zero_distances;
};

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
        tree_walk_begin(s->job.tree, &w->from[0]);
        k->walk(&s->job, &s->opening, &level2, 0, w);
        memset(w->level2, 0, sizeof w->level2);
        k->expand(&s->job, &level2, w, w->level2, 0);
        k->shift(&s->job, &level2, (const float (*)[TREE_LEVEL1])w->level2, 0, level1, count,
                 w->level1);
    } else {
        tree_walk_begin(s->job.tree, &w->from[2]);
    }
    for (int n = 0; n < count && !w->missing; n++) sum_level1_group(s, &level1[n], w, n);
}

/* A group whose walk begins at the root. */
static void sum_lone_group(const struct tree_sum *s, int64_t first, struct tree_work *w)
{
    const struct tree_kernel *k = s->kernel;
    struct tree_group group;
    struct tree_sums sums;
    tree_walk_begin(s->job.tree, &w->from[2]);
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

static void sum_pieces(void *context, int64_t first, int64_t end)
{
    struct tree_sum *s = context;
    struct tree_work *w = tree_walk_new(s->job.tree);
    for (int64_t k = first; w && k < end && !w->missing; k++)
        if (s->lone)
            sum_lone_group(s, k * TREE_GROUP, w);
        else
            sum_level2_group(s, k * IN_LEVEL2, w);
    if (w) {
        atomic_fetch_add(&s->pairs, w->counts.pairs);
        atomic_fetch_add(&s->points, w->counts.points);
        atomic_fetch_add(&s->locals, w->counts.locals);
        atomic_fetch_add(&s->zero_distances, w->counts.zero_distances);
    }
    if (!w || w->missing) s->missing = 1;
    tree_walk_free(w);
}

/* ---- targets -------------------------------------------------------------------- */

/* What is made of the targets for a sum. */
struct prepared {
    struct tree_points points;
    uint64_t *key;
    int32_t *self;
    float *eps2, *last_acc;
};

/* `wants_last_acc`: they are given, or to be estimated. */
static int prepare(const struct tree *t, const struct tree_targets *targets, int wants_last_acc,
                   struct prepared *p, struct tree_sum *s)
{
    const int64_t n = targets->n;
    const size_t padded = (size_t)n + 2 * TREE_GROUP;
    const double *last_acc = targets->last_acc;
    const int given = targets->x != NULL;
    const struct tree_input in = {n, targets->x, s->job.jerk && given ? targets->v : NULL, NULL};
    struct tree_box box = t->box;
    s->job.speed = tree_build_widen_frame(&box, &in, t->threads);
    tree_halves(s->jerk_unit, box.mass + box.velocity - 3 * box.length);
    if (given && tree_build_load_points(&box, &in, &p->key, &p->points, t->threads))
        return G6X_E_MEMORY;
    const struct tree_points *points = given ? &p->points : &t->points;
    p->eps2 = memory_zeroed(padded * sizeof *p->eps2);
    if (wants_last_acc) p->last_acc = memory_zeroed(padded * sizeof *p->last_acc);
    if (given) p->self = memory_zeroed(padded * sizeof *p->self);
    if (!p->eps2 || (wants_last_acc && !p->last_acc) || (given && !p->self)) return G6X_E_MEMORY;
    double mean = 0.0;
    for (int64_t k = 0; last_acc && k < n; k++) mean += last_acc[k] / (double)n;
    for (int64_t k = 0; k < (int64_t)padded; k++) {
        const int32_t i = points->order[k < n ? k : n - 1];
        p->eps2[k] = (float)ldexp(targets->eps2[i], -2 * t->box.length);
        if (last_acc)
            p->last_acc[k] = (float)ldexp(fmax(TREE_LEAST_ACC * mean, last_acc[i]),
                                          2 * t->box.length - t->box.mass);
        if (given)
            p->self[k] = targets->self && targets->self[i] >= 0 ? t->rank[targets->self[i]] : -1;
    }
    s->job.targets = points;
    s->job.self = p->self;
    s->job.eps2 = p->eps2;
    s->job.own_eps2 = t->own.eps2;
    s->job.given_eps2 = targets->eps2;
    s->job.last_acc = p->last_acc;
    return 0;
}

/* Whether terms are soft: whether eps is at least this share of the sides of the smallest cells,
 * but for a few. */
static int is_soft(const struct tree *t, const struct tree_targets *targets, double least)
{
    double most = 0.0;
    for (int64_t k = 0; k < targets->n && !t->own.eps; k++) most = fmax(most, targets->eps2[k]);
    if (t->own.eps) most = ldexp(2.0 * (double)t->own.cell[0].mean, 2 * t->box.length);
    int level = t->levels;
    while (level > 0 && t->own_cells - t->level_first[level - 1] < TREE_SOFT_LEFT * t->own_cells)
        level--;
    const double side = ldexp(t->box.side, t->box.length - (level - 1));
    return sqrt(most) > least * side;
}

/* ---- wanted accuracy: what errors are shares of -------------------------------------- */

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
        const int64_t at = k * TREE_GROUP;
        struct tree_group g;
        s->kernel->group(&s->job, &s->opening, (int32_t)at, count_from(s, at, TREE_GROUP), &g);
        tree_walk_begin(s->job.tree, &w->from[2]);
        const float found = s->kernel->pull(&s->job, &g, w);
        for (int32_t i = 0; i < g.count; i++) e->last_acc[at + i] = found;
    }
    if (!w || w->missing) e->s->missing = 1;
    tree_walk_free(w);
}

/* Estimates the accelerations of all targets, in units of the box: of each group of them a lower
 * estimate, by a short walk of its own (shared/tree_pull.h). 0 or G6X_E_MEMORY. */
static int estimate(struct tree_sum *s, int threads, float *last_acc)
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

/* --------------------------------------------------------------------------------- */

int tree_sum_one(const struct tree *t, const struct tree_setting *setting,
                 const struct tree_targets *targets, const struct tree_forces *out,
                 struct tree_counts *counts)
{
    const int by_accuracy = setting->accuracy > 0.0;
    const int order = setting->method == TREE_BARNES_HUT ? 0 : setting->order;
    const double theta = by_accuracy ? TREE_WIDEST_BY_BOUND : setting->theta;
    const double bound = by_accuracy ? tree_bound_of(order, setting->accuracy) : setting->bound;
    const int term = tree_pair_term(t, setting);
    const int jerk = out->jerk != NULL;
    const int expands_jerk = jerk && order;
    const double soft_from = expands_jerk  ? TREE_SOFT_FROM_OF_JERKS
                             : bound > 0.0 ? TREE_SOFT_FROM_BY_BOUND
                                           : TREE_SOFT_FROM;
    const int soft = term != PAIR_SPLINE && is_soft(t, targets, soft_from);
    struct tree_sum s = {.job = {.tree = t,
                                 .place = t->place,
                                 .jerk = jerk,
                                 .order = order,
                                 .term = term | (jerk ? PAIR_JERK : 0),
                                 .soft = soft},
                         .opening = tree_opening_of(theta, order, soft, jerk, bound, &t->box),
                         .kernel = tree_walk_kernel(setting->isa),
                         .lone = setting->lone,
                         .out = out};
    struct prepared p = {0};
    struct tree_cell_centre *place = NULL;
    float *reach = term ? tree_softening_reaches(t, term, soft, expands_jerk, bound) : NULL;
    int code = term && !reach ? G6X_E_MEMORY : 0;
    s.opening.own = term;
    s.job.reach = reach;
    tree_halves(s.phi_unit, t->box.mass - t->box.length);
    tree_halves(s.acc_unit, t->box.mass - 2 * t->box.length);
    if (!order && !(bound > 0.0)) { /* a bound goes by radii, as in all estimates */
        s.job.place = place = tree_walk_barnes_hut_places(t, theta);
        if (!place) code = G6X_E_MEMORY;
    }
    if (!code) code = prepare(t, targets, targets->last_acc || by_accuracy, &p, &s);
    if (!code && by_accuracy && !targets->last_acc) code = estimate(&s, t->threads, p.last_acc);
    if (!code) {
        const int64_t at_once = s.lone ? TREE_GROUP : IN_LEVEL2;
        threads_each(t->threads, ceil_div(s.job.targets->n, at_once), 1, sum_pieces, &s);
        code = s.missing ? G6X_E_MEMORY : 0;
    }
    *counts = (struct tree_counts){s.pairs, s.points, s.locals, s.zero_distances};
    tree_build_free_points(&p.points);
    memory_free(p.key);
    memory_free(p.self);
    memory_free(p.eps2);
    memory_free(p.last_acc);
    memory_free(place);
    memory_free(reach);
    return code;
}

/* ---- forces on a tree's own particles that add up to zero ------------------------------ */

/* The power of two below which the sizes of some numbers are. */
static int exponent_of(const double *a, int64_t n)
{
    double most = 0.0;
    int exponent = 0;
    for (int64_t k = 0; k < n; k++) most = fabs(a[k]) > most ? fabs(a[k]) : most;
    (void)frexp(most, &exponent);
    return exponent;
}

void tree_sum_net_force(int64_t n, const double mass[], double (*a)[3])
{
    if (!all_finite(a[0], 3 * (size_t)n)) return; /* an error, which is the caller's to tell */
    struct tree_net_force net = {{0.0, 0.0, 0.0}, 0.0};
    const int exponent = exponent_of(a[0], 3 * n);
    double of_mass[2], unit[2], back[2], scaled[3]; /* powers of two, as factors that fit */
    tree_halves(of_mass, -exponent_of(mass, n));
    tree_halves(unit, -exponent);
    tree_halves(back, exponent);
    for (int64_t k = 0; k < n; k++) {
        for (int c = 0; c < 3; c++) scaled[c] = a[k][c] * unit[0] * unit[1];
        tree_net_force_add(&net, mass[k] * of_mass[0] * of_mass[1], scaled);
    }
    for (int64_t k = 0; k < n; k++) {
        for (int c = 0; c < 3; c++) scaled[c] = a[k][c] * unit[0] * unit[1];
        tree_net_force_remove(&net, mass[k], scaled);
        for (int c = 0; c < 3; c++) a[k][c] = scaled[c] * back[0] * back[1];
    }
}
