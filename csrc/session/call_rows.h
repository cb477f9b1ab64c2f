/* call_rows.h - buffers for the i particles of force calls, and the rows of the current call. */
#pragma once

#include "session/session.h"

/* The caller's arrays of a firsthalf. If h2 is NULL, no i particle has neighbours. */
struct i_arrays {
    struct session *session;
    const int *index;
    const double (*x)[3], (*v)[3], *h2;
    const unsigned char *fine; /* which rows are summed in double; NULL: as their slots say */
    _Atomic int first_bad;     /* particle with a NaN, INT_MAX if there is none */
};

/* Reserves capacity for `rows` rows and keeps the existing ones. 0 or G6X_E_MEMORY. */
int session_call_rows_reserve(struct session *s, int rows);
/* Sets the call's first row to row `first` of the buffers. */
void session_call_rows_window(struct session *s, int first);
/* Waits for the backend's results of the call's first `count` rows. 1: only all rows together are
 * available. */
int session_call_rows_collect(struct session *s, unsigned want, int count);
/* Results of the last call can no longer be requested. */
void session_call_rows_forget(struct session *s);
void session_call_rows_free(struct session *s);
