/* g6x_tree.c - the g6x_tree_ calls that build trees, independent of clusters, and sum their forces.
 * A tree does not change once built, so any number of threads may use it at once. */
#include "api/g6x_tree.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/options.h"
#include "g6lib.h"
#include "session/output.h"
#include "session/registry.h"
#include "shared/package.h"
#include "shared/tree_few.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"

_Static_assert((int)G6X_TREE_FMM == (int)TREE_FMM, "the names of the methods");
_Static_assert((int)G6X_TREE_BARNES_HUT == (int)TREE_BARNES_HUT, "the names of the methods");

/* ---- the trees that are open ------------------------------------------------------------ */

/* The list is locked for no longer than a look at it. */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tree_handle *trees;
static int last_handle;

/* In a forked child no other thread lives that could hold the lock. */
static void after_fork(void) { (void)pthread_mutex_init(&registry, NULL); }
static void prepare_forks(void) { (void)pthread_atfork(NULL, NULL, after_fork); }

static void lock(void)
{
    (void)pthread_once(&once, prepare_forks);
    (void)pthread_mutex_lock(&registry);
}

static void unlock(void) { (void)pthread_mutex_unlock(&registry); }

/* Where the pointer to the tree of a handle is; the registry is locked. */
static struct tree_handle **find(int handle)
{
    struct tree_handle **at = &trees;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    return at;
}

static void free_tree(struct tree_handle *p)
{
    tree_boxes_free(&p->tree);
    memory_free(p->x);
    memory_free(p->mass);
    memory_free(p);
}

/* The number that a tree gets: no open tree has it, and no closed one had it lately. */
static int add(struct tree_handle *p)
{
    lock();
    do last_handle = last_handle < INT_MAX ? last_handle + 1 : 1;
    while (*find(last_handle));
    const int handle = p->handle = last_handle;
    p->next = trees;
    trees = p;
    unlock();
    return handle;
}

struct tree_handle *api_g6x_tree_acquire(int handle, int *code)
{
    lock();
    struct tree_handle *p = *find(handle);
    if (p) p->users++;
    unlock();
    *code = p ? 0 : session_registry_refuse(G6X_E_NOT_OPEN, "there is no open tree %d", handle);
    return p;
}

void api_g6x_tree_release(struct tree_handle *const *p)
{
    if (!*p) return;
    lock();
    const int last = --(*p)->users == 0 && (*p)->closed;
    unlock();
    if (last) free_tree(*p);
}

/* ----------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct tree_whole) == G6X_TREE_WHOLE * sizeof(double), "numbers of a whole");

int api_g6x_tree_whole(const double whole[], struct tree_whole *to)
{
    if (!whole) return session_registry_refuse(G6X_E_NULL, "whole is a null pointer");
    memcpy(to, whole, sizeof *to);
    int good = all_finite(whole, G6X_TREE_WHOLE) && to->mass >= 0.0 && to->count >= 1.0 &&
               to->total >= 0.0;
    for (int c = 0; c < 3; c++) good &= to->low[c] <= to->high[c];
    if (!good) return session_registry_refuse(G6X_E_ARGUMENT, "whole describes no particles");
    return 0;
}

/* ---- making and closing ----------------------------------------------------------------- */

/* The first of n rows that has a NaN or Inf; n if there is none. */
static int first_bad(int n, const double *a, int columns)
{
    if (!a || all_finite(a, (size_t)n * (size_t)columns)) return n;
    int i = 0;
    while (all_finite(a + (size_t)i * (size_t)columns, (size_t)columns)) i++;
    return i;
}

