/* jmemory.h - the j particles of a session as the caller wrote them, and what is
 * known about them: which slots changed, where each index is, and their scale.
 *
 * Writing a slot only copies the particle and sets a bit. jmemory_settle updates the rest, once per
 * force call and only for the slots that changed.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/at_rest.h"
#include "core/lost.h"
#include "core/origin.h"
#include "shared/package.h"
#include "shared/particle.h"
#include "core/scale.h"

/* What a slot contributes to the index map and the histograms. Exponents are of x and v relative to
 * the origin and drift. */
struct slot_note {
    int32_t index;
    int16_t x, mass, v;
    int16_t state;
};

/* Number of slots by exponent (of frexp, shifted to start at 0). `highest` is an upper bound of the
 * largest occupied exponent. */
enum { HISTOGRAM_ZERO = 1100, HISTOGRAM_SIZE = 2200 };
struct histogram {
    int64_t total;
    int highest;
    int32_t count[HISTOGRAM_SIZE];
};

/* A particle waiting to be copied to its slot. */
struct queued {
    struct jparticle body;
    double k18[4];
    int32_t address;
};

/* Addresses of a chunk (a bit of `stale`) and of a block (a word of `stale`). */
enum { CHUNK = 16, BLOCK_CHUNKS = BLOCK / CHUNK };

/* Scattered writes are queued while their slots are loaded into the cache. Without the queue every
 * call would wait for the cache miss of the previous one, since the session's lock is a memory
 * barrier. */
enum { QUEUE = 16 };
/* Slots changed since the last update of a mirror (a copy on a device): those in the list, and
 * first .. end - 1. `overflow` is set if there were more than the list holds. */
enum { DIRTY_SLOTS = 65536, MOST_MIRRORS = 32 };
struct dirty_list {
    int32_t *slot;
    int64_t count;
    int overflow;
    int32_t first, end;
};

/* Packings of the j particles on the CPU: of mode auto, that of its fine rows is the second. */
enum { PACKINGS = 2 };

struct jmemory {
    struct queued queue[QUEUE];
    int queued;
    int32_t last;                /* address written last */
    struct at_rest rest;         /* particles that are not in their slots */
    int64_t capacity;            /* slots, a multiple of BLOCK */
    struct jparticle *body;      /* [capacity] */
    double (*k18)[4];            /* [capacity], or NULL while every k18 is zero */
    int64_t bad;                 /* slots in state SLOT_BAD or SLOT_LOST */
    struct lost lost[MOST_LOST]; /* addresses beyond the capacity */
    int nlost;

    uint64_t *changed;       /* bit per slot: written since the last settle */
    uint64_t *changed_words; /* bit per word of `changed`: not zero */
    int64_t changes;         /* bits set in `changed` */
    /* Of each packing on the CPU a word per block, a bit per chunk: must be packed again. */
    uint64_t *stale[PACKINGS];

    struct dirty_list dirty[MOST_MIRRORS];
    _Atomic int mirrors; /* highest mirror + 1; several may be added at once */

    struct slot_note *note; /* [capacity] */
    int unmapped;           /* the index map must be rebuilt before use */
    int32_t *head;          /* index map: address + 1 of the first slot of a bucket; 0: none */
    int32_t *next, *previous;
    uint32_t head_mask;
    int64_t counted; /* slots below this address are in the histograms */
    int64_t noted;   /* >= counted: notes below this address are relative to the current origin */
    struct histogram x, mass, v;

    double origin[3], drift[3]; /* chosen from the sample */
    int inner;                  /* half of the sample is within 2^inner of the origin */
    int32_t sample[ORIGIN_SAMPLE];
    int samples, sample_moved;
    double columns[6][ORIGIN_COLUMN]; /* x and v of the sample */
    struct origin_hint origin_hint, drift_hint;
    int64_t sampled; /* the sample is of addresses below this */

    /* Of a share of more particles (jmemory_share.c): the origin is that of a sample of all, the
     * scale that of the counts of all. */
    int is_share;
    int64_t share_all;     /* their number */
    int share_code;        /* not 0: the exchange of sample and counts failed with it */
    struct histogram *all; /* x, mass, v; NULL: its own */
};

void jmemory_free(struct jmemory *j);

/* Whether the particle written last is in `rest`. */
static inline int jmemory_last_rests(const struct jmemory *j)
{
    return j->last >= j->rest.first && j->last < j->rest.end;
}

/* Stores a particle in `rest`; 0 if it has a NaN or Inf. */
static inline int jmemory_store_at_rest(struct jmemory *j, int32_t address, int index, double mass,
                                        const double *x)
{
    const bit_pair exponents = store_four(j->rest.xm[address], x, mass);
    if ((exponents[0] | exponents[1]) >> 63) return 0;
    j->rest.index[address] = index;
    at_rest_wrote(&j->rest, address, address + 1);
    j->last = address;
    return 1;
}

/* The same, if it is the next particle of a list at rest; otherwise jmemory_set is needed. */
static inline int jmemory_continue_at_rest(struct jmemory *j, int32_t address, int index,
                                           double time, double mass, const double *k18,
                                           const double *j6, const double *a2, const double *v,
                                           const double *x)
{
    return address == j->last + 1 && jmemory_last_rests(j) && address < j->rest.capacity &&
           bits_of(time) == bits_of(j->rest.time) && is_at_rest(k18, j6, a2, v) &&
           jmemory_store_at_rest(j, address, index, mass, x);
}

