/* parts.c - dividing a set of particles that no one box resolves: see tree/parts.h.
 *
 * A leaf on the deepest level with more particles than a leaf should have, or one so small that
 * coordinates do not resolve it, is the middle of a part: it takes all that is near on the scale of
 * the box. Each part, and the rest, is given a box of its own, and looked at again.
 */
#include "tree/parts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "shared/tree_hilbert.h"

enum {
    MOST_PARTS = 256,
    MOST_AT_ONCE = 64, /* parts of one set */
};
#define REACH 0x1p-13 /* of a part about its leaf, in sides of the box */

/* ---- leaves that are too small ------------------------------------------------------------ */

static int is_deepest(const struct tree *t, int32_t cell)
{
    return t->levels > TREE_LEVELS && cell >= t->level_first[TREE_LEVELS];
}

/* Whether a leaf's particles should be a part, or a place. */
static int is_clump(const struct tree *t, int32_t cell)
{
    const struct tree_cell *c = &t->cell[cell];
    const int32_t n = c->end - c->first;
    if (c->child >= 0) return 0;
    return (n > TREE_LEAF && is_deepest(t, cell)) ||
           (n >= TREE_CLUMP && t->moments[cell].radius < TREE_UNRESOLVED);
}

static int is_at(const double a[3], const double b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static int is_one_place(const struct tree *t, const struct tree_input *in, int32_t cell)
{
    const struct tree_cell *c = &t->cell[cell];
    const double *x = in->x[t->points.order[c->first]];
    for (int32_t k = c->first + 1; k < c->end; k++)
        if (!is_at(in->x[t->points.order[k]], x)) return 0;
    return 1;
}

/* Of so few that they are one leaf: the closest pair must be kept apart by the coordinates. */
static int is_spread(const struct tree *t, const struct tree_input *in)
{
    double closest = INFINITY;
    for (int64_t i = 0; i < in->n; i++)
        for (int64_t j = 0; j < i; j++) {
            double d2 = 0.0;
            for (int c = 0; c < 3; c++) {
                const double d =
                    tree_in_box(&t->box, c, in->x[i][c]) - tree_in_box(&t->box, c, in->x[j][c]);
                d2 += d * d;
            }
            if (!is_at(in->x[i], in->x[j]) && d2 < closest) closest = d2;
        }
    return closest >= TREE_UNRESOLVED * TREE_UNRESOLVED;
}

int tree_parts_is_resolved(const struct tree *t, const struct tree_input *in)
{
    if (t->cells == 1) return is_spread(t, in);
    for (int32_t k = 0; k < t->cells; k++)
        if (is_clump(t, k) &&
            (t->cell[k].end - t->cell[k].first > TREE_LEAF || !is_one_place(t, in, k)))
            return 0;
    return 1;
}

/* ---- places ------------------------------------------------------------------------------- */

struct at {
    double x[3];
    int32_t particle, negative; /* masses of either sign have places of their own */
};

static int compare(const void *a, const void *b)
{
    const struct at *p = a, *q = b;
    for (int d = 0; d < 3; d++)
        if (p->x[d] != q->x[d]) return p->x[d] < q->x[d] ? -1 : 1;
    if (p->negative != q->negative) return p->negative ? 1 : -1;
    return p->particle < q->particle ? -1 : 1;
}

/* Lets place_of name the first of all particles that stand at one place in crowded leaves. */
static int find_places(const struct tree *t, const struct tree_input *in, int32_t *place_of)
{
    int64_t most = 0;
    for (int32_t k = 0; k < t->cells; k++) {
        const int64_t n = t->cell[k].end - t->cell[k].first;
        if (is_clump(t, k) && n > most) most = n;
    }
    struct at *at = memory_zeroed((size_t)most * sizeof *at);
    if (!at) return G6X_E_MEMORY;
    for (int32_t k = 0; k < t->cells; k++) {
        const int32_t first = t->cell[k].first, n = t->cell[k].end - first;
        if (!is_clump(t, k)) continue;
        for (int32_t i = 0; i < n; i++) {
            const int32_t p = t->points.order[first + i];
            at[i] = (struct at){{in->x[p][0], in->x[p][1], in->x[p][2]}, p, in->m[p] < 0.0};
        }
        qsort(at, (size_t)n, sizeof *at, compare);
        for (int32_t i = 1; i < n; i++)
            if (is_at(at[i].x, at[i - 1].x) && at[i].negative == at[i - 1].negative)
                place_of[at[i].particle] = place_of[at[i - 1].particle];
    }
    memory_free(at);
    return 0;
}

/* Numbers places by their first particles, and lists their particles. */
static void number_places(struct tree_parts *p, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t to = p->place_of[i] == i ? p->places++ : p->place_of[p->place_of[i]];
        p->place_of[i] = to;
        p->first[to + 1]++;
    }
    for (int32_t k = 0; k < p->places; k++) p->first[k + 1] += p->first[k];
    for (int32_t i = n - 1; i >= 0; i--) p->particle[--p->first[p->place_of[i] + 1]] = i;
    for (int32_t k = 0; k < p->places; k++) p->first[k] = p->first[k + 1];
    p->first[p->places] = n;
}

