/* jmemory.h - the j particles of a session as the caller wrote them, and what is
 * known about them: which slots changed, where each index is, and their scale.
 *
 * Writing a slot only copies it and sets a bit; the rest is brought up to date by
 * jmemory_settle, once per force call and only for the slots that changed.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/at_rest.h"
#include "core/lost.h"
#include "core/origin.h"
#include "shared/particle.h"
#include "core/scale.h"

/* What a slot contributed to the index map and the histograms: exponents from the origin. */
struct slot_note {
    int32_t index;
    int16_t x, mass, v;
    int16_t state;
};

/* Count of slots by exponent (frexp's, shifted to start at 0); `highest` bounds the
 * largest occupied one from above. */
enum { HISTOGRAM_ZERO = 1100, HISTOGRAM_SIZE = 2200 };
struct histogram {
    int64_t total;
    int highest;
    int32_t count[HISTOGRAM_SIZE];
};

/* A particle on its way into its slot. */
struct queued {
    struct jparticle body;
    double k18[4];
    int32_t address;
};

/* Addresses of a chunk and a block: a bit, and a word of `stale`. */
enum { CHUNK = 16, BLOCK = 1024, BLOCK_CHUNKS = BLOCK / CHUNK };

/* Scattered writes wait here while their slots come into the cache: the session's lock is a
 * memory barrier, so that else every call would wait for the last one's cache miss. */
enum { QUEUE = 16 };
/* Which slots have changed since a mirror (a copy on a device) was brought up to date: those of the
 * list, and first .. end - 1; `overflow` if there were more than the list holds. */
enum { DIRTY_SLOTS = 65536, MOST_MIRRORS = 16 };
struct dirty_list {
    int32_t *slot;
    int64_t count;
    int overflow;
    int32_t first, end;
};

struct jmemory {
    struct queued queue[QUEUE];
    int queued;
    int32_t last;                /* address written last */
    struct at_rest rest;         /* what is not in its slots */
    int64_t capacity;            /* slots, a multiple of BLOCK */
    struct jparticle *body;      /* [capacity] */
    double (*k18)[4];            /* [capacity], or NULL while every k18 is zero */
    int64_t bad;                 /* slots in state SLOT_BAD or SLOT_LOST */
    struct lost lost[MOST_LOST]; /* beyond the slots */
    int nlost;

    uint64_t *changed;                 /* bit per slot: written since the last settle */
    int64_t changed_low, changed_high; /* range of words that may have bits */
    uint64_t *stale;                   /* word per block, bit per chunk: to be packed again */

    struct dirty_list dirty[MOST_MIRRORS];
    _Atomic int mirrors; /* one more than the highest; several may begin at once */

    struct slot_note *note; /* [capacity] */
    int unmapped;           /* the index map has to be made anew, before anybody looks there */
    int32_t *head;          /* index map: address + 1 of the first slot of a bucket, 0 for none */
    int32_t *next, *previous;
    uint32_t head_mask;
    int64_t counted; /* slots below this address are in the histograms */
    int64_t noted;   /* below this address, at least that, notes are from the origin that is */
    struct histogram x, mass, v;

    double origin[3], drift[3]; /* chosen from the sample, */
    int inner;                  /* half of which is within 2^inner of the origin */
    int32_t sample[ORIGIN_SAMPLE];
    int samples, sample_moved;
    int64_t sampled; /* addresses below this */
};

void jmemory_free(struct jmemory *j);

/* Whether what was written last is among what is at rest. */
static inline int jmemory_last_rests(const struct jmemory *j)
{
    return j->last >= j->rest.first && j->last < j->rest.end;
}

/* Copies one particle into a slot; k18, j6, a2, v may be NULL for zeros. 0, or an error
 * code: address, memory (it is then lost), or NaN (the slot is then bad). */
int jmemory_set(struct jmemory *j, int address, int index, double time, double mass,
                const double *k18, const double *j6, const double *a2, const double *v,
                const double *x);

/* Reserves space for addresses up to one, and for k18 if requested; 0 or G6X_E_MEMORY, and then all
 * is as before. */
int jmemory_reserve(struct jmemory *j, int64_t address, int k18);
/* Notes that particles first .. end - 1 were sent and are not here: no force may use these
 * addresses before they are written again. */
void jmemory_lose(struct jmemory *j, int64_t first, int64_t end);
/* Writes what is queued or at rest to its slots; before anybody looks at them. jmemory_settle
 * leaves what is at rest where it is. */
void jmemory_commit(struct jmemory *j);
void jmemory_commit_queue(struct jmemory *j);
/* Writes a sound particle, without k18, over a settled one of the same index, and settles it: much
 * less work than the two. 0 if there is no such one. */
int jmemory_move(struct jmemory *j, int64_t address, const struct jparticle *p);
/* Keeps a mirror's list of dirty slots from now on; 0 or G6X_E_MEMORY. */
int jmemory_follow(struct jmemory *j, int mirror);
/* Settles the changed slots, and moves the histograms and the origin to the slots below nj. It
 * needs the library's floating-point environment (fpenv.h). */
void jmemory_settle(struct jmemory *j, int64_t nj);
/* Marks all slots, or the chunks of two of them, as to be packed. */
void jmemory_stale_all(struct jmemory *j);
void jmemory_stale_slots(struct jmemory *j, int64_t first, int64_t last);

/* Scale of the settled slots below nj. */
struct scale jmemory_scale(const struct jmemory *j);
/* Whether half of them are so close together that most of their pairs are close in the grid of that
 * scale. */
int jmemory_is_crowded(const struct jmemory *j);
/* Lowest bad or lost address below nj, or -1; *state is SLOT_BAD or SLOT_LOST. */
int64_t jmemory_first_bad(struct jmemory *j, int64_t nj, int *state);
/* Brings the index map up to date; before jmemory_find, and after jmemory_settle. */
void jmemory_map(struct jmemory *j);
/* Finds the addresses below nj that carry an index: their number, the first `max`
 * of them in address[]. */
int jmemory_find(const struct jmemory *j, int32_t index, int64_t nj, int max, int32_t *address);

/* A sound particle as it was written, in its slot or at rest; 0 if there is none at an address. */
struct jmemory_seen {
    const double *x, *v;
    double time;
    int32_t index;
};
int jmemory_look(const struct jmemory *j, int64_t address, struct jmemory_seen *seen);
/* x and v of a slot predicted to a time (3 doubles each), as the kernels predict. */
void jmemory_predict(const struct jmemory *j, int64_t address, double time, int snap, double x[3],
                     double v[3]);
