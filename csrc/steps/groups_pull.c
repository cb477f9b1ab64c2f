/* groups_pull.c - forces between groups and others: see groups.h. */
#include "core/hermite.h"
#include "shared/pair_double.h"
#include "steps/groups.h"
#include "util/threads.h"

/* Distance in sizes from which on two are seen as their mean over an orbit. */
#define GROUPS_MEAN 8.0

static void product(const double t[6], const double d[3], double to[3])
{
    to[0] = t[0] * d[0] + t[3] * d[1] + t[4] * d[2];
    to[1] = t[3] * d[0] + t[1] * d[1] + t[5] * d[2];
    to[2] = t[4] * d[0] + t[5] * d[1] + t[2] * d[2];
}

/* What the members of q (NULL: the body p) do to those of own (NULL: a body) beyond what their
 * centres do; d and w: from centre to centre. */
static void add_members(const struct groups *g, const struct group *own, const struct group *q,
                        int p, const double d[3], const double w[3], double acc[3], double jerk[3])
{
    for (int i = 0; i < (own ? own->n : 1); i++) {
        double a[3] = {0.0, 0.0, 0.0}, j[3] = {0.0, 0.0, 0.0};
        for (int k = 0; k < (q ? q->n : 1); k++) {
            double to[3], speed[3];
            for (int c = 0; c < 3; c++) {
                to[c] = d[c] + (q ? q->x[k][c] : 0.0) - (own ? own->x[i][c] : 0.0);
                speed[c] = w[c] + (q ? q->v[k][c] : 0.0) - (own ? own->v[i][c] : 0.0);
            }
            pair_add_pull(g->own[q ? q->who[k] : p], to, speed, 0.0, a, j);
        }
        const double part = own ? g->own[own->who[i]] / own->mass : 1.0;
        for (int c = 0; c < 3; c++) acc[c] += part * a[c], jerk[c] += part * j[c];
    }
    pair_add_pull(-g->mass[p], d, w, 0.0, acc, jerk);
}

/* Adds what the mean orbits of two groups, of which one may be none, do to each other beyond their
 * centres: the same on both, by mass, so that energy is kept. Orbits are shorter than steps. */
static void add_means(double m, const struct group *own, const struct group *q, const double d[3],
                      const double w[3], double acc[3], double jerk[3])
{
    double t[6], td[3], tw[3];
    for (int k = 0; k < 6; k++) t[k] = (own ? own->mean[k] : 0.0) + (q ? q->mean[k] : 0.0);
    const double by = 1.0 / kepler_dot(d, d), by5 = m * by * by * sqrt(by),
                 rate = kepler_dot(d, w) * by;
    product(t, d, td), product(t, w, tw);
    const double dtd = kepler_dot(d, td) * by, dtw = kepler_dot(d, tw) * by;
    const double along = 1.5 * (t[0] + t[1] + t[2]) - 7.5 * dtd;
    const double along_rate = -15.0 * dtw + 15.0 * rate * dtd;
    for (int k = 0; k < 3; k++) {
        const double f = 3.0 * td[k] + along * d[k];
        acc[k] -= by5 * f;
        jerk[k] -= by5 * (3.0 * tw[k] + along * w[k] + along_rate * d[k] - 5.0 * rate * f);
    }
}

/* Whether a group, or a body, is seen by its mean orbit at a distance whose square is r2, by what
 * moves at a speed whose square is v2: it is far away, and passes many orbits in the time that it
 * takes to come nearer. Steps follow slower ones. */
static int is_mean(const struct group *q, double r2, double v2)
{
    if (!q) return 1;
    const double far = GROUPS_MEAN * q->parts.size, period = groups_period(q);
    return r2 > far * far && r2 > 16.0 * period * period * v2;
}

static void pull_by(struct groups *g, const struct hermite_state *s, const struct groups_block *b,
                    int i, int p, const double x[3], const double v[3])
{
    const int own = b->address[i];
    double d[3], w[3];
    for (int k = 0; k < 3; k++) d[k] = x[k] - b->x[i][k];
    const double r2 = kepler_dot(d, d);
    const double reach = fmax(groups_reach(g, own, g->mass[p]), groups_reach(g, p, g->mass[own]));
    if (p == own || !groups_within(reach, r2)) return;
    struct group *mine = groups_of(g, own), *q = groups_of(g, p);
    for (int k = 0; k < 3; k++) w[k] = v[k] - b->v[i][k];
    const double v2 = kepler_dot(w, w);
    if (is_mean(mine, r2, v2) && is_mean(q, r2, v2)) {
        add_means(g->mass[p], mine, q, d, w, b->acc[i], b->jerk[i]);
        return;
    }
    if (mine) groups_see(mine, s->t[own], b->time, g->looking);
    if (q) groups_see(q, s->t[p], b->time, g->looking);
    add_members(g, mine, q, p, d, w, b->acc[i], b->jerk[i]);
}

