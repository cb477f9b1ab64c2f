/* force_scale.h - the mode and scale of a force call. */
#pragma once

#include "session/session.h"

/* Scale that a call with nj j particles uses. */
struct scale session_force_scale(struct session *s, int nj);
/* The mode in which a row was summed: grape or double of mode auto. */
static inline int session_force_scale_mode_of(const struct force_call *c, int row)
{
    if (c->precision != MODE_AUTO) return c->precision;
    return c->results.fine && c->results.fine[row] ? MODE_DOUBLE : MODE_GRAPE;
}
/* Arithmetic mode of a call: double if the session's mode would leave most pairs to double.
 * Sessions whose scale was set, for merging, keep their mode. */
int session_force_scale_precision(struct session *s, int nj);
/* The scale in a mode; the j particles must be settled. */
struct scale session_force_scale_in(struct session *s, int precision);
/* From now on the scale is that of s->whole, which is empty; 0 or G6X_E_MEMORY. */
int session_force_scale_begin_whole(struct session *s);
void session_force_scale_end_whole(struct session *s);
