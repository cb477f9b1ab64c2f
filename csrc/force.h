/* force.h - the force call of a session: firsthalf, lasthalf, lists, partial sums. All
 * take a locked session and return 0 or a fault code. */
#ifndef GRAPE6_FORCE_H
#define GRAPE6_FORCE_H

#include "session.h"

/* Fills the outputs of n particles with quiet NaN, and nearest neighbours with -1, which its hosts
 * take for a hardware error. Each pointer may be NULL. */
void force_nan(int n, double (*acc)[3], double (*jerk)[3], double *pot, int *nearest,
               float *distance);

/* Copies the i particles, brings the backend's j memory to the session's time and starts.
 * eps2 has one value, or ni of them if `each`. */
int force_first(struct session *s, int nj, int ni, const int *index, const double (*x)[3],
                const double (*v)[3], const double *eps2, int each, const double *h2);
/* Hands the results over; nearest and distance may be NULL. */
int force_last(struct session *s, int nj, int ni, double (*acc)[3], double (*jerk)[3], double *pot,
               int *nearest, float *distance);
/* To be called before a j particle is written: results that were not fetched yet are
 * computed now, so that the write cannot change them. */
void force_before_write(struct session *s);

int force_list(struct session *s, int pipe, int maxlength, int *length, int *list);

int force_partial(struct session *s, int ni, long long *words);
/* These two need no session. */
int force_add_partial(int ni, long long *sum, const long long *words, struct fault *f);
int force_from_partial(int ni, const long long *words, double (*acc)[3], double (*jerk)[3],
                       double *pot, struct fault *f);

/* Scale that a call with nj j particles uses. */
struct scale force_scale(struct session *s, int nj);
void force_free(struct session *s);
void force_free_pipes(struct pipes *p);

#ifdef GRAPE6_FAULT_INJECTION
/* Test builds: from now on the sum of particle i is wrong in a high bit (-1: of none). */
void force_spoil_row(int i);
#endif

#endif
