/* force.h - a force call of one device: transfer of i particles, launches, results, and the host
 * fallback. */
#pragma once

#include "cuda/cuda.h"
#include "cuda/jparticles.h"

/* ---- force.c */
/* A force call, or share number `share` of `shares` of one: whole blocks of j addresses. */
int cuda_force_start(struct cuda *c, const struct upload *u, const struct targets *targets,
                     int share, int shares, struct error *err);
/* See struct backend's collect; the results are in cuda_results. */
int cuda_force_finish(struct cuda *c, unsigned want, int count, struct error *err);
/* Reads some rows of a completed call that computed partial sums. */
void cuda_force_read_rows(const struct cuda *c, int first, int count, struct partial_row *rows);
int cuda_force_reserve_rows(struct cuda *c, struct error *err);
/* Fetches all rows, and adds the host fallback to them and to the results. */
int cuda_force_settle(struct cuda *c, struct error *err);

/* ---- neighbours.c: see struct backend */
/* Launches the search for the lists of a call just launched, if the last call's were requested. */
void cuda_neighbours_ahead(struct cuda *c);
int cuda_neighbours(struct cuda *c, int first, int count, const double *h2,
                    struct neighbour_lists *lists, struct error *err);

/* ---- sum.c */
int cuda_sum_reserve_targets(struct cuda *c, int ni, struct error *err);
/* Loads the i particles from the caller's arrays in device memory. */
int cuda_sum_load_targets(struct cuda *c, struct error *err);
/* Launches the call's sums; with WANT_ROWS also partial sums (partial.h). */
int cuda_sum_all(struct cuda *c, unsigned want, struct error *err);
/* Pairs of so many i particles. */
static inline double cuda_sum_pairs(const struct cuda *c, int ni)
{
    return (double)ni * (double)(cuda_blocks(c) * CUDA_BLOCK);
}
/* Finishes the last call: waits for its launches, and resets the count of the host fallback. */
int cuda_sum_clean_up(struct cuda *c, struct error *err);

/* ---- launch_config.c */
/* The kernel (KERNEL_FEW, _SOME, _MIDDLE or _WIDE) for so many i particles. */
int cuda_launch_config_kernel(const struct cuda *c, int ni);
/* CUDA blocks of the middle or wide kernels that run at once. */
int64_t cuda_launch_config_places(const struct cuda *c);
/* Sets the rows of a tile, and the address blocks of a CUDA block. */
void cuda_launch_config_blocks(const struct cuda *c, int rows, struct cuda_sum_job *job);

/* ---- results.c: of each i particle 7 sums, r^2, address and index of the nearest neighbour */
struct cuda_results {
    double *sum, *r2; /* [NSUM][stride], [stride] */
    int32_t *address, *index;
};
/* In c->results or c->device_results. */
struct cuda_results cuda_results_in(const struct cuda *c, const struct cuda_memory *m);
struct results cuda_results(const struct cuda *c);
size_t cuda_results_bytes(const struct cuda *c);
int cuda_results_reserve(struct cuda *c, int ni, struct error *err);
/* Sets the results of a call without j particles. */
void cuda_results_clear(const struct cuda *c);
/* Partial sums as the kernels write them, in pinned memory, or of a share in device memory. */
struct cuda_rows {
    long long *limbs;
    int32_t *tops;
};
struct cuda_rows cuda_results_rows(const struct cuda *c);
int cuda_results_reserve_rows(struct cuda *c, struct error *err);
/* Copies them to pinned memory, if they are in device memory. */
int cuda_results_fetch_rows(struct cuda *c, struct error *err);
/* Sets the pointers to the results in a launch's job. */
void cuda_results_set_job(const struct cuda *c, struct cuda_sum_job *job);
/* Rounds a row's partial sums to its results. */
void cuda_results_round(const struct cuda *c, int row, const struct partial_row *from);
/* Replaces a row's nearest neighbour if this one is nearer. */
void cuda_results_take_nearer(const struct cuda *c, int row, double r2, int64_t address);
/* Waits for the results of the i particles below `count`, and notes whether pairs of them were left
 * to the host. */
int cuda_results_wait(struct cuda *c, int count, struct error *err);
/* Waits until a launch has written `value` to *flag, in pinned memory. */
int cuda_results_wait_for(struct cuda *c, const volatile unsigned long long *flag,
                          unsigned long long value, const char *what, struct error *err);
/* Whether the results of all rows are complete. */
int cuda_results_are_there(const struct cuda *c);
/* Whether any launch of the call may have left pairs to the host. */
int cuda_results_any_left(const struct cuda *c);
