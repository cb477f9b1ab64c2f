/* verify.h - GRAPE6_VERIFY: rows recomputed on the CPU in extended precision. */
#pragma once

#include "session/session.h"

struct direct_job;

/* Compares a fraction of the rows of the last call, different ones each time. `job` is the call;
 * `want` says whether jerks were computed. 0 or G6X_E_VERIFY. */
int session_verify_rows(struct session *s, const struct direct_job *job, unsigned want);
