/* fine_rows.h - which i particles of a call are summed in double, in mode auto. */
#pragma once

#include "session/call_rows.h"

/* Sets `fine` of all rows of a submission that begins with the caller's; returns how many are.
 * Requires a settled j memory, and the mode and time of the call. */
int session_fine_rows_find(struct session *s, int nj, const struct i_arrays *from);
/* The same of `rows` i particles by index alone, at the call's time. */
int session_fine_rows_of(struct session *s, int nj, int rows, const int32_t *index,
                         unsigned char *fine);
/* For a share of the j particles: those that its slots say, and those of all shares for the next
 * call. 0 or a code. */
int session_fine_rows_get(struct session *s, int nj, int ni, const int *index, unsigned char *fine);
int session_fine_rows_set(struct session *s, int ni, const unsigned char *fine);
