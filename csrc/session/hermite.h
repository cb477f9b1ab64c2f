/* hermite.h - Hermite integration with block steps, and its loop: for particles on the host, or in
 * the memory of the session's device. Sessions are locked; functions return an error code, or what
 * g6lib.h says. */
#pragma once

#include "core/hermite.h"
#include "session/session.h"

enum { LEAST_ROWS = 64 }; /* of a force call */

/* What `run` below returns where the next block needs the other operations. */
enum { BLOCK_BY_OPERATIONS = 1 << 16 };

/* The operations on a block, for particles on the host or on the device. */
struct session_hermite_operations {
    /* Pairs per force call, at least LEAST_ROWS rows: after each the caller may handle signals. */
    int64_t pairs_at_once;
    /* Rows per force call at most. */
    int most_rows;
    /* Computes as many blocks as possible in a faster way; NULL if there is none. G6X_HERMITE_DONE
     * or _UNFINISHED, BLOCK_BY_OPERATIONS, or a code. */
    int (*run)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
               double until, long long last);
    /* Writes the next block to h->address, its time to e->next. Returns its length, or a code. */
    int (*next)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e);
    int (*predict)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e);
    int (*sum)(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
               int first, int count);
    /* The same with shares: sums a part, to be gathered by the caller; then merges the parts of
     * all. NULL: not on this side. */
    int (*sum_share)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                     int first, int count);
    int (*merge)(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
                 int first, int count);
    /* Sets h->close and h->left of the block. Returns whether any is set, or a code. */
    int (*watch)(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e);
    /* Corrects the block, moves it if `moves`, and writes it as j particles. Returns how many
     * particles need a step smaller than dtmin, or a code. */
    int (*end)(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
               int moves);
};

/* See g6x_hermite_evolve: an outcome of g6lib.h, or an error code. */
int session_hermite_evolve(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e);
int session_hermite_loop(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                         const struct session_hermite_operations *ops);
/* See g6x_subsystems_put. */
int session_hermite_put_subsystems(struct session *s, const struct g6x_hermite *h, int count,
                                   const double state[]);
/* Whether the sum on a block of ni particles is shared: h->part. */
int session_hermite_is_shared(const struct g6x_hermite *h, int ni);
/* Whether particles of a block are watched. */
static inline int session_hermite_watches(const struct g6x_evolution *e)
{
    return e->closer > 0.0 || e->farther > 0.0;
}
/* The softening of hard pairs whose steps are corrected twice; NaN: none is. */
static inline double session_hermite_pairs(const struct g6x_evolution *e)
{
    return e->passes > 1 ? NAN : e->eps2;
}
/* The roundoff of force calls with the j particles as they are. */
struct hermite_noise session_hermite_noise(struct session *s, const struct g6x_hermite *h);
/* The field at `time`, or the error of a time outside the orbit of its frame. */
int session_hermite_field(struct session *s, const struct g6x_hermite *h, double time,
                          struct field *f);
/* Whether the loop must return: after block number `last`, or because the caller's flag is set. */
int session_hermite_is_over(const struct g6x_evolution *e, long long last);
/* Counts a completed block of e->ni particles. */
void session_hermite_count(struct g6x_evolution *e, int clamped);
/* Checks an integration on the host or the device: 0 or an error code. */
int session_hermite_check(struct session *s, const char *call, const struct g6x_hermite *h);
int session_hermite_check_evolution(struct session *s, const char *call,
                                    const struct g6x_hermite *h, const struct g6x_evolution *e);
/* The error of a particle that moves beyond what a j particle can hold. */
#define HERMITE_UNFIT                                                                              \
    "block step: the particle in row %d of the block moves beyond what a double holds (as in "     \
    "the centre of a point mass of a field), or its mass "                                         \
    "is NaN or Inf"
int session_hermite_unfit(struct session *s, int row);
/* The error of a nearest neighbour that is none of the particles. */
int session_hermite_unknown(struct session *s);
/* The error of a particle whose step has no length. */
int session_hermite_stuck(struct session *s, int particle);

/* ---- hermite_device.c: the same in the memory of the device */
int session_hermite_device_next(struct session *s, const struct g6x_hermite *h, double *time,
                                void *stream);
int session_hermite_device_predict(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, void *stream);
int session_hermite_device_evolve(struct session *s, const struct g6x_hermite *h,
                                  struct g6x_evolution *e, void *stream);
int session_hermite_device_correct(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, int what, void *stream);

/* ---- subsystems.c: those of an integration on the host (steps/groups.h), in its session */

/* Whether *h has subsystems; then *with is *h with masses of centres of mass. 0, or an error. */
int session_subsystems_begin(struct session *s, const struct g6x_hermite *h,
                             struct g6x_hermite *with);
/* See g6x_hermite_pull and g6x_hermite_unfold. */
int session_subsystems_pull(struct session *s, const struct g6x_hermite *h, int ni, double time);
int session_subsystems_unfold(struct session *s, const struct g6x_hermite *h, double time,
                              double (*x)[3], double (*v)[3], double (*acc)[3], double (*jerk)[3]);
/* See g6x_subsystems, and those of its name. */
int session_subsystems_list(struct session *s, const struct g6x_hermite *h, int carrier[],
                            double (*elements)[6]);
int session_subsystems_get(struct session *s, const struct g6x_hermite *h, int most,
                           double state[]);
int session_subsystems_put(struct session *s, const struct g6x_hermite *h, int count,
                           const double state[]);
