/* turn.h - blocks of a Hermite integration of few particles, in turn: kernel turn ends one and
 * finds the next, whose sum follows. The host only waits for kernel turn, and keeps its copy. */
#pragma once

#include "cuda/cuda.h"

/* See core/backend_device.h. */
int cuda_turn_can(struct cuda *c, struct jmemory *j, const struct g6x_hermite *h, void *stream);
int cuda_turn_run(struct cuda *c, struct jmemory *j, const struct g6x_hermite *h,
                  struct device_turn *turn, struct error *err);
int cuda_turn_sum(struct cuda *c, const struct upload *u, int ni, double eps2, struct error *err);
