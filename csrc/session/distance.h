/* distance.h - distances of the nearest neighbours that a force call has found. */
#pragma once

#include "cpu/direct_kernel.h"
#include "session/session.h"

/* Those of i particles first to end - 1. */
void session_distance_rows(const struct force_call *c, const struct direct_job *job, int first,
                           int end);
/* Those of all from number c->distances on, shared among threads. */
void session_distance_others(struct force_call *c, const struct direct_job *job, int threads);