/* ---- parts -------------------------------------------------------------------------------- */

/* Sets of places that are still to be looked at. */
struct set {
    int32_t n, *place;
};
struct sets {
    int count;
    struct set set[MOST_PARTS + MOST_AT_ONCE + 1];
};

static void free_part(struct tree_part *part)
{
    const struct memory_array all[] = {MEMORY_ARRAY(part->place, 0),
                                       MEMORY_ARRAY(part->x, 0),
                                       MEMORY_ARRAY(part->v, 0),
                                       MEMORY_ARRAY(part->m, 0),
                                       {0}};
    tree_build_free(&part->tree);
    memory_free_all(all);
}

static int gather(struct tree_parts *p, struct tree_part *part)
{
    const size_t n = (size_t)part->n;
    part->x = memory_zeroed(n * sizeof *part->x);
    part->m = memory_zeroed(n * sizeof *part->m);
    if (p->v) part->v = memory_zeroed(n * sizeof *part->v);
    if (!part->x || !part->m || (p->v && !part->v)) return G6X_E_MEMORY;
    for (int32_t k = 0; k < part->n; k++) {
        const int32_t first = p->first[part->place[k]], end = p->first[part->place[k] + 1];
        memcpy(part->x[k], p->x[p->particle[first]], sizeof part->x[k]);
        for (int32_t i = first; i < end; i++) part->m[k] += p->m[p->particle[i]];
        if (!isfinite(part->m[k])) {
            part->m[k] = copysign(DBL_MAX, part->m[k]);
            p->unfit = 1;
        }
        for (int32_t i = first; i < end && p->v; i++) {
            const int32_t at = p->particle[i];
            const double share = end == first + 1    ? 1.0
                                 : part->m[k] != 0.0 ? p->m[at] / part->m[k]
                                                     : 1.0 / (end - first);
            for (int d = 0; d < 3; d++) part->v[k][d] += share * p->v[at][d];
        }
    }
    return 0;
}

static void look_from_afar(struct tree_part *part)
{
    double weight = 0.0;
    for (int32_t k = 0; k < part->n; k++) weight += fabs(part->m[k]);
    for (int32_t k = 0; k < part->n; k++) {
        const double share = weight > 0.0 ? fabs(part->m[k]) / weight : 1.0 / part->n;
        for (int d = 0; d < 3; d++) part->centre[d] += share * part->x[k][d];
    }
    for (int32_t k = 0; k < part->n; k++) {
        double far = 0.0;
        for (int d = 0; d < 3; d++) {
            const double from = part->x[k][d] - part->centre[d];
            far = fmax(far, fabs(from));
            part->dipole[d] += part->m[k] * from;
            if (part->v) part->momentum[d] += part->m[k] * part->v[k][d];
        }
        part->radius = fmax(part->radius, 1.8 * far); /* a bit more than sqrt(3) */
        part->mass += part->m[k];
    }
}

