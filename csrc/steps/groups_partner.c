/* groups_partner.c - who makes a group with whom: see groups.h. */
#include <string.h>

#include "core/hermite.h"
#include "steps/groups.h"
#include "util/threads.h"

/* The row of a particle in a block, or -1. */
static int row_of(const struct groups_block *b, int p)
{
    int low = 0, high = b->ni;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (b->address[middle] < p)
            low = middle + 1;
        else
            high = middle;
    }
    return low < b->ni && b->address[low] == p ? low : -1;
}

/* Tide over pull that may be the rounding of forces, most of which is the pull. */
#define UNKNOWN 1e-5

/* The tide of all others on two particles, over the pull of these on each other. */
static double tide_between(struct groups *g, const struct hermite_state *s, double time, int p,
                           int q, const struct place *here, const struct place *there, double r2)
{
    const double mass[2] = {g->mass[p], g->mass[q]};
    double a[2][3], jerk[3];
    g->mass[p] = g->mass[q] = 0.0;
    groups_pull_all(g, s, p, time, here->x, here->v, a[0], jerk);
    groups_pull_all(g, s, q, time, there->x, there->v, a[1], jerk);
    g->mass[p] = mass[0], g->mass[q] = mass[1];
    for (int k = 0; k < 3; k++) a[0][k] -= a[1][k];
    return hermite_norm(a[0]) * r2 / (mass[0] + mass[1]);
}

/* The sum of what all but two do at a place, and which does most. */
struct pulls {
    const struct groups *g;
    const struct hermite_state *s;
    double time;
    int p, q;
    const double *x;
    double most; /* if the sum of all but one is more, none stands out */
};

static inline double pull_of(const struct pulls *of, int other)
{
    double d[3], w[3];
    groups_about(of->s, other, of->time, d, w);
    for (int k = 0; k < 3; k++) d[k] -= of->x[k];
    const double r2 = kepler_dot(d, d);
    return of->g->mass[other] / (r2 * sqrt(r2));
}

/* Adds to the sum, and notes the strongest. */
static void add_pull(const struct pulls *of, int other, double pull, double found[3])
{
    if (other == of->p || other == of->q || !(of->g->mass[other] > 0.0)) return;
    found[0] += pull;
    if (pull > found[1]) found[1] = pull, found[2] = other;
}

static void pulls_of_piece(void *context, int64_t first, int64_t end)
{
    const struct pulls *of = context;
    double *found = of->g->sums[first / GROUPS_PIECE], pull[GROUPS_TILE];
    found[0] = found[1] = 0.0, found[2] = -1.0;
    for (int p = (int)first; p < end; p += GROUPS_TILE) {
        const int count = end - p < GROUPS_TILE ? (int)end - p : GROUPS_TILE;
        for (int i = 0; i < count; i++) pull[i] = pull_of(of, p + i);
        for (int i = 0; i < count; i++) add_pull(of, p + i, pull[i], found);
        if (found[0] - found[1] > of->most) break;
    }
}

/* 0 if the sum of all but one is more than of->most. */
static int sum_pulls(struct pulls *of, double found[3])
{
    const struct groups *g = of->g;
    found[0] = found[1] = 0.0, found[2] = -1.0;
    threads_each(g->threads, g->n, GROUPS_PIECE, pulls_of_piece, of);
    for (int i = 0; i * GROUPS_PIECE < g->n; i++) {
        if (g->sums[i][0] - g->sums[i][1] > of->most) return 0;
        found[0] += g->sums[i][0];
        if (g->sums[i][1] > found[1]) found[1] = g->sums[i][1], found[2] = g->sums[i][2];
    }
    return 1;
}

/* Whether the strongest pull is far above the sum of all others, for a body with both masses. */
static int stands_out(const struct pulls *of, double mass, const double found[3])
{
    const double m = found[2] < 0.0 ? 0.0 : of->g->mass[(int)found[2]];
    return m > 0.0 && 2.0 * (found[0] - found[1]) * m < GROUPS_FORM * (mass + m) * found[1];
}

/* Of a heavy body and the light ones about it: block steps of more, as of a ring or of the stars
 * round a massive black hole, cost a hundredth of what a group costs. */
enum { FEW_PLANETS = 8 };
#define PLANETS_WITHIN 4.0 /* of the farthest that two come apart */

/* Of all but p and q, whose centre of mass is at x: that which disturbs them most, if both together
 * are as hard as a group has to be; -1: none does, as where the others' pulls are above most. */
static int intruder(const struct groups *g, const struct hermite_state *s, double time, int p,
                    int q, double mass, const double x[3], double most)
{
    struct pulls all = {g, s, time, p, q, x, most};
    double found[3];
    return sum_pulls(&all, found) && stands_out(&all, mass, found) ? (int)found[2] : -1;
}