static int open_tree(const struct tree_whole *whole, int n, const double (*x)[3],
                     const double (*v)[3], const double mass[])
{
    const struct options o = session_registry_initial();
    const struct tree_input in = {n, x, v, mass};
    struct error err = {0};
    if (options_process()->problem[0])
        return session_registry_refuse(G6X_E_ARGUMENT, "%s", options_process()->problem);
    if (n < 0) return session_registry_refuse(G6X_E_ARGUMENT, "a tree of %d particles", n);
    if (n && !(x && mass))
        return session_registry_refuse(G6X_E_NULL, "g6x_tree_open: null pointer");
    const char *const name[] = {"x", "v", "mass"};
    const int bad[] = {n ? first_bad(n, x[0], 3) : n, n && v ? first_bad(n, v[0], 3) : n,
                       first_bad(n, mass, 1)};
    for (int c = 0; c < 3; c++)
        if (bad[c] < n)
            return session_registry_refuse(
                G6X_E_J_NAN, "NaN or Inf in %s[%d] of a tree's particles", name[c], bad[c]);
    struct tree_handle *p = memory_zeroed(sizeof *p);
    if (p) {
        p->x = memory_zeroed((size_t)n * sizeof *p->x);
        p->mass = memory_zeroed((size_t)n * sizeof *p->mass);
    }
    if (!p || !p->x || !p->mass) {
        if (p) free_tree(p);
        return session_registry_refuse(G6X_E_MEMORY, "out of memory for a tree of %d particles", n);
    }
    if (n) memcpy(p->x, x, (size_t)n * sizeof *x);
    if (n) memcpy(p->mass, mass, (size_t)n * sizeof *mass);
    p->of_ranks = whole != NULL;
    p->n = n, p->moving = whole ? whole->fastest >= 0.0 : v != NULL;
    p->threads = o.threads;
    p->isa = o.isa;
    const int threads = n > TREE_FEW ? options_threads(p->threads) : 1; /* not to wake others */
    if ((n || whole) && tree_boxes_build(&p->tree, &in, whole, threads, &err)) {
        free_tree(p);
        return session_registry_refuse(err.code, "%s", err.text);
    }
    return add(p);
}

int g6x_tree_open(int n, const double (*x)[3], const double (*v)[3], const double mass[])
{
    FPENV_FLUSHED_HERE;
    return open_tree(NULL, n, x, v, mass);
}

int g6x_tree_open_in(const double whole[G6X_TREE_WHOLE], int n, const double (*x)[3],
                     const double (*v)[3], const double mass[])
{
    struct tree_whole w;
    int code = api_g6x_tree_whole(whole, &w);
    if (code) return code;
    if (n > 0 && (w.fastest >= 0.0) != (v != NULL))
        return session_registry_refuse(G6X_E_ARGUMENT,
                                       "all ranks' particles have velocities, or none's");
    FPENV_FLUSHED_HERE;
    return open_tree(&w, n, x, v, mass);
}

int g6x_tree_close(int tree)
{
    lock();
    struct tree_handle **at = find(tree), *p = *at;
    if (p) {
        *at = p->next;
        p->closed = 1;
    }
    const int unused = p && !p->users;
    unlock();
    if (unused) free_tree(p);
    return 0;
}

int g6x_tree_particles(int tree, double (*x)[3], double mass[])
{
    int code;
    TREE_HERE(p, tree, &code);
    if (!p || !p->n) return code;
    if (!(x && mass))
        return session_registry_refuse(G6X_E_NULL, "g6x_tree_particles: null pointer");
    memcpy(x, p->x, (size_t)p->n * sizeof *x);
    memcpy(mass, p->mass, (size_t)p->n * sizeof *mass);
    return p->n;
}

int g6x_tree_set_int(int tree, int key, int value)
{
    struct options o = {0};
    struct error err = {0};
    int code;
    TREE_HERE(p, tree, &code);
    if (!p) return code;
    if (key != G6X_THREADS && key != G6X_ISA)
        return session_registry_refuse(G6X_E_ARGUMENT, "option %d: a tree does not have it", key);
    if (options_set_int(&o, key, value, &err))
        return session_registry_refuse(err.code, "%s", err.text);
    *(key == G6X_THREADS ? &p->threads : &p->isa) = value;
    return 0;
}

