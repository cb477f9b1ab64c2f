/* session.h - a session is what a cluster id stands for: j memory, time, options, and the
 * force call in progress. registry.h finds it by id, or opens it.
 *
 * Sessions are never freed, only reused, so that a thread that holds a pointer while
 * another closes the session finds it closed, not gone.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/error.h"
#include "cpu/grape5_points.h"
#include "core/jmemory.h"
#include "core/options.h"
#include "session/ireg.h"

/* Ids of callers are 32-bit ints; this one is of the cluster-less _all calls. */
#define SESSION_ALL ((int64_t)1 << 40)
/* What a null pointer for an id stands for: no session has it. */
#define SESSION_NONE ((int64_t)1 << 41)
/* GRAPE-5's clusters: this, plus their numbers. */
#define SESSION_GRAPE5 ((int64_t)1 << 42)

/* I particles of force calls, by row. */
struct call_rows {
    int32_t *index;
    double (*x)[3], (*v)[3], *eps2, *h2;
    unsigned char *invalid;
    double *distance; /* of the nearest neighbours, once they are asked for */
};

/* From a firsthalf to the next. */
struct force_call {
    int made;      /* there was a firsthalf, and its results may be asked for */
    int code;      /* its error, or 0 */
    unsigned done; /* WANT_* of the results that are there; DONE_SUMS if there are any */
    int outdated;  /* j particles were written since firsthalf */
    int nj, ni;
    int invalid_rows;               /* some i particle has a NaN */
    int precision, jerk, snap, isa; /* options at firsthalf */
    struct scale scale;
    double time;

    int capacity; /* rows of `all` */
    int first;    /* the call's first row in the backend's submission */
    int rows;     /* all rows of the submission */
    struct call_rows all;
    /* The call's own rows, of `all` and of the backend's results. */
    int32_t *index;
    double (*x)[3], (*v)[3], *eps2, *h2;
    unsigned char *invalid;
    double *distance;
    int distances; /* i particles whose distance to the nearest neighbour is there */
    struct results results;
    struct neighbour_lists lists; /* of i particles from lists_first on; the backend's memory */
    int lists_first;
};

/* Which calls may be foreseen (ahead.h). Rows are i particles. */
struct ahead {
    int next;               /* address with which the next call goes on, if it is in order */
    int run;                /* rows in order so far */
    int last_run;           /* rows of the last run in order */
    int64_t matched;        /* rows that were in order */
    int64_t wasted;         /* rows that were summed and not asked for */
    struct options options; /* of the submission that has rows left */
};

/* What the calls of GRAPE-5 have set, in a session of theirs. */
struct grape5 {
    int prepared, n_given, n;
    int filled, ran, code; /* the pipes hold i particles; g5_run was called, with this code */
    int own_eps2;          /* the pipes have the softenings of g5_set_xei */
    double eps2;           /* of g5_set_eps_to_all; negative: none */
    double *eps2_each;     /* of g5_set_eps, for the first n_each i particles */
    int n_each, capacity_each;
    int64_t times_set; /* calls of g5_set_eps_to_all that eps2 and n_each know of */
    /* The j particles are here, not in the session's memory, and so are the results of a run: of
     * `results` targets, some of which were no numbers if `invalid`. */
    int here;
    struct grape5_points points;
    int results, capacity_results, invalid;
    double (*acc)[3], *pot;
};

/* Which thread may write the next particles at rest without the lock, and where (quick_write.h). */
struct quick {
    _Atomic(void *) thread; /* or NULL */
    _Atomic int writing;
    int disturbed;            /* how often another thread came between */
    int32_t first, next, end; /* addresses first .. next - 1 were written so; below end may be */
    uint64_t time;            /* bits of the time that all have */
    double (*xm)[4];          /* the j memory's */
    int32_t *index;
};

struct session {
    _Atomic int64_t id;
    _Atomic int open; /* 0 closed, 1 opened by a call, 2 by first use */
    int process;      /* that opened it; another one is a forked child */
    _Atomic int lock;
    _Atomic int closing;  /* a thread waits for the lock to close it: it is nobody's any more */
    struct session *next; /* in the hash chain, or the list of unused ones */
    struct quick quick;

    struct options options;
    const struct backend *backend;
    void *state;
    int undecided; /* the backend may still become the GPU's (choice.h) */
    int64_t rows;  /* i particles of all force calls */
    int by_parts;  /* blocks of an integration that are made so before the next try in turn */
    struct jmemory j;
    double time;
    int time_bad;
    struct force_call call;
    struct ahead ahead;
    struct pipes pipes;
    struct grape5 grape5;
    char *on_host; /* arrays of a device's call that several devices share */
    size_t on_host_capacity;
    /* force calls, those with npipes particles, and those that were summed ahead */
    _Atomic int64_t calls, full_calls, foreseen_calls;
    double verify_due;           /* rows to be verified, counted up to 1 */
    struct pending_walks *walks; /* [WALK_TAGS] dispatched, or NULL */
    struct error error;
};

/* Of GRAPE-5's calls. */
static inline int session_is_grape5(int64_t id) { return id > SESSION_NONE; }
/* How messages call an id, in `name`. */
enum { SESSION_NAME = 48 };
const char *session_name(int64_t id, char name[SESSION_NAME]);
/* The session that was used last: a guess that saves the registry's lock. */
extern _Atomic(struct session *) session_used_last __attribute__((visibility("hidden")));
