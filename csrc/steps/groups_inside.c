/* groups_inside.c - the motion inside groups, and what acts on it: see groups.h. */
#include <string.h>

#include "core/hermite.h"
#include "g6lib.h"
#include "steps/groups.h"
#include "util/memory.h"
#include "util/threads.h"

/* Steps for which a list of what may come near is made: the fewer, the shorter it is. */
#define FIRST_STEPS 16.0
#define FEWEST_STEPS 2.0
#define MOST_STEPS 32.0
#define LISTED 8 /* bodies looked at for a list, in the time that one in it takes in a step */

static struct place place_of(const struct hermite_state *s, const struct group *own, double time)
{
    struct place at;
    groups_about(s, own->who[0], time, at.x, at.v);
    memcpy(at.a, s->a[own->who[0]], sizeof at.a);
    return at;
}

/* The distance that is left between p and a place after a span of time, at least: to come nearer it
 * would have to be four times as fast as it is. */
static inline double left_after(const struct hermite_state *s, const struct place *at, int p,
                                double time, double span)
{
    double x[3], v[3], a[3];
    groups_about(s, p, time, x, v);
    for (int k = 0; k < 3; k++) x[k] -= at->x[k], v[k] -= at->v[k], a[k] = s->a[p][k] - at->a[k];
    return sqrt(kepler_dot(x, x)) - 4.0 * span * sqrt(kepler_dot(v, v)) -
           2.0 * span * span * sqrt(kepler_dot(a, a));
}

static int is_within(const struct groups *g, const struct group *own, int p, double left)
{
    const int c = own->who[0];
    const double reach = 2.0 * fmax(groups_reach(g, c, g->mass[p]), groups_reach(g, p, g->mass[c]));
    return !(left > 0.0 && left * left * left > reach);
}

struct meetings {
    struct groups *g;
    const struct hermite_state *s;
    const struct group *own;
    struct place at;
    double time, span;
};

static void note_meetings(void *context, int64_t first, int64_t end)
{
    const struct meetings *m = context;
    const struct groups *g = m->g;
    double left[GROUPS_TILE];
    for (int p = (int)first; p < end; p += GROUPS_TILE) {
        const int count = end - p < GROUPS_TILE ? (int)end - p : GROUPS_TILE;
        for (int i = 0; i < count; i++) left[i] = left_after(m->s, &m->at, p + i, m->time, m->span);
        for (int i = 0; i < count; i++)
            g->changed[p + i] = p + i != m->own->who[0] && g->mass[p + i] != 0.0 &&
                                is_within(g, m->own, p + i, left[i]);
    }
}

static int has_space(struct groups *g, struct group *own, int count)
{
    const struct memory_array near[] = {MEMORY_ARRAY(own->near, (count / 64 + 1) * 64), {0}};
    if (count % 64 == 0 && memory_grow_all(near)) return 0;
    return !groups_reserve(g, count + 1);
}

void groups_list(struct groups *g, const struct hermite_state *s, int p, double time)
{
    const int listed = groups_carries(g, p) && g->mass[p] != 0.0;
    for (int k = 0; k < g->count; k++) {
        struct group *q = g->group[k];
        const struct place at = place_of(s, q, time);
        const double left = q->near_until - time;
        int i = 0;
        if (!(left >= 0.0) || q->who[0] == p) continue; /* one that ends now is read by looks */
        while (i < q->near_count && q->near[i] < p) i++;
        const int is = i < q->near_count && q->near[i] == p,
                  may = listed && is_within(g, q, p, left_after(s, &at, p, time, left));
        if (may == is) continue;
        if (may && !has_space(g, q, q->near_count)) {
            q->near_until = -INFINITY; /* it is made anew, if there is memory then */
            continue;
        }
        memmove(q->near + i + may, q->near + i + is,
                (size_t)(q->near_count - i - is) * sizeof *q->near);
        if (may) q->near[i] = p;
        q->near_count += may - is;
    }
}

