/* session.h - a session is the state of a cluster id: j memory, time, options, and the force call
 * in progress. registry.h finds it by id, or opens it.
 *
 * Sessions are never freed, only reused: a thread that holds a pointer while another thread closes
 * the session can still read that it is closed.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/error.h"
#include "cpu/grape5_points.h"
#include "cpu/symmetric.h"
#include "core/jmemory.h"
#include "core/options.h"

/* Callers' ids are 32-bit ints. This one is used by the _all calls, which name no cluster. */
#define SESSION_ALL ((int64_t)1 << 40)
/* The id used for a null pointer: no session has it. */
#define SESSION_NONE ((int64_t)1 << 41)
/* GRAPE-5 cluster k has the id SESSION_GRAPE5 + k. */
#define SESSION_GRAPE5 ((int64_t)1 << 42)

/* I particles kept between calls, as in a GRAPE board's registers, one per pipe: for the low-level
 * GRAPE-6 calls and for GRAPE-5. nip and njp are as the caller set them. */
struct pipes {
    int nip, njp, capacity;
    struct rows rows;
};

/* Host copies of the arrays of a device call that several devices share. */
struct on_host {
    int capacity;
    struct rows rows;
    double (*acc)[3], (*jerk)[3], *pot;
    int32_t *nearest;
    float *distance;
};
#define ARRAYS_ON_HOST(h, n)                                                                       \
    {ARRAYS_OF_ROWS(&(h)->rows, n),                                                                \
     MEMORY_ARRAY((h)->acc, n),                                                                    \
     MEMORY_ARRAY((h)->jerk, n),                                                                   \
     MEMORY_ARRAY((h)->pot, n),                                                                    \
     MEMORY_ARRAY((h)->nearest, n),                                                                \
     MEMORY_ARRAY((h)->distance, n),                                                               \
     {0}}

/* A force call: from a firsthalf to the next. */
struct force_call {
    int made;      /* there was a firsthalf, and its results can be requested */
    int code;      /* its error, or 0 */
    unsigned done; /* WANT_* of the computed results; DONE_SUMS if there are any */
    int outdated;  /* j particles were written since firsthalf */
    int part;      /* it was a share, whose parts are to be merged: 1, or 2 with neighbours */
    int nj, ni;
    int invalid_rows;               /* some i particle has a NaN */
    int precision, jerk, snap, isa; /* options at firsthalf */
    struct options options;         /* of its sums: those, and the session's others */
    struct scale scale, fine_scale; /* of rows as in the mode, and of fine ones in mode auto */
    int fine;                       /* number of fine rows of the submission */
    double time;

    int capacity;           /* rows of `all` */
    int first;              /* the call's first row in the backend's submission */
    int rows;               /* all rows of the submission */
    struct rows all, own;   /* all, and the call's own among them */
    int alike;              /* first rows of `all` whose softenings are equal */
    unsigned char *is_fine; /* [capacity] summed in double, in mode auto */
    double *distance;       /* [capacity] of the nearest neighbours, once requested */
    int distances;          /* number of i particles with a distance to the nearest neighbour */
    /* The backend's results, from the call's first row on. */
    struct results results;
    struct neighbour_lists lists; /* of i particles from lists_first on; the backend's memory */
    int lists_first;
};

/* Prediction of the next calls (call_rows.h). Rows are i particles. */
struct ahead {
    int next;               /* address of the next call's first row, if it is in order */
    int run;                /* rows in order so far */
    int last_run;           /* rows of the last run in order */
    int64_t matched;        /* rows that were in order */
    int64_t wasted;         /* rows that were summed but not requested */
    struct options options; /* options of the submission that has rows left */
};

/* State of a GRAPE-5 cluster, in its session. */
struct grape5 {
    int prepared, n_given, n;
    int filled, ran, code; /* the pipes hold i particles; g5_run was called, with this code */
    int own_eps2;          /* the pipes have the softenings of g5_set_xei */
    double eps2;           /* of g5_set_eps_to_all; negative: none */
    double *eps2_each;     /* of g5_set_eps, for the first n_each i particles */
    int n_each, capacity_each;
    int64_t times_set; /* calls of g5_set_eps_to_all applied to eps2 and n_each */
    /* 1: the j particles and results are kept here, not in the session's memory. */
    int here;
    struct grape5_points points;
    struct symmetric symmetric; /* j particles of the calls that end in 0 */
    int ran_symmetric;          /* the last run was of these */
    /* Results of a run: number of i particles, capacity, and whether some i particle has a NaN. */
    int results, capacity_results, invalid;
    double (*acc)[3], *pot;
};