/* Whether the first nj particles are all in `rest`: lists of a treecode are. */
static inline int jmemory_all_rest(const struct jmemory *j, int64_t nj)
{
    return j->rest.first == 0 && j->rest.end >= nj;
}

/* Copies one particle into a slot; k18, j6, a2, v may be NULL for zeros. Returns 0 or an error
 * code: address, memory (the particle is then lost), or NaN (the slot is then bad). */
int jmemory_set(struct jmemory *j, int address, int index, double time, double mass,
                const double *k18, const double *j6, const double *a2, const double *v,
                const double *x);

/* Reserves capacity up to and including an address, and for k18 if requested. Returns 0, or
 * G6X_E_MEMORY and changes nothing. */
int jmemory_reserve(struct jmemory *j, int64_t address, int k18);
/* Records that particles first .. end - 1 were sent but could not be stored. No force may use these
 * addresses until they are written again. */
void jmemory_lose(struct jmemory *j, int64_t first, int64_t end);
/* Writes queued particles and particles at rest to their slots. Call it before reading slots.
 * jmemory_settle does not move particles at rest. */
void jmemory_commit(struct jmemory *j);
/* Writes queued particles only. */
void jmemory_commit_queue(struct jmemory *j);
/* Writes a particle without NaN, Inf or k18 over a settled one of the same index, and settles it:
 * faster than jmemory_set and jmemory_settle. Returns 0 if there is no such settled particle. */
int jmemory_move(struct jmemory *j, int64_t address, const struct jparticle *p);
/* The same by several threads at once, at different addresses, after jmemory_commit: 0, and nothing
 * is done, if the particle's exponents change. jmemory_rewritten comes after it, by one thread. */
int jmemory_rewrite(struct jmemory *j, int64_t address, const struct jparticle *p);
void jmemory_rewritten(struct jmemory *j, int64_t address);
/* Starts the dirty list of a mirror; returns 0 or G6X_E_MEMORY. */
int jmemory_follow(struct jmemory *j, int mirror);
/* Settles the changed slots, many of them with several threads, and updates the histograms and the
 * origin to the slots below nj. Needs the library's floating-point environment (fpenv.h). */
void jmemory_settle(struct jmemory *j, int64_t nj, int threads);
/* Marks all slots of one packing, or the chunks of two slots, to be packed again. */
void jmemory_stale_all(struct jmemory *j, int packing);
void jmemory_stale_slots(struct jmemory *j, int64_t first, int64_t last);
static inline void jmemory_stale_chunk(struct jmemory *j, int64_t chunk)
{
    const uint64_t bit = (uint64_t)1 << chunk % BLOCK_CHUNKS;
    for (int k = 0; k < PACKINGS; k++) j->stale[k][chunk / BLOCK_CHUNKS] |= bit;
}

/* Scale of the settled slots below nj. */
struct scale jmemory_scale(const struct jmemory *j);
/* Whether half of them are so dense that most of their pairs are close on the grid of that scale.
 */
int jmemory_is_crowded(const struct jmemory *j);
/* ---- a share of more particles, of which other sessions have the others ---- */

enum {
    SHARE_SAMPLE = 7, /* words of a particle: 1 if it is here, and the bits of x and v */
    SHARE_SAMPLE_WORDS = SHARE_SAMPLE * ORIGIN_SAMPLE,
    SHARE_COUNT_WORDS = 3 * HISTOGRAM_SIZE
};
/* The particles of the sample of nj that are in slots here; slot a is number first + a of all. The
 * words of all shares are to be added. */
void jmemory_share_sample(const struct jmemory *j, int64_t nj, int64_t first, long long *words);
/* Takes the sum: the origin is that of this sample until the next one. */
void jmemory_share_set_sample(struct jmemory *j, const long long *words);
/* Numbers of settled slots by exponents of x, mass and v. The words of all shares are to be added.
 */
void jmemory_share_counts(const struct jmemory *j, long long *words);
/* Takes the sum: the scale is that of these counts until the next ones. 0 or G6X_E_MEMORY. */
int jmemory_share_set_counts(struct jmemory *j, const long long *words);
/* The scale and the origin are the session's own again. */
void jmemory_share_end(struct jmemory *j);
/* Chooses origin and drift from n particles of the columns. Notes that a new one makes wrong are
 * recomputed. */
void jmemory_choose_origin(struct jmemory *j, int n);

/* Lowest bad or lost address below nj, or -1; *state becomes SLOT_BAD or SLOT_LOST. */
int64_t jmemory_first_bad(struct jmemory *j, int64_t nj, int *state);
/* Updates the index map. Call it after jmemory_settle and before jmemory_find. */
void jmemory_map(struct jmemory *j);
/* Enters a slot into the map under the index of its note, or takes it out. */
void jmemory_link(struct jmemory *j, int64_t a);
void jmemory_unlink(struct jmemory *j, int64_t a);
/* Finds the addresses below nj of particles with an index. Returns their number; writes the first
 * `max` of them to address[]. */
int jmemory_find(const struct jmemory *j, int32_t index, int64_t nj, int max, int32_t *address);

/* A particle as it was written, in its slot or at rest. */
struct jmemory_seen {
    const double *x, *v;
    double time;
    int32_t index;
};
/* Finds the particle at an address; returns 0 if there is none or it has a NaN or Inf. */
int jmemory_look(const struct jmemory *j, int64_t address, struct jmemory_seen *seen);
/* Predicts x and v of a slot to a time (3 doubles each), as the kernels do. */
void jmemory_predict(const struct jmemory *j, int64_t address, double time, int snap, double x[3],
                     double v[3]);
