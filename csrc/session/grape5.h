/* grape5.h - a GRAPE-5 cluster whose particles and sums are its own: on the CPU, in mode
 * grape. The session is locked. */
#pragma once

#include "session/session.h"

void session_grape5_free(struct grape5 *g);
/* Sets the error of a write that was refused. */
int session_grape5_bad_write(struct session *s, int code, int64_t address, int64_t slots);
int session_grape5_set(struct session *s, int halves, int address, int n, const double (*x)[3],
                       const double *mass);
/* The forces at once: what is written later does not change them. */
int session_grape5_run(struct session *s, const double *eps2, int each);
/* Hands over results; NaN in place of those beyond a double. */
int session_grape5_output(struct session *s, int ni, double (*a)[3], double *p);
