/* boxes.c - what is made in one box, and what in several (tree/pieces.h). A target
 * takes a piece from afar as a point with a dipole, in double; a piece of a few particles pair by
 * pair, in double; and else by the piece's tree. */
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "g6lib.h"
#include "tree/pieces.h"
#include "util/memory.h"
#include "util/threads.h"

void tree_boxes_free(struct tree *t)
{
    tree_pieces_free(t->pieces);
    tree_softening_free(&t->own);
    tree_build_free(t);
}

int tree_boxes_build(struct tree *t, const struct tree_input *in, const struct tree_whole *whole,
                     int threads, struct error *err)
{
    tree_pieces_free(t->pieces);
    t->pieces = NULL;
    int code = tree_build_one(t, in, whole, threads);
    const int resolved = code || !in->n || tree_pieces_is_resolved(t, in);
    if (!resolved && whole)
        return error_set(err, G6X_E_RANGE,
                         "the box of all ranks' particles does not resolve those of this tree: "
                         "some stand too close together");
    if (!resolved) code = tree_pieces_make(t, in);
    if (code)
        return error_set(err, G6X_E_MEMORY, "out of memory for a tree of %lld particles",
                         (long long)in->n);
    return 0;
}

/* ---- forces of pieces ------------------------------------------------------------ */

/* Of a piece's radius: at this distance its quadrupole is 2^-36 of its force. */
#define AFAR 0x1p18
#define OUTWEIGHED 0x1p-20 /* others, of a particle's mass */

enum { TARGETS_AT_ONCE = 512 };

/* A source: mass, sum of m v, and of m times the way from the point. */
struct point {
    double m, momentum[3], dipole[3];
};

struct act {
    const struct tree_pieces *pieces;
    const struct tree_piece *piece;
    struct tree_targets targets; /* x is never NULL */
    const struct tree_forces *out;
    unsigned char *near; /* [targets]: the tree is left to act */
    int number, own;     /* own: the targets are the particles */
    _Atomic int64_t zero_distances;
};

/* The number of the particle that a target is, or -1. */
static int32_t self_of(const struct act *a, int64_t i)
{
    return a->own ? (int32_t)i : a->targets.self ? a->targets.self[i] : -1;
}

/* Its site among those of the piece, or -1. */
static int32_t site_in_piece(const struct act *a, int32_t self)
{
    const struct tree_pieces *p = a->pieces;
    if (self < 0 || p->piece_of[p->site_of[self]] != a->number) return -1;
    return p->number_in_piece[p->site_of[self]];
}

/* w - 3 (u.w) u */
static void add_turned(const double u[3], const double w[3], double by, double to[3])
{
    const double along = 3.0 * (u[0] * w[0] + u[1] * w[1] + u[2] * w[2]);
    for (int d = 0; d < 3; d++) to[d] += (w[d] - along * u[d]) * by;
}

/* Adds the force of a point at x on target i; 0 if they are at one site without softening. */
static int add_point(struct act *a, int64_t i, const double x[3], const struct point *p)
{
    const double *at = a->targets.x[i], *v = a->targets.v ? a->targets.v[i] : NULL;
    double r[3], q[3], size = 0.0, unit = 1.0;
    for (int d = 0; d < 3; d++) {
        r[d] = x[d] - at[d];
        size = fmax(size, fabs(r[d]));
    }
    size = fmax(size, sqrt(a->targets.eps2[i]));
    if (size > 0x1p500) unit = 0x1p-600; /* else squares could overflow, */
    if (size < 0x1p-500) unit = 0x1p900; /* or vanish */
    double s2 = a->targets.eps2[i] * unit * unit;
    for (int d = 0; d < 3; d++) {
        r[d] *= unit;
        s2 += r[d] * r[d];
    }
    if (s2 == 0.0) return 0;
    const double by = 1.0 / sqrt(s2), inverse = by * unit;
    for (int d = 0; d < 3; d++) r[d] *= by;
    const double along = r[0] * p->dipole[0] + r[1] * p->dipole[1] + r[2] * p->dipole[2];
    a->out->pot[i] -= (p->m - along * inverse) * inverse;
    for (int d = 0; d < 3; d++) a->out->acc[i][d] += p->m * inverse * inverse * r[d];
    add_turned(r, p->dipole, inverse * inverse * inverse, a->out->acc[i]);
    if (!a->out->jerk) return 1;
    for (int d = 0; d < 3; d++) q[d] = p->momentum[d] - p->m * v[d];
    add_turned(r, q, inverse * inverse * inverse, a->out->jerk[i]);
    return 1;
}

/* Whether a particle outweighs all of some, itself among them, so far that a difference of sums
 * would not know the others. It is at most one of them. */