int g6x_tree_soften(int tree, const double eps[])
{
    int code;
    TREE_HERE(p, tree, &code);
    if (!p) return code;
    if (p->n && !eps) return session_registry_refuse(G6X_E_NULL, "g6x_tree_soften: null pointer");
    if (p->of_ranks || p->tree.own.eps)
        return session_registry_refuse(G6X_E_ARGUMENT, p->of_ranks
                                                           ? "softening of each particle: a tree "
                                                             "of several ranks has one for all"
                                                           : "the particles of tree have their "
                                                             "softening: make a new one");
    for (int i = 0; i < p->n; i++)
        if (!(eps[i] >= 0.0 && eps[i] < INFINITY))
            return session_registry_refuse(G6X_E_ARGUMENT, "eps[%d] = %g is negative, NaN or Inf",
                                           i, eps[i]);
    if (tree_softening_set(&p->tree, p->n, eps))
        return session_registry_refuse(G6X_E_MEMORY, "out of memory for a tree of %d particles",
                                       p->n);
    return 0;
}

/* ---- forces ------------------------------------------------------------------------------- */

/* The arguments of a call; x NULL: the tree's own particles. */
struct request {
    int ni;
    const double (*x)[3], (*v)[3];
    const int *self;
    const double *last_acc;
    double eps2;
    int momentum; /* forces add up to zero */
    int parts;    /* of other ranks' trees, and what was done with them: pairs, points, locals */
    const void *const *part;
    long long *done;
};

int api_g6x_tree_check_targets(const struct tree_handle *p, int ni, const double (*x)[3],
                               const int self[])
{
    if (ni < 0) return session_registry_refuse(G6X_E_ARGUMENT, "ni = %d is negative", ni);
    if (!x && ni != p->n)
        return session_registry_refuse(G6X_E_ARGUMENT, "ni = %d, but the tree has %d particles", ni,
                                       p->n);
    for (int i = 0; x && self && i < ni; i++)
        if (self[i] < -1 || self[i] >= p->n)
            return session_registry_refuse(
                G6X_E_ADDRESS, "self[%d] = %d: the tree has %d particles", i, self[i], p->n);
    return 0;
}

static int setting_checked(const struct tree_setting *s, const struct request *w)
{
    if (s->method != TREE_FMM && s->method != TREE_BARNES_HUT)
        return session_registry_refuse(G6X_E_ARGUMENT, "there is no method %d of a tree",
                                       s->method);
    if (s->method == TREE_FMM && (s->order < TREE_LEAST_ORDER || s->order > TREE_LARGEST_ORDER))
        return session_registry_refuse(G6X_E_ARGUMENT, "order = %d is not from %d to %d", s->order,
                                       TREE_LEAST_ORDER, TREE_LARGEST_ORDER);
    if (w->momentum && w->x)
        return session_registry_refuse(
            G6X_E_ARGUMENT,
            "G6X_TREE_MOMENTUM needs all particles as targets: x is no null pointer");
    const int by_accuracy = s->theta == 0.0;
    if (by_accuracy && !(s->bound >= TREE_LEAST_ERROR && s->bound <= TREE_LARGEST_ERROR))
        return session_registry_refuse(
            G6X_E_ARGUMENT, "with theta = 0, bound = %g is the wanted error: give %g to %g",
            s->bound, TREE_LEAST_ERROR, TREE_LARGEST_ERROR);
    if (!by_accuracy && !(s->theta > 0.0 && s->theta <= TREE_WIDEST))
        return session_registry_refuse(G6X_E_ARGUMENT, "theta = %g is not above 0 and at most %g",
                                       s->theta, TREE_WIDEST);
    if (!(w->eps2 >= 0.0 && w->eps2 < INFINITY))
        return session_registry_refuse(G6X_E_ARGUMENT, "eps2 = %g is negative, NaN or Inf",
                                       w->eps2);
    if (!(s->bound >= 0.0 && s->bound < INFINITY))
        return session_registry_refuse(G6X_E_ARGUMENT, "bound = %g is negative, NaN or Inf",
                                       s->bound);
    if (s->bound > 0.0 && !by_accuracy && w->ni && !w->last_acc)
        return session_registry_refuse(G6X_E_NULL,
                                       "a bound is a share of last_acc, which is a null pointer");
    for (int i = 0; s->bound > 0.0 && w->last_acc && i < w->ni; i++)
        if (!(w->last_acc[i] >= 0.0 && w->last_acc[i] < INFINITY))
            return session_registry_refuse(
                G6X_E_ARGUMENT, "last_acc[%d] = %g is negative, NaN or Inf", i, w->last_acc[i]);
    return 0;
}

