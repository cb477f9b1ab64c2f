/* share.c - subtrees of trees, from one rank to another: see shared/tree_share.h. */
#include "tree/kernel.h"

#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "util/threads.h"

/* ---- what another rank may look at ---------------------------------------------------------- */

struct marking {
    struct tree_job job;
    struct tree_opening opening;
    const struct tree_kernel *kernel;
    const struct tree_region *region;
    float eps2;            /* the largest of the targets, in units of the box */
    unsigned char *opened; /* [cells] */
    _Atomic int missing;
};

static void mark_for(void *context, int64_t first, int64_t end)
{
    struct marking *m = context;
    struct tree_work *w = tree_walk_new(m->job.tree);
    for (int64_t k = first; k < end && w && !w->missing; k++) {
        struct tree_group g;
        tree_region_group(&m->job.tree->box, &m->region[k], m->eps2, &g);
        tree_walk_begin(m->job.tree, &w->from[2]);
        m->kernel->mark(&m->job, &m->opening, &g, w, m->opened);
    }
    if (!w || w->missing) m->missing = 1;
    tree_walk_free(w);
}

/* ---- packing ------------------------------------------------------------------------------- */

/* Where the pieces of a subtree are. */
struct layout {
    struct tree_cell *cell;
    struct tree_cell_multipole *far;
    struct tree_cell_centre *place;
    struct tree_motion *motion;
    float (*high)[4], (*low)[4], (*velocity)[4];
    int64_t bytes;
};

static struct layout layout_of(void *subtree, int64_t cells, int64_t particles, int moving)
{
    char *const begin = subtree;
    char *at = begin + sizeof(struct subtree_header);
    struct layout l = {0};
    l.cell = (void *)at, at += cells * (int64_t)sizeof *l.cell;
    l.far = (void *)at, at += cells * (int64_t)sizeof *l.far;
    l.place = (void *)at, at += cells * (int64_t)sizeof *l.place;
    if (moving) l.motion = (void *)at, at += cells * (int64_t)sizeof *l.motion;
    l.high = (void *)at, at += particles * (int64_t)sizeof *l.high;
    l.low = (void *)at, at += particles * (int64_t)sizeof *l.low;
    if (moving) l.velocity = (void *)at, at += particles * (int64_t)sizeof *l.velocity;
    l.bytes = at - begin;
    return l;
}

/* The cells of a subtree, by their numbers in the tree, and what becomes of them. Their order, that
 * of the tree, keeps siblings together. */
static int64_t take_cells(const struct tree *t, const unsigned char *opened, int32_t *number,
                          struct tree_cell *as, int64_t *particles)
{
    int32_t n = 1, in = 0;
    number[0] = 0;
    for (int32_t k = 0; k < n; k++) {
        const struct tree_cell *c = &t->cell[number[k]];
        const int32_t bodies = subtree_bodies(c);
        as[k] = (struct tree_cell){0, 0, -1, bodies};
        if (!opened[number[k]]) continue;
        if (c->child >= 0) {
            as[k].end = bodies;
            as[k].child = n;
            for (int32_t child = c->child; child < c->child_end; child++) number[n++] = child;
            as[k].child_end = n;
        } else {
            as[k].first = in;
            as[k].end = in += c->end - c->first;
        }
    }
    *particles = in;
    return n;
}

static void put_particles(const struct tree_points *p, int32_t from, int32_t to, int32_t at,
                          const struct layout *l)
{
    for (int32_t k = from; k < to; k++, at++) {
        const float high[4] = {p->x[k], p->y[k], p->z[k], p->m[k]};
        const float low[4] = {p->xl[k], p->yl[k], p->zl[k], 0.0f};
        memcpy(l->high[at], high, sizeof high);
        memcpy(l->low[at], low, sizeof low);
        if (!l->velocity) continue;
        const float velocity[4] = {p->vx[k], p->vy[k], p->vz[k], 0.0f};
        memcpy(l->velocity[at], velocity, sizeof velocity);
    }
}

