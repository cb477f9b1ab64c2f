/* groups_partner.c - who makes a group with whom: see groups.h. */
#include <string.h>

#include "core/hermite.h"
#include "steps/groups.h"

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

/* Where a particle is at a time, and its acceleration. */
struct place {
    double x[3], v[3], a[3];
};

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

int groups_intruder(const struct groups *g, const struct hermite_state *s, double time, int p,
                    int q, double mass, const double x[3])
{
    double most = 0.0, sum = 0.0;
    int best = -1;
    for (int other = 0; other < g->n; other++) {
        double d[3], w[3];
        if (other == p || other == q || !groups_carries(g, other) || !(g->mass[other] > 0.0))
            continue;
        groups_about(s, other, time, d, w);
        for (int k = 0; k < 3; k++) d[k] -= x[k];
        const double r2 = kepler_dot(d, d), pull = g->mass[other] / (r2 * sqrt(r2));
        sum += pull;
        if (pull > most) most = pull, best = other;
    }
    if (best < 0) return -1;
    const double r3 = g->mass[best] / most;
    return 2.0 * (sum - most) * r3 < GROUPS_FORM * (mass + g->mass[best]) ? best : -1;
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
    if (gamma < GROUPS_PASS && kepler_dot(d, w) < 0.0) return 1;
    if (a <= 0.0) return 0;
    const double far = a * (1.0 + e) / r, far3 = far * far * far;
    if (gamma * far3 < GROUPS_FORM) return 1;
    if (gamma > UNKNOWN) { /* with what disturbs them most, which is to join them */
        for (int c = 0; c < 3; c++) d[c] = here->x[c] + g->mass[q] / both * d[c];
        return gamma * far3 < GROUPS_TORN && groups_intruder(g, s, time, p, q, both, d) >= 0;
    }
    return tide_between(g, s, time, p, q, here, there, r2) * far3 < GROUPS_FORM;
}

static void place_of_row(const struct groups_block *b, int i, struct place *p)
{
    memcpy(p->x, b->x[i], sizeof p->x), memcpy(p->v, b->v[i], sizeof p->v);
    memcpy(p->a, b->acc[i], sizeof p->a);
}

/* The nearest of a row, if both make a group. It may be in the midst of its step, if that is long,
 * as that of a star with a planet, but then it has to be a single body. */
static int partner_of(struct groups *g, const struct hermite_state *s, const struct groups_block *b,
                      int i)
{
    const int p = b->address[i];
    int near = b->nearest[i];
    struct place here, there;
    if (near < 0 || near == p) return -1;
    if (g->of[near] >= 0) near = g->group[g->of[near]]->who[0];
    const int k = row_of(b, near);
    if (k == i || (k < 0 && g->of[near] >= 0)) return -1;
    place_of_row(b, i, &here);
    if (k >= 0) {
        place_of_row(b, k, &there);
    } else {
        hermite_predict_one(s, near, b->time, there.x, there.v);
        for (int c = 0; c < 3; c++)
            there.a[c] = s->a[near][c] + (b->time - s->t[near]) * s->j[near][c];
    }
    return belong(g, s, b->time, p, near, &here, &there) ? near : -1;
}

void groups_find_partners(struct groups *g, const struct hermite_state *s,
                          const struct groups_block *b)
{
    for (int i = 0; i < b->ni; i++) g->partner[i] = partner_of(g, s, b, i);
}