static void keep_part(struct tree_parts *p, struct tree_part *part)
{
    look_from_afar(part);
    for (int32_t k = 0; k < part->n; k++) {
        p->part_of[part->place[k]] = p->count;
        p->number_in_part[part->place[k]] = k;
    }
    p->part[p->count++] = *part;
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

static int add_set(struct sets *sets, const struct tree_part *part, const int *part_of, int which)
{
    int32_t n = 0;
    for (int32_t k = 0; k < part->n; k++) n += part_of[k] == which;
    if (!n) return 0;
    struct set s = {0, memory_zeroed((size_t)n * sizeof *s.place)};
    if (!s.place) return G6X_E_MEMORY;
    for (int32_t k = 0; k < part->n; k++)
        if (part_of[k] == which) s.place[s.n++] = part->place[k];
    sets->set[sets->count++] = s;
    return 0;
}

/* Parts about the largest clumps, and the rest. */
static int divide(const struct tree_part *part, struct sets *sets, int most)
{
    const struct tree *t = &part->tree;
    const double reach = tree_scaled(REACH * t->box.side, t->box.length);
    int count = 0, code = 0, clumps = 0;
    int *part_of = memory_zeroed((size_t)part->n * sizeof *part_of);
    struct clump *clump = memory_zeroed((size_t)t->cells * sizeof *clump);
    if (!part_of || !clump) code = G6X_E_MEMORY;
    for (int32_t k = 0; k < t->cells && !code; k++)
        if (is_clump(t, k)) clump[clumps++] = (struct clump){t->cell[k].end - t->cell[k].first, k};
    if (!code) qsort(clump, (size_t)clumps, sizeof *clump, larger);
    for (int c = 0; c < clumps && count < most && !code; c++) {
        const int32_t middle = t->points.order[t->cell[clump[c].cell].first];
        if (part_of[middle]) continue;
        count++;
        for (int32_t k = 0; k < part->n; k++) {
            int near = !part_of[k];
            for (int d = 0; d < 3; d++) near &= fabs(part->x[k][d] - part->x[middle][d]) <= reach;
            if (near) part_of[k] = count;
        }
    }
    for (int which = 0; which <= count && !code; which++)
        code = add_set(sets, part, part_of, which);
    memory_free(part_of);
    memory_free(clump);
    return code;
}

/* Makes one part of a set of places, or several sets. */
static int take_set(struct tree_parts *p, struct sets *sets, int threads)
{
    const struct set s = sets->set[--sets->count];
    struct tree_part part = {.n = s.n, .place = s.place};
    const int left = MOST_PARTS - p->count - sets->count - 1;
    int code = gather(p, &part);
    if (!code && part.n > TREE_LEAF) {
        const struct tree_input in = {part.n, (const double (*)[3])part.x,
                                      (const double (*)[3])part.v, part.m};
        code = tree_build_one(&part.tree, &in, NULL, threads);
        if (!code && left > 0 && !tree_parts_is_resolved(&part.tree, &in)) {
            const int before = sets->count;
            code = divide(&part, sets, left < MOST_AT_ONCE ? left : MOST_AT_ONCE);
            if (code || sets->count > before + 1) {
                free_part(&part);
                return code;
            }
            memory_free(sets->set[--sets->count].place); /* all again: doubles hold no more */
        }
    }
    if (code)
        free_part(&part);
    else
        keep_part(p, &part);
    return code;
}

#define ARRAYS(p, n)                                                                               \
    MEMORY_ARRAY((p)->x, n), MEMORY_ARRAY((p)->m, n), MEMORY_ARRAY((p)->first, (n) + 1),           \
        MEMORY_ARRAY((p)->particle, n), MEMORY_ARRAY((p)->place_of, n),                            \
        MEMORY_ARRAY((p)->part_of, n), MEMORY_ARRAY((p)->number_in_part, n),                       \
        MEMORY_ARRAY((p)->part, MOST_PARTS + 1)

static int copy_particles(struct tree_parts *p, const struct tree_input *in)
{
    const size_t n = (size_t)in->n;
    const struct memory_array at_rest[] = {ARRAYS(p, n), {0}}, v[] = {MEMORY_ARRAY(p->v, n), {0}};
    if (memory_grow_all(at_rest) || (in->v && memory_grow_all(v))) return G6X_E_MEMORY;
    memcpy(p->x, in->x, n * sizeof *p->x);
    memcpy(p->m, in->m, n * sizeof *p->m);
    if (in->v) memcpy(p->v, in->v, n * sizeof *p->v);
    for (int32_t i = 0; i < in->n; i++) p->place_of[i] = i;
    return 0;
}

void tree_parts_free(struct tree_parts *p)
{
    if (!p) return;
    const struct memory_array all[] = {ARRAYS(p, 0), MEMORY_ARRAY(p->v, 0), {0}};
    for (int k = 0; k < p->count; k++) free_part(&p->part[k]);
    memory_free_all(all);
    memory_free(p);
}

int tree_parts_make(struct tree *t, const struct tree_input *in)
{
    struct tree_parts *p = memory_zeroed(sizeof *p);
    struct sets *sets = memory_zeroed(sizeof *sets);
    int code = p && sets ? copy_particles(p, in) : G6X_E_MEMORY;
    if (!code) code = find_places(t, in, p->place_of);
    if (!code) {
        number_places(p, (int32_t)in->n);
        sets->set[0] = (struct set){p->places, memory_zeroed((size_t)p->places * sizeof(int32_t))};
        sets->count = 1;
        if (!sets->set[0].place) code = G6X_E_MEMORY;
        for (int32_t k = 0; k < p->places && !code; k++) sets->set[0].place[k] = k;
    }
    while (!code && sets->count) code = take_set(p, sets, t->threads);
    for (int k = 0; sets && k < sets->count; k++) memory_free(sets->set[k].place);
    memory_free(sets);
    if (code)
        tree_parts_free(p);
    else
        t->parts = p;
    return code;
}
