/* g6x_tree.c - the g6x_tree_ calls: trees that a program makes itself, apart from clusters. A tree
 * does not change after it was made, so any number of threads may use it at once. */
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "util/fpenv.h"
#include "g6lib.h"
#include "session/output.h"
#include "util/memory.h"
#include "core/options.h"
#include "session/registry.h"
#include "tree/handles.h"
#include "util/threads.h"

_Static_assert((int)G6X_TREE_FMM == (int)TREE_FMM, "the names of the methods");
_Static_assert((int)G6X_TREE_BARNES_HUT == (int)TREE_BARNES_HUT, "the names of the methods");

static const double WIDEST = 1.5; /* theta; beyond, a cell may act on targets beside it */

static int refused(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refused(int code, const char *format, ...)
{
    char text[ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return session_registry_no_session(code, text);
}

/* The tree of a handle, to be released; NULL with *code if there is none. */
static struct planted *take(int handle, int *code)
{
    struct planted *p = tree_handles_acquire(handle);
    *code = p ? 0 : refused(G6X_E_NOT_OPEN, "there is no open tree %d", handle);
    return p;
}

/* ---- making and closing ----------------------------------------------------------------- */

/* The first of n rows of some numbers with a NaN or an infinity in it; n if there is none. */
static int first_bad(int n, const double *a, int columns)
{
    if (!a || all_finite(a, (size_t)n * (size_t)columns)) return n;
    int i = 0;
    while (all_finite(a + (size_t)i * (size_t)columns, (size_t)columns)) i++;
    return i;
}

static int particles_checked(int n, const double (*x)[3], const double (*v)[3], const double mass[])
{
    if (n < 0) return refused(G6X_E_ARGUMENT, "a tree of %d particles", n);
    if (n && !(x && mass)) return refused(G6X_E_NULL, "g6x_tree_open: null pointer");
    const struct {
        const char *name;
        int bad;
    } columns[] = {{"x", n ? first_bad(n, x[0], 3) : n},
                   {"v", n && v ? first_bad(n, v[0], 3) : n},
                   {"mass", first_bad(n, mass, 1)}};
    for (int c = 0; c < 3; c++)
        if (columns[c].bad < n)
            return refused(G6X_E_J_NAN, "NaN or Inf in %s[%d] of a tree's particles",
                           columns[c].name, columns[c].bad);
    return 0;
}

static int open_tree(int n, const double (*x)[3], const double (*v)[3], const double mass[])
{
    const struct options o = session_registry_initial();
    const struct tree_input in = {n, x, v, mass};
    struct fault f = {0};
    if (options_process()->problem[0])
        return refused(G6X_E_ARGUMENT, "%s", options_process()->problem);
    int code = particles_checked(n, x, v, mass);
    if (code) return code;
    struct planted *p = memory_zeroed(sizeof *p);
    if (p) p->x = memory_zeroed((size_t)n * sizeof *p->x);
    if (!p || !p->x) {
        memory_free(p);
        return refused(G6X_E_MEMORY, "out of memory for a tree of %d particles", n);
    }
    if (n) memcpy(p->x, x, (size_t)n * sizeof *x);
    p->n = n, p->moving = v != NULL;
    p->threads = o.threads;
    p->isa = o.isa;
    if (n && tree_build(&p->tree, &in, options_threads(p->threads), &f)) {
        tree_handles_free(p);
        return refused(f.code, "%s", f.text);
    }
    return tree_handles_add(p);
}

int g6x_tree_open(int n, const double (*x)[3], const double (*v)[3], const double mass[])
{
    fenv_t host;
    fpenv_enter(&host);
    fpenv_flush(1);
    const int code = open_tree(n, x, v, mass);
    fpenv_leave(&host);
    return code;
}

int g6x_tree_close(int tree)
{
    tree_handles_remove(tree);
    return 0;
}

int g6x_tree_set_int(int tree, int key, int value)
{
    struct options o = {0};
    struct fault f = {0};
    int code;
    struct planted *p = take(tree, &code);
    if (!p) return code;
    if (key != G6X_THREADS && key != G6X_ISA)
        code = refused(G6X_E_ARGUMENT, "option %d: a tree does not have it", key);
    else if (options_set_int(&o, key, value, &f))
        code = refused(f.code, "%s", f.text);
    else if (key == G6X_THREADS)
        p->threads = value;
    else
        p->isa = value;
    tree_handles_release(p);
    return code;
}

/* ---- forces ------------------------------------------------------------------------------- */

/* The arguments of a call; x NULL: the tree's own particles. */
struct wanted {
    int ni;
    const double (*x)[3], (*v)[3];
    const int *self;
    const double *last_acc;
    double eps2;
};

static int targets_checked(const struct planted *p, int ni, const double (*x)[3], const int self[])
{
    if (ni < 0) return refused(G6X_E_ARGUMENT, "ni = %d is negative", ni);
    if (!x && ni != p->n)
        return refused(G6X_E_ARGUMENT, "ni = %d, but the tree has %d particles", ni, p->n);
    for (int i = 0; x && self && i < ni; i++)
        if (self[i] < -1 || self[i] >= p->n)
            return refused(G6X_E_ADDRESS, "self[%d] = %d: the tree has %d particles", i, self[i],
                           p->n);
    return 0;
}

static int setting_checked(const struct tree_setting *s, const struct wanted *w)
{
    if (s->method != TREE_FMM && s->method != TREE_BARNES_HUT)
        return refused(G6X_E_ARGUMENT, "there is no method %d of a tree", s->method);
    if (s->method == TREE_FMM && (s->order < 2 || s->order > 6))
        return refused(G6X_E_ARGUMENT, "order = %d is not from 2 to 6", s->order);
    if (!(s->theta > 0.0 && s->theta <= WIDEST))
        return refused(G6X_E_ARGUMENT, "theta = %g is not above 0 and at most %g", s->theta,
                       WIDEST);
    if (!(w->eps2 >= 0.0 && w->eps2 < INFINITY))
        return refused(G6X_E_ARGUMENT, "eps2 = %g is negative, NaN or Inf", w->eps2);
    if (!(s->bound >= 0.0 && s->bound < INFINITY))
        return refused(G6X_E_ARGUMENT, "bound = %g is negative, NaN or Inf", s->bound);
    if (s->bound > 0.0 && w->ni && !w->last_acc)
        return refused(G6X_E_NULL, "a bound is a share of last_acc, which is a null pointer");
    for (int i = 0; s->bound > 0.0 && i < w->ni; i++)
        if (!(w->last_acc[i] >= 0.0 && w->last_acc[i] < INFINITY))
            return refused(G6X_E_ARGUMENT, "last_acc[%d] = %g is negative, NaN or Inf", i,
                           w->last_acc[i]);
    return 0;
}

/* What a sum needs of the targets: those that have a NaN or an infinity are moved to a harmless
 * place, and remembered. */
struct readied {
    struct tree_input in;
    double (*x)[3], (*v)[3], *eps2;
    unsigned char *bad;
    int first_bad;
};

static void free_readied(struct readied *r)
{
    memory_free(r->x);
    memory_free(r->v);
    memory_free(r->eps2);
    memory_free(r->bad);
}

static int is_bad(const struct wanted *w, int i)
{
    return !all_finite(w->x[i], 3) || (w->v && !all_finite(w->v[i], 3));
}

static int first_bad_target(const struct wanted *w)
{
    const int x = first_bad(w->ni, w->x[0], 3), v = w->v ? first_bad(w->ni, w->v[0], 3) : w->ni;
    return x < v ? x : v;
}

static int replace_bad(const struct planted *p, const struct wanted *w, struct readied *r)
{
    const size_t bytes = (size_t)w->ni * sizeof *r->x;
    r->x = memory_zeroed(bytes);
    r->bad = memory_zeroed((size_t)w->ni);
    if (w->v) r->v = memory_zeroed(bytes);
    if (!r->x || !r->bad || (w->v && !r->v)) return G6X_E_MEMORY;
    memcpy(r->x, w->x, bytes);
    if (w->v) memcpy(r->v, w->v, bytes);
    for (int i = r->first_bad; i < w->ni; i++) {
        r->bad[i] = (unsigned char)is_bad(w, i);
        if (!r->bad[i]) continue;
        memcpy(r->x[i], p->x[0], sizeof *r->x);
        if (w->v) memset(r->v[i], 0, sizeof *r->v);
    }
    r->in.x = (const double (*)[3])r->x;
    if (w->v) r->in.v = (const double (*)[3])r->v;
    return 0;
}

static int ready(const struct planted *p, const struct wanted *w, int jerk, struct readied *r)
{
    *r = (struct readied){.in = {w->ni, w->x, w->v, NULL}, .first_bad = w->ni};
    r->eps2 = memory_zeroed((size_t)w->ni * sizeof *r->eps2);
    if (!r->eps2) return G6X_E_MEMORY;
    for (int i = 0; i < w->ni; i++) r->eps2[i] = w->eps2;
    if (!w->x) return 0;
    if (jerk && !w->v) {
        r->v = memory_zeroed((size_t)w->ni * sizeof *r->v);
        r->in.v = (const double (*)[3])r->v;
        if (!r->v) return G6X_E_MEMORY;
    }
    r->first_bad = first_bad_target(w);
    return r->first_bad < w->ni ? replace_bad(p, w, r) : 0;
}

static int make_nan(double *a, size_t n, int wanted)
{
    if (!wanted) return 0;
    for (size_t k = 0; k < n; k++) a[k] = (double)NAN;
    return 1;
}

/* Makes NaN of what belongs to bad targets or does not fit a double. */
static int verdict(const struct readied *r, int ni, const struct tree_forces *out)
{
    int beyond = ni;
    for (int i = 0; i < ni; i++) {
        const int bad = r->bad && r->bad[i];
        int nan = make_nan(out->acc[i], 3, bad || !all_finite(out->acc[i], 3));
        nan |= make_nan(&out->pot[i], 1, bad || !all_finite(&out->pot[i], 1));
        if (out->jerk) nan |= make_nan(out->jerk[i], 3, bad || !all_finite(out->jerk[i], 3));
        if (nan && !bad && beyond == ni) beyond = i;
    }
    if (r->first_bad < ni)
        return refused(G6X_E_I_NAN, "NaN or Inf in target %d of a tree", r->first_bad);
    if (beyond < ni)
        return refused(G6X_E_RANGE, "the force on target %d of a tree does not fit a double",
                       beyond);
    return 0;
}

static int sum(const struct planted *p, const struct tree_setting *s, const struct wanted *w,
               const struct tree_forces *out)
{
    struct readied r;
    struct fault f = {0};
    struct tree_counts counts = {0};
    struct tree tree = p->tree;
    int code = ready(p, w, out->jerk != NULL, &r);
    tree.threads = options_threads(p->threads);
    if (code)
        (void)refused(code, "out of memory for the forces of a tree on %d targets", w->ni);
    else if (tree_sum(&tree, s, w->x ? &r.in : NULL, w->self, r.eps2,
                      s->bound > 0.0 ? w->last_acc : NULL, out, &counts, &f))
        code = refused(f.code, "%s", f.text);
    else
        code = verdict(&r, w->ni, out);
    free_readied(&r);
    if (counts.coincidences && !code)
        session_registry_warn("%lld pairs of a tree at one place with eps = 0: they add nothing",
                              (long long)counts.coincidences);
    return code;
}

/* Zeros of no particles on targets that are well. */
static int no_forces(const struct wanted *w, const struct tree_forces *out)
{
    struct readied r = {.first_bad = first_bad_target(w)};
    for (int i = 0; i < w->ni; i++) {
        const double nothing = is_bad(w, i) ? (double)NAN : 0.0;
        out->pot[i] = nothing;
        for (int k = 0; k < 3; k++) {
            out->acc[i][k] = nothing;
            if (out->jerk) out->jerk[i][k] = nothing;
        }
    }
    return verdict(&r, w->ni, out);
}

static int forces(int handle, const struct tree_setting *setting, const struct wanted *w,
                  const struct tree_forces *to)
{
    int code = 0;
    struct planted *p = take(handle, &code);
    if (!p) return code;
    struct tree_setting s = *setting;
    struct tree_forces out = *to;
    s.isa = p->isa;
    if (!p->moving) out.jerk = NULL;
    code = targets_checked(p, w->ni, w->x, w->self);
    if (!code) code = setting_checked(&s, w);
    if (!code && w->ni && !(to->acc && to->pot))
        code = refused(G6X_E_NULL, "g6x_tree_forces: null pointer");
    if (!code && w->ni) code = p->n ? sum(p, &s, w, &out) : no_forces(w, &out);
    if (!out.jerk) session_output_nan(w->ni, NULL, to->jerk, NULL, NULL, NULL);
    tree_handles_release(p);
    return code;
}

int g6x_tree_forces(int tree, int ni, const double (*x)[3], const double (*v)[3], const int self[],
                    double eps2, int method, int order, double theta, const double last_acc[],
                    double bound, double (*acc)[3], double (*jerk)[3], double pot[])
{
    const struct wanted w = {ni, x, x ? v : NULL, self, last_acc, eps2};
    const struct tree_setting s = {
        .method = method, .order = order, .theta = theta, .bound = bound};
    const struct tree_forces out = {.acc = acc, .pot = pot, .jerk = jerk};
    fenv_t host;
    fpenv_enter(&host);
    fpenv_flush(1);
    const int code = forces(tree, &s, &w, &out);
    if (code && code != G6X_E_I_NAN && code != G6X_E_RANGE)
        session_output_nan(ni, acc, jerk, pot, NULL, NULL);
    fpenv_leave(&host);
    return code;
}

/* ---- searches ----------------------------------------------------------------------------- */

struct seeking {
    const struct planted *p;
    const double (*x)[3];
    const int *self;
    /* within */
    const double *h2;
    const long long *start;
    int *count, *found;
    /* nearest */
    int k, *number;
    double *r2;
    _Atomic int cut, first_bad;
};

static void within_of(struct seeking *s, int i, const double at[3], int skip, int bad)
{
    const int64_t room = s->start ? s->start[i + 1] - s->start[i] : 0;
    int32_t *found = s->start ? s->found + s->start[i] : NULL;
    s->count[i] = bad ? -1
                      : (int)tree_search_others_within(&s->p->tree, (const double (*)[3])s->p->x,
                                                       at, s->h2[i], skip, found, room);
    if (s->start && s->count[i] > room) s->cut = 1;
}

static void nearest_of(struct seeking *s, int i, const double at[3], int skip, int bad)
{
    int *number = s->number + (int64_t)i * s->k;
    double *r2 = s->r2 + (int64_t)i * s->k;
    const int there = bad ? 0
                          : tree_search_nearest(&s->p->tree, (const double (*)[3])s->p->x, NULL,
                                                skip, at, s->k, number, r2);
    for (int k = there; k < s->k; k++) number[k] = -1, r2[k] = bad ? (double)NAN : INFINITY;
}

/* The tree's own particles in its order, in which their neighbours are the same for a while. */
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

static int seek_all(int ni, struct seeking *s)
{
    s->first_bad = ni;
    threads_each(options_threads(s->p->threads), ni, 64, seek, s);
    if (s->first_bad < ni)
        return refused(G6X_E_I_NAN, "NaN or Inf in target %d of a tree", s->first_bad);
    return s->cut;
}

static int starts_checked(int ni, const long long start[])
{
    for (int i = 0; start && i < ni; i++)
        if (start[i] < 0 || start[i + 1] < start[i])
            return refused(G6X_E_ARGUMENT, "start[%d] = %lld to start[%d] = %lld is no list", i,
                           start[i], i + 1, start[i + 1]);
    return 0;
}

int g6x_tree_within(int tree, int ni, const double (*x)[3], const int self[], const double h2[],
                    const long long start[], int count[], int found[])
{
    fenv_t host;
    int code;
    struct planted *p = take(tree, &code);
    struct seeking s = {
        .p = p, .x = x, .self = self, .h2 = h2, .start = start, .count = count, .found = found};
    fpenv_enter(&host);
    fpenv_flush(1);
    if (p) code = targets_checked(p, ni, x, self);
    if (!code && ni && !(h2 && count && (found || !start)))
        code = refused(G6X_E_NULL, "g6x_tree_within: null pointer");
    if (!code) code = starts_checked(ni, start);
    if (code)
        for (int i = 0; count && i < ni; i++) count[i] = -1;
    else
        code = seek_all(ni, &s);
    fpenv_leave(&host);
    if (p) tree_handles_release(p);
    return code;
}

int g6x_tree_nearest(int tree, int ni, const double (*x)[3], const int self[], int k, int number[],
                     double r2[])
{
    fenv_t host;
    int code;
    struct planted *p = take(tree, &code);
    struct seeking s = {.p = p, .x = x, .self = self, .k = k, .number = number, .r2 = r2};
    fpenv_enter(&host);
    fpenv_flush(1);
    if (p) code = targets_checked(p, ni, x, self);
    if (!code && k < 0) code = refused(G6X_E_ARGUMENT, "k = %d is negative", k);
    if (!code && ni && k && !(number && r2))
        code = refused(G6X_E_NULL, "g6x_tree_nearest: null pointer");
    if (!code) {
        code = seek_all(ni, &s);
    } else {
        const int64_t places = ni > 0 && k > 0 ? (int64_t)ni * k : 0;
        for (int64_t j = 0; j < places; j++) {
            if (number) number[j] = -1;
            if (r2) r2[j] = (double)NAN;
        }
    }
    fpenv_leave(&host);
    if (p) tree_handles_release(p);
    return code;
}
