/* hermite_pair.h - hard pairs among the rows of a block: bodies whose pull on each other is far
 * above the tide of all others, as of two stars, or of each planet and its star. Their step is
 * corrected twice, the second time with the pull at the places that the first one gave, so that it
 * is as good backwards as forwards and an orbit does not drift (Kokubo, Yoshinaga and Makino 1998,
 * MNRAS 297, 1067). Also compiled for GPUs, with the same bits. */
#ifndef GRAPE6_HERMITE_PAIR_H
#define GRAPE6_HERMITE_PAIR_H

#include "shared/hermite_step.h"
#include "shared/pair_double.h"

/* Blocks with more rows have no pairs: those of hard pairs, whose steps are short, are small. */
enum { HERMITE_PAIR_ROWS = 32 };
/* Tide over pull, below which two are a pair. */
#define HERMITE_PAIR_TIDE 0.1

/* A block's rows: particles, their predicted places, and all that acts there. */
struct hermite_rows {
    int count;
    const int *address;
    double time, eps2; /* eps2 NaN: no pair is looked for */
    const double (*x)[3], (*v)[3], (*acc)[3], (*jerk)[3];
    const int *group; /* of particles: below 0 for single bodies; NULL: all are */
};

HOST_DEVICE int hermite_is_single(const struct hermite_rows *r, int i)
{
    return !r->group || r->group[r->address[i]] < 0;
}

HOST_DEVICE int hermite_has_pairs(const struct hermite_rows *r)
{
    return r->eps2 >= 0.0 && r->count > 1 && r->count <= HERMITE_PAIR_ROWS;
}

HOST_DEVICE void hermite_between(const double (*of)[3], int i, int k, double d[3])
{
    for (int c = 0; c < 3; c++) d[c] = of[k][c] - of[i][c];
}

/* The row that pulls most at row i, or i. */
HOST_DEVICE int hermite_strongest_row(const struct hermite_rows *r, const double mass[], int i)
{
    double d[3], most = 0.0;
    int strongest = i;
    for (int k = 0; k < r->count; k++) {
        hermite_between(r->x, i, k, d);
        const double pull = mass[r->address[k]] / (field_dot(d, d) + r->eps2);
        if (k != i && pull > most && hermite_is_single(r, k)) most = pull, strongest = k;
    }
    return strongest;
}

HOST_DEVICE int hermite_are_pair(const struct hermite_rows *r, const double mass[], int i, int k)
{
    const double both = mass[r->address[i]] + mass[r->address[k]];
    double d[3], tide[3], pull[3] = {0.0, 0.0, 0.0}, pot = 0.0;
    hermite_between(r->x, k, i, d);
    hermite_between(r->acc, i, k, tide);
    (void)pair_add_double(d, r->eps2, both, pull, &pot);
    for (int c = 0; c < 3; c++) tide[c] += pull[c];
    return hermite_norm(tide) < HERMITE_PAIR_TIDE * hermite_norm(pull);
}

/* Adds to acc and jerk of row i, if it is one of a pair, how the pull of the other is another at
 * the corrected places of both. */
HOST_DEVICE void hermite_add_second(const struct hermite_rows *r, const struct hermite_state *s,
                                    int i, double acc[3], double jerk[3])
{
    const int k = hermite_is_single(r, i) ? hermite_strongest_row(r, s->mass, i) : i;
    if (k == i || !hermite_are_pair(r, s->mass, i, k)) return;
    double x[2][3], v[2][3], a2[3], a3[3], from[2][3], to[2][3];
    for (int n = 0; n < 2; n++) {
        const int row = n ? k : i, p = r->address[row];
        const double dt = r->time - s->t[p];
        hermite_predict_one(s, p, r->time, x[n], v[n]);
        if (dt == 0.0) return;
        hermite_add_orders(dt, s->a[p], s->j[p], r->acc[row], r->jerk[row], x[n], v[n], a2, a3);
    }
    const double m = s->mass[r->address[k]];
    hermite_between(r->x, i, k, from[0]);
    hermite_between(r->v, i, k, from[1]);
    for (int c = 0; c < 3; c++) to[0][c] = x[1][c] - x[0][c], to[1][c] = v[1][c] - v[0][c];
    pair_add_pull(-m, from[0], from[1], r->eps2, acc, jerk);
    pair_add_pull(m, to[0], to[1], r->eps2, acc, jerk);
}

#endif
