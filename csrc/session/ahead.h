/* ahead.h - sums i particles of later calls in advance.
 *
 * Old programs pass at most 48 i particles per call. If a program goes through its j particles in
 * address order, at their own time, the next calls can be predicted: one submission then also sums
 * the rows of the next calls, and these calls only copy their rows. A row does not depend on the
 * other rows of a submission, so no bit changes. The prediction ends when a j particle is written,
 * or when the time, the order or a bit of an i particle differs.
 */
#pragma once

#include "session/call_rows.h"

/* 1 if the call's rows are the next ones of the last submission. The call then uses those. */
int session_ahead_take(struct session *s, int nj, int ni, const struct i_arrays *from,
                       const double *eps2, int each);
/* Returns how many rows a submission that begins with this call's rows should have. Requires a
 * settled j memory, and the scale and time of the call. */
int session_ahead_plan(struct session *s, const struct i_arrays *from, int each);
/* Copies rows first .. first + count - 1, which follow the caller's rows, from the j memory. */
void session_ahead_fill(struct session *s, int first, int count);
/* Discards rows that were summed but not requested. Call it before another submission. */
void session_ahead_drop(struct session *s);
