/* g6x_tree_search.c - the g6x_tree_ calls that find neighbours. */
#include <math.h>
#include <stdatomic.h>

#include "api/g6x_tree.h"
#include "core/options.h"
#include "g6lib.h"
#include "session/registry.h"
#include "tree/search_kernel.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"
#include "util/threads.h"

struct seeking {
    const struct tree_handle *p;
    const double (*x)[3];
    const int *self;
    /* within */
    const double *h2;
    const long long *start;
    int *count, *found;
    /* nearest */
    int k, *number;
    double *r2;
    struct tree_search *runs; /* of the nearest of the tree's own particles, or NULL */
    const struct tree_search_kernel *kernel;
    _Atomic int cut, first_bad;
};

static void within_of(struct seeking *s, int i, const double at[3], int skip, int bad)
{
    const int64_t capacity = s->start ? s->start[i + 1] - s->start[i] : 0;
    int32_t *found = s->start ? s->found + s->start[i] : NULL;
    s->count[i] = bad ? -1
                      : (int)tree_search_within(&s->p->tree, CONST3(s->p->x), at, s->h2[i], skip,
                                                found, capacity);
    if (s->start && s->count[i] > capacity) s->cut = 1;
}

static void nearest_of(struct seeking *s, int i, const double at[3], int skip, int bad)
{
    int *number = s->number + (int64_t)i * s->k;
    double *r2 = s->r2 + (int64_t)i * s->k;
    const int there =
        bad ? 0 : tree_search_nearest(&s->p->tree, CONST3(s->p->x), at, skip, s->k, number, r2);
    for (int k = there; k < s->k; k++) number[k] = -1, r2[k] = bad ? (double)NAN : INFINITY;
}

/* Visits the tree's own particles in tree order, in which consecutive ones share neighbours. */
static void seek(void *context, int64_t first, int64_t end)
{
    struct seeking *s = context;
    for (int64_t k = first; k < end; k++) {
        const int i = s->x ? (int)k : s->p->tree.points.order[k];
        const double *at = s->x ? s->x[i] : s->p->x[i];
        const int skip = !s->x ? i : s->self ? s->self[i] : -1;
        const int bad = !all_finite(at, 3);
        for (int seen = s->first_bad; bad && i < seen;)
            if (atomic_compare_exchange_weak(&s->first_bad, &seen, i)) break;
        (s->count ? within_of : nearest_of)(s, i, at, skip, bad);
    }
}

/* The nearest, of some particles at once where they are near each other. */
static void seek_runs(void *context, int64_t first, int64_t end)
{
    struct seeking *s = context;
    struct tree_search_work *w = memory_zeroed(sizeof *w);
    for (int64_t k = first; k < end; k += SEARCH_TARGETS) {
        const int64_t next = k + SEARCH_TARGETS < end ? k + SEARCH_TARGETS : end;
        const int count = (int)(next - k);
        if (!w || !s->kernel->nearest(s->runs, k, count, s->k, s->number, s->r2, w))
            seek(s, k, next);
    }
    memory_free(w);
}

static int seek_all(int ni, struct seeking *s)
{
    const int threads = options_threads(s->p->threads);
    s->first_bad = ni;
    threads_each(threads, ni, s->runs ? 1024 : 64, s->runs ? seek_runs : seek, s);
    if (s->first_bad < ni)
        return session_registry_refuse(G6X_E_I_NAN, "NaN or Inf in target %d of a tree",
                                       s->first_bad);
    return s->cut;
}

int g6x_tree_within(int tree, int ni, const double (*x)[3], const int self[], const double h2[],
                    const long long start[], int count[], int found[])
{
    int code;
    TREE_HERE(p, tree, &code);
    struct seeking s = {
        .p = p, .x = x, .self = self, .h2 = h2, .start = start, .count = count, .found = found};
    FPENV_FLUSHED_HERE;
    if (p) code = api_g6x_tree_check_targets(p, ni, x, self);
    if (!code && ni && !(h2 && count && (found || !start)))
        code = session_registry_refuse(G6X_E_NULL, "g6x_tree_within: null pointer");
    for (int i = 0; start && i < ni && !code; i++)
        if (start[i] < 0 || start[i + 1] < start[i])
            code = session_registry_refuse(G6X_E_ARGUMENT,
                                           "start[%d] = %lld to start[%d] = %lld is no list", i,
                                           start[i], i + 1, start[i + 1]);
    if (code)
        for (int i = 0; count && i < ni; i++) count[i] = -1;
    else
        code = seek_all(ni, &s);
    return code;
}

int g6x_tree_nearest(int tree, int ni, const double (*x)[3], const int self[], int k, int number[],
                     double r2[])
{
    int code;
    TREE_HERE(p, tree, &code);
    struct seeking s = {.p = p, .x = x, .self = self, .k = k, .number = number, .r2 = r2};
    FPENV_FLUSHED_HERE;
    if (p) code = api_g6x_tree_check_targets(p, ni, x, self);
    if (!code && k < 0) code = session_registry_refuse(G6X_E_ARGUMENT, "k = %d is negative", k);
    if (!code && ni && k && !(number && r2))
        code = session_registry_refuse(G6X_E_NULL, "g6x_tree_nearest: null pointer");
    if (!code) {
        struct tree_search runs;
        const int by_runs = ni && !x && k && k < ni && k <= SEARCH_K && !p->tree.pieces &&
                            !tree_search_prepare(&p->tree, CONST3(p->x), &runs);
        if (by_runs) s.runs = &runs, s.kernel = tree_search_kernel(p->isa);
        code = seek_all(ni, &s);
        if (by_runs) tree_search_free(&runs);
    } else {
        const int64_t places = ni > 0 && k > 0 ? (int64_t)ni * k : 0;
        for (int64_t j = 0; j < places; j++) {
            if (number) number[j] = -1;
            if (r2) r2[j] = (double)NAN;
        }
    }
    return code;
}
