/* chain_leap.h - one leapfrog of a chain (chain.h) in the transformed time, with bodies outside
 * that act on it. Also compiled for GPUs. */
#ifndef GRAPE6_CHAIN_LEAP_H
#define GRAPE6_CHAIN_LEAP_H

#include "shared/chain.h"
#include "shared/chain_far.h"

/* A body outside: it moves on the polynomial of its derivatives at the time 0. */
struct chain_perturber {
    double mass, x[3], v[3], a[3], j[3];
};

struct chain_outside {
    int count;
    int moving; /* they move the centre of mass, too */
    const struct chain_perturber *body;
    struct chain_far far; /* others, by their tide alone */
};

/* What is integrated, one after the other: the chain's vectors, their velocities, place and
 * velocity of the centre of mass, time, minus the energy, and the transformation of time of light
 * pairs. */
enum { CHAIN_STATE = 6 * CHAIN_MOST + 3 };

struct chain_view {
    double (*x)[3], (*v)[3], *centre, *speed, *time, *bound, *omega;
};

HOST_DEVICE int chain_state_size(const int n) { return 6 * n + 3; }

HOST_DEVICE struct chain_view chain_view_of(const int n, double *state)
{
    double (*rows)[3] = (double (*)[3])(void *)state;
    double *rest = rows[2 * (n - 1)];
    struct chain_view view = {rows, rows + (n - 1), rest, rest + 3, rest + 6, rest + 7, rest + 8};
    return view;
}

/* A leapfrog under way: its start, what it has changed, and the sum of both. */
struct chain_leap {
    const struct chain *chain;
    const struct chain_outside *outside;
    double start[CHAIN_STATE], moved[CHAIN_STATE], now[CHAIN_STATE];
};

HOST_DEVICE void chain_look(struct chain_leap *l, const int n)
{
    for (int i = 0; i < chain_state_size(n); i++) l->now[i] = l->start[i] + l->moved[i];
}

/* Places and times change; `by` is of the transformed time, whose rate is the kinetic energy here
 * and the potential energy in a kick. */
HOST_DEVICE void chain_drift(struct chain_leap *l, const int n, double by)
{
    const struct chain_view now = chain_view_of(n, l->now), moved = chain_view_of(n, l->moved);
    double v[CHAIN_MOST][3];
    chain_look(l, n);
    chain_unfold(n, l->chain, CONST3(now.v), v);
    const double kinetic = chain_kinetic(n, l->chain, CONST3(now.v), CONST3(v));
    const double dt = by / (kinetic + *now.bound + *now.omega);
    chain_add_motion(n, l->chain, CONST3(now.v), dt, moved.x);
    for (int k = 0; k < 3; k++) moved.centre[k] += dt * now.speed[k];
    *moved.time += dt;
}

/* Where a body outside is, seen from `centre`. */
HOST_DEVICE void chain_outside_at(const struct chain_perturber *p, double t, const double centre[3],
                                  double x[3])
{
    for (int k = 0; k < 3; k++)
        x[k] = p->x[k] + t * (p->v[k] + t * (p->a[k] / 2.0 + t * p->j[k] / 6.0)) - centre[k];
}

/* What bodies outside add to each body's acceleration; mean: to that of the centre of mass. */
HOST_DEVICE void chain_perturb(const struct chain_leap *l, const int n, const double (*place)[3],
                               double (*acc)[3], double mean[3])
{
    const struct chain *c = l->chain;
    const struct chain_view now = chain_view_of(n, (double *)l->now);
    double far[CHAIN_FAR_TERMS] = {0.0};
    if (l->outside->far.span > 0.0) chain_far_at(&l->outside->far, *now.time, far);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) acc[i][k] = 0.0;
        if (l->outside->far.span > 0.0) chain_far_pull(far, place[i], acc[i]);
    }
    for (int p = 0; p < l->outside->count; p++) {
        double at[3];
        chain_outside_at(&l->outside->body[p], *now.time, now.centre, at);
        for (int i = 0; i < n; i++) {
            const double d[3] = {at[0] - place[i][0], at[1] - place[i][1], at[2] - place[i][2]};
            const double r2 = kepler_dot(d, d) + c->eps2, inverse = r2 > 0.0 ? 1.0 / sqrt(r2) : 0.0;
            const double by = l->outside->body[p].mass * inverse * inverse * inverse;
            for (int k = 0; k < 3; k++) acc[i][k] += by * d[k];
        }
    }
    for (int k = 0; k < 3; k++) {
        mean[k] = 0.0;
        for (int i = 0; i < n; i++) mean[k] += c->part[i] * acc[i][k];
    }
}

/* The power of accelerations from outside; slowed pairs move slowly. */
HOST_DEVICE double chain_power(const int n, const struct chain *c, const double (*vector)[3],
                               const double (*v)[3], const double (*acc)[3])
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += c->m[i] * kepler_dot(v[i], acc[i]);
    for (int i = 0; i + 1 < n; i++) {
        if (c->slow[i] == 1.0) continue;
        const double by = (1.0 - c->slow[i]) * c->m[i] * c->m[i + 1] / (c->m[i] + c->m[i + 1]);
        for (int k = 0; k < 3; k++) sum -= by * vector[i][k] * (acc[i + 1][k] - acc[i][k]);
    }
    return sum;
}

/* Velocities change, and with the mean of those before and after the energy. */
HOST_DEVICE void chain_kick(struct chain_leap *l, const int n, double by)
{
    const struct chain *c = l->chain;
    const struct chain_view now = chain_view_of(n, l->now), moved = chain_view_of(n, l->moved);
    const int energy = l->outside->count > 0 || l->outside->far.span > 0.0 ||
                       c->light > 0.0; /* what two alone do not need */
    double place[CHAIN_MOST][3], acc[CHAIN_MOST][3], v[CHAIN_MOST][3], given[CHAIN_MOST][3];
    double potential, omega, mean[3], middle[CHAIN_MOST][3];
    chain_look(l, n);
    chain_unfold(n, c, CONST3(now.x), place);
    chain_pull(n, c, CONST3(now.x), CONST3(place), acc, &potential, &omega);
    const double dt = by / (potential + omega);
    if (energy) {
        chain_perturb(l, n, CONST3(place), given, mean);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 3; k++) acc[i][k] += given[i][k];
        for (int k = 0; k < 3 && l->outside->moving; k++) moved.speed[k] += dt * mean[k];
    }
    for (int i = 0; i + 1 < n; i++)
        for (int k = 0; k < 3; k++) {
            const double more = dt * (acc[i + 1][k] - acc[i][k]);
            moved.v[i][k] += more;
            middle[i][k] = now.v[i][k] + 0.5 * more;
        }
    if (!energy) return;
    chain_unfold(n, c, CONST3(middle), v);
    *moved.bound -= dt * chain_power(n, c, CONST3(middle), CONST3(v), CONST3(given));
    chain_slow(n, c, CONST3(middle), v);
    *moved.omega += dt * chain_omega_rate(n, c, CONST3(now.x), CONST3(place), CONST3(v));
}

/* `count` steps, h together, from l->start, to l->moved. */
HOST_DEVICE void chain_leap(struct chain_leap *l, const int n, double h, int count)
{
    for (int i = 0; i < chain_state_size(n); i++) l->moved[i] = 0.0;
    chain_drift(l, n, 0.5 * h / count);
    for (int k = 0; k < count; k++) {
        chain_kick(l, n, h / count);
        chain_drift(l, n, (k + 1 < count ? 1.0 : 0.5) * h / count);
    }
}

#endif
