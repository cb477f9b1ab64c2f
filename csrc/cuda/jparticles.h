/* jparticles.h - j particles on their way from the host to their slots on the device, and their
 * prediction. */
#pragma once

#include "cuda/cuda.h"

static inline struct dirty_list *cuda_dirty_list(const struct cuda *c, struct jmemory *j)
{
    return &j->dirty[c->mirror];
}
/* Blocks of addresses that hold all that a force call uses. */
static inline int64_t cuda_all_blocks(const struct cuda *c) { return ceil_div(c->nj, CUDA_BLOCK); }
static inline int64_t cuda_blocks(const struct cuda *c) { return c->end_block - c->first_block; }

/* Reserves slots on the device. */
int cuda_jparticles_reserve(struct cuda *c, int64_t slots, struct error *err);
/* Brings the device up to date with what a call needs. */
int cuda_jparticles_update(struct cuda *c, const struct upload *u, struct error *err);
/* Lets the particles that wait for a prediction go to their slots without one, and waits until
 * `sent` is free. */
int cuda_jparticles_flush(struct cuda *c, struct error *err);
struct cuda_store cuda_jparticles_store(const struct cuda *c);
struct cuda_sources cuda_jparticles_sources(const struct cuda *c);
/* What the kernels' numbers are relative to, and times what. */
struct cuda_frame cuda_jparticles_frame(const struct cuda *c);

/* Blocks of addresses that are to be predicted and summed. */
void cuda_jparticles_set_blocks(struct cuda *c, int64_t first, int64_t end);
/* Launches their prediction, to which particles may arrive that wait for it. */
int cuda_jparticles_predict(struct cuda *c, struct error *err);
/* The same by another kernel: those that wait, */
struct cuda_arrivals cuda_jparticles_arrivals(const struct cuda *c);
/* whether they are all in those blocks, */
int cuda_jparticles_few_are_within(const struct cuda *c);
/* and to be called when it has been launched. */
void cuda_jparticles_has_predicted(struct cuda *c);
