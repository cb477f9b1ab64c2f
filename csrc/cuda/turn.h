/* turn.h - Hermite integrations of few particles. Kernel turn ends a block and finds the next one;
 * then the sum of the next block is launched. The host waits for kernel turn alone, and updates its
 * j memory. */
#pragma once

#include "cuda/cuda.h"

/* See core/backend_device.h. */
int cuda_turn_can(struct cuda *c, struct jmemory *j, const struct g6x_hermite *h, void *stream);
/* Prepares the device that sums the fine rows of n particles. */
int cuda_turn_prepare(struct cuda *fine, int n, struct error *err);
/* `fine`: that device, or NULL: no rows are fine. */
int cuda_turn_run(struct cuda *c, struct cuda *fine, struct jmemory *j, const struct g6x_hermite *h,
                  struct device_turn *turn, struct error *err);
int cuda_turn_sum(struct cuda *c, const struct upload *u, int ni, double eps2, struct error *err);
