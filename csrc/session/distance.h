/* distance.h - distances of the nearest neighbours that a force call has found. */
#pragma once

#include "cpu/direct_kernel.h"
#include "session/session.h"

/* Computes those of i particles c->distances .. end - 1 on `threads` threads. */
void session_distance_up_to(struct force_call *c, const struct direct_job *job, int end,
                            int threads);
