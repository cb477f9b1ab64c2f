/* build.c - box, keys, cells and moments of an octree, and how these change. */
#include "tree/tree.h"

#include <math.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "shared/tree_hilbert.h"
#include "tree/kernel.h"
#include "util/numbers.h"
#include "util/threads.h"
#include "util/radix_sort.h"

enum { GRAIN = 8192, AHEAD = 16 /* particles, of which memory is asked for early */ };

void tree_build_free_points(struct tree_points *p)
{
    memory_free(p->order);
    memory_free(p->x);
    memset(p, 0, sizeof *p);
}

void tree_build_free(struct tree *t)
{
    tree_build_free_points(&t->points);
    memory_free(t->key);
    memory_free(t->rank);
    memory_free(t->cell);
    memory_free(t->moments);
    memory_free(t->far);
    memory_free(t->place);
    memory_free(t->motion);
    memset(t, 0, sizeof *t);
}

/* ---- the box -------------------------------------------------------------------- */

enum { PIECES = 64 }; /* of the particles, that sums are made of, one after the other */

/* Of each piece: corners, largest |mass| and velocity; then mass and momentum in units of the box,
 * whose frame is that of their centre. */
struct survey {
    const struct tree_input *in;
    const struct tree_box *box;
    double low[PIECES][3], high[PIECES][3], mass[PIECES], speed[PIECES], momentum[PIECES][3];
};

static int64_t piece_start(const struct survey *s, int64_t piece)
{
    const int64_t start = piece * ceil_div(s->in->n, PIECES);
    return start < s->in->n ? start : s->in->n;
}

static void extent_of(void *context, int64_t first, int64_t end)
{
    struct survey *s = context;
    const struct tree_input *in = s->in;
    for (int64_t p = first; p < end; p++) {
        double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
        double mass = 0.0, speed = 0.0;
        const int64_t last = piece_start(s, p + 1);
        for (int64_t k = piece_start(s, p); k < last; k++) {
            for (int c = 0; c < 3; c++) {
                const double x = in->x[k][c];
                if (x < low[c]) low[c] = x;
                if (x > high[c]) high[c] = x;
                if (in->v && fabs(in->v[k][c]) > speed) speed = fabs(in->v[k][c]);
            }
            if (in->m && fabs(in->m[k]) > mass) mass = fabs(in->m[k]);
        }
        memcpy(s->low[p], low, sizeof low);
        memcpy(s->high[p], high, sizeof high);
        s->mass[p] = mass, s->speed[p] = speed;
    }
}

/* Brings what all pieces have into the first. */
static void find_extent(struct survey *s, int threads)
{
    threads_each(threads, PIECES, 1, extent_of, s);
    for (int p = 1; p < PIECES; p++) {
        for (int c = 0; c < 3; c++) {
            if (s->low[p][c] < s->low[0][c]) s->low[0][c] = s->low[p][c];
            if (s->high[p][c] > s->high[0][c]) s->high[0][c] = s->high[p][c];
        }
        s->mass[0] = fmax(s->mass[0], s->mass[p]);
        s->speed[0] = fmax(s->speed[0], s->speed[p]);
    }
}

static void momentum_of(void *context, int64_t first, int64_t end)
{
    struct survey *s = context;
    for (int64_t p = first; p < end; p++) {
        double mass = 0.0, momentum[3] = {0.0, 0.0, 0.0};
        for (int64_t k = piece_start(s, p); k < piece_start(s, p + 1); k++) {
            const double m = tree_scaled(fabs(s->in->m[k]), -s->box->mass);
            mass += m;
            for (int c = 0; c < 3; c++)
                momentum[c] += m * tree_scaled(s->in->v[k][c], -s->box->velocity);
        }
        s->mass[p] = mass;
        memcpy(s->momentum[p], momentum, sizeof momentum);
    }
}

