/* choice.h - chooses CPU or GPU for sessions with backend `auto`. The choice is made at the first
 * force call, when the number of particles is known and nothing has been computed, from the
 * estimated costs of a run with that many particles. Until then the session uses the CPU. The
 * length of a treecode's list says little of that: if the first ones are short, a later one may
 * still choose the GPU. */
#pragma once

#include "session/session.h"

/* Opens the backend that the session's options name. For `auto` the choice may stay open. */
int session_choice_open(struct session *s, struct error *err);
/* Chooses at the first force call, which has ni i particles and nj j particles for each of them; n
 * is the number of particles of a run. */
void session_choice_make(struct session *s, int64_t ni, int64_t nj, int64_t n);
/* Chooses the GPU, if there is one, for example for a call with arrays in GPU memory. */
void session_choice_want_gpu(struct session *s);
/* After a reset by the caller: an `auto` session on the CPU may choose again. */
void session_choice_again(struct session *s);
/* At the close of a session: counts its computed i particles for later choices. */
void session_choice_end(struct session *s);
/* Returns the backend (BACKEND_CPU or _CUDA) that a session with these options would choose for
 * calls of this size, if there is a GPU. Writes the reason to `why`. */
int session_choice_foresee(const struct options *o, int64_t ni, int64_t nj, char *why, int length);