/* Lists what may be near a group in some steps, of length dt from now. */
static int find_near(struct groups *g, const struct hermite_state *s, struct group *own, double dt)
{
    if (!(own->near_steps > 0.0)) own->near_steps = FIRST_STEPS;
    const double time = s->t[own->who[0]], span = own->near_steps * dt;
    struct meetings all = {g, s, own, place_of(s, own, time), time, span};
    threads_each(g->threads, g->n, GROUPS_PIECE, note_meetings, &all);
    own->near_count = 0;
    for (int p = 0; p < g->n; p++) {
        if (!g->changed[p]) continue;
        if (!has_space(g, own, own->near_count)) return G6X_E_MEMORY;
        own->near[own->near_count++] = p;
    }
    own->near_until = time + span;
    own->near_reach = own->reach;
    const double by = own->near_count * LISTED * own->near_steps > g->n ? 0.5 : 2.0;
    own->near_steps = fmin(fmax(by * own->near_steps, FEWEST_STEPS), MOST_STEPS);
    return 0;
}

/* Of a step, which takes a second then: a group's next steps are shorter long before. */
enum { MOST_PULLS = 500000 };

/* Distance in sizes of a group from which on bodies act by the series of their tide. */
#define FAR 12.0

/* Adds the gradient of the field at x, from its differences over twice h. */
static void add_gradient(const struct field *f, const double x[3], double h,
                         double to[CHAIN_FAR_TERMS])
{
    static const int place[3][3] = {{0, 3, 4}, {3, 1, 5}, {4, 5, 2}};
    const double rest[3] = {0.0, 0.0, 0.0};
    for (int k = 0; k < 3; k++) {
        double at[3] = {x[0], x[1], x[2]}, acc[2][3] = {{0.0}}, jerk[3] = {0.0};
        for (int side = 0; side < 2; side++) {
            at[k] = side ? x[k] + h : x[k] - h;
            field_add(f, at, rest, acc[side], jerk);
        }
        for (int c = 0; c < 3; c++)
            to[place[k][c]] += (acc[1][c] - acc[0][c]) / (c == k ? 2.0 * h : 4.0 * h);
    }
}

/* Those that act on the inside of a group in a step of length dt, from its centre. Of those far
 * away whose tide hardly changes in it, the tide in its middle counts. */
static struct chain_outside find_outside(const struct groups *g, const struct hermite_state *s,
                                         const struct group *own, double dt)
{
    const int c = own->who[0];
    const double time = s->t[c], size = own->parts.size, far = FAR * size, none[3] = {0.0};
    struct chain_outside outside = {.body = g->outside};
    double steady[CHAIN_FAR_TERMS] = {0.0};
    hermite_predict(own->near_count, own->near, time, s, g->x, g->v);
    for (int n = 0; n < own->near_count; n++) {
        const int p = own->near[n];
        struct chain_perturber *o = &g->outside[outside.count];
        for (int k = 0; k < 3; k++)
            o->x[k] = g->x[n][k] - s->x[c][k], o->v[k] = g->v[n][k] - s->v[c][k];
        const double r2 = kepler_dot(o->x, o->x), r = sqrt(r2), way = dt * hermite_norm(o->v);
        if (!groups_within(groups_reach(g, c, g->mass[p]), r2)) continue;
        o->mass = g->mass[p];
        const int is_far = r - far > 2.0 * way;
        if (is_far &&
            2.0 * o->mass * size * size * size * way < GROUPS_POINT * own->mass * r2 * r2) {
            for (int k = 0; k < 3; k++) o->x[k] += 0.5 * dt * o->v[k];
            chain_far_add(o->mass, o->x, steady);
            continue;
        }
        for (int k = 0; k < 3; k++) {
            o->a[k] = s->a[p][k] + (time - s->t[p]) * s->j[p][k] - s->a[c][k];
            o->j[k] = s->j[p][k] - s->j[c][k];
        }
        for (int k = 0; k < 3 && is_far; k++) {
            double d[3];
            chain_outside_at(o, 0.5 * k * dt, none, d);
            chain_far_add(o->mass, d, outside.far.of[k]);
        }
        outside.count += !is_far;
    }
    outside.far.span = dt;
    for (int k = 0; k < 3 && g->field; k++) {
        struct field field;
        double x[3], v[3];
        if (!groups_field_at(g, time + 0.5 * k * dt, &field)) break;
        hermite_predict_one(s, c, time + 0.5 * k * dt, x, v);
        add_gradient(&field, x, fmax(size, 1e-5 * hermite_norm(x)), outside.far.of[k]);
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < CHAIN_FAR_TERMS; i++) outside.far.of[k][i] += steady[i];
    chain_far_end(&outside.far);
    return outside;
}

