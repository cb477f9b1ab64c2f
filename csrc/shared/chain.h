/* chain.h - a few bodies in a chain of vectors from each to its neighbour (Mikkola and Aarseth
 * 1993, Celest. Mech. Dyn. Astron. 57, 439), and the two halves of a leapfrog in a time that runs
 * with their potential: the logarithmic Hamiltonian (Mikkola and Tanikawa 1999, MNRAS 310, 745;
 * Preto and Tremaine 1999, AJ 118, 2532), with a transformation of its own for pairs whose masses
 * are too small for it (Mikkola and Aarseth 2002, Celest. Mech. Dyn. Astron. 84, 343; Mikkola and
 * Merritt 2006, MNRAS 372, 219). Also compiled for GPUs. */
#ifndef GRAPE6_CHAIN_H
#define GRAPE6_CHAIN_H

#include "shared/kepler.h"

enum { CHAIN_MOST = 64 }; /* bodies */

/* In functions `n` is the chain's, a constant where a pair alone is moved. */

/* Who is where in the chain, and what stays while it is: n bodies, their masses in its order, and
 * for each vector 1 / kappa of the pair that it holds (slow-down: Wang, Nitadori and Makino 2020,
 * MNRAS 493, 3398), which is 1 for all others. */
struct chain {
    int n;
    double mass;  /* of all */
    double eps2;  /* softening */
    double light; /* weight of pairs with less than LIGHT of it in the time; 0: no pair has */
    double m[CHAIN_MOST], part[CHAIN_MOST]; /* part: the share of the mass of all */
    double slow[CHAIN_MOST];
};

#define CHAIN_LIGHT 1e-3
/* Of a pair's mass: a lighter body is a planet, whose place on its orbit is asked for. */
#define CHAIN_PLANET 0.01

/* Places or velocities, relative to the centre of mass, of what the chain's vectors lead to. */
HOST_DEVICE void chain_unfold(const int n, const struct chain *c, const double (*vector)[3],
                              double (*of)[3])
{
    double mean[3] = {0.0, 0.0, 0.0};
    for (int k = 0; k < 3; k++) of[0][k] = 0.0;
    for (int i = 1; i < n; i++)
        for (int k = 0; k < 3; k++) {
            of[i][k] = of[i - 1][k] + vector[i - 1][k];
            mean[k] += c->part[i] * of[i][k];
        }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) of[i][k] -= mean[k];
}

/* From body i to body j > i: along the chain if they are near each other in it. */
HOST_DEVICE void chain_between(const double (*vector)[3], const double (*place)[3], int i, int j,
                               double d[3])
{
    for (int k = 0; k < 3; k++)
        d[k] = j == i + 1   ? vector[i][k]
               : j == i + 2 ? vector[i][k] + vector[i + 1][k]
                            : place[j][k] - place[i][k];
}

HOST_DEVICE int chain_is_light(const struct chain *c, int i, int j)
{
    return c->m[i] * c->m[j] < CHAIN_LIGHT * c->light;
}

/* Accelerations of all by each other, their potential energy with the other sign, and the sum of
 * the weights of light pairs over their distances. */
HOST_DEVICE void chain_pull(const int n, const struct chain *c, const double (*vector)[3],
                            const double (*place)[3], double (*acc)[3], double *potential,
                            double *omega)
{
    *potential = *omega = 0.0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) acc[i][k] = 0.0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            double d[3];
            chain_between(vector, place, i, j, d);
            const double inverse = 1.0 / sqrt(kepler_dot(d, d) + c->eps2);
            const double slowed = j == i + 1 ? c->slow[i] * inverse : inverse;
            const double by = slowed * inverse * inverse;
            *potential += c->m[i] * c->m[j] * slowed;
            if (chain_is_light(c, i, j)) *omega += c->light * inverse;
            for (int k = 0; k < 3; k++) {
                acc[i][k] += c->m[j] * by * d[k];
                acc[j][k] -= c->m[i] * by * d[k];
            }
        }
}

/* The rate of omega with velocities. */
HOST_DEVICE double chain_omega_rate(const int n, const struct chain *c, const double (*vector)[3],
                                    const double (*place)[3], const double (*v)[3])
{
    double rate = 0.0;
    for (int i = 0; i < n && c->light > 0.0; i++)
        for (int j = i + 1; j < n; j++) {
            if (!chain_is_light(c, i, j)) continue;
            double d[3], w = 0.0;
            chain_between(vector, place, i, j, d);
            for (int k = 0; k < 3; k++) w += d[k] * (v[j][k] - v[i][k]);
            const double inverse = 1.0 / sqrt(kepler_dot(d, d) + c->eps2);
            rate -= c->light * inverse * inverse * inverse * w;
        }
    return rate;
}

/* Kinetic energy in the frame of the centre of mass, in which slowed pairs have their share. */
HOST_DEVICE double chain_kinetic(const int n, const struct chain *c, const double (*vector)[3],
                                 const double (*v)[3])
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += 0.5 * c->m[i] * kepler_dot(v[i], v[i]);
    for (int i = 0; i + 1 < n; i++) {
        if (c->slow[i] == 1.0) continue;
        const double reduced = c->m[i] * c->m[i + 1] / (c->m[i] + c->m[i + 1]);
        sum -= 0.5 * (1.0 - c->slow[i]) * reduced * kepler_dot(vector[i], vector[i]);
    }
    return sum;
}

/* Velocities as bodies of slowed pairs have them, from those of the bodies themselves. */
HOST_DEVICE void chain_slow(const int n, const struct chain *c, const double (*vector)[3],
                            double (*v)[3])
{
    for (int i = 0; i + 1 < n; i++) {
        if (c->slow[i] == 1.0) continue;
        const double less = (1.0 - c->slow[i]) / (c->m[i] + c->m[i + 1]);
        for (int k = 0; k < 3; k++) {
            v[i][k] += less * c->m[i + 1] * vector[i][k];
            v[i + 1][k] -= less * c->m[i] * vector[i][k];
        }
    }
}

/* Adds `by` times how the vectors move: a slowed pair turns 1 / kappa as fast about its centre. */
HOST_DEVICE void chain_add_motion(const int n, const struct chain *c, const double (*vector)[3],
                                  double by, double (*to)[3])
{
    for (int i = 0; i + 1 < n; i++)
        for (int k = 0; k < 3; k++) to[i][k] += by * vector[i][k];
    for (int i = 0; i + 1 < n; i++) {
        if (c->slow[i] == 1.0) continue;
        const double less = by * (1.0 - c->slow[i]), both = c->m[i] + c->m[i + 1];
        for (int k = 0; k < 3; k++) {
            const double w = less * vector[i][k];
            to[i][k] -= w;
            if (i > 0) to[i - 1][k] += c->m[i + 1] / both * w;
            if (i + 2 < n) to[i + 1][k] += c->m[i] / both * w;
        }
    }
}

#endif
