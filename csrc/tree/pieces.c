/* pieces.c - dividing a set of particles that no one box resolves: see tree/pieces.h.
 *
 * A crowded leaf on the deepest level, or one so small that
 * coordinates do not resolve it, is the middle of a piece: it takes all that is near on the scale
 * of the box. Each piece, and the rest, is given a box of its own, and looked at again.
 */
#include "tree/pieces.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"

enum {
    MOST_PIECES = 256,
    MOST_AT_ONCE = 64, /* pieces of one set */
};
#define REACH 0x1p-13 /* of a piece about its leaf, in sides of the box */

/* ---- leaves that are too small ------------------------------------------------------------ */

static int is_at(const double a[3], const double b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* The squared distance of two of a tree's points, in units of its box; -1 at one site. */
static double apart2(const struct tree *t, const struct tree_input *in, int64_t i, int64_t j)
{
    double d2 = 0.0;
    for (int c = 0; c < 3; c++) {
        const double d =
            tree_in_box(&t->box, c, in->x[i][c]) - tree_in_box(&t->box, c, in->x[j][c]);
        d2 += d * d;
    }
    return is_at(in->x[i], in->x[j]) ? -1.0 : d2;
}

/* Whether there are so many about one of a leaf's particles that a share of the box's digits is
 * left. */
static int is_clumped(const struct tree *t, const struct tree_input *in, const struct tree_cell *c)
{
    const double closest = 0x1p-6 * TREE_UNRESOLVED;
    for (int32_t i = c->first; i < c->end; i++) {
        int near = 0;
        for (int32_t k = c->first; k < c->end; k++) {
            const double d2 = apart2(t, in, t->points.order[i], t->points.order[k]);
            near += d2 >= 0.0 && d2 < closest * closest;
        }
        if (near >= TREE_CLUMP - 1) return 1;
    }
    return 0;
}

static int is_one_site(const struct tree *t, const struct tree_input *in, const struct tree_cell *c)
{
    const double *x = in->x[t->points.order[c->first]];
    for (int32_t k = c->first + 1; k < c->end; k++)
        if (!is_at(in->x[t->points.order[k]], x)) return 0;
    return 1;
}

/* Whether a leaf's particles should be a piece, or a site. */
static int is_clump(const struct tree *t, const struct tree_input *in, int32_t cell)
{
    const struct tree_cell *c = &t->cell[cell];
    const int32_t n = c->end - c->first;
    if (c->child >= 0) return 0;
    return n > TREE_CROWD || (n > TREE_LEAF && (is_one_site(t, in, c) || is_clumped(t, in, c))) ||
           (n >= TREE_CLUMP && t->moments[cell].radius < TREE_UNRESOLVED);
}

/* Of so few that they are one leaf: the closest pair must be kept apart by the coordinates. */
static int is_spread(const struct tree *t, const struct tree_input *in)
{
    double closest = INFINITY;
    for (int64_t i = 0; i < in->n; i++)
        for (int64_t j = 0; j < i; j++) {
            const double d2 = apart2(t, in, i, j);
            if (d2 >= 0.0 && d2 < closest) closest = d2;
        }
    return closest >= TREE_UNRESOLVED * TREE_UNRESOLVED;
}

int tree_pieces_is_resolved(const struct tree *t, const struct tree_input *in)
{
    if (t->cells == 1) return is_spread(t, in);
    for (int32_t k = 0; k < t->cells; k++)
        if (is_clump(t, in, k) &&
            (t->cell[k].end - t->cell[k].first > TREE_LEAF || !is_one_site(t, in, &t->cell[k])))
            return 0;
    return 1;
}

/* ---- sites ------------------------------------------------------------------------------- */

struct at {
    double x[3];
    int32_t particle, negative; /* masses of either sign have sites of their own */
};

static int compare(const void *a, const void *b)
{
    const struct at *p = a, *q = b;
    for (int d = 0; d < 3; d++)
        if (p->x[d] != q->x[d]) return p->x[d] < q->x[d] ? -1 : 1;
    if (p->negative != q->negative) return p->negative ? 1 : -1;
    return p->particle < q->particle ? -1 : 1;
}

/* Lets site_of name the first of all particles that stand at one site in crowded leaves. */
static int find_sites(const struct tree *t, const struct tree_input *in, int32_t *site_of)
{
    int64_t most = 0;
    for (int32_t k = 0; k < t->cells; k++) {
        const int64_t n = t->cell[k].end - t->cell[k].first;
        if (is_clump(t, in, k) && n > most) most = n;
    }
    struct at *at = memory_zeroed((size_t)most * sizeof *at);
    if (!at) return G6X_E_MEMORY;
    for (int32_t k = 0; k < t->cells; k++) {
        const int32_t first = t->cell[k].first, n = t->cell[k].end - first;
        if (!is_clump(t, in, k)) continue;
        for (int32_t i = 0; i < n; i++) {
            const int32_t p = t->points.order[first + i];
            at[i] = (struct at){{in->x[p][0], in->x[p][1], in->x[p][2]}, p, in->m[p] < 0.0};
        }
        qsort(at, (size_t)n, sizeof *at, compare);
        for (int32_t i = 1; i < n; i++)
            if (is_at(at[i].x, at[i - 1].x) && at[i].negative == at[i - 1].negative)
                site_of[at[i].particle] = site_of[at[i - 1].particle];
    }
    memory_free(at);
    return 0;
}

/* Numbers sites by their first particles, and lists their particles. */
static void number_sites(struct tree_pieces *p, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t to = p->site_of[i] == i ? p->sites++ : p->site_of[p->site_of[i]];
        p->site_of[i] = to;
        p->first[to + 1]++;
    }
    for (int32_t k = 0; k < p->sites; k++) p->first[k + 1] += p->first[k];
    for (int32_t i = n - 1; i >= 0; i--) p->particle[--p->first[p->site_of[i] + 1]] = i;
    for (int32_t k = 0; k < p->sites; k++) p->first[k] = p->first[k + 1];
    p->first[p->sites] = n;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Sets of sites that are still to be looked at. */
struct set {
    int32_t n, *site;
};
struct sets {
    int count;
    struct set set[MOST_PIECES + MOST_AT_ONCE + 1];
};

static void free_piece(struct tree_piece *piece)
{
    const struct memory_array all[] = {MEMORY_ARRAY(piece->site, 0),
                                       MEMORY_ARRAY(piece->x, 0),
                                       MEMORY_ARRAY(piece->v, 0),
                                       MEMORY_ARRAY(piece->m, 0),
                                       {0}};
    tree_build_free(&piece->tree);
    memory_free_all(all);
}

static int gather(struct tree_pieces *p, struct tree_piece *piece)
{
    const size_t n = (size_t)piece->n;
    piece->x = memory_zeroed(n * sizeof *piece->x);
    piece->m = memory_zeroed(n * sizeof *piece->m);
    if (p->v) piece->v = memory_zeroed(n * sizeof *piece->v);
    if (!piece->x || !piece->m || (p->v && !piece->v)) return G6X_E_MEMORY;
    for (int32_t k = 0; k < piece->n; k++) {
        const int32_t first = p->first[piece->site[k]], end = p->first[piece->site[k] + 1];
        memcpy(piece->x[k], p->x[p->particle[first]], sizeof piece->x[k]);
        for (int32_t i = first; i < end; i++) piece->m[k] += p->m[p->particle[i]];
        if (!isfinite(piece->m[k])) {
            piece->m[k] = copysign(DBL_MAX, piece->m[k]);
            p->unfit = 1;
        }
        for (int32_t i = first; i < end && p->v; i++) {
            const int32_t at = p->particle[i];
            const double share = end == first + 1     ? 1.0
                                 : piece->m[k] != 0.0 ? p->m[at] / piece->m[k]
                                                      : 1.0 / (end - first);
            for (int d = 0; d < 3; d++) piece->v[k][d] += share * p->v[at][d];
        }
    }
    return 0;
}

static void look_from_afar(struct tree_piece *piece)
{
    for (int32_t k = 0; k < piece->n; k++) piece->weight += fabs(piece->m[k]);
    for (int32_t k = 0; k < piece->n; k++) {
        const double share =
            piece->weight > 0.0 ? fabs(piece->m[k]) / piece->weight : 1.0 / piece->n;
        for (int d = 0; d < 3; d++) piece->centre[d] += share * piece->x[k][d];
    }
    for (int32_t k = 0; k < piece->n; k++) {
        double far = 0.0;
        for (int d = 0; d < 3; d++) {
            const double from = piece->x[k][d] - piece->centre[d];
            far = fmax(far, fabs(from));
            piece->dipole[d] += piece->m[k] * from;
            if (piece->v) piece->momentum[d] += piece->m[k] * piece->v[k][d];
        }
        piece->radius = fmax(piece->radius, 1.8 * far); /* a bit more than sqrt(3) */
        piece->mass += piece->m[k];
    }
}

struct clump {
    int32_t n, cell;
};

static int larger(const void *a, const void *b)
{
    const struct clump *p = a, *q = b;
    if (p->n != q->n) return p->n > q->n ? -1 : 1;
    return p->cell < q->cell ? -1 : 1;
}

static int add_set(struct sets *sets, const struct tree_piece *piece, const int *piece_of,
                   int which)
{
    int32_t n = 0;
    for (int32_t k = 0; k < piece->n; k++) n += piece_of[k] == which;
    if (!n) return 0;
    struct set s = {0, memory_zeroed((size_t)n * sizeof *s.site)};
    if (!s.site) return G6X_E_MEMORY;
    for (int32_t k = 0; k < piece->n; k++)
        if (piece_of[k] == which) s.site[s.n++] = piece->site[k];
    sets->set[sets->count++] = s;
    return 0;
}

/* Pieces about the largest clumps, and the rest. */
static int divide(const struct tree_piece *piece, const struct tree_input *in, struct sets *sets,
                  int most)
{
    const struct tree *t = &piece->tree;
    const double reach = tree_scaled(REACH * t->box.side, t->box.length);
    int count = 0, code = 0, clumps = 0;
    int *piece_of = memory_zeroed((size_t)piece->n * sizeof *piece_of);
    struct clump *clump = memory_zeroed((size_t)t->cells * sizeof *clump);
    if (!piece_of || !clump) code = G6X_E_MEMORY;
    for (int32_t k = 0; k < t->cells && !code; k++)
        if (is_clump(t, in, k))
            clump[clumps++] = (struct clump){t->cell[k].end - t->cell[k].first, k};
    if (!code) qsort(clump, (size_t)clumps, sizeof *clump, larger);
    for (int c = 0; c < clumps && count < most && !code; c++) {
        const int32_t middle = t->points.order[t->cell[clump[c].cell].first];
        if (piece_of[middle]) continue;
        count++;
        for (int32_t k = 0; k < piece->n; k++) {
            int near = !piece_of[k];
            for (int d = 0; d < 3; d++) near &= fabs(piece->x[k][d] - piece->x[middle][d]) <= reach;
            if (near) piece_of[k] = count;
        }
    }
    for (int which = 0; which <= count && !code; which++)
        code = add_set(sets, piece, piece_of, which);
    memory_free(piece_of);
    memory_free(clump);
    return code;
}

/* Makes one piece of a set of sites, or several sets. */
static int take_set(struct tree_pieces *p, struct sets *sets, int threads)
{
    const struct set s = sets->set[--sets->count];
    struct tree_piece piece = {.n = s.n, .site = s.site};
    const int left = MOST_PIECES - p->count - sets->count - 1;
    int code = gather(p, &piece);
    if (!code && piece.n > TREE_LEAF) {
        const struct tree_input in = {piece.n, CONST3(piece.x), CONST3(piece.v), piece.m};
        code = tree_build_one(&piece.tree, &in, NULL, threads);
        if (!code && left > 0 && !tree_pieces_is_resolved(&piece.tree, &in)) {
            const int before = sets->count;
            code = divide(&piece, &in, sets, left < MOST_AT_ONCE ? left : MOST_AT_ONCE);
            if (code || sets->count > before + 1) {
                free_piece(&piece);
                return code;
            }
            memory_free(sets->set[--sets->count].site); /* all again: doubles hold no more */
        }
    }
    if (code) {
        free_piece(&piece);
        return code;
    }
    look_from_afar(&piece);
    for (int32_t k = 0; k < piece.n; k++) {
        p->piece_of[piece.site[k]] = p->count;
        p->number_in_piece[piece.site[k]] = k;
    }
    p->piece[p->count++] = piece;
    return 0;
}

#define ARRAYS(p, n)                                                                               \
    MEMORY_ARRAY((p)->x, n), MEMORY_ARRAY((p)->m, n), MEMORY_ARRAY((p)->first, (n) + 1),           \
        MEMORY_ARRAY((p)->particle, n), MEMORY_ARRAY((p)->site_of, n),                             \
        MEMORY_ARRAY((p)->piece_of, n), MEMORY_ARRAY((p)->number_in_piece, n),                     \
        MEMORY_ARRAY((p)->piece, MOST_PIECES + 1)

static int copy_particles(struct tree_pieces *p, const struct tree_input *in)
{
    const size_t n = (size_t)in->n;
    const struct memory_array at_rest[] = {ARRAYS(p, n), {0}}, v[] = {MEMORY_ARRAY(p->v, n), {0}};
    if (memory_grow_all(at_rest) || (in->v && memory_grow_all(v))) return G6X_E_MEMORY;
    memcpy(p->x, in->x, n * sizeof *p->x);
    memcpy(p->m, in->m, n * sizeof *p->m);
    if (in->v) memcpy(p->v, in->v, n * sizeof *p->v);
    for (int32_t i = 0; i < in->n; i++) p->site_of[i] = i;
    return 0;
}

void tree_pieces_free(struct tree_pieces *p)
{
    if (!p) return;
    const struct memory_array all[] = {ARRAYS(p, 0), MEMORY_ARRAY(p->v, 0), {0}};
    for (int k = 0; k < p->count; k++) free_piece(&p->piece[k]);
    memory_free_all(all);
    memory_free(p);
}

int tree_pieces_make(struct tree *t, const struct tree_input *in)
{
    struct tree_pieces *p = memory_zeroed(sizeof *p);
    struct sets *sets = memory_zeroed(sizeof *sets);
    int code = p && sets ? copy_particles(p, in) : G6X_E_MEMORY;
    if (!code) code = find_sites(t, in, p->site_of);
    if (!code) {
        number_sites(p, (int32_t)in->n);
        sets->set[0] = (struct set){p->sites, memory_zeroed((size_t)p->sites * sizeof(int32_t))};
        sets->count = 1;
        if (!sets->set[0].site) code = G6X_E_MEMORY;
        for (int32_t k = 0; k < p->sites && !code; k++) sets->set[0].site[k] = k;
    }
    while (!code && sets->count) code = take_set(p, sets, t->threads);
    for (int k = 0; sets && k < sets->count; k++) memory_free(sets->set[k].site);
    memory_free(sets);
    if (code)
        tree_pieces_free(p);
    else
        t->pieces = p;
    return code;
}