/* The tide on a group after a time, over the pull of its mass, for a distance of 1. */
static double tide_on(const struct group *own, const struct chain_outside *o, double dt)
{
    const double none[3] = {0.0, 0.0, 0.0};
    double sum = chain_far_size(&o->far);
    for (int p = 0; p < o->count; p++) {
        double d[3];
        chain_outside_at(&o->body[p], dt, none, d);
        const double r2 = kepler_dot(d, d);
        sum += 2.0 * o->body[p].mass / (r2 * sqrt(r2));
    }
    return sum / own->mass;
}

/* Moves own->then on from own->now, as accurately as that converges. If it does not, as where three
 * collide, or even a leapfrog leads nowhere and all go straight on, so that none is lost, an error
 * is returned. */
static int evolve(struct group *own, struct few_setting *s, double dt)
{
    static const double tolerance[] = {FEW_TOLERANCE, 1e-9, 1e-6, INFINITY};
    for (int n = 0; n < 4; n++) {
        s->tolerance = tolerance[n];
        few_body_copy(&own->then, &own->now);
        few_body_restart(&own->then);
        if (!few_body_evolve(&own->then, s, dt)) return n < 3 ? 0 : G6X_E_RANGE;
    }
    few_body_copy(&own->then, &own->now);
    few_body_restart(&own->then);
    const struct chain_view at = chain_view_of(own->n, own->then.at);
    for (int i = 0; i + 1 < own->n; i++)
        for (int k = 0; k < 3; k++) at.x[i][k] += dt * at.v[i][k];
    return G6X_E_RANGE;
}

static int move_inside(struct groups *g, const struct hermite_state *s, struct group *own,
                       double time, double closer)
{
    const int c = own->who[0];
    const double dt = time - s->t[c];
    if (time > own->near_until || own->reach > 1.5 * own->near_reach) {
        const int code = find_near(g, s, own, dt);
        if (code) return code;
    }
    const double turn = own->n == 2 ? groups_period(own) / dt
                                    : 0.0; /* the shorter a step is, the fewer kicks it takes */
    struct few_setting set = {
        .most_pulls = MOST_PULLS,
        .kepler = GROUPS_POINT,
        .kicked = fmin(GROUPS_KICKED * fmax(turn * turn, 1.0), GROUPS_TORN),
        .slowed = GROUPS_POINT,
        .closer = closer,
        .outside = find_outside(g, s, own, dt),
    };
    own->end = time;
    own->seen_at = NAN;
    if (evolve(own, &set, dt)) {
        g->failed++;
        own->tide = INFINITY; /* so that it parts */
        return 0;
    }
    own->tide = tide_on(own, &set.outside, dt);
    return 0;
}

int groups_predict(struct groups *g, const struct hermite_state *s, const struct groups_block *b,
                   double closer)
{
    int code = 0;
    for (int i = 0; i < b->ni && g->count && !code; i++) {
        struct group *q = groups_of(g, b->address[i]);
        if (q) code = move_inside(g, s, q, b->time, closer);
    }
    return code;
}