/* What groups from first to before end, of which few see a row's body, do to it. */
static void pull_by_seen(struct groups *g, const struct hermite_state *s,
                         const struct groups_block *b, int i, int first, int end)
{
    const double x[3] = {b->x[i][0], b->x[i][1], b->x[i][2]};
    double beyond[GROUPS_TILE];
    for (int k = first; k < end; k++) {
        const double d[3] = {g->x[k][0] - x[0], g->x[k][1] - x[1], g->x[k][2] - x[2]};
        beyond[k - first] = kepler_dot(d, d) - g->sight2[k];
    }
    for (int k = first; k < end; k++)
        if (beyond[k - first] < 0.0) pull_by(g, s, b, i, g->carrier[k], g->x[k], g->v[k]);
}

void groups_look(struct groups *g, int looking)
{
    g->looking = looking;
    for (int k = 0; k < g->count; k++) g->group[k]->seen_at = NAN;
}

/* What is near a group, ascending, at the time of a block: places in g->x, g->v. */
static const int *near_at(struct groups *g, const struct hermite_state *s, const struct group *q,
                          double time, int *count)
{
    const int *near = q->near;
    *count = q->near_count;
    if (!(q->near_until >= time)) { /* a look between blocks */
        *count = 0;
        for (int p = 0; p < g->n; p++)
            if (groups_carries(g, p) && g->mass[p] != 0.0) g->partner[(*count)++] = p;
        near = g->partner;
    }
    hermite_predict(*count, near, time, s, g->x, g->v);
    return near;
}

/* Adds what the field does to the mean orbit of a group beyond what it does to its centre: half of
 * its second derivatives, by differences over the columns of a root of the products of places. */
static void add_field_of_orbit(const struct field *f, const struct group *q, const double x[3],
                               const double v[3], double acc[3], double jerk[3])
{
    const double *t = q->mean,
                 of[3][3] = {{t[0], t[3], t[4]}, {t[3], t[1], t[5]}, {t[4], t[5], t[2]}};
    double root[3][3] = {{0.0}}; /* by Cholesky */
    for (int n = 0; n < 3; n++) {
        double left[3];
        for (int k = n; k < 3; k++) {
            left[k] = of[n][k];
            for (int m = 0; m < n; m++) left[k] -= root[m][n] * root[m][k];
        }
        if (!(left[n] > 1e-12 * (t[0] + t[1] + t[2]))) continue; /* the orbit is flat, or light */
        for (int k = n; k < 3; k++) root[n][k] = left[k] / sqrt(left[n]);
        for (int side = -1; side <= 1; side++) {
            double at[3], a[3] = {0.0}, j[3] = {0.0};
            for (int k = 0; k < 3; k++) at[k] = x[k] + side * root[n][k];
            field_add(f, at, v, a, j);
            for (int k = 0; k < 3; k++) {
                acc[k] += (side ? 0.5 : -1.0) * a[k];
                jerk[k] += (side ? 0.5 : -1.0) * j[k];
            }
        }
    }
}

void groups_pull(struct groups *g, const struct hermite_state *s, const struct groups_block *b)
{
    struct field field;
    int count;
    if (!g->count) return;
    for (int i = 0; i < b->ni; i++) { /* first the groups, whose lists take the space of places */
        const struct group *mine = groups_of(g, b->address[i]);
        if (!mine) continue;
        const int *near = near_at(g, s, mine, b->time, &count);
        for (int k = 0; k < count; k++) pull_by(g, s, b, i, near[k], g->x[k], g->v[k]);
        if (groups_field_at(g, b->time, &field))
            add_field_of_orbit(&field, mine, b->x[i], b->v[i], b->acc[i], b->jerk[i]);
    }
    hermite_predict(g->count, g->carrier, b->time, s, g->x, g->v);
    for (int i = 0; i < b->ni; i++) {
        if (g->of[b->address[i]] >= 0) continue;
        for (int k = 0; k < g->count; k += GROUPS_TILE) {
            const int end = g->count - k < GROUPS_TILE ? g->count : k + GROUPS_TILE;
            pull_by_seen(g, s, b, i, k, end);
        }
    }
}

/* What all that carry something, but one, do to a place as points. */
struct points {
    const struct groups *g;
    const struct hermite_state *s;
    int carrier;
    double time;
    const double *x, *v;
};