static struct subtree_header *packed(const struct marking *m)
{
    const struct tree *t = m->job.tree;
    const int moving = t->motion != NULL;
    struct subtree_header *subtree = NULL;
    int32_t *number = memory_zeroed((size_t)t->cells * sizeof *number);
    struct tree_cell *as = memory_zeroed((size_t)t->cells * sizeof *as);
    if (number && as) {
        int64_t particles = 0;
        const int64_t cells = take_cells(t, m->opened, number, as, &particles);
        subtree = memory_zeroed((size_t)layout_of(NULL, cells, particles, moving).bytes);
        if (subtree) {
            const struct layout l = layout_of(subtree, cells, particles, moving);
            *subtree = (struct subtree_header){cells, particles, moving, l.bytes};
            memcpy(l.cell, as, (size_t)cells * sizeof *as);
            for (int64_t k = 0; k < cells; k++) {
                const struct tree_cell *c = &t->cell[number[k]];
                l.far[k] = t->far[number[k]];
                l.place[k] = m->job.place[number[k]];
                if (moving) l.motion[k] = t->motion[number[k]];
                if (c->child < 0 && as[k].end > as[k].first)
                    put_particles(&t->points, c->first, c->end, as[k].first, &l);
            }
        }
    }
    memory_free(number);
    memory_free(as);
    return subtree;
}

struct subtree_header *tree_share_subtree(const struct tree *t, const struct tree_setting *s,
                                          double eps2, int64_t regions,
                                          const struct tree_region *region)
{
    if (!t->cells || !regions) {
        struct subtree_header *none = memory_zeroed(sizeof *none);
        if (none) none->bytes = sizeof *none;
        return none;
    }
    const int order = s->method == TREE_BARNES_HUT ? 0 : s->order;
    struct tree_cell_centre *place = NULL;
    struct marking m = {.job = {.tree = t, .place = t->place, .order = order},
                        .opening = tree_opening_of(s->theta, order, 0, 0, s->bound, &t->box),
                        .kernel = tree_walk_kernel(s->isa),
                        .region = region,
                        .eps2 = (float)ldexp(eps2, -2 * t->box.length),
                        .opened = memory_zeroed((size_t)t->cells)};
    if (!order && !(s->bound > 0.0)) {
        m.job.place = place = tree_walk_barnes_hut_places(t, s->theta);
        m.missing |= !place;
    }
    m.missing |= !m.opened;
    if (!m.missing) threads_each(t->threads, regions, 4, mark_for, &m);
    struct subtree_header *subtree = m.missing ? NULL : packed(&m);
    memory_free(place);
    memory_free(m.opened);
    return subtree;
}

/* ---- joining ------------------------------------------------------------------------------- */

#define CELLS(j, n)                                                                                \
    MEMORY_ARRAY((j)->cell, n), MEMORY_ARRAY((j)->far, n), MEMORY_ARRAY((j)->place, n)

/* A piece of memory that is copied. */
struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void do_copies(void *context, int64_t first, int64_t end)
{
    const struct copy *copy = context;
    for (int64_t k = first; k < end; k++)
        if (copy[k].bytes) memcpy(copy[k].to, copy[k].from, copy[k].bytes);
}

static void copy_own(const struct tree *t, struct tree *j)
{
    const struct tree_points *p = &t->points, *q = &j->points;
    const size_t cells = (size_t)t->cells;
    const size_t n = p->n ? ((size_t)p->n + 2 * TREE_GROUP) * sizeof(float) : 0;
    const size_t moving = t->motion ? n : 0;
    const float *from[] = {p->x, p->y, p->z, p->xl, p->yl, p->zl, p->m, p->vx, p->vy, p->vz};
    float *to[] = {q->x, q->y, q->z, q->xl, q->yl, q->zl, q->m, q->vx, q->vy, q->vz};
    struct copy copy[14] = {{j->cell, t->cell, cells * sizeof *t->cell},
                            {j->far, t->far, cells * sizeof *t->far},
                            {j->place, t->place, cells * sizeof *t->place},
                            {j->motion, t->motion, t->motion ? cells * sizeof *t->motion : 0}};
    for (int k = 0; k < 10; k++) copy[4 + k] = (struct copy){to[k], from[k], k < 7 ? n : moving};
    threads_each(t->threads, sizeof copy / sizeof *copy, 1, do_copies, copy);
}

