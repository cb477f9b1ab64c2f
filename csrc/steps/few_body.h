/* few_body.h - a few bodies, 2 to CHAIN_MOST, to any accuracy that doubles have, whatever they do:
 * algorithmic regularisation (shared/chain.h) with extrapolation of leapfrogs to steps of length
 * zero (Gragg 1965, SIAM J. Numer. Anal. 2, 384; Bulirsch and Stoer 1966, Numer. Math. 8, 1). */
#pragma once

#include "shared/chain_leap.h"

#define FEW_TOLERANCE 1e-12 /* what is usual */

struct few_setting {
    double eps2;
    double tolerance; /* of a step: the share that the errors of vectors and of the energy may be;
                       * infinity: leapfrogs as they are */
    double kepler;  /* a pair whose perturbation is a smaller share moves by Kepler's laws; 0: no */
    double kicked;  /* a larger share than kepler, which acts by kicks; 0: none does so */
    double slowed;  /* perturbation to which pairs may be slowed down; 0: none is */
    double closer;  /* a distance that is noted when two come to it; 0: none */
    int most_pulls; /* evaluations of the forces from which on no step converges; 0: no limit */
    struct chain_outside outside;
};

struct few_body {
    struct chain chain;
    int who[CHAIN_MOST];          /* numbers of the bodies in the chain's order */
    double step;                  /* the next one, in the transformed time */
    double closest, closest_time; /* least distance of two, and when */
    int pair[2];                  /* of these */
    double met;                   /* when two first were as near as `closer`, or infinity */
    int met_pair[2];
    long long steps, pulls; /* done: of extrapolation, evaluations of the forces */
    double at[CHAIN_STATE], rest[CHAIN_STATE]; /* rest: what rounding has left */
};

static inline struct chain_view few_body_view(const struct few_body *f)
{
    return chain_view_of(f->chain.n, (double *)f->at);
}

/* Begins at the time 0. 0, or G6X_E_RANGE: two are at one place without a softening, or what there
 * is leaves the range of doubles. */
int few_body_begin(struct few_body *f, const struct few_setting *s, int n, const double m[],
                   const double (*x)[3], const double (*v)[3]);
/* Sets the chain of bodies, whose order is f->who. */
void few_body_set_chain(struct few_body *f, double eps2, int n, const double m[]);
/* Moves on to a time not before that of the bodies. 0, or G6X_E_RANGE: no step converges. */
int few_body_evolve(struct few_body *f, const struct few_setting *s, double time);
/* Copies what is used. */
void few_body_copy(struct few_body *to, const struct few_body *from);
/* Makes the time zero again, and forgets which two were closest. */
void few_body_restart(struct few_body *f);
/* Where all are, by their numbers. */
void few_body_read(const struct few_body *f, double (*x)[3], double (*v)[3]);

/* few_body_chain.c: the order of the chain, and how much its pairs are slowed. */

/* The order of n bodies: the nearest two, then always that which is nearest to an end. */
void few_body_find_chain(int n, const double (*x)[3], int order[]);
/* Makes a new chain where bodies have come nearer to others. */
void few_body_renew_chain(struct few_body *f);
/* Slows pairs down by kappa[who] of both bodies; and reads that, 1 where it is not so. */
void few_body_set_slow(struct few_body *f, const double kappa[]);
void few_body_get_slow(const struct few_body *f, double kappa[]);
/* Slows pairs down as their perturbations are now. */
void few_body_slow_pairs(struct few_body *f, const struct few_setting *s);
/* The tide on a pair over the pull of its bodies on each other, where they are `apart`; *lasts: the
 * shortest time in which what is outside it moves by its distance. */
double few_body_tide(const struct few_body *f, const struct few_setting *s, int pair, double apart,
                     double *lasts);

/* few_body_pair.c: two bodies on which little else acts. */

/* Whether that is so: no chain is needed. */
int few_body_is_pair(const struct few_body *f, const struct few_setting *s);
int few_body_move_pair(struct few_body *f, const struct few_setting *s, double time);
