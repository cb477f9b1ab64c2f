/* call_rows.h - the i particles of force calls: their buffers, which of them are summed in double,
 * and those that are summed in advance.
 *
 * Old programs pass at most 48 i particles per call. If a program goes through its j particles in
 * address order, at their own time, the next calls can be predicted: one submission then also sums
 * the rows of the next calls, and these calls only copy their rows. A row does not depend on the
 * other rows of a submission, so no bit changes. The prediction ends when a j particle is written,
 * or when the time, the order or a bit of an i particle differs.
 */
#pragma once

#include "session/session.h"

/* Reserves capacity for `rows` rows and keeps the existing ones. 0 or G6X_E_MEMORY. */
int session_call_rows_reserve(struct session *s, int rows);
/* Sets the call's first row to row `first` of the buffers. */
void session_call_rows_window(struct session *s, int first);
/* Waits for the backend's results of the call's first `count` rows. 1: all rows come together. */
int session_call_rows_collect(struct session *s, unsigned want, int count);
void session_call_rows_free(struct session *s);

/* 1 if the call's rows are the next ones of the last submission. The call then uses those. */
int session_call_rows_take(struct session *s, int nj, int ni, const struct caller_arrays *from,
                           const double *eps2, int each);
/* Discards rows that were summed but not requested. Call it before another submission. */
void session_call_rows_drop(struct session *s);
/* Sets which rows a submission that begins with this call's has, and in mode auto which of them are
 * fine. Requires a settled j memory, and the scale, mode and time of the call. */
void session_call_rows_plan(struct session *s, const struct caller_arrays *from, int each);

/* Sets `fine` of i particles by index alone, at the call's time; returns how many are. */
int session_call_rows_fine(struct session *s, int nj, int rows, const int32_t *index,
                           unsigned char *fine);
/* For a share of the j particles: those that its slots say, and those of all shares for the next
 * call. 0 or a code. */
int session_call_rows_get_fine(struct session *s, int nj, int ni, const int *index,
                               unsigned char *fine);
int session_call_rows_set_fine(struct session *s, int ni, const unsigned char *fine);
