/* walks.h - the calls of many walks in one, on a locked session; see core/walks.h. */
#pragma once

#include "core/walks.h"

struct session;

int session_walks_sum(struct session *s, struct walks *w);
/* code: what was wrong with the arguments, or 0; the tag's retrieval will say it, too. */
int session_walks_dispatch(struct session *s, int tag, struct walks *w, int code);
/* Of the groups, ni, acc and pot are read. */
int session_walks_retrieve(struct session *s, int tag, struct walks *w);
void session_walks_free(struct session *s);
/* Makes NaN of all results. */
void session_walks_fill_nan(const struct walks *w);
