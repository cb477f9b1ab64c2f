/* force.h - the force call of a session: firsthalf, lasthalf and lists. All functions take a locked
 * session and return 0 or an error code. */
#pragma once

#include "session/force_scale.h"
#include "session/output.h"
#include "session/session.h"

/* Copies the i particles, updates the backend's j memory to the session's time, and submits the
 * sum. eps2 has one value, or ni of them if `each`. */
int session_force_first(struct session *s, int nj, int ni, const int *index, const double (*x)[3],
                        const double (*v)[3], const double *eps2, int each, const double *h2);
/* The same without neighbour radii: no i particle has neighbours. */
int session_force_first_plain(struct session *s, int nj, int ni, const int *index,
                              const double (*x)[3], const double (*v)[3], double eps2);
/* Writes the results: the forces, and what else is wanted (WANT_NEAREST and _DISTANCE). jerk may be
 * NULL if none is computed. */
int session_force_last(struct session *s, unsigned want, int nj, int ni, double (*acc)[3],
                       double (*jerk)[3], double *pot, int *nearest, float *distance);
/* Call it before writing a j particle: it computes results not yet fetched, so that the write
 * cannot change them. */
void session_force_before_write(struct session *s);
/* Whether that has anything to do. */
static inline int session_force_minds_writes(const struct session *s)
{
    return s->call.part || (s->call.made && !s->call.outdated);
}

int session_force_list(struct session *s, int pipe, int maxlength, int *length, int *list);
/* See g6x_get_neighbour_lists. */
int session_force_lists(struct session *s, int ni, long long capacity, long long start[],
                        int list[]);
/* Sets the starts of ni empty lists; `start` may be NULL. */
void session_force_no_lists(int ni, long long start[]);

/* ---- the parts, for force_device.c ---- */

/* Checks that no count is negative, no pointer is null (`lacks`), the time is finite and no j
 * particle has a NaN. */
int session_force_check(struct session *s, int nj, int ni, int lacks);
/* 0, or the error of the first invalid or lost j particle below nj. `or_what` names what else it
 * may lack. */
int session_force_check_particles(struct session *s, int nj, const char *or_what);
/* Sets the error of one j particle: invalid, or `lost`. */
int session_force_bad_particle(struct session *s, int64_t address, int index, int lost,
                               const char *or_what);
int session_force_check_softening(struct session *s, int i, double eps2);
/* Reserves capacity in the call's arrays; their contents may be lost. */
int session_force_reserve(struct session *s, int ni);
/* Begins a call and clears the state of the last one. */
void session_force_new(struct session *s, int nj, int ni);
/* Settles the j memory, and copies its scale, the time and the options to the call. */
void session_force_freeze(struct session *s, int nj);
/* Updates the backend's j memory to the call's time. */
int session_force_upload(struct session *s, int nj);
/* The same, and submits the sum. */
int session_force_start(struct session *s, int nj, const struct targets *targets);
/* After a device error: moves the session to the CPU if the library chose the device; then 0. The
 * j memory is kept, and the force call summed again or, after a write, refused with this code. */
int session_force_fall_back(struct session *s, int code);
/* The code of a call that is not repeated; after a device error the session falls back. */
static inline int session_force_ended(struct session *s, int code)
{
    (void)session_force_fall_back(s, code);
    return code;
}
/* Warns of zero-distance pairs, if there are any. */
void session_force_warn(struct session *s, int64_t zero_distances);

/* The same for an error on the sums of the force call. 0 if there are sums again. */
int session_force_resume(struct session *s, int code);
/* Completes the sums and the other requested results (WANT_*). */
int session_force_complete(struct session *s, unsigned want);

void session_force_free(struct session *s);
