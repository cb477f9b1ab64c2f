/* accuracy.c - the bound on the errors of terms that gives a wanted median error, and no long tail.
 * How many terms a force has, and how their errors add up, depends on the shape of the system: so
 * the error is measured, on a sample of groups of the tree's own particles, beside sums with a far
 * lower bound. The first estimate of the accelerations is a coarse sum on one target in 32, in
 * which leaves act as wholes. All this depends on particles and targets alone, not on threads. */
#include <math.h>
#include <stdlib.h>

#include "g6lib.h"
#include "tree/sum.h"
#include "util/memory.h"

enum {
    STRIDE = 32,         /* of the targets whose accelerations are estimated */
    MANY = 4096,         /* so many of them are near each other */
    SAMPLE_GROUPS = 64,  /* whose errors are measured */
    MIDDLE = 32768,      /* so many targets take over much that is far from level-1 groups: */
    SAMPLE_LEVEL1 = 8,   /* then the sample is so many of these; */
    LARGE = 262144,      /* and so many from level-2 groups, */
    PER_LEVEL2 = 131072, /* of which the sample has one in so many targets, */
    MOST_LEVEL2 = 8,     /* at most so many */
    COARSE_ORDER = 2,    /* of the estimate */
    MOST_TAKES = 4,      /* of the sample with a bound, */
    MOST_REFERENCES = 3  /* and of the reference */
};
static const double COARSE_THETA = 1.0;
/* The reference is so much more accurate, but for what single precision allows; with expansions of
 * low order, whose errors at different bounds are more alike, by the second. */
static const double MORE_ACCURATE = 10.0, LOW_MORE_ACCURATE = 20.0, MOST_ACCURATE = 2e-7;
static const double MOST_BOUND = 1e6; /* where all forces are pairs, no bound gives the error */
static const double TOO_LARGE = 1.5;  /* estimated over found accelerations, in the median */
/* The 99th percentile is to be below so many times the wanted error, too: for that the median may
 * be smaller by this; not for a tail that is too long by more than the third. */
static const double TAIL = 7.0, MOST_FOR_TAIL = 1.25, HOPELESS = 2.5;
static const double GOOD = 1.08; /* factor from the accuracy, at which no other bound is tried */
static const double LEAST = 0x1p-100;

/* Some of the targets of a job, and what is found for them. */
struct some {
    struct tree_points points;
    int32_t *self;
    float *eps2, *last_acc;
    double (*acc)[3], *pot, *error;
};

static void free_some(struct some *some)
{
    memory_free(some->points.x);
    memory_free(some->points.order);
    memory_free(some->acc);
}

/* Memory for n targets. */
static int reserve(struct some *some, int64_t n)
{
    const size_t padded = (size_t)n + 2 * TREE_GROUP;
    float *real = memory_zeroed(9 * padded * sizeof *real);
    int32_t *number = memory_zeroed(2 * padded * sizeof *number);
    double *found = memory_zeroed(5 * padded * sizeof *found);
    some->points = (struct tree_points){.n = n, .x = real, .order = number};
    some->acc = (double (*)[3])(void *)found;
    if (!real || !number || !found) return G6X_E_MEMORY;
    float **column[] = {&some->points.y,  &some->points.z, &some->points.xl, &some->points.yl,
                        &some->points.zl, &some->points.m, &some->eps2,      &some->last_acc};
    for (int k = 0; k < 8; k++) *column[k] = real + (size_t)(k + 1) * padded;
    some->self = number + padded;
    some->pot = found + 3 * padded;
    some->error = found + 4 * padded;
    return 0;
}

/* Target number `from` of the job becomes number `to`. */
static void take(const struct tree_sum *s, int own, int64_t from, struct some *some, int64_t to)
{
    const struct tree_points *p = own ? &s->job.tree->points : s->job.targets;
    struct tree_points *q = &some->points;
    q->x[to] = p->x[from], q->y[to] = p->y[from], q->z[to] = p->z[from];
    q->xl[to] = p->xl[from], q->yl[to] = p->yl[from], q->zl[to] = p->zl[from];
    some->self[to] = own || !s->job.self ? (int32_t)from : s->job.self[from];
    some->eps2[to] = s->job.eps2[own ? 0 : from];
    q->order[to] = (int32_t)to;
}

/* Fills the last vectors with copies of the last target. */
static void pad(struct some *some)
{
    const struct tree_points *p = &some->points;
    for (int64_t k = p->n; k < p->n + TREE_GROUP; k++) {
        p->x[k] = p->x[p->n - 1], p->y[k] = p->y[p->n - 1], p->z[k] = p->z[p->n - 1];
        p->xl[k] = p->xl[p->n - 1], p->yl[k] = p->yl[p->n - 1], p->zl[k] = p->zl[p->n - 1];
        some->eps2[k] = some->eps2[p->n - 1];
        some->self[k] = some->self[p->n - 1];
    }
}

