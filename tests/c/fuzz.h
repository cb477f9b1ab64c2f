/* fuzz.h - random call sequences against a model of the contract. fuzz.c runs sequences and
 * reports; the calls of fuzz_calls.h, valid and not, are made in fuzz_board.c, fuzz_particles.c,
 * fuzz_forces.c, fuzz_lists.c, fuzz_block.c, fuzz_tree.c and fuzz_walks.c; fuzz_model.c, with
 * fuzz_scale.c, says what must come of them, and fuzz_rows.c compares. The model knows g6lib.h and
 * docs/, none of csrc/. */
#pragma once

#include "g6lib.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BODY = 64, MAX_NI = 64, MAX_CLUSTER = 40, NSETTING = 10, NISA = G6X_ISA_NEON + 1 };
#define ID_ALL ((int64_t)1 << 40)  /* of the _all forms */
#define ID_NULL ((int64_t)1 << 41) /* a null pointer was given */

/* ---- fuzz.c: chance and complaint ----------------------------------------------------- */

uint64_t any_bits(void);
int below(int n);                                         /* 0 .. n - 1 */
static inline int chance(int n) { return below(n) == 0; } /* once in n */

extern int tracing;         /* calls are printed */
extern const char *calling; /* name of the call under way */
extern const char *backend; /* GRAPE6_BACKEND */
extern int by_tree;         /* ... has a tree, whose angle is next to nothing */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The library broke the contract: prints what, the sequence, its calls; ends with 1. */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define REQUIRE(what)                                                                              \
    do {                                                                                           \
        if (!(what)) broken("line %d: %s", __LINE__, #what);                                       \
    } while (0)

/* A number of bytes whose end is the end of an allocation; slot: one of 32 that may be in use. */
void *tail_of(int slot, size_t bytes);

/* Values as hosts send them; wild sequences have extremes too. */
extern int wild;
double any_coordinate(void), any_mass(void), any_time(void), any_square(void);
int any_index(void);

/* ---- fuzz_model.c: what must happen ---------------------------------------------------- */

/* A set of return codes: bit -c, and bit 63 for 1. */
typedef uint64_t codes;
#define CODE(c) ((codes)1 << ((c) == 1 ? 63 : -(c)))

struct body {
    int address, index, bad;
    double mass, t, k18[3], j6[3], a2[3], v[3], x[3];
};

struct target {
    int index, invalid;
    double x[3], v[3], eps2, h2;
};

/* A j particle as a force call sees it; ex, ev: how far off predictions may be. */
struct source {
    int address, index, plain; /* plain: on a coarse lattice, and not extrapolated */
    double mass, x[3], v[3], ex, ev;
};

struct force_model {
    int made, ni, nj;
    codes code;                  /* of the first half; CODE(0) if it went well */
    int rows, nearest, distance; /* there, since a last half asked for them */
    int written;                 /* j particles were written since, perhaps */
    int unverified;     /* a write may have completed it, and the verification found it wrong */
    int zero_distances; /* 0 none, 1 perhaps, 2 some */
    int settings[NSETTING], scale[3];
    int nsource, overfull;
    struct source source[MAX_BODY];
    struct target target[MAX_NI];
};

enum state { UNKNOWN, CLOSED, IMPLICIT, EXPLICIT };

struct cluster {
    int64_t id;
    enum state state;
    double time;
    int settings[NSETTING]; /* by key, 1 .. 9 */
    double verify, theta;
    int tree[2]; /* method and order */
    int nbody;
    struct body body[MAX_BODY]; /* by address */
    struct force_model call;
    int nip, njp;
    struct target pipe[MAX_NI];
    codes fault; /* what g6x_last_error may return */
    int warnings_least, warnings_most;
};

struct model {
    int opened;             /* clusters in state EXPLICIT */
    int settings[NSETTING]; /* first values */
    double verify, theta;
    int tree[2];
    int sort_mode, npipes, isa[NISA]; /* isa: which of G6X_ISA_* the machine has */
    codes fault;                      /* of the process */
    int warnings_least, warnings_most;
    struct cluster *recent;
    int nclusters;
    struct cluster cluster[MAX_CLUSTER];
};
extern struct model model;

void model_reset(void);
void model_open(int64_t id);
void model_close(int64_t id);
struct cluster *model_find(int64_t id);
/* The cluster that a call with this id works on, opened if need be; or NULL, and the codes that
 * the call must return. */
struct cluster *model_take(int64_t id, codes *refusal);
/* Checks a call's code, and notes the fault with the cluster (NULL: the process). */
void model_returned(struct cluster *c, codes allowed, int code);
/* ... for a code that was reported before, or by a call that knew of no cluster. */
void model_returned_again(struct cluster *c, codes allowed, int code);

codes model_write(struct cluster *c, const struct body *b);
void model_written(struct cluster *c);
int model_verify_may_fail(const struct cluster *c);
/* Warnings of the sum that has just been done, if it has. */
void note_coincidences(struct cluster *c);
/* A j particle at the time set; 0 if there is none. */
int model_predict(const struct cluster *c, int64_t address, int snap, double time,
                  struct source *s);
/* fuzz_scale.c: the exponents that a call with nj takes; whether it is done in double. */
int model_scale(const struct cluster *c, int nj, int scale[3]);

void model_first(struct cluster *c, int nj, int ni);
struct row_model {
    double acc[3], jerk[3], pot;
    double tolerance[3]; /* of acc, jerk and pot */
    int fits[3];         /* 1 yes, 0 no, -1 perhaps */
    int anything;        /* the numbers cannot be foretold */
    int verify_may_fail;
    int near[MAX_BODY], nnear; /* sources that may be nearest, if more than none */
    double distance, distance_error;
    int zero_distances; /* 0 none, 1 perhaps, 2 some */
};
void model_row(const struct cluster *c, int i, struct row_model *row);
/* Lists of target i: indices that must be in it, and that may be, each ascending. */
struct list_model {
    int nmust, nmay, must[MAX_BODY], may[MAX_BODY];
};
void model_list(const struct cluster *c, int i, int with_self, struct list_model *list);