/* Which thread may take the session without the lock (biased_lock.h). */
enum { MOST_DISTURBED = 16 };
struct bias {
    _Atomic(void *) thread; /* the thread, or NULL */
    _Atomic int disturbed;  /* how often another thread ended such a permission */
    /* By `disturbed`. Each has one thread that writes it: one that takes back an attempt of long
     * ago must not change that of another. */
    _Atomic int taken[MOST_DISTURBED + 1];
};

/* `auto` has not chosen yet; or it has taken the CPU for short lists of a treecode. */
enum { CHOICE_OPEN = 1, CHOICE_OF_LISTS };

/* A session's device: CUDA's number of one, -1: the first, or by its id. A rank has its own. */
enum { SESSION_DEVICE_BY_ID = -2 };

struct session {
    _Atomic int64_t id;
    _Atomic int open; /* 0 closed, 1 opened by a call, 2 by first use */
    int process;      /* process id that opened it; another one is a forked child */
    int device;       /* its number, or as above */
    int torn; /* in a forked child: another thread was in a call, and is not here to end it */
    _Atomic int lock;
    _Atomic int closing;  /* a thread waits for the lock to close it; nobody may use it any more */
    struct session *next; /* in the hash chain, or the list of unused ones */
    struct bias bias;

    struct options options;
    const struct backend *backend;
    void *state;
    int undecided;     /* whether `auto` may still choose a backend: CHOICE_* or 0 (choice.h) */
    int64_t rows;      /* i particles of all force calls */
    int by_operations; /* blocks to compute by operations before the next try of arrays->fused_step
                        */
    struct jmemory j;
    /* All j particles of an integration of which this session sums a share: these have the scale.
     * NULL: `j` has all. */
    struct jmemory *whole;
    int whole_nj;
    double time;
    int time_bad;
    struct force_call call;
    void *stream;                    /* the caller's, of an integration on a device */
    const unsigned char *block_fine; /* of a block on a device, or NULL; block_rows of them */
    int block_rows;
    double block_time;
    unsigned char *given; /* fine rows that the next call has, instead of what slots say */
    int given_rows;       /* one more than the i particles they are of; 0: none are given */
    struct ahead ahead;
    struct pipes pipes;
    struct grape5 grape5;
    struct on_host on_host;
    /* Force calls, those with npipes particles, and those summed in advance. */
    _Atomic int64_t calls, full_calls, calls_ahead;
    _Atomic int64_t rows_asked, rows_fine; /* i particles of the calls, and fine ones */
    double verify_due;           /* share of a row due for verification; a row is verified at 1 */
    struct groups *groups;       /* subsystems of its integration, or NULL */
    struct pending_walks *walks; /* [WALK_TAGS] dispatched, or NULL */
    struct error error;
};

/* Whether an id is a GRAPE-5 cluster's. */
static inline int session_is_grape5(int64_t id) { return id > SESSION_NONE; }
/* Size of a session's name. */
enum { SESSION_NAME = 48 };
/* Writes the name of an id in messages to `name`, and returns it. */
const char *session_name(int64_t id, char name[SESSION_NAME]);
/* Reserves capacity; new pipes are zero. 0, or G6X_E_MEMORY and nothing is changed. */
int session_grow_pipes(struct pipes *p, int capacity);
void session_free_pipes(struct pipes *p);
/* The session that was used last: a guess that saves the registry's lock. */
extern _Atomic(struct session *) session_used_last __attribute__((visibility("hidden")));

/* report.c: what GRAPE6_LOG=info prints of a session: its settings, how full its calls were. */

/* At open; a line equal to the last one is not printed. The registry and the session are locked. */
void session_report_start(const struct session *s);
/* At close or at the exit of the process that opened it: once, if there were calls. */
void session_report_calls(struct session *s);
