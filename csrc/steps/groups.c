/* groups.c - see groups.h. */
#include "steps/groups.h"

#include <string.h>

#include "util/memory.h"

#define ARRAYS_OF(g, n)                                                                            \
    {MEMORY_ARRAY((g)->mass, n),                                                                   \
     MEMORY_ARRAY((g)->of, n),                                                                     \
     MEMORY_ARRAY((g)->partner, n),                                                                \
     MEMORY_ARRAY((g)->group, (n) / 2 + 1),                                                        \
     MEMORY_ARRAY((g)->carrier, (n) / 2 + 1),                                                      \
     MEMORY_ARRAY((g)->reach, (n) / 2 + 1),                                                        \
     MEMORY_ARRAY((g)->sight2, (n) / 2 + 1),                                                       \
     MEMORY_ARRAY((g)->crowded, n),                                                                \
     MEMORY_ARRAY((g)->changed, n),                                                                \
     MEMORY_ARRAY((g)->sums, (n) / GROUPS_PIECE + 1),                                              \
     {0}}
#define PLACES_OF(g, n)                                                                            \
    {MEMORY_ARRAY((g)->x, n), MEMORY_ARRAY((g)->v, n), MEMORY_ARRAY((g)->outside, n), {0}}

struct groups *groups_new(int n, const double own[])
{
    struct groups *g = memory_zeroed(sizeof *g);
    if (!g) return NULL;
    const struct memory_array arrays[] = ARRAYS_OF(g, n);
    g->n = n, g->own = own, g->rounds = GROUPS_ROUNDS, g->lightest = INFINITY;
    if (memory_grow_all(arrays)) {
        groups_free(g);
        return NULL;
    }
    for (int p = 0; p < n; p++) {
        g->of[p] = -1, g->mass[p] = own[p];
        g->heaviest = fmax(g->heaviest, own[p]);
        if (own[p] > 0.0) g->lightest = fmin(g->lightest, own[p]);
    }
    return g;
}

void groups_free(struct groups *g)
{
    if (!g) return;
    const struct memory_array arrays[] = ARRAYS_OF(g, 0), places[] = PLACES_OF(g, 0);
    for (int k = 0; k < g->count; k++) {
        memory_free(g->group[k]->near);
        memory_free(g->group[k]);
    }
    memory_free_all(arrays);
    memory_free_all(places);
    for (int k = 0; k < 2; k++) memory_free(g->spare[k]);
    memory_free(g);
}

int groups_reserve(struct groups *g, int count)
{
    if (count <= g->capacity) return 0;
    const int capacity = count + count / 2 + 64;
    const struct memory_array places[] = PLACES_OF(g, capacity);
    const int code = memory_grow_all(places);
    if (!code) g->capacity = capacity;
    return code;
}

void groups_see(struct group *q, double start, double time, int looking)
{
    const struct few_setting alone = {
        .tolerance = FEW_TOLERANCE, .kepler = INFINITY, .slowed = GROUPS_POINT};
    struct few_body f;
    if (q->seen_at == time) return;
    q->seen_at = time;
    if (time != q->end || looking) {
        few_body_copy(&f, &q->now);
        few_body_restart(&f);
        few_body_evolve(&f, &alone, time - start);
    }
    few_body_read(time == q->end && !looking ? &q->then : &f, q->x, q->v);
}

int groups_fit(const struct groups *g, const struct hermite_state *s)
{
    for (int p = 0; p < g->n; p++) {
        const struct group *q = groups_of(g, p);
        double mass = q ? 0.0 : s->mass[p];
        if ((s->t[p] == GROUPS_NEVER) == groups_carries(g, p)) return 0;
        for (int i = 0; q && i < q->n; i++) mass += s->mass[q->who[i]];
        if (mass != (q ? q->mass : g->mass[p])) return 0;
    }
    return 1;
}

/* Of the chain's bodies from first to before end: mass, and mean place or velocity. */
static double mean_of(const struct chain *c, const double (*of)[3], int first, int end,
                      double mean[3])
{
    double mass = 0.0;
    for (int i = first; i < end; i++) mass += c->m[i];
    for (int k = 0; k < 3; k++) {
        mean[k] = 0.0;
        for (int i = first; i < end; i++)
            mean[k] += (mass > 0.0 ? c->m[i] / mass : 1.0 / (end - first)) * of[i][k];
    }
    return mass;
}

/* How far the chain's bodies from first to before end come from each other, about their mean. */
static double extent_of(const struct chain *c, const struct chain_view *at, const double (*x)[3],
                        int first, int end, const double mean[3])
{
    double most = 0.0, a, e;
    if (end - first == 2) {
        kepler_elements(c->m[first] + c->m[first + 1], at->x[first], at->v[first], &a, &e);
        if (a > 0.0) return a * (1.0 + e);
    }
    for (int i = first; i < end; i++) {
        const double d[3] = {x[i][0] - mean[0], x[i][1] - mean[1], x[i][2] - mean[2]};
        most = fmax(most, 2.0 * sqrt(kepler_dot(d, d)));
    }
    return most;
}