void tree_build_box(struct tree_box *box, const struct tree_input *in, int threads)
{
    struct survey s = {.in = in, .box = box};
    double mass = 0.0, momentum[3] = {0.0, 0.0, 0.0};
    find_extent(&s, threads);
    tree_box_of(box, s.low[0], s.high[0], s.mass[0], (double)in->n);
    box->velocity = 0;
    memset(box->frame, 0, sizeof box->frame);
    if (!in->v) return;
    box->velocity = tree_speed_exponent(s.speed[0]);
    threads_each(threads, PIECES, 1, momentum_of, &s);
    for (int p = 0; p < PIECES; p++) {
        mass += s.mass[p];
        for (int c = 0; c < 3; c++) momentum[c] += s.momentum[p][c];
    }
    for (int c = 0; c < 3 && mass > 0.0; c++) box->frame[c] = momentum[c] / mass;
}

float tree_build_widen_frame(struct tree_box *box, const struct tree_input *targets, int threads)
{
    struct survey s = {.in = targets};
    if (!targets->v) return 1.0f;
    find_extent(&s, threads);
    return tree_widen(box, tree_speed_exponent(s.speed[0]));
}

/* ---- points in the order of their keys ---------------------------------------------- */

struct taking {
    const struct tree_kernel *kernel;
    const struct tree_box *box;
    const struct tree_input *in;
    uint64_t *key;
    struct tree_points *p;
};

static void key_points(void *context, int64_t first, int64_t end)
{
    const struct taking *t = context;
    t->kernel->keys(t->box, t->in->x + first, end - first, t->key + first);
    for (int64_t k = first; k < end; k++) t->p->order[k] = (int32_t)k;
}

static void gather_points(void *context, int64_t first, int64_t end)
{
    const struct taking *t = context;
    struct tree_points *p = t->p;
    float *hi[3] = {p->x, p->y, p->z}, *lo[3] = {p->xl, p->yl, p->zl},
          *v[3] = {p->vx, p->vy, p->vz};
    for (int64_t k = first; k < end; k++) {
        const int32_t i = p->order[k];
        if (k + AHEAD < end) __builtin_prefetch(t->in->x[p->order[k + AHEAD]]);
        for (int c = 0; c < 3; c++)
            tree_split(tree_in_box(t->box, c, t->in->x[i][c]), &hi[c][k], &lo[c][k]);
        for (int c = 0; c < 3 && t->in->v; c++)
            v[c][k] = (float)(tree_scaled(t->in->v[i][c], -t->box->velocity) - t->box->frame[c]);
        p->m[k] = t->in->m ? (float)tree_mass_in_box(t->box, t->in->m[i]) : 0.0f;
    }
}

int tree_build_columns(struct tree_points *p, int64_t n, int moving)
{
    const size_t padded = ((size_t)n + 2 * TREE_GROUP + 15) / 16 * 16;
    p->x = memory_zeroed((moving ? 10 : 7) * padded * sizeof *p->x);
    if (!p->x) return G6X_E_MEMORY;
    p->y = p->x + padded, p->z = p->y + padded, p->xl = p->z + padded;
    p->yl = p->xl + padded, p->zl = p->yl + padded, p->m = p->zl + padded;
    if (moving) p->vx = p->m + padded, p->vy = p->vx + padded, p->vz = p->vy + padded;
    return 0;
}

int tree_build_load_points(const struct tree_box *box, const struct tree_input *in, uint64_t **key,
                           struct tree_points *p, int threads)
{
    const size_t n = (size_t)in->n;
    if (in->n > p->capacity || !in->v != !p->vx) {
        tree_build_free_points(p);
        memory_free(*key);
        *key = memory_zeroed(n * sizeof **key);
        p->order = memory_zeroed(n * sizeof *p->order);
        if (!*key || !p->order || tree_build_columns(p, in->n, in->v != NULL)) return G6X_E_MEMORY;
        p->capacity = in->n;
    }
    p->n = in->n;
    struct taking t = {tree_walk_kernel(G6X_ISA_BEST), box, in, *key, p};
    threads_each(threads, in->n, GRAIN, key_points, &t);
    const int code = radix_sort(in->n, *key, p->order, threads);
    if (code) return code;
    threads_each(threads, in->n, GRAIN, gather_points, &t);
    /* behind the last: copies of it without mass, at rest */
    float *columns[10] = {p->x, p->y, p->z, p->xl, p->yl, p->zl, p->m, p->vx, p->vy, p->vz};
    for (int c = 0; c < (p->vx ? 10 : 7) && n; c++)
        for (int k = 0; k < 2 * TREE_GROUP; k++)
            columns[c][n + (size_t)k] = c < 6 ? columns[c][n - 1] : 0.0f;
    return 0;
}