static void pull_of_piece(void *context, int64_t first, int64_t end)
{
    const struct points *of = context;
    const struct groups *g = of->g;
    double *sum = g->sums[first / GROUPS_PIECE], x[GROUPS_TILE][3], v[GROUPS_TILE][3];
    int who[GROUPS_TILE], p = (int)first;
    for (int k = 0; k < 6; k++) sum[k] = 0.0;
    while (p < end) {
        int count = 0;
        for (; p < end && count < GROUPS_TILE; p++)
            if (p != of->carrier && g->mass[p] != 0.0) who[count++] = p;
        hermite_predict(count, who, of->time, of->s, x, v);
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < 3; k++) x[i][k] -= of->x[k], v[i][k] -= of->v[k];
            pair_add_pull(g->mass[who[i]], x[i], v[i], 0.0, sum, sum + 3);
        }
    }
}

void groups_pull_all(struct groups *g, const struct hermite_state *s, int own, double time,
                     const double x[3], const double v[3], double acc[3], double jerk[3])
{
    const int carrier = groups_carrier(g, own);
    struct points all = {g, s, carrier, time, x, v};
    struct field field;
    for (int k = 0; k < 3; k++) acc[k] = jerk[k] = 0.0;
    threads_each(g->threads, g->n, GROUPS_PIECE, pull_of_piece, &all);
    for (int i = 0; i * GROUPS_PIECE < g->n; i++)
        for (int k = 0; k < 3; k++) acc[k] += g->sums[i][k], jerk[k] += g->sums[i][3 + k];
    if (groups_field_at(g, time, &field)) field_add(&field, x, v, acc, jerk);
    for (int k = 0; k < g->count; k++) {
        struct group *q = g->group[k];
        const int p = g->carrier[k];
        double d[3], w[3];
        if (p == carrier || g->mass[p] == 0.0) continue;
        hermite_predict(1, &p, time, s, &d, &w);
        for (int c = 0; c < 3; c++) d[c] -= x[c], w[c] -= v[c];
        if (!groups_within(groups_reach(g, p, g->own[own]), kepler_dot(d, d))) continue;
        groups_see(q, s->t[p], time, g->looking);
        add_members(g, NULL, q, p, d, w, acc, jerk);
    }
}

/* acc, jerk: of a group's centre; writes those of its members, whose places are x, v. */
static void spread(struct groups *g, const struct hermite_state *s, struct group *q, double time,
                   const double (*x)[3], const double (*v)[3], double (*acc)[3], double (*jerk)[3])
{
    double a[CHAIN_MOST][3], j[CHAIN_MOST][3], mean[2][3] = {{0.0}};
    for (int i = 0; i < q->n; i++) {
        groups_pull_all(g, s, q->who[i], time, x[q->who[i]], v[q->who[i]], a[i], j[i]);
        for (int n = 0; n < q->n; n++) {
            double d[3], w[3];
            for (int k = 0; k < 3; k++)
                d[k] = q->x[n][k] - q->x[i][k], w[k] = q->v[n][k] - q->v[i][k];
            if (n != i) pair_add_pull(g->own[q->who[n]], d, w, 0.0, a[i], j[i]);
        }
        const double part = g->own[q->who[i]] / q->mass;
        for (int k = 0; k < 3; k++) mean[0][k] += part * a[i][k], mean[1][k] += part * j[i][k];
    }
    for (int k = 0; k < 3; k++) {
        mean[0][k] = acc[q->who[0]][k] - mean[0][k]; /* with what is outside */
        mean[1][k] = jerk[q->who[0]][k] - mean[1][k];
    }
    for (int i = 0; i < q->n; i++)
        for (int k = 0; k < 3; k++) {
            acc[q->who[i]][k] = mean[0][k] + a[i][k];
            jerk[q->who[i]][k] = mean[1][k] + j[i][k];
        }
}

void groups_unfold(struct groups *g, const struct hermite_state *s, double time, double (*x)[3],
                   double (*v)[3], double (*acc)[3], double (*jerk)[3])
{
    for (int n = 0; n < g->count; n++) {
        struct group *q = g->group[n];
        const int c = q->who[0];
        const double at[3] = {x[c][0], x[c][1], x[c][2]}, speed[3] = {v[c][0], v[c][1], v[c][2]};
        groups_see(q, s->t[c], time, g->looking);
        for (int i = 0; i < q->n; i++)
            for (int k = 0; k < 3; k++) {
                x[q->who[i]][k] = at[k] + q->x[i][k];
                v[q->who[i]][k] = speed[k] + q->v[i][k];
            }
        if (acc) spread(g, s, q, time, CONST3(x), CONST3(v), acc, jerk);
    }
}
