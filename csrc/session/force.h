/* force.h - the force call of a session: firsthalf, lasthalf and lists. All
 * take a locked session and return 0 or an error code. */
#pragma once

#include "session/output.h"
#include "session/session.h"

/* Copies the i particles, brings the backend's j memory to the session's time and starts.
 * eps2 has one value, or ni of them if `each`. */
int session_force_first(struct session *s, int nj, int ni, const int *index, const double (*x)[3],
                        const double (*v)[3], const double *eps2, int each, const double *h2);
/* The same without radii of neighbour spheres: nobody has neighbours. */
int session_force_first_plain(struct session *s, int nj, int ni, const int *index,
                              const double (*x)[3], const double (*v)[3], double eps2);
/* Writes the results; nearest and distance may be NULL, and jerk if none is computed. */
int session_force_last(struct session *s, int nj, int ni, double (*acc)[3], double (*jerk)[3],
                       double *pot, int *nearest, float *distance);
/* To be called before a j particle is written: results that were not fetched yet are
 * computed now, so that the write cannot change them. */
void session_force_before_write(struct session *s);

int session_force_list(struct session *s, int pipe, int maxlength, int *length, int *list);
/* See g6x_get_neighbour_lists. */
int session_force_lists(struct session *s, int ni, long long capacity, long long start[],
                        int list[]);
/* Starts of the lists of ni i particles that have none; `start` may be NULL. */
void session_force_no_lists(int ni, long long start[]);

/* ---- the parts, for force_device.c ---- */

/* Counts that are not negative, no null pointer (`lacks`), a time, no NaN among the j particles. */
int session_force_check(struct session *s, int nj, int ni, int lacks);
/* 0, or the error of the first j particle below nj that is bad or lost; what else it may lack. */
int session_force_check_particles(struct session *s, int nj, const char *or_what);
/* The error of one: bad, or lost. */
int session_force_bad_particle(struct session *s, int64_t address, int index, int lost,
                               const char *or_what);
int session_force_check_softening(struct session *s, int i, double eps2);
/* Space in the arrays of the call; what was in them is lost. */
int session_force_reserve(struct session *s, int ni);
/* A call begins: nothing of the last one is left. */
void session_force_new(struct session *s, int nj, int ni);
/* Settles the j memory; its scale, the time and the options are now those of the call. */
void session_force_freeze(struct session *s, int nj);
/* Brings the backend's j memory to the call's time; */
int session_force_upload(struct session *s, int nj);
/* and starts the sum. */
int session_force_start(struct session *s, int nj, const struct targets *targets);
/* After an error of the backend: on to the CPU, if the choice was the library's. The j memory is
 * all there; 0 if the call can be made again. */
int session_force_fall_back(struct session *s, int code);
/* Warns of pairs at one place. */
void session_force_warn(struct session *s, int64_t zero_distances);

/* After an error of the backend when the sums were complete: does them again on the CPU, if it may;
 * then 0. */
int session_force_resume(struct session *s, int code);
/* Sees to it that the sums are there, and what else is requested (WANT_*). */
int session_force_complete(struct session *s, unsigned want);
/* The current call for the functions of exact.h. */
struct direct_job session_force_job(struct session *s, _Atomic int64_t *zero_distances);
/* Checks rows of a call that was just computed, as GRAPE6_VERIFY asks. 0 or G6X_E_VERIFY. */
int session_force_verify(struct session *s, unsigned want);

/* Scale that a call with nj j particles uses. */
struct scale session_force_scale(struct session *s, int nj);
/* The mode whose arithmetic it takes: double, where that of the session's mode would leave most
 * pairs to double. Merged sessions, whose scale was set, keep theirs. And the scale in a mode, of
 * j particles that are settled. */
int session_force_precision(struct session *s, int nj);
struct scale session_force_scale_in(struct session *s, int precision);
void session_force_free(struct session *s);

#ifdef GRAPE6_FAULT_INJECTION
/* Test builds: from now on the sum of particle i is wrong in a high bit (-1: of none). */
void session_force_spoil_row(int i);
#endif
