/* g6x_tree_forces.c - the g6x_tree_ calls that sum the forces of open trees. */
#include "api/g6x_tree.h"

#include <math.h>
#include <string.h>

#include "core/options.h"
#include "g6lib.h"
#include "session/output.h"
#include "session/registry.h"
#include "shared/tree_few.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"

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
    const int x = api_g6x_tree_first_bad(w->ni, w->x[0], 3),
              v = w->v ? api_g6x_tree_first_bad(w->ni, w->v[0], 3) : w->ni;
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
