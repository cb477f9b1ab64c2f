/* call_rows.h - the i particles of a session's force calls: their memory, and which are the call's.
 */
#pragma once

#include "session/session.h"

/* The arrays of a caller of firsthalf; h2 may be NULL: nobody has neighbours. */
struct i_arrays {
    struct session *session;
    const int *index;
    const double (*x)[3], (*v)[3], *h2;
    _Atomic int first_bad; /* particle with a NaN, INT_MAX if there is none */
};

/* Space for so many rows; those that are there stay. 0 or G6X_E_MEMORY. */
int session_call_rows_reserve(struct session *s, int rows);
/* The call is the rows from `first` on. */
void session_call_rows_window(struct session *s, int first);
/* Waits for the backend's results of the call's first `count` rows; 1: all have to be asked for. */
int session_call_rows_collect(struct session *s, unsigned want, int count);
/* Nobody may ask for results of the last call any more. */
void session_call_rows_forget(struct session *s);
void session_call_rows_free(struct session *s);