/* ---- cells -------------------------------------------------------------------------- */

/* Splitting the cells of a level: where each one's octants end. */
struct split {
    struct tree *t;
    int level, first;
    int32_t (*end)[8];
};

static int64_t first_above(const uint64_t *key, int64_t low, int64_t high, uint64_t octant,
                           int shift)
{
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((key[middle] >> shift & 7) <= octant)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_octants(void *context, int64_t first, int64_t end)
{
    struct split *s = context;
    const int shift = 3 * (TREE_LEVELS - 1 - s->level);
    for (int64_t k = first; k < end; k++) {
        struct tree_cell *c = &s->t->cell[s->first + k];
        int64_t at = c->first;
        int count = 0;
        c->child = -1;
        if (c->end - c->first > TREE_LEAF && s->level < TREE_LEVELS) {
            for (int octant = 0; octant < 8; octant++) {
                const int64_t before = at;
                at = octant < 7 ? first_above(s->t->key, at, c->end, (uint64_t)octant, shift)
                                : c->end;
                s->end[k][octant] = (int32_t)at;
                count += at > before;
            }
            c->child = 0;
        }
        c->child_end = count;
    }
}

static void write_children(void *context, int64_t first, int64_t end)
{
    struct split *s = context;
    for (int64_t k = first; k < end; k++) {
        const struct tree_cell *c = &s->t->cell[s->first + k];
        if (c->child < 0) continue;
        struct tree_cell *child = &s->t->cell[c->child];
        int32_t at = c->first;
        for (int octant = 0; octant < 8; octant++) {
            if (s->end[k][octant] > at) *child++ = (struct tree_cell){at, s->end[k][octant], 0, 0};
            at = s->end[k][octant];
        }
    }
}

static int reserve_cells(struct tree *t, int64_t n)
{
    if (n <= t->cell_capacity) return 0;
    const size_t capacity = (size_t)(n + n / 2 + 64);
    struct tree_cell *cell = memory_grown(t->cell, capacity * sizeof *cell);
    if (!cell) return G6X_E_MEMORY;
    t->cell = cell;
    t->cell_capacity = (int32_t)capacity;
    return 0;
}

static int split_level(struct tree *t, int level)
{
    const int32_t first = t->level_first[level], count = t->cells - first;
    struct split s = {t, level, first, memory_zeroed((size_t)count * sizeof *s.end)};
    if (!s.end) return G6X_E_MEMORY;
    threads_each(t->threads, count, 512, find_octants, &s);
    int64_t next = t->cells;
    for (int32_t k = first; k < first + count; k++) {
        struct tree_cell *c = &t->cell[k];
        if (c->child < 0) continue;
        c->child = (int32_t)next;
        next += c->child_end;
        c->child_end = (int32_t)next;
    }
    const int code = next > INT32_MAX ? G6X_E_MEMORY : reserve_cells(t, next);
    if (!code) {
        threads_each(t->threads, count, 512, write_children, &s);
        t->level_first[level + 1] = t->cells;
        t->cells = (int32_t)next;
    }
    memory_free(s.end);
    return code;
}

static int make_cells(struct tree *t)
{
    int code = reserve_cells(t, t->points.n / 8 + 64);
    if (code) return code;
    t->cell[0] = (struct tree_cell){0, (int32_t)t->points.n, -1, 0};
    t->cells = 1;
    t->level_first[0] = 0;
    for (t->levels = 0; t->levels <= TREE_LEVELS && !code; t->levels++) {
        code = split_level(t, t->levels);
        if (t->level_first[t->levels + 1] == t->cells) break;
    }
    t->levels++;
    return code;
}

/* ---- moments ------------------------------------------------------------------------ */

/* Cells of a level, and how those of all change, or NULL: velocities are not known. */
struct level {
    struct tree *t;
    struct tree_rates *rates;
    int32_t first;
};

static inline void tree_point(const struct level *l, int32_t k, double x[3], double *m)
{
    const struct tree_points *p = &l->t->points;
    x[0] = (double)p->x[k] + (double)p->xl[k];
    x[1] = (double)p->y[k] + (double)p->yl[k];
    x[2] = (double)p->z[k] + (double)p->zl[k];
    *m = (double)p->m[k];
}

static inline void tree_velocity(const struct level *l, int32_t k, double v[3])
{
    const struct tree_points *p = &l->t->points;
    v[0] = (double)p->vx[k], v[1] = (double)p->vy[k], v[2] = (double)p->vz[k];
}

#define tree_moments_at(l, k) (&(l)->t->moments[k])
#define tree_child(l, k) ((l)->t->moments[k])
#define tree_rates_at(l, k) (&(l)->rates[k])
#define TREE_OF_ANY
#define TREE_SOURCE const struct level *
#include "shared/tree_upward.h"

static void find_moments(void *context, int64_t first, int64_t end)
{
    const struct level *l = context;
    struct tree *t = l->t;
    for (int64_t k = l->first + first; k < l->first + end; k++) {
        const struct tree_cell *cell = &t->cell[k];
        struct tree_moments *c = &t->moments[k];
        tree_begin(c);
        if (cell->child < 0)
            tree_leaf_moments(l, cell, c);
        else
            tree_inner_moments(l, cell, c);
        tree_close(c);
        tree_single(c, &t->far[k], &t->place[k]);
        if (!l->rates) continue;
        if (cell->child < 0)
            tree_leaf_rates(l, cell, c, &l->rates[k]);
        else
            tree_inner_rates(l, cell, c, &l->rates[k]);
        tree_motion_single(&l->rates[k], &t->motion[k]);
    }
}

static int make_moments(struct tree *t)
{
    const size_t n = (size_t)t->cells + 16;
    const int moving = t->points.vx != NULL;
    memory_free(t->moments);
    memory_free(t->far);
    memory_free(t->place);
    memory_free(t->motion);
    t->moments = memory_zeroed(n * sizeof *t->moments);
    t->far = memory_zeroed(n * sizeof *t->far);
    t->place = memory_zeroed(n * sizeof *t->place);
    t->motion = moving ? memory_zeroed(n * sizeof *t->motion) : NULL;
    struct level l = {.t = t, .rates = moving ? memory_zeroed(n * sizeof *l.rates) : NULL};
    const int missing = !t->moments || !t->far || !t->place || (moving && (!t->motion || !l.rates));
    for (int level = t->levels - 1; level >= 0 && !missing; level--) {
        l.first = t->level_first[level];
        threads_each(t->threads, tree_level_end(t, level) - l.first, 256, find_moments, &l);
    }
    memory_free(l.rates);
    if (missing) return G6X_E_MEMORY;
    t->far[t->cells] =
        (struct tree_cell_multipole){.x = 4.0f}; /* far from everything, without mass */
    return 0;
}

static void find_ranks(void *context, int64_t first, int64_t end)
{
    const struct tree *t = context;
    for (int64_t k = first; k < end; k++) t->rank[t->points.order[k]] = (int32_t)k;
}

int tree_build_one(struct tree *t, const struct tree_input *in, const struct tree_whole *whole,
                   int threads)
{
    int code = 0;
    t->threads = threads;
    if (whole)
        tree_whole_box(&t->box, whole);
    else
        tree_build_box(&t->box, in, threads);
    if (!in->n) return 0;
    code = tree_build_load_points(&t->box, in, &t->key, &t->points, threads);
    memory_free(t->rank);
    t->rank = code ? NULL : memory_zeroed((size_t)in->n * sizeof *t->rank);
    if (!t->rank) return G6X_E_MEMORY;
    threads_each(threads, in->n, GRAIN, find_ranks, t);
    code = make_cells(t);
    t->own_cells = t->cells;
    if (!code) code = make_moments(t);
    if (!code) t->box.spread2 = tree_spread2(t->moments);
    if (!code && !whole) t->box.usual_mass = tree_usual_mass(t->moments->total, (double)in->n);
    return code;
}