static int outweighs(const struct tree_pieces *p, int32_t particle, double weight)
{
    const double m = fabs(p->m[particle]);
    return weight - m < OUTWEIGHED * m;
}

static void add_particle(const struct tree_pieces *p, int32_t particle, double times,
                         struct point *to)
{
    const double m = times * p->m[particle];
    to->m += m;
    for (int d = 0; d < 3 && p->v; d++) to->momentum[d] += m * p->v[particle][d];
}

/* A site, without one of its particles (or -1); how many are left. */
static int32_t site_without(const struct act *a, int32_t k, int32_t without, struct point *p)
{
    const struct tree_pieces *pieces = a->pieces;
    const int32_t first = pieces->first[a->piece->site[k]];
    const int32_t end = pieces->first[a->piece->site[k] + 1];
    *p = (struct point){0};
    if (without >= 0 && outweighs(pieces, without, fabs(a->piece->m[k]))) {
        for (int32_t n = first; n < end; n++)
            if (pieces->particle[n] != without) add_particle(pieces, pieces->particle[n], 1.0, p);
        return end - first - 1;
    }
    p->m = a->piece->m[k];
    for (int d = 0; d < 3 && a->piece->v; d++) p->momentum[d] = p->m * a->piece->v[k][d];
    if (without >= 0) add_particle(pieces, without, -1.0, p);
    return end - first - (without >= 0);
}

static int is_afar(const struct act *a, int64_t i)
{
    double size = sqrt(a->targets.eps2[i]);
    for (int d = 0; d < 3; d++) size = fmax(size, fabs(a->piece->centre[d] - a->targets.x[i][d]));
    return size > AFAR * a->piece->radius;
}

/* `without`: one of its particles, or -1. */
static void act_from_afar(struct act *a, int64_t i, int32_t without)
{
    const struct tree_piece *piece = a->piece;
    struct point p = {.m = piece->mass};
    memcpy(p.dipole, piece->dipole, sizeof p.dipole);
    memcpy(p.momentum, piece->momentum, sizeof p.momentum);
    if (without >= 0) {
        add_particle(a->pieces, without, -1.0, &p);
        for (int d = 0; d < 3; d++)
            p.dipole[d] -= a->pieces->m[without] * (a->pieces->x[without][d] - piece->centre[d]);
    }
    (void)add_point(a, i, piece->centre, &p);
}

static void act_on(void *context, int64_t first, int64_t end)
{
    struct act *a = context;
    int64_t zero_distances = 0;
    for (int64_t i = first; i < end; i++) {
        const int32_t self = self_of(a, i), own = site_in_piece(a, self);
        const int alone = own >= 0 && outweighs(a->pieces, self, a->piece->weight);
        struct point p;
        a->near[i] = 0;
        if (!alone && is_afar(a, i)) {
            act_from_afar(a, i, own >= 0 ? self : -1);
            continue;
        }
        const int by_tree = a->near[i] = a->piece->n > TREE_LEAF && !(alone && is_afar(a, i));
        /* A tree leaves out the target's site: who else is there is added to it. */
        const int32_t start = by_tree ? (own < 0 ? a->piece->n : own) : 0;
        const int32_t stop = by_tree && own >= 0 ? own + 1 : a->piece->n;
        for (int32_t k = start; k < stop; k++) {
            const int32_t left = site_without(a, k, k == own ? self : -1, &p);
            if (left && !add_point(a, i, a->piece->x[k], &p)) zero_distances += left;
        }
    }
    atomic_fetch_add(&a->zero_distances, zero_distances);
}

/* The targets that the piece's tree acts on, and what it gives. */
struct near {
    int64_t n, *target;
    double (*x)[3], (*v)[3], *eps2, *last_acc;
    int32_t *self;
    struct tree_forces out;
};

static int gather_near(const struct act *a, struct near *near)
{
    const struct tree_targets *in = &a->targets;
    for (int64_t i = 0; i < in->n; i++) near->n += a->near[i];
    const size_t n = (size_t)near->n;
    near->target = memory_zeroed(n * sizeof *near->target);
    near->self = memory_zeroed(n * sizeof *near->self);
    double *numbers = memory_zeroed(15 * n * sizeof *numbers);
    near->x = (double (*)[3])(void *)numbers;
    if (!near->target || !near->self || !numbers) return G6X_E_MEMORY;
    near->v = near->x + n;
    near->out.acc = near->v + n;
    near->out.jerk = a->out->jerk ? near->out.acc + n : NULL;
    near->out.pot = numbers + 12 * n;
    near->eps2 = near->out.pot + n;
    near->last_acc = in->last_acc ? near->eps2 + n : NULL;
    for (int64_t i = 0, k = 0; i < in->n; i++) {
        if (!a->near[i]) continue;
        near->self[k] = site_in_piece(a, self_of(a, i));
        memcpy(near->x[k], in->x[i], sizeof near->x[k]);
        if (in->v) memcpy(near->v[k], in->v[i], sizeof near->v[k]);
        near->eps2[k] = in->eps2[i];
        if (in->last_acc) near->last_acc[k] = in->last_acc[i];
        near->target[k++] = i;
    }
    return 0;
}

