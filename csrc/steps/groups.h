/* groups.h - subsystems of a Hermite integration: bodies whose pull on each other is far above the
 * tide of all others. The first member of a group carries its centre of mass, in the arrays of the
 * integration and as j particle; the others have no mass there and are in no block. What goes on
 * inside is of few_body.h. Bodies near a group see its members, and it feels them by these; those
 * farther away see the centre of mass, in both directions. */
#pragma once

#include <stddef.h>

#include "core/field_time.h"
#include "shared/hermite_step.h"
#include "steps/few_body.h"

/* Perturbations: the tide of what is outside over the pull of two parts, at their farthest. */
#define GROUPS_POINT 1e-6  /* below: bodies are as points to each other */
#define GROUPS_KICKED 1e-3 /* below: a pair moves on ellipses with kicks between */
#define GROUPS_PASS 1e-5   /* below, where they are now: two that meet are a group; */
#define GROUPS_PARTED 1e-4 /* above: it is none any more */
#define GROUPS_FORM 1e-3   /* below: a bound pair, of bodies or groups, is a group; */
#define GROUPS_BREAK 2e-3  /* above: it takes in what disturbs it, or a part leaves; */
#define GROUPS_TORN 0.1    /* above: it is none any more */

/* The time of members that carry nothing. */
#define GROUPS_NEVER 0x1p1000

/* The two parts that a group would split into: the chain's first bodies, and the others. */
struct group_parts {
    int first;
    double a, e, r, rv; /* of their motion: elements, distance, and its rate times it */
    double speed;
    double size;  /* the largest distance that they come to, if they are bound; that now, if not */
    double inner; /* the larger of the tides of one on the inside of the other */
};

struct group {
    int n, who[CHAIN_MOST]; /* ascending */
    double mass;
    double depth; /* of the potential at its centre */
    double reach; /* a body of mass m sees members inside the cube root of this times m */
    double tide;  /* at the end of the last step, over the pull of the mass, at a distance of 1 */
    struct group_parts parts;
    double mean[6]; /* of bodies: products of places, xx, yy, zz, xy, xz, yz, where the parts have
                     * their mean over an orbit */
    struct few_body now;  /* at the time of the carrier, about the centre of mass */
    struct few_body then; /* at `end`, the end of the block under way */
    double end;
    double seen_at; /* the time of the members' places below; NaN: none */
    double x[CHAIN_MOST][3], v[CHAIN_MOST][3];
    /* Carriers and single bodies that may come near, ascending, and until when that holds. */
    int *near, near_count;
    double near_until, near_reach, near_steps;
};

struct groups {
    int n, count, threads;
    const struct g6x_field *field; /* that bodies are in, or NULL */
    struct hermite_work work;      /* that it does, of carriers, if that is asked for */
    const double *own;             /* [n] masses of the bodies */
    double *mass;                  /* [n] as integrated: 0 for members, the group's for the first */
    int *of;                       /* [n] number of the group, or -1 */
    int *partner;         /* [n] of a block's rows: with whom a group could be made, or -1 */
    struct group **group; /* [n / 2] */
    int *carrier;         /* [n / 2] of the groups */
    double *reach;  /* [n / 2] a body of mass m sees members inside the cube root of this times m */
    double *sight2; /* [n / 2] the square of the distance from which on none sees members */
    double (*x)[3], (*v)[3];         /* of groups, or of what is near one, at a time */
    double heaviest;                 /* mass that a body or group has had */
    double lightest;                 /* mass of a body that is not zero */
    struct chain_perturber *outside; /* of a group */
    int capacity;                    /* of x, v and outside */
    double (*sums)[8];      /* [n / GROUPS_PIECE + 1]: what is found of so many bodies at a time */
    struct group *spare[2]; /* for the next that are made */
    long long failed;
    int looking;
    int rounds;             /* left, in which groups of bodies as they are at first are made */
    unsigned char *crowded; /* [n] of a block's rows: it may be in a clump with its nearest */
    unsigned char *changed; /* [n] to be written as j particle anew */
};

enum { GROUPS_ROUNDS = 8, GROUPS_CLUMP = 6 };

/* Bodies that a thread looks at, at a time: sums over all are those of these, one after the other,
 * on any number of threads. */
enum { GROUPS_PIECE = 1024, GROUPS_TILE = 64 };

/* A block of rows: particles, the nearest of each, and their predicted places. */
struct groups_block {
    int ni;
    const int *address, *nearest;
    double time;
    double (*x)[3], (*v)[3], (*acc)[3], (*jerk)[3];
    const double *pot;
};

/* NULL: there is no memory. `own` stays the caller's. */
struct groups *groups_new(int n, const double own[]);
void groups_free(struct groups *g);
/* Whether the arrays are those that the groups were made in, with the masses of then. */
int groups_fit(const struct groups *g, const struct hermite_state *s);
/* x, v, acc, jerk: [n] with what carries something at a time that no step ends before. Writes those
 * of all bodies. acc and jerk may be NULL. */
