/* groups.c - see groups.h. */
#include "steps/groups.h"

#include <string.h>

#include "g6lib.h"
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

/* ---- as numbers, to go on from --------------------------------------------------------------- */

/* Of a group: the number of its bodies, these, their order in the chain, 1 / kappa, the state, what
 * rounding has left, the next step, and the depth of the potential. */
static int64_t size_of(int n) { return 1 + 3 * (int64_t)n + 2 * chain_state_size(n) + 2; }

int64_t groups_state_size(const struct groups *g)
{
    int64_t size = 0;
    for (int k = 0; k < g->count; k++) size += size_of(g->group[k]->n);
    return size;
}

void groups_save(const struct groups *g, double to[])
{
    for (int k = 0; k < g->count; k++) {
        const struct group *q = g->group[k];
        const int n = q->n, size = chain_state_size(n);
        *to++ = n;
        for (int i = 0; i < n; i++) {
            to[i] = q->who[i];
            to[n + i] = q->now.who[i];
            to[2 * n + i] = q->now.chain.slow[i];
        }
        memcpy(to + 3 * n, q->now.at, (size_t)size * sizeof *to);
        memcpy(to + 3 * n + size, q->now.rest, (size_t)size * sizeof *to);
        to[3 * n + 2 * size] = q->now.step, to[3 * n + 2 * size + 1] = q->depth;
        to += size_of(n) - 1;
    }
}

/* Whether n bodies, ascending, are in no group, and their order in the chain names each. */
static int are_bodies(const struct groups *g, int n, const double from[])
{
    unsigned char seen[CHAIN_MOST] = {0};
    double last = -1.0;
    for (int i = 0; i < n; last = from[i++]) {
        const double p = from[i], k = from[n + i];
        if (!(p > last && p < g->n && p == floor(p)) || g->of[(int)p] >= 0) return 0;
        if (!(k >= 0.0 && k < n && k == floor(k)) || seen[(int)k]++) return 0;
    }
    return 1;
}

static int restore_one(struct groups *g, int n, const double from[])
{
    const int size = chain_state_size(n);
    if (!are_bodies(g, n, from)) return G6X_E_ARGUMENT;
    struct group *q = memory_zeroed(sizeof *q);
    if (!q) return G6X_E_MEMORY;
    double m[CHAIN_MOST];
    q->n = n, q->seen_at = q->end = NAN, q->near_until = -INFINITY, q->then.met = INFINITY;
    for (int i = 0; i < n; i++) {
        q->who[i] = (int)from[i], q->now.who[i] = (int)from[n + i];
        m[i] = g->own[q->who[i]];
        q->mass += m[i];
        g->of[q->who[i]] = g->count, g->mass[q->who[i]] = 0.0;
    }
    few_body_set_chain(&q->now, 0.0, n, m);
    for (int i = 0; i < n; i++) q->now.chain.slow[i] = from[2 * n + i];
    memcpy(q->now.at, from + 3 * n, (size_t)size * sizeof *from);
    memcpy(q->now.rest, from + 3 * n + size, (size_t)size * sizeof *from);
    q->now.step = from[3 * n + 2 * size], q->depth = from[3 * n + 2 * size + 1];
    g->group[g->count++] = q;
    g->mass[q->who[0]] = q->mass;
    g->heaviest = fmax(g->heaviest, q->mass);
    return 0;
}

int groups_restore(struct groups *g, int64_t size, const double from[])
{
    int code = 0;
    for (int64_t k = 0; k < size && !code;) {
        const int n = from[k] >= 2.0 && from[k] <= CHAIN_MOST ? (int)from[k] : 0;
        if (!n || size_of(n) > size - k) return G6X_E_ARGUMENT;
        code = restore_one(g, n, from + k + 1);
        k += size_of(n);
    }
    for (int k = 0; k < g->count; k++) {
        groups_find_parts(g->group[k]);
        groups_note(g, k);
    }
    return code ? code : groups_reserve(g, g->count);
}