static int act_by_tree(const struct tree *t, struct act *a, const struct tree_setting *s,
                       struct tree_counts *counts)
{
    struct near near = {0};
    struct tree tree = a->piece->tree;
    tree.threads = t->threads;
    int code = gather_near(a, &near);
    const struct tree_targets in = {near.n,    CONST3(near.x), a->out->jerk ? CONST3(near.v) : NULL,
                                    near.self, near.eps2,      near.last_acc};
    if (!code) code = tree_sum_one(&tree, s, &in, &near.out, counts);
    for (int64_t k = 0; k < near.n && !code; k++) {
        const int64_t i = near.target[k];
        a->out->pot[i] += near.out.pot[k];
        for (int d = 0; d < 3; d++) {
            a->out->acc[i][d] += near.out.acc[k][d];
            if (a->out->jerk) a->out->jerk[i][d] += near.out.jerk[k][d];
        }
    }
    memory_free(near.target);
    memory_free(near.x);
    memory_free(near.self);
    return code;
}

static int sum_pieces(const struct tree *t, const struct tree_setting *s,
                      const struct tree_targets *targets, const struct tree_forces *out,
                      struct tree_counts *counts)
{
    const struct tree_pieces *p = t->pieces;
    struct act a = {.pieces = p, .targets = *targets, .own = !targets->x, .out = out};
    const size_t n = (size_t)targets->n;
    int code = 0;
    if (a.own) a.targets.x = CONST3(p->x), a.targets.v = CONST3(p->v);
    a.near = memory_zeroed(n);
    if (!a.near) return G6X_E_MEMORY;
    const int none = p->unfit ? 0xff : 0; /* bytes of NaN */
    memset(out->acc, none, n * sizeof *out->acc);
    memset(out->pot, none, n * sizeof *out->pot);
    if (out->jerk) memset(out->jerk, none, n * sizeof *out->jerk);
    for (a.number = 0; a.number < p->count && !code; a.number++) {
        struct tree_counts of_part = {0};
        a.piece = &p->piece[a.number];
        threads_each(t->threads, (int64_t)n, TARGETS_AT_ONCE, act_on, &a);
        if (memchr(a.near, 1, n)) code = act_by_tree(t, &a, s, &of_part);
        counts->pairs += of_part.pairs;
        counts->points += of_part.points;
        counts->locals += of_part.locals;
        counts->zero_distances += of_part.zero_distances;
    }
    counts->zero_distances += a.zero_distances;
    memory_free(a.near);
    return code;
}

int tree_boxes_sum(const struct tree *t, const struct tree_setting *s,
                   const struct tree_targets *targets, const struct tree_forces *out,
                   struct tree_counts *counts, struct error *err)
{
    *counts = (struct tree_counts){0};
    if (!targets->n) return 0;
    if (out->jerk && (!t->points.vx || (targets->x && !targets->v)))
        return error_set(err, G6X_E_NULL, "jerks of a tree without velocities");
    /* squares that single precision does not hold, in units of the box */
    const double most = ldexp(FLT_MAX, 2 * t->box.length);
    for (int64_t i = 0; !t->pieces && i < targets->n && t->points.n > 1; i++)
        if (targets->eps2[i] > most)
            return error_set(
                err, G6X_E_RANGE,
                "eps = %g is more than 1e18 times the size of a tree's particles: sum them "
                "directly",
                sqrt(targets->eps2[i]));
    const int term = tree_pair_term(t, s);
    int code;
    if (!t->pieces) {
        code = tree_sum_one(t, s, targets, out, counts);
    } else if (term == PAIR_FORCE) {
        code = sum_pieces(t, s, targets, out, counts);
    } else {
        const struct tree_pieces *p = t->pieces;
        const struct tree_input in = {t->points.n, CONST3(p->x), CONST3(p->v), p->m};
        code = tree_softening_direct(&in, t->own.eps, term, targets, out, t->threads, counts);
    }
    if (!code) return 0;
    return error_set(err, code, "out of memory for the forces of a tree on %lld targets",
                     (long long)targets->n);
}