/* The targets of a sum. Those with a NaN or Inf are marked `bad` and moved to a valid position. */
struct prepared {
    struct tree_targets in;
    double (*x)[3], (*v)[3], *eps2;
    unsigned char *bad;
    int first_bad;
};

static int prepare(const struct tree_handle *p, const struct request *w, int jerk,
                   const double *last_acc, struct prepared *r)
{
    *r = (struct prepared){.first_bad = w->ni};
    r->eps2 = memory_zeroed((size_t)w->ni * sizeof *r->eps2);
    if (!r->eps2) return G6X_E_MEMORY;
    r->in = (struct tree_targets){w->ni, w->x, w->v, w->self, r->eps2, last_acc};
    for (int i = 0; i < w->ni; i++) {
        const int own = !p->tree.own.eps ? -1 : !w->x ? i : w->self ? w->self[i] : -1;
        r->eps2[i] = own < 0 ? w->eps2 : p->tree.own.eps[own] * p->tree.own.eps[own];
    }
    if (!w->x) return 0;
    if (jerk && !w->v) {
        r->v = memory_zeroed((size_t)w->ni * sizeof *r->v);
        r->in.v = CONST3(r->v);
        if (!r->v) return G6X_E_MEMORY;
    }
    const int x = first_bad(w->ni, w->x[0], 3), v = w->v ? first_bad(w->ni, w->v[0], 3) : w->ni;
    r->first_bad = x < v ? x : v;
    if (r->first_bad == w->ni) return 0;
    const size_t bytes = (size_t)w->ni * sizeof *r->x;
    r->x = memory_zeroed(bytes);
    r->bad = memory_zeroed((size_t)w->ni);
    if (w->v) r->v = memory_zeroed(bytes);
    if (!r->x || !r->bad || (w->v && !r->v)) return G6X_E_MEMORY;
    memcpy(r->x, w->x, bytes);
    if (w->v) memcpy(r->v, w->v, bytes);
    for (int i = r->first_bad; i < w->ni; i++) {
        r->bad[i] = !all_finite(w->x[i], 3) || (w->v && !all_finite(w->v[i], 3));
        if (!r->bad[i]) continue;
        memcpy(r->x[i], p->n ? p->x[0] : p->tree.box.centre, sizeof *r->x);
        if (w->v) memset(r->v[i], 0, sizeof *r->v);
    }
    r->in.x = CONST3(r->x);
    if (w->v) r->in.v = CONST3(r->v);
    return 0;
}

/* Whether it was: numbers of a bad target, or some that do not fit a double. */
static int make_nan(double *a, size_t n, int bad)
{
    const int requested = bad || !all_finite(a, n);
    for (size_t k = 0; k < n && requested; k++) a[k] = (double)NAN;
    return requested;
}

