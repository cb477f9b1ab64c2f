/* grape5.h - a GRAPE-5 cluster with its own j particles and sums: on the CPU, in mode grape, or
 * with symmetric softening. The session is locked. */
#pragma once

#include "session/session.h"

void session_grape5_free(struct grape5 *g);
/* Sets the error of a rejected write. */
int session_grape5_bad_write(struct session *s, int code, int64_t address, int64_t slots);
/* Computes the forces now: later writes do not change them. */
int session_grape5_run(struct session *s, const double *eps2, int each);
/* Writes the results; NaN for those that do not fit a double. */
int session_grape5_output(struct session *s, int ni, double (*a)[3], double *p);
