/* walks.h - calls that sum many walks at once, on a locked session; see core/walks.h. */
#pragma once

#include "core/walks.h"

struct session;

int session_walks_sum(struct session *s, struct walks *w);
/* code: the error of the arguments, or 0; retrieving the tag returns it, too. */
int session_walks_dispatch(struct session *s, int tag, struct walks *w, int code);
/* Reads ni, acc and pot of the groups. */
int session_walks_retrieve(struct session *s, int tag, struct walks *w);
void session_walks_free(struct session *s);