int groups_disturber(const struct groups *g, const struct hermite_state *s, double time,
                     const struct group *own)
{
    const int p = own->who[0];
    struct pulls near = {g, s, time, p, p, s->x[p], INFINITY};
    double found[3] = {0.0, 0.0, -1.0};
    for (int n = 0; n < own->near_count && own->near_until >= time; n++)
        add_pull(&near, own->near[n], pull_of(&near, own->near[n]), found);
    /* With all others the sum is larger, and rounded otherwise. */
    if (found[1] * own->reach > 1.0 && !stands_out(&near, 1.001 * own->mass, found)) return -1;
    return intruder(g, s, time, p, p, own->mass, s->x[p], INFINITY);
}

static int size_of(const struct groups *g, int p) { return g->of[p] < 0 ? 1 : groups_of(g, p)->n; }

int groups_many_planets(const struct groups *g, const struct hermite_state *s, double time, int p,
                        int q, double far)
{
    const int heavy = g->mass[p] < g->mass[q] ? q : p;
    const double light = CHAIN_PLANET * (g->mass[p] + g->mass[q]), reach = PLANETS_WITHIN * far;
    int count = size_of(g, p) + (q == p ? 0 : size_of(g, q));
    double at[3], x[3], v[3];
    if (q != p && fmin(g->mass[p], g->mass[q]) >= light) return 0;
    groups_about(s, heavy, time, at, v);
    for (int k = 0; k < g->n && count <= FEW_PLANETS; k++) {
        if (k == p || k == q || !(g->mass[k] > 0.0 && g->mass[k] < light)) continue;
        groups_about(s, k, time, x, v);
        for (int c = 0; c < 3; c++) x[c] -= at[c];
        count += kepler_dot(x, x) < reach * reach;
    }
    return count > FEW_PLANETS;
}

/* Whether two make a group. */
static int belong(struct groups *g, const struct hermite_state *s, double time, int p, int q,
                  const struct place *here, const struct place *there)
{
    const double both = g->mass[p] + g->mass[q];
    double d[3], w[3], tide[3], a, e;
    for (int c = 0; c < 3; c++) d[c] = there->x[c] - here->x[c], w[c] = there->v[c] - here->v[c];
    const double r2 = kepler_dot(d, d), r = sqrt(r2);
    if (!(r2 > 0.0 && both > 0.0) || g->mass[p] < 0.0 || g->mass[q] < 0.0) return 0;
    for (int c = 0; c < 3; c++) tide[c] = there->a[c] - here->a[c] + both / (r * r2) * d[c];
    const double gamma = hermite_norm(tide) * r2 / both;
    kepler_elements(both, d, w, &a, &e);
    if (groups_many_planets(g, s, time, p, q, a > 0.0 ? a * (1.0 + e) : r)) return 0;
    if (gamma < GROUPS_PASS && kepler_dot(d, w) < 0.0) return 1;
    if (a <= 0.0) return 0;
    const double far = a * (1.0 + e) / r, far3 = far * far * far;
    if (gamma * far3 < GROUPS_FORM) return 1;
    if (gamma > UNKNOWN) { /* with what disturbs them most, which is to join them */
        for (int c = 0; c < 3; c++) d[c] = here->x[c] + g->mass[q] / both * d[c];
        /* One that did so would be so near that its tide were about this; it counts twice. */
        const double most =
            2.0 * gamma * both / (r * r2) * GROUPS_FORM * (1.0 + both / g->lightest);
        return gamma * far3 < GROUPS_TORN && intruder(g, s, time, p, q, both, d, most) >= 0;
    }
    return tide_between(g, s, time, p, q, here, there, r2) * far3 < GROUPS_FORM;
}

/* Of some bodies or groups: mass, centre, and twice the largest distance from it. */
static double extent_of(const struct groups *g, const struct hermite_state *s, double time, int n,
                        const int who[], double centre[3], double *mass)
{
    double x[GROUPS_CLUMP][3], v[3], most = 0.0;
    *mass = centre[0] = centre[1] = centre[2] = 0.0;
    for (int i = 0; i < n; i++) {
        groups_about(s, who[i], time, x[i], v);
        *mass += g->mass[who[i]];
        for (int k = 0; k < 3; k++) centre[k] += g->mass[who[i]] * x[i][k];
    }
    for (int k = 0; k < 3; k++) centre[k] /= *mass;
    for (int i = 0; i < n; i++) {
        const double d[3] = {x[i][0] - centre[0], x[i][1] - centre[1], x[i][2] - centre[2]};
        most = fmax(most, 2.0 * sqrt(kepler_dot(d, d)));
    }
    return most;
}

