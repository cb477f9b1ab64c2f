/* hermite.h - Hermite integrations, block after block: of particles of the host, and the loop of
 * those of a device (hermite_device.h). Sessions are locked. */
#pragma once

#include "session/session.h"

struct g6x_hermite;
struct g6x_evolution;

/* What a block is made of, where the particles are. The force on a block is summed in parts of so
 * many pairs, between which the caller may look after signals, but of some rows at least. */
struct session_hermite_parts {
    int64_t pairs_at_once;
    int most_rows;
    /* Blocks in a way of its own, as many as there can be: 0, 1 if the time is over, 2 if the next
     * one has to be made by parts, or a code. NULL: there is no such way. */
    int (*run)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
               void *stream, double until, long long last);
    /* The next block to h->address and e->next, and its number of particles, or a code. */
    int (*next)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                void *stream);
    int (*predict)(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                   void *stream);
    int (*sum)(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
               int first, int count, void *stream);
    /* Corrects the block, moves it if `moves`, and writes it: how many want a smaller step than
     * there is, or a code. */
    int (*end)(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
               int moves, void *stream);
};

/* See g6x_hermite_evolve: 0 at the end, 1 if it is to be called again, or an error code. */
int session_hermite_evolve(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e);
int session_hermite_loop(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                         const struct session_hermite_parts *parts, void *stream);
/* Whether the loop is to return: after block number `last`, or as the caller's flag says. */
int session_hermite_is_over(const struct g6x_evolution *e, long long last);
/* A block of e->ni particles has been made. */
void session_hermite_count(struct g6x_evolution *e, int clamped);
/* What is wrong with an integration, also one of the device: 0 or an error code. */
int session_hermite_check(struct session *s, const char *call, const struct g6x_hermite *h);
int session_hermite_check_evolution(struct session *s, const char *call,
                                    const struct g6x_hermite *h, const struct g6x_evolution *e);
/* The error of a particle that moves to where no j particle can be, and of one whose step has no
 * length. */
#define HERMITE_UNFIT                                                                              \
    "block step: the particle in row %d of the block moves beyond what a double holds, or its "    \
    "mass "                                                                                        \
    "is NaN or Inf"
int session_hermite_unfit(struct session *s, int row);
int session_hermite_stuck(struct session *s, int particle);
