/* ahead.h - i particles summed before they are asked for.
 *
 * Old programs cannot take more than 48 i particles a call. One that goes through all its j
 * particles in the order of addresses, at the time to which they hold, is foreseen: a submission
 * then has the rows of the next calls, too, and these only copy theirs. Rows do not depend on those
 * beside them, so that no bit changes. A j particle that is written, another time, order or bit of
 * an i particle ends it.
 */
#pragma once

#include "session/call_rows.h"

/* Whether the call's rows are the next of those in the last submission; then they are its own. */
int session_ahead_take(struct session *s, int nj, int ni, const struct i_arrays *from,
                       const double *eps2, int each);
/* How many rows a submission should have that begins with those of this call. The j memory is
 * settled, and the call's scale and time are there. */
int session_ahead_plan(struct session *s, const struct i_arrays *from, int each);
/* Copies rows first .. first + count - 1, which are beyond the caller's, from the j memory. */
void session_ahead_fill(struct session *s, int first, int count);
/* Rows that were summed and not asked for are lost. To be called before another submission. */
void session_ahead_drop(struct session *s);