/* Accelerations of some targets, in units of the box; `coarse`: as in struct tree_job. */
static int sum_some(const struct tree_sum *s, const struct some *some, int order, int coarse,
                    struct tree_opening opening, int threads)
{
    const struct tree_forces out = {some->acc, some->pot, NULL};
    struct tree_sum t = {.job = s->job, .opening = opening, .kernel = s->kernel, .out = &out};
    t.phi_unit[0] = t.phi_unit[1] = t.acc_unit[0] = t.acc_unit[1] = 1.0;
    t.job.targets = &some->points;
    t.job.self = some->self;
    t.job.eps2 = some->eps2;
    t.job.last_acc = some->last_acc;
    t.job.order = order;
    if (order) t.job.place = s->job.tree->place;
    t.job.jerk = 0;
    t.job.coarse = coarse;
    return tree_sum_run(&t, some->points.n < MANY, threads);
}

static double length(const double a[3]) { return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]); }

static int compare(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* The median; sorts the numbers. */
static double median(double *number, int64_t n)
{
    qsort(number, (size_t)n, sizeof *number, compare);
    return number[n / 2];
}

/* Absolute accelerations of some targets by a coarse sum, into last_acc. */
static int estimate(const struct tree_sum *s, struct some *some, int threads)
{
    const int64_t n = some->points.n;
    pad(some);
    const int code = sum_some(s, some, COARSE_ORDER, 1,
                              tree_opening_of(COARSE_THETA, COARSE_ORDER, 0.0), threads);
    if (code) return code;
    for (int64_t k = 0; k < n; k++) some->error[k] = length(some->acc[k]);
    const double least = fmax(LEAST, TREE_LEAST_ACC * median(some->error, n));
    for (int64_t k = 0; k < n; k++) some->last_acc[k] = (float)fmax(least, length(some->acc[k]));
    return 0;
}

/* As all targets get them: of STRIDE targets that follow, from the middle one. */
static void share_estimates(int64_t n, float *last_acc)
{
    for (int64_t first = 0; first < n; first += STRIDE) {
        const int64_t end = first + STRIDE < n ? first + STRIDE : n;
        const int64_t middle = first + STRIDE / 2 < n ? first + STRIDE / 2 : n - 1;
        const float found = last_acc[middle];
        for (int64_t k = first; k < end; k++) last_acc[k] = found;
    }
}

int tree_accuracy_estimate(const struct tree_sum *s, int threads, float *last_acc)
{
    const int64_t n = s->job.targets->n, count = (n + STRIDE - 1) / STRIDE;
    struct some some = {0};
    int code = reserve(&some, count);
    for (int64_t k = 0; k < count && !code; k++) {
        const int64_t middle = k * STRIDE + STRIDE / 2;
        take(s, 0, middle < n ? middle : n - 1, &some, k);
    }
    if (!code) code = estimate(s, &some, threads);
    for (int64_t k = 0; k < n && !code; k++) last_acc[k] = some.last_acc[k / STRIDE];
    free_some(&some);
    return code;
}

/* ---- the bound --------------------------------------------------------------------------- */

/* The bound that gives an error on a Plummer sphere of 10^5 particles, for expansions of an order;
 * 0: Barnes-Hut. */
static double usual_bound(int order, double accuracy)
{
    return order > 4   ? 1e-4 * pow(accuracy / 1.1e-4, 2.4)
           : order > 3 ? 5e-3 * pow(accuracy / 1e-3, 2.6)
           : order > 0 ? 1e-3 * pow(accuracy / 8.5e-4, 1.8)
                       : 1e-2 * pow(accuracy / 3.7e-4, 2.9);
}

/* The power of the bound with which errors grow. */
static double usual_power(int order) { return order > 3 ? 0.42 : order > 0 ? 0.55 : 0.34; }

/* The sample is of groups that are summed alone or, in larger systems, of such as share what is far
 * with others. Errors are measured on SAMPLE_GROUPS of them. */
struct sample {
    const struct tree_sum *s;
    struct some all, measured;
    int64_t step; /* between measured groups */
    int threads;
};

static int sum_with(const struct sample *p, const struct some *some, double bound)
{
    const int order = p->s->job.order;
    return sum_some(p->s, some, order, 0, tree_opening_of(TREE_WIDEST, order, bound), p->threads);
}

/* Where forces nearly cancel, as on a dense line, a coarse estimate of them is far too large, and a
 * reference that depends on it too: then it is summed again with its own accelerations. */
static int find_reference(struct sample *p, double accuracy)
{
    const struct some *some = &p->measured;
    const int order = p->s->job.order, low = order == 2 || order == 3;
    const double more = low ? LOW_MORE_ACCURATE : MORE_ACCURATE;
    const double bound = usual_bound(order, fmax(accuracy / more, MOST_ACCURATE));
    for (int take = 0; take < MOST_REFERENCES; take++) {
        const int code = sum_with(p, some, bound);
        if (code) return code;
        for (int64_t k = 0; k < some->points.n; k++) {
            const double found = fmax(length(some->acc[k]), LEAST);
            some->error[k] = some->last_acc[k] / found;
            some->last_acc[k] = (float)fmin(some->last_acc[k], found);
        }
        if (median(some->error, some->points.n) < TOO_LARGE) break;
    }
    return 0;
}

/* Compares with the reference, which is in `measured`. */
static int measure(struct sample *p, double bound, double *error)
{
    const int code = sum_with(p, &p->all, bound);
    if (code) return code;
    for (int64_t k = 0; k < p->measured.points.n; k++) {
        const int64_t group = k / TREE_GROUP * p->step;
        const double *a = p->all.acc[group * TREE_GROUP + k % TREE_GROUP];
        const double *r = p->measured.acc[k];
        const double all = length(r);
        const double off[3] = {a[0] - r[0], a[1] - r[1], a[2] - r[2]};
        p->measured.error[k] = all > 0.0 ? length(off) / all : 0.0;
    }
    const int64_t n = p->measured.points.n;
    const double middle = median(p->measured.error, n); /* which sorts them */
    const double tail = p->measured.error[n - 1 - n / 100] / TAIL;
    *error = tail < HOPELESS * middle ? fmax(middle, fmin(tail, MOST_FOR_TAIL * middle)) : middle;
    return 0;
}

/* Runs of `size` of the tree's own particles, evenly along the curve. */
static int take_runs(struct sample *p, int64_t most, int64_t size)
{
    const int64_t n = p->s->job.tree->points.n, runs = (n + size - 1) / size;
    const int64_t count = runs < most ? runs : most;
    int64_t to = 0;
    const int code = reserve(&p->all, count * size);
    for (int64_t k = 0; k < count && !code; k++) {
        const int64_t first = (2 * k + 1) * runs / (2 * count) * size;
        for (int64_t i = first; i < n && i < first + size; i++) take(p->s, 1, i, &p->all, to++);
    }
    p->all.points.n = to;
    return code;
}

static int take_sample(struct sample *p)
{
    const int64_t n = p->s->job.tree->points.n;
    const int64_t level2_groups = n / PER_LEVEL2 < MOST_LEVEL2 ? n / PER_LEVEL2 : MOST_LEVEL2;
    const int in_level1 = TREE_GROUP * TREE_LEVEL1;
    int code = n < MIDDLE  ? take_runs(p, SAMPLE_GROUPS, TREE_GROUP)
               : n < LARGE ? take_runs(p, SAMPLE_LEVEL1, in_level1)
                           : take_runs(p, level2_groups, in_level1 * TREE_LEVEL2);
    if (code) return code;
    const int64_t groups = (p->all.points.n + TREE_GROUP - 1) / TREE_GROUP;
    p->step = groups > SAMPLE_GROUPS ? groups / SAMPLE_GROUPS : 1;
    code = reserve(&p->measured, SAMPLE_GROUPS * TREE_GROUP);
    int64_t to = 0;
    for (int64_t g = 0; g < groups && to < SAMPLE_GROUPS * TREE_GROUP && !code; g += p->step)
        for (int64_t i = g * TREE_GROUP; i < p->all.points.n && i < (g + 1) * TREE_GROUP; i++)
            take(p->s, 1, p->all.self[i], &p->measured, to++);
    p->measured.points.n = to;
    return code;
}

/* Accelerations of a sample: those that were given, if they are the own particles'. */
static int estimate_sample(const struct sample *p, struct some *some, int given)
{
    const struct tree_sum *s = p->s;
    if (!given || s->job.targets != &s->job.tree->points) return estimate(s, some, p->threads);
    pad(some);
    for (int64_t k = 0; k < some->points.n; k++) some->last_acc[k] = s->job.last_acc[some->self[k]];
    return 0;
}

/* Sixteen bounds an octave, so that the rounding of errors changes none. */
static double on_grid(double bound) { return exp2(round(16.0 * log2(bound)) / 16.0); }

/* Errors are a power of the bound, nearly; a wrong guess of the power is mended by the next take.
 */
static int find_bound(struct sample *p, double accuracy, double *bound)
{
    double power = usual_power(p->s->job.order), before = 0.0, error_before = 0.0, error = 0.0;
    int code = 0;
    *bound = on_grid(usual_bound(p->s->job.order, accuracy));
    for (int take = 0; take < MOST_TAKES && !(code = measure(p, *bound, &error)); take++) {
        if (!(error > 0.0 && error < INFINITY) ||
            (error < GOOD * accuracy && accuracy < GOOD * error))
            break;
        if (before > 0.0 && error != error_before) {
            const double found = log(error / error_before) / log(*bound / before);
            if (found > 0.2 && found < 1.2) power = found;
        }
        before = *bound, error_before = error;
        *bound = on_grid(fmin(MOST_BOUND, *bound * pow(accuracy / error, 1.0 / power)));
    }
    return code;
}

int tree_accuracy_find(const struct tree_sum *s, double accuracy, int given, int threads,
                       double *bound)
{
    struct sample p = {.s = s, .threads = threads};
    int code = take_sample(&p);
    if (!code) code = estimate_sample(&p, &p.all, given);
    if (!code && !given) share_estimates(p.all.points.n, p.all.last_acc);
    if (!code) code = estimate_sample(&p, &p.measured, given);
    if (!code) code = find_reference(&p, accuracy);
    if (!code) code = find_bound(&p, accuracy, bound);
    free_some(&p.all);
    free_some(&p.measured);
    return code;
}
