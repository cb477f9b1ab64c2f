/* jparticles.h - transfer of j particles from the host to the device's slots, and prediction. */
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
/* Sends the j particles that a call needs and the device lacks. */
int cuda_jparticles_update(struct cuda *c, const struct upload *u, struct error *err);
/* Writes particles that wait for a prediction to their slots, and waits until `sent` is free. */
int cuda_jparticles_flush(struct cuda *c, struct error *err);
struct cuda_store cuda_jparticles_store(const struct cuda *c);
struct cuda_sources cuda_jparticles_sources(const struct cuda *c);
/* Origin and units of the kernels' numbers. */
struct cuda_units cuda_jparticles_units(const struct cuda *c);

/* Sets the blocks of addresses to predict and sum. */
void cuda_jparticles_set_blocks(struct cuda *c, int64_t first, int64_t end);
/* Launches their prediction, which also stores the particles that wait for it. */
int cuda_jparticles_predict(struct cuda *c, struct error *err);
/* The particles that wait, for another kernel that predicts. */
struct cuda_arrivals cuda_jparticles_arrivals(const struct cuda *c);
/* Whether all particles that wait are in the blocks to predict. */
int cuda_jparticles_few_are_within(const struct cuda *c);
/* To be called after another kernel that predicts was launched. */
void cuda_jparticles_has_predicted(struct cuda *c);
