/* arrays.h - callers' arrays in device memory, integrations on the device, and walks. See
 * core/backend_device.h. */
#pragma once

#include "cuda/cuda.h"

/* ---- arrays.c */
int cuda_arrays_write_outputs(struct cuda *c, const struct device_forces *to,
                              struct device_found *found, struct error *err);
int cuda_arrays_fill_nan(struct cuda *c, const struct device_forces *to, void *stream,
                         struct error *err);
int cuda_arrays_fetch(struct cuda *c, const struct rows *to, struct error *err);
/* ---- arrays_j.c */
int cuda_arrays_j_receive(struct cuda *c, struct jmemory *j, const struct device_particles *from,
                          struct error *err);
/* Copies particles that the device's slots already hold to the host's j memory. */
int cuda_arrays_j_mirror(struct cuda *c, struct jmemory *j, const struct cuda_sent *sent, int count,
                         struct error *err);
int cuda_arrays_j_predicted(struct cuda *c, int n, double (*x)[3], double (*v)[3], void *stream,
                            struct error *err);

/* ---- parts.c: see core/backend_device.h */
int cuda_parts_store(struct cuda *c, void *part, void *stream, int *left, struct error *err);
/* Each part is `bytes` long. */
int cuda_parts_merge(struct cuda *c, void *parts, int64_t bytes, int count, void *stream,
                     struct error *err);

/* ---- hermite.c */
int cuda_hermite_next(struct cuda *c, const struct g6x_hermite *h, struct device_block *b,
                      struct error *err);
int cuda_hermite_predict(struct cuda *c, const struct g6x_hermite *h, struct device_block *b,
                         struct error *err);
int cuda_hermite_correct(struct cuda *c, const struct g6x_hermite *h, struct device_block *b,
                         struct error *err);
int cuda_hermite_watch(struct cuda *c, const struct g6x_hermite *h, const struct g6x_evolution *e,
                       void *stream, int *found, struct error *err);

/* ---- fused_step.c: integrations of few particles. Kernel fused_step ends a block and finds the
 * next one; then the sum of the next block is launched. The host waits for kernel fused_step alone,
 * and updates its j memory. */
int cuda_fused_step_can(struct cuda *c, struct jmemory *j, const struct g6x_hermite *h,
                        void *stream);
/* Prepares the device that sums the fine rows of n particles. */
int cuda_fused_step_prepare(struct cuda *fine, int n, struct error *err);
/* `fine`: that device, or NULL: no rows are fine. */
int cuda_fused_step_run(struct cuda *c, struct cuda *fine, struct jmemory *j,
                        const struct g6x_hermite *h, struct device_fused_step *step,
                        struct error *err);
int cuda_fused_step_sum(struct cuda *c, const struct upload *u, int ni, double eps2,
                        struct error *err);

/* ---- walks.c: see core/walks.h */
int cuda_walks_sum(struct cuda *c, struct walks *w, struct error *err);
int cuda_walks_start(struct cuda *c, int number, struct walks *w, struct error *err);
int cuda_walks_finish(struct cuda *c, int number, struct walks *w, struct error *err);