void groups_note(struct groups *g, int number)
{
    const double r = cbrt(g->group[number]->reach * g->heaviest);
    g->carrier[number] = g->group[number]->who[0];
    g->reach[number] = g->group[number]->reach;
    g->sight2[number] = 1.001 * r * r;
}

/* Numbers of the coordinates whose products are q->mean. */
static const int PRODUCT[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};

/* Adds the mean of an orbit, of parts that are shares of the mass: of an ellipse with semi-major
 * axis a it is a^2 (1 - e^2) / 2 in both directions of its plane, and 5 / 2 a^2 e^2 more along it.
 * Parts that are not bound are where they are. */
static void add_orbit(struct group *q, double shares, const double r[3], const double v[3])
{
    const struct group_parts *p = &q->parts;
    const double by = shares * p->a * p->a, v2 = kepler_dot(v, v);
    double h[3], e[3];
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        h[k] = r[l] * v[m] - r[m] * v[l];
        e[k] = (v2 / q->mass - 1.0 / p->r) * r[k] - p->rv / q->mass * v[k];
    }
    const double h2 = kepler_dot(h, h), flat = 0.5 * h2 / (q->mass * p->a);
    for (int k = 0; k < 6; k++) {
        const int i = PRODUCT[k][0], j = PRODUCT[k][1];
        if (p->a <= 0.0) {
            q->mean[k] += shares * r[i] * r[j];
            continue;
        }
        q->mean[k] += by * (flat * (i == j) + 2.5 * e[i] * e[j]);
        if (h2 > 0.0) q->mean[k] -= by * flat / h2 * h[i] * h[j];
    }
}

/* Adds the bodies of a part as they are now. */
static void add_inside(struct group *q, const double (*x)[3], int first, int end,
                       const double mean[3])
{
    for (int n = first; n < end; n++) {
        const double y[3] = {x[n][0] - mean[0], x[n][1] - mean[1], x[n][2] - mean[2]};
        for (int k = 0; k < 6; k++)
            q->mean[k] += q->now.chain.part[n] * y[PRODUCT[k][0]] * y[PRODUCT[k][1]];
    }
}

void groups_find_parts(struct group *q)
{
    const struct chain *c = &q->now.chain;
    const struct chain_view at = chain_view_of(q->n, q->now.at);
    double x[CHAIN_MOST][3], v[CHAIN_MOST][3], most = -1.0;
    struct group_parts *p = &q->parts;
    for (int i = 0; i + 1 < q->n; i++) {
        const double r2 = kepler_dot(at.x[i], at.x[i]);
        if (r2 > most) most = r2, p->first = i + 1;
    }
    double from[3], to[3], d[3], w[3];
    chain_unfold(q->n, c, CONST3(at.x), x);
    chain_unfold(q->n, c, CONST3(at.v), v);
    const double m1 = mean_of(c, CONST3(x), 0, p->first, from);
    const double m2 = mean_of(c, CONST3(x), p->first, q->n, to);
    const double l1 = extent_of(c, &at, CONST3(x), 0, p->first, from);
    const double l2 = extent_of(c, &at, CONST3(x), p->first, q->n, to);
    for (int k = 0; k < 3; k++) d[k] = to[k] - from[k];
    memset(q->mean, 0, sizeof q->mean);
    add_inside(q, CONST3(x), 0, p->first, from);
    add_inside(q, CONST3(x), p->first, q->n, to);
    mean_of(c, CONST3(v), 0, p->first, from);
    mean_of(c, CONST3(v), p->first, q->n, to);
    for (int k = 0; k < 3; k++) w[k] = to[k] - from[k];
    kepler_elements(q->mass, d, w, &p->a, &p->e);
    p->r = sqrt(kepler_dot(d, d)), p->rv = kepler_dot(d, w), p->speed = sqrt(kepler_dot(w, w));
    p->size = p->a > 0.0 ? p->a * (1.0 + p->e) : p->r;
    const double r3 = p->r * p->r * p->r;
    p->inner = fmax(l1 > 0.0 ? 2.0 * m2 / m1 * l1 * l1 * l1 / r3 : 0.0,
                    l2 > 0.0 ? 2.0 * m1 / m2 * l2 * l2 * l2 / r3 : 0.0);
    const double scale = q->n == 2 && p->a > 0.0 ? p->a : p->size;
    /* Of a soft pair as much is left out as of the energy of its centre, for equal masses. */
    const double least = GROUPS_POINT * fmax(1.0, 8.0 * q->depth * scale / q->mass);
    q->reach = 2.0 / (least * q->mass) * scale * scale * scale;
    add_orbit(q, m1 * m2 / (q->mass * q->mass), d, w);
}