void groups_unfold(struct groups *g, const struct hermite_state *s, double time, double (*x)[3],
                   double (*v)[3], double (*acc)[3], double (*jerk)[3]);

/* Moves the inside of the block's groups to its end, and notes when two come to a distance. 0, or
 * G6X_E_MEMORY. */
int groups_predict(struct groups *g, const struct hermite_state *s, const struct groups_block *b,
                   double closer);
/* Begins or ends a look between two blocks, which a block that is under way has no part in. */
void groups_look(struct groups *g, int looking);
/* Adds to forces what members do beyond their centre of mass. */
void groups_pull(struct groups *g, const struct hermite_state *s, const struct groups_block *b);
/* Finds with whom rows make a group when the block has been moved. */
void groups_find_partners(struct groups *g, const struct hermite_state *s,
                          const struct groups_block *b);
/* When the block has been moved: ends steps of its groups, and makes, joins and parts groups. Marks
 * in `changed` what is to be written as j particle anew; returns whether anything is. */
int groups_end(struct groups *g, const struct hermite_state *s, const struct hermite_rule *rule,
               const struct groups_block *b);

/* All groups as numbers: how many, and these. */
int64_t groups_state_size(const struct groups *g);
void groups_save(const struct groups *g, double to[]);
/* Makes the groups of such numbers, where there are none. 0, G6X_E_MEMORY, or G6X_E_ARGUMENT: they
 * are none. */
int groups_restore(struct groups *g, int64_t size, const double from[]);

/* ---- for the files groups*.c ----------------------------------------------------------------- */

static inline struct group *groups_of(const struct groups *g, int p)
{
    return g->of[p] < 0 ? NULL : g->group[g->of[p]];
}

/* What stands for p, or -1. */
static inline int groups_carrier(const struct groups *g, int p)
{
    return p < 0 || g->of[p] < 0 ? p : g->group[g->of[p]]->who[0];
}

/* Whether p stands for itself or its group. */
static inline int groups_carries(const struct groups *g, int p)
{
    return g->of[p] < 0 || g->group[g->of[p]]->who[0] == p;
}

/* Where a particle is at a time, and its acceleration. */
struct place {
    double x[3], v[3], a[3];
};

/* The field at a time; whether there is one. */
static inline int groups_field_at(const struct groups *g, double time, struct field *f)
{
    return !field_time_at(g->field, time, f) && !field_is_none(f);
}

/* About where a particle is, and how fast, at a time. */
static inline void groups_about(const struct hermite_state *s, int p, double time, double x[3],
                                double v[3])
{
    const double dt = time - s->t[p];
    for (int k = 0; k < 3; k++) {
        x[k] = s->x[p][k] + dt * (s->v[p][k] + 0.5 * dt * s->a[p][k]);
        v[k] = s->v[p][k] + dt * s->a[p][k];
    }
}

/* Of the parts of a group, zero if they are not bound. */
static inline double groups_period(const struct group *q)
{
    const double a = q->parts.a;
    return a > 0.0 ? KEPLER_TWO_PI * a * sqrt(a / q->mass) : 0.0;
}

/* The cube of the distance up to which what p carries is seen by its members and feels the other: a
 * light body, too, sees what a group does to its equal. 0: p is a body. */
static inline double groups_reach(const struct groups *g, int p, double other)
{
    return g->of[p] < 0 ? 0.0 : g->reach[g->of[p]] * fmax(g->mass[p], other);
}

static inline int groups_within(double reach, double r2) { return r2 * r2 * r2 < reach * reach; }

/* Makes space for places of so many. 0, or G6X_E_MEMORY. */
int groups_reserve(struct groups *g, int count);
/* Members about their centre at a time of a step that begins at `start`. */
void groups_see(struct group *q, double start, double time, int looking);
/* The force of all others on a body at x, v. */
void groups_pull_all(struct groups *g, const struct hermite_state *s, int own, double time,
                     const double x[3], const double v[3], double acc[3], double jerk[3]);
/* The bodies, two of which are in who, that are as one to all others: how many, or 0. Several meet
 * there, and no two of them are a group. */
int groups_clump(struct groups *g, const struct hermite_state *s, double time, int who[]);
/* Whether more light bodies are about the heavier of two, within some times a distance, than a
 * group is to have; 0 if neither is light. */
int groups_many_planets(const struct groups *g, const struct hermite_state *s, double time, int p,
                        int q, double far);
/* That of a group, found at once in most cases by what is near it. */
int groups_disturber(const struct groups *g, const struct hermite_state *s, double time,
                     const struct group *own);
/* Puts p into the lists of what may come near groups, if it belongs there now, or takes it out. */
void groups_list(struct groups *g, const struct hermite_state *s, int p, double time);
/* Finds the parts of a group, and how far it reaches. */
void groups_find_parts(struct group *q);
/* Notes of a group what is used of all. */
void groups_note(struct groups *g, int number);