/* Sets to NaN what belongs to bad targets or does not fit a double. */
static int verdict(const struct prepared *r, int ni, const struct tree_forces *out)
{
    int beyond = ni;
    for (int i = 0; i < ni; i++) {
        const int bad = r->bad && r->bad[i];
        int nan = make_nan(out->acc[i], 3, bad) | make_nan(&out->pot[i], 1, bad);
        if (out->jerk) nan |= make_nan(out->jerk[i], 3, bad);
        if (nan && !bad && beyond == ni) beyond = i;
    }
    if (r->first_bad < ni)
        return session_registry_refuse(G6X_E_I_NAN, "NaN or Inf in target %d of a tree",
                                       r->first_bad);
    if (beyond < ni)
        return session_registry_refuse(
            G6X_E_RANGE, "the force on target %d of a tree does not fit a double", beyond);
    return 0;
}

static int sum(const struct tree_handle *p, const struct tree_setting *s, const struct request *w,
               const struct tree_forces *out)
{
    struct prepared r;
    struct error err = {0};
    struct tree_counts counts = {0};
    struct tree tree = p->tree, joined = {0};
    int acts = p->n > 0; /* or there are particles in the parts */
    for (int k = 0; k < w->parts; k++)
        acts |= ((const struct subtree_header *)w->part[k])->cells != 0;
    tree.threads = options_threads(p->threads);
    int code = prepare(p, w, out->jerk != NULL, s->bound > 0.0 ? w->last_acc : NULL, &r);
    if (code)
        (void)error_set(&err, code, "out of memory for the forces of a tree on %d targets", w->ni);
    if (!code && acts && w->part) {
        code = tree_share_join(&tree, w->parts, w->part, &joined, &err);
        tree = joined;
    }
    if (!code && acts) code = tree_boxes_sum(&tree, s, &r.in, out, &counts, &err);
    if (code || !acts) {
        const int bytes = code ? 0xff : 0; /* of NaNs, or of zeros */
        memset(out->acc, bytes, (size_t)w->ni * sizeof *out->acc);
        memset(out->pot, bytes, (size_t)w->ni * sizeof *out->pot);
        if (out->jerk) memset(out->jerk, bytes, (size_t)w->ni * sizeof *out->jerk);
    }
    if (code) {
        (void)session_registry_refuse(code, "%s", err.text);
    } else {
        if (w->momentum) tree_sum_net_force(w->ni, p->mass, out->acc);
        if (w->momentum && out->jerk) tree_sum_net_force(w->ni, p->mass, out->jerk);
        code = verdict(&r, w->ni, out);
    }
    memory_free(r.x);
    memory_free(r.v);
    memory_free(r.eps2);
    memory_free(r.bad);
    tree_share_free(&joined);
    if (w->done) w->done[0] = counts.pairs, w->done[1] = counts.points, w->done[2] = counts.locals;
    if (counts.zero_distances && !code)
        session_registry_warn("%lld pairs of a tree at one place with eps = 0: they add nothing",
                              (long long)counts.zero_distances);
    return code;
}

double g6x_tree_bound_of(int order, double accuracy) { return tree_bound_of(order, accuracy); }

int g6x_tree_few(long long particles, long long targets, int on_device)
{
    return tree_few(particles, targets, on_device);
}

static int forces(int handle, const struct tree_setting *setting, const struct request *w,
                  const struct tree_forces *to)
{
    struct tree_forces out = *to;
    int code = 0;
    FPENV_FLUSHED_HERE;
    TREE_HERE(p, handle, &code);
    if (p && !p->moving) out.jerk = NULL;
    if (p) code = api_g6x_tree_check_targets(p, w->ni, w->x, w->self);
    if (!code) code = setting_checked(setting, w);
    if (!code && w->ni && !(to->acc && to->pot))
        code = session_registry_refuse(G6X_E_NULL, "g6x_tree_forces: null pointer");
    if (!code && w->ni) {
        struct tree_setting s = *setting;
        if (s.accuracy > 0.0 && tree_few(p->n, w->ni, 0)) /* pairs are summed one by one */
            s = (struct tree_setting){.method = TREE_BARNES_HUT,
                                      .theta = TREE_PAIR_BY_PAIR,
                                      .spline = setting->spline,
                                      .lone = 1};
        s.isa = p->isa;
        code = sum(p, &s, w, &out);
    }
    if (code && code != G6X_E_I_NAN && code != G6X_E_RANGE)
        session_output_nan(w->ni, to->acc, to->jerk, to->pot, NULL, NULL);
    else if (!out.jerk)
        session_output_nan(w->ni, NULL, to->jerk, NULL, NULL, NULL);
    return code;
}

