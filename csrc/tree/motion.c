/* motion.c - what the jerks of a tree need: velocities of its points, in single precision
 * relative to a frame. */
#include <math.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "tree/tree.h"
#include "util/threads.h"
#include "util/numbers.h"

enum { GRAIN = 8192, PIECES = 64 };

/* ---- the frame ------------------------------------------------------------------ */

/* Largest velocity, then mass and momentum, of each piece of the particles. */
struct flow {
    const struct tree_input *in;
    const struct tree_box *box;
    double most[PIECES], mass[PIECES], momentum[PIECES][3];
};

static int64_t piece_start(const struct flow *o, int64_t piece)
{
    const int64_t length = ceil_div(o->in->n, PIECES);
    return piece * length < o->in->n ? piece * length : o->in->n;
}

static void most_of(void *context, int64_t first, int64_t end)
{
    struct flow *o = context;
    for (int64_t p = first; p < end; p++) {
        double most = 0.0;
        for (int64_t k = piece_start(o, p); k < piece_start(o, p + 1); k++)
            for (int c = 0; c < 3; c++) most = fmax(most, fabs(o->in->v[k][c]));
        o->most[p] = most;
    }
}

static int exponent_of_most(const struct tree_input *in, int threads)
{
    struct flow o = {.in = in};
    double most = 0.0;
    threads_each(threads, PIECES, 1, most_of, &o);
    for (int p = 0; p < PIECES; p++) most = fmax(most, o.most[p]);
    return tree_speed_exponent(most);
}

static void momentum_of(void *context, int64_t first, int64_t end)
{
    struct flow *o = context;
    for (int64_t p = first; p < end; p++) {
        double mass = 0.0, momentum[3] = {0.0, 0.0, 0.0};
        for (int64_t k = piece_start(o, p); k < piece_start(o, p + 1); k++) {
            const double m = tree_scaled(fabs(o->in->m[k]), -o->box->mass);
            mass += m;
            for (int c = 0; c < 3; c++)
                momentum[c] += m * tree_scaled(o->in->v[k][c], -o->box->velocity);
        }
        o->mass[p] = mass;
        memcpy(o->momentum[p], momentum, sizeof momentum);
    }
}

void tree_motion_find_frame(struct tree_box *box, const struct tree_input *in, int threads)
{
    struct flow o = {.in = in, .box = box};
    double mass = 0.0, momentum[3] = {0.0, 0.0, 0.0};
    box->velocity = 0;
    memset(box->frame, 0, sizeof box->frame);
    if (!in->v) return;
    box->velocity = exponent_of_most(in, threads);
    threads_each(threads, PIECES, 1, momentum_of, &o);
    for (int p = 0; p < PIECES; p++) {
        mass += o.mass[p];
        for (int c = 0; c < 3; c++) momentum[c] += o.momentum[p][c];
    }
    for (int c = 0; c < 3 && mass > 0.0; c++) box->frame[c] = momentum[c] / mass;
}

float tree_motion_widen_frame(struct tree_box *box, const struct tree_input *targets, int threads)
{
    return targets->v ? tree_widen(box, exponent_of_most(targets, threads)) : 1.0f;
}

/* ---- points --------------------------------------------------------------------- */

struct taking {
    const struct tree_box *box;
    const struct tree_input *in;
    struct tree_points *p;
};

static void gather(void *context, int64_t first, int64_t end)
{
    const struct taking *t = context;
    float *column[3] = {t->p->vx, t->p->vy, t->p->vz};
    for (int64_t k = first; k < end; k++)
        for (int c = 0; c < 3; c++) {
            const double v = tree_scaled(t->in->v[t->p->order[k]][c], -t->box->velocity);
            column[c][k] = (float)(v - t->box->frame[c]);
        }
}

int tree_motion_columns(struct tree_points *p, int64_t n)
{
    const size_t padded = ((size_t)n + 2 * TREE_GROUP + 15) / 16 * 16;
    p->vx = memory_zeroed(3 * padded * sizeof *p->vx);
    if (!p->vx) return G6X_E_MEMORY;
    p->vy = p->vx + padded, p->vz = p->vy + padded;
    return 0;
}

int tree_motion_load_velocities(const struct tree_box *box, const struct tree_input *in,
                                struct tree_points *p, int threads)
{
    memory_free(p->vx);
    p->vx = p->vy = p->vz = NULL;
    if (!in->v) return 0;
    if (tree_motion_columns(p, in->n)) return G6X_E_MEMORY;
    struct taking t = {box, in, p};
    threads_each(threads, in->n, GRAIN, gather, &t);
    return 0;
}