/* A subtree whose cells come from `cell` on, its particles from `at` on. */
static void add_subtree(struct tree *j, const struct subtree_header *h, int32_t cell, int32_t at)
{
    const struct layout l = layout_of((void *)(uintptr_t)h, h->cells, h->particles, (int)h->moving);
    struct tree_points *p = &j->points;
    for (int64_t k = 0; k < h->cells; k++) {
        struct tree_cell c = l.cell[k];
        c.first += at, c.end += at;
        if (c.child >= 0) c.child += cell, c.child_end += cell;
        j->cell[cell + k] = c;
    }
    memcpy(j->far + cell, l.far, (size_t)h->cells * sizeof *l.far);
    memcpy(j->place + cell, l.place, (size_t)h->cells * sizeof *l.place);
    if (l.motion) memcpy(j->motion + cell, l.motion, (size_t)h->cells * sizeof *l.motion);
    for (int64_t k = 0; k < h->particles; k++) {
        const float *high = l.high[k], *low = l.low[k];
        p->x[at + k] = high[0], p->y[at + k] = high[1], p->z[at + k] = high[2];
        p->m[at + k] = high[3];
        p->xl[at + k] = low[0], p->yl[at + k] = low[1], p->zl[at + k] = low[2];
        if (!l.velocity) continue;
        p->vx[at + k] = l.velocity[k][0], p->vy[at + k] = l.velocity[k][1];
        p->vz[at + k] = l.velocity[k][2];
    }
}

int tree_share_join(const struct tree *t, int subtrees, const void *const subtree[],
                    struct tree *joined, struct error *err)
{
    struct tree j = *t;
    int64_t cells = t->cells, particles = t->points.n + 2 * TREE_GROUP;
    int moving = t->motion != NULL;
    for (int k = 0; k < subtrees; k++) {
        const struct subtree_header *h = subtree[k];
        moving |= !t->cells && h->moving;
        if (h->cells < 0 || h->particles < 0 || (h->cells && h->moving != moving) ||
            h->bytes != layout_of(NULL, h->cells, h->particles, h->cells && moving).bytes)
            return error_set(err, G6X_E_ARGUMENT, "subtree %d is none of a tree like this one", k);
        cells += h->cells;
        particles += h->particles;
    }
    if (cells > INT32_MAX - 64 || particles > INT32_MAX - TREE_PART_BODIES - 64)
        return error_set(err, G6X_E_MEMORY, "more than 2^31 cells or particles on one rank");
    j.points.x = j.points.vx = NULL;
    j.cell = NULL, j.far = NULL, j.place = NULL, j.motion = NULL;
    j.roots = 0;
    j.root = memory_zeroed(((size_t)subtrees + 1) * sizeof *j.root);
    j.cells = (int32_t)cells;
    *joined = j;
    const size_t n = (size_t)cells + 16;
    const struct memory_array all[] = {CELLS(joined, n), {0}},
                              motion[] = {MEMORY_ARRAY(joined->motion, n), {0}};
    if (!j.root || memory_grow_all(all) || (moving && memory_grow_all(motion)) ||
        tree_build_columns(&joined->points, particles, moving)) {
        tree_share_free(joined);
        return error_set(err, G6X_E_MEMORY, "out of memory for subtrees of other ranks' trees");
    }
    copy_own(t, joined);
    int32_t cell = t->cells, at = (int32_t)t->points.n + 2 * TREE_GROUP;
    for (int k = 0; k < subtrees; k++) {
        const struct subtree_header *h = subtree[k];
        if (!h->cells) continue;
        if (cell) joined->root[joined->roots++] = cell; /* cell 0 is one anyway */
        add_subtree(joined, h, cell, at);
        cell += (int32_t)h->cells, at += (int32_t)h->particles;
    }
    joined->far[cells] = (struct tree_cell_multipole){.x = 4.0f}; /* as in tree/build.c */
    return 0;
}

void tree_share_free(struct tree *j)
{
    const struct memory_array all[] = {CELLS(j, 0),
                                       MEMORY_ARRAY(j->motion, 0),
                                       MEMORY_ARRAY(j->points.x, 0),
                                       MEMORY_ARRAY(j->root, 0),
                                       {0}};
    memory_free_all(all);
    memset(j, 0, sizeof *j);
}
