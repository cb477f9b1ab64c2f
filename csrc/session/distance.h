/* distance.h - distances of the nearest neighbours that a force call has found. */
#pragma once

#include "cpu/direct_kernel.h"
#include "session/session.h"

/* Those of the i particles from number c->distances to end - 1, shared among threads. */
void session_distance_up_to(struct force_call *c, const struct direct_job *job, int end,
                            int threads);