int groups_clump(struct groups *g, const struct hermite_state *s, double time, int who[])
{
    for (int n = 2;; n++) {
        double centre[3], mass, of[GROUPS_CLUMP], found[3];
        const double size = extent_of(g, s, time, n, who, centre, &mass), cube = size * size * size;
        struct pulls all = {g, s, time, -1, -1, centre, INFINITY};
        for (int i = 0; i < n; i++) of[i] = g->mass[who[i]], g->mass[who[i]] = 0.0;
        sum_pulls(&all, found);
        for (int i = 0; i < n; i++) g->mass[who[i]] = of[i];
        if (2.0 * cube * found[0] < GROUPS_FORM * mass) return n > 2 ? n : 0;
        const int next = (int)found[2];
        if (n == GROUPS_CLUMP || next < 0 || 64.0 * cube * found[1] < g->mass[next]) return 0;
        if (g->of[next] >= 0) return 0; /* it is a group, which had better be by itself */
        who[n] = next;
    }
}

static void place_of_row(const struct groups_block *b, int i, struct place *p)
{
    memcpy(p->x, b->x[i], sizeof p->x), memcpy(p->v, b->v[i], sizeof p->v);
    memcpy(p->a, b->acc[i], sizeof p->a);
}

/* Of a pair that may be a group, bound or not: the tide on it over its pull, predicted for one. */
#define PERHAPS 0.5
#define PERHAPS_MEETS 0.02

/* Of two that may be in a clump: the tide over their pull, and the potential over that of one. */
#define CROWDED 0.02
#define CROWDED_POT 8.0

/* For rows of a block, who carries the nearest, if that may make a group with the row. */
struct search {
    struct groups *g;
    const struct hermite_state *s;
    const struct groups_block *b;
};

static void search_rows(void *context, int64_t first, int64_t end)
{
    const struct search *of = context;
    const struct groups *g = of->g;
    const struct groups_block *b = of->b;
    const int count = (int)(end - first);
    double x[GROUPS_TILE][3], v[GROUPS_TILE][3];
    int *near = g->partner + first;
    for (int i = 0; i < count; i++) {
        near[i] = groups_carrier(g, b->nearest[first + i]);
        if (near[i] < 0) near[i] = b->address[first + i];
    }
    hermite_predict(count, near, b->time, of->s, x, v);
    for (int i = 0; i < count; i++) {
        const int64_t row = first + i;
        const int p = b->address[row], q = near[i];
        const double both = g->mass[p] + g->mass[q], dt = b->time - of->s->t[q];
        double d[3], w[3], tide[3];
        for (int k = 0; k < 3; k++) d[k] = x[i][k] - b->x[row][k], w[k] = v[i][k] - b->v[row][k];
        const double r2 = kepler_dot(d, d), r = sqrt(r2);
        const int bound = kepler_dot(w, w) * r < 2.0 * both;
        for (int k = 0; k < 3; k++)
            tide[k] =
                of->s->a[q][k] + dt * of->s->j[q][k] - b->acc[row][k] + both / (r * r2) * d[k];
        const double most = bound                    ? PERHAPS * both
                            : kepler_dot(d, w) < 0.0 ? PERHAPS_MEETS * both
                                                     : 0.0;
        const double perturbed = hermite_norm(tide) * r2;
        g->crowded[row] =
            perturbed > CROWDED * both && CROWDED_POT * g->mass[q] > fabs(b->pot[row]) * r;
        if (q == p || !(perturbed < most)) near[i] = -1;
    }
}

/* Whether a row and the carrier of its nearest make a group. That may be in the midst of its step,
 * if it is long, as that of a star with a planet, but then it has to be a single body. */
static int is_partner(struct groups *g, const struct hermite_state *s, const struct groups_block *b,
                      int i, int near)
{
    const int k = row_of(b, near), p = b->address[i];
    struct place here, there;
    if (k < 0 && g->of[near] >= 0) return 0;
    if (k >= 0 && near < p && groups_carrier(g, b->nearest[k]) == p)
        return 0; /* as that row says */
    place_of_row(b, i, &here);
    if (k >= 0) {
        place_of_row(b, k, &there);
    } else {
        hermite_predict_one(s, near, b->time, there.x, there.v);
        for (int c = 0; c < 3; c++)
            there.a[c] = s->a[near][c] + (b->time - s->t[near]) * s->j[near][c];
    }
    return belong(g, s, b->time, p, near, &here, &there);
}

void groups_find_partners(struct groups *g, const struct hermite_state *s,
                          const struct groups_block *b)
{
    struct search of = {g, s, b};
    threads_each(g->threads < THREADS_AT_HAND ? g->threads : THREADS_AT_HAND, b->ni, GROUPS_TILE,
                 search_rows, &of);
    for (int i = 0; i < b->ni; i++)
        if (g->partner[i] >= 0 && !is_partner(g, s, b, i, g->partner[i])) g->partner[i] = -1;
}
