/* g6_calls.h - what each API call does, once for all its spellings. Ids are 64 bits wide, so
 * that the cluster-less forms have one of their own (SESSION_ALL). The exported functions
 * call only these, never each other: a host may define some of the exported names itself. */
#ifndef GRAPE6_API_G6_CALLS_H
#define GRAPE6_API_G6_CALLS_H

#include <stdint.h>

typedef double double3[3];

int call_open(int64_t id);
int call_open_special(int n, const int *list);
int call_close(int64_t id);
int call_npipes(void);
int call_device_count(void);
/* Does nothing, on an open cluster. */
int call_idle(int64_t id);
int call_idle_recent(void);

int call_set_ti(int64_t id, double ti);
int call_set_j(int64_t id, int address, int index, double tj, double mass, const double *k18,
               const double *j6, const double *a2, const double *v, const double *x);
int call_set_j_at_rest(int64_t id, int address, int index, double mass, const double *x);
int call_set_j_many(int64_t id, int n, const int *address, const int *index, const double *tj,
                    const double *mass, const double3 *k18, const double3 *j6, const double3 *a2,
                    const double3 *v, const double3 *x);
int call_predicted(int64_t id, int n, double3 *x, double3 *v);
int call_predicted6(int first, int n, double *x6);

/* eps2: one value, or ni of them if `each`. */
int call_first(int64_t id, int nj, int ni, const int *index, const double3 *x, const double3 *v,
               const double *eps2, int each, const double *h2);
int call_last(int64_t id, int nj, int ni, double3 *acc, double3 *jerk, double *pot);
int call_last2(int64_t id, int nj, int ni, double3 *acc, double3 *jerk, double *pot, int *nearest);
int call_last2p(int64_t id, int nj, int ni, double3 *acc, double3 *jerk, double *pot, int *nearest,
                float *distance);
/* A firsthalf that lacks a scalar: there is none, then. */
int call_first_null(int64_t id);
/* A force call that lacks a pointer: the outputs that are there become NaN. */
int call_null(int ni, double3 *acc, double3 *jerk, double *pot, int *nearest, float *distance);

int call_read_lists(int64_t id);
int call_list(int64_t id, int pipe, int maxlength, int *length, int *list);
int call_set_sort_mode(int mode);
int call_sort_mode(void);

int call_set_nip(int64_t id, int nip);
int call_set_njp(int64_t id, int njp);
int call_set_i(int64_t id, int address, int index, const double *x, const double *v, double eps2,
               double h2);
int call_get_force(int64_t id, double3 *acc, double3 *jerk, double *pot, int *flag);
int call_get_force_etc(int64_t id, double3 *acc, double3 *jerk, double *pot, int *nearest,
                       int *flag);

#endif
