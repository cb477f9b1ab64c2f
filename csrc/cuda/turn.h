/* turn.h - Hermite integrations of few particles. Kernel turn ends a block and finds the next one;
 * then the sum of the next block is launched. The host waits for kernel turn alone, and updates its
 * j memory. */
#pragma once

#include "cuda/cuda.h"

/* See core/backend_device.h. */
int cuda_turn_can(struct cuda *c, struct jmemory *j, const struct g6x_hermite *h, void *stream);
/* `fine`: a device that has summed some of the rows in double, or NULL. */
int cuda_turn_run(struct cuda *c, struct cuda *fine, struct jmemory *j, const struct g6x_hermite *h,
                  struct device_turn *turn, struct error *err);
int cuda_turn_sum(struct cuda *c, const struct upload *u, int ni, double eps2, struct error *err);
/* Says which rows of a block these are: `fine` of its ni. */
void cuda_turn_place(struct cuda *c, int ni, int fine, const int32_t *row);
