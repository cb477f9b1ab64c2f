/* partial_words.h - partial sums as integers that callers keep, send and merge. */
#pragma once

#include "session/session.h"

/* The rows of the session's force call as G6X_PARTIAL_WORDS words each. */
int session_partial_words_get(struct session *s, int ni, long long *words);
/* These need no session. A sum that failed has its code as the kind of its rows: so nobody takes
 * rows of an earlier sum, or of one share, for its result. */
void session_partial_words_spoil(int ni, long long *words, int code);
int session_partial_words_add(int ni, long long *sum, const long long *words, struct error *err);
int session_partial_words_tops(int ni, const long long *words, int (*top)[G6X_PARTIAL_TOPS],
                               struct error *err);
int session_partial_words_raise(int ni, long long *words, const int (*top)[G6X_PARTIAL_TOPS],
                                struct error *err);
int session_partial_words_force(int ni, const long long *words, double (*acc)[3], double (*jerk)[3],
                                double *pot, struct error *err);
