/* choice.h - CPU or GPU, for sessions whose backend is `auto`: decided at the first force call,
 * when the number of particles is known and nothing has been computed, by what a run of so many
 * particles costs. Until then the session is the CPU's. */
#pragma once

#include "session/session.h"

/* Opens the backend that the session's options name; for `auto` the choice may be left open. */
int session_choice_open(struct session *s, struct error *err);
/* The first force call has ni i particles, which feel nj j particles each; a run has n particles.
 */
void session_choice_make(struct session *s, int64_t ni, int64_t nj, int64_t n);
/* A call has arrays of a GPU: this is what computes, if there is one. */
void session_choice_want_gpu(struct session *s);
/* The caller begins anew: a session that has outgrown the CPU may choose again. */
void session_choice_again(struct session *s);
/* The session is closed: what it has computed counts for those to come. */
void session_choice_end(struct session *s);
/* Which backend (BACKEND_CPU or _CUDA) a session of such options would get for calls of so many
 * particles, if there is a GPU, and a text that says why. */
int session_choice_foresee(const struct options *o, int64_t ni, int64_t nj, char *why, int length);