int g6x_tree_bound(int tree, double eps2, int method, int order, double accuracy,
                   const double last_acc[], double *bound)
{
    const struct tree_setting s = {
        .method = method, .order = order, .bound = accuracy, .accuracy = accuracy};
    int code;
    FPENV_FLUSHED_HERE;
    TREE_HERE(p, tree, &code);
    const struct request w = {.ni = p ? p->n : 0, .last_acc = last_acc, .eps2 = eps2};
    if (p)
        code = bound ? setting_checked(&s, &w)
                     : session_registry_refuse(G6X_E_NULL, "g6x_tree_bound: null pointer");
    if (bound)
        *bound =
            code ? (double)NAN : tree_bound_of(method == TREE_BARNES_HUT ? 0 : order, accuracy);
    return code;
}

/* A request without theta, which has bound as the wanted error; a method may have more in it. */
static struct tree_setting setting_of(struct request *w, int method, int order, double theta,
                                      double bound)
{
    const int more = method < 0 ? 0 : method & (G6X_TREE_MOMENTUM | G6X_TREE_SPLINE);
    w->momentum = more & G6X_TREE_MOMENTUM;
    return (struct tree_setting){.method = method - more,
                                 .spline = (more & G6X_TREE_SPLINE) != 0,
                                 .order = order,
                                 .theta = theta,
                                 .bound = bound,
                                 .accuracy = theta == 0.0 ? bound : 0.0};
}

int g6x_tree_forces(int tree, int ni, const double (*x)[3], const double (*v)[3], const int self[],
                    double eps2, int method, int order, double theta, const double last_acc[],
                    double bound, double (*acc)[3], double (*jerk)[3], double pot[])
{
    struct request w = {ni, x, x ? v : NULL, self, last_acc, eps2, 0, 0, NULL, NULL};
    const struct tree_setting s = setting_of(&w, method, order, theta, bound);
    const struct tree_forces out = {.acc = acc, .pot = pot, .jerk = jerk};
    return forces(tree, &s, &w, &out);
}

int g6x_tree_forces_with(int tree, int parts, const void *const part[], int ni,
                         const double (*x)[3], const double (*v)[3], const int self[], double eps2,
                         int method, int order, double theta, const double last_acc[], double bound,
                         double (*acc)[3], double (*jerk)[3], double pot[], long long done[3])
{
    static const void *const none[1];
    struct request w = {ni, x, x ? v : NULL, self, last_acc, eps2, 0, parts, part, done};
    const struct tree_setting s = setting_of(&w, method, order, theta, bound);
    const struct tree_forces out = {.acc = acc, .pot = pot, .jerk = jerk};
    if (done) done[0] = done[1] = done[2] = 0;
    int code = 0;
    if (parts < 0 || (parts && !part) || w.momentum || s.spline || theta == 0.0)
        code = session_registry_refuse(
            G6X_E_ARGUMENT,
            "parts of %d trees, with %s: forces of several ranks add up to zero, and "
            "have an accuracy, by all of them",
            parts,
            w.momentum ? "G6X_TREE_MOMENTUM"
            : s.spline ? "G6X_TREE_SPLINE"
                       : "theta = 0");
    for (int k = 0; k < parts && !code; k++)
        if (!part[k]) code = session_registry_refuse(G6X_E_NULL, "part %d is a null pointer", k);
    if (code) {
        session_output_nan(ni, acc, jerk, pot, NULL, NULL);
        return code;
    }
    if (!part) w.part = none;
    return forces(tree, &s, &w, &out);
}
