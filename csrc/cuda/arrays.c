/* arrays.c - force calls with i particles and forces in device memory. Kernel read_targets
 * (arrays.cu) loads the i particles, cuda/sum.c launches the sums, write_forces stores them. */
#include <string.h>

#include "cuda/arrays.h"
#include "cuda/force.h"

/* ---- outputs ---------------------------------------------------------------------------- */

/* Whether the results are in the device's memory, and not in pinned memory. */
static int are_on_device(const struct cuda *c) { return c->targets.on_device && c->launched; }

static int write_forces(struct cuda *c, const struct device_forces *to, int rows, int failed,
                        struct error *err)
{
    const struct cuda_results from = cuda_results_in(c, &c->device_results);
    const int listed = c->targets.rows && !failed;
    struct cuda_write_forces_job job = {.list = listed ? cuda_pointer(&c->list) : NULL,
                                        .store = cuda_jparticles_store(c),
                                        .time = c->time,
                                        .targets = cuda_pointer(&c->device_targets),
                                        .sum = from.sum,
                                        .nearest_address = from.address,
                                        .nearest_index = from.index,
                                        .acc = (double *)to->acc,
                                        .jerk = (double *)to->jerk,
                                        .pot = to->pot,
                                        .nearest = to->nearest,
                                        .distance = to->distance,
                                        .notes = cuda_notes(c),
                                        .stride = c->stride,
                                        .rows = rows,
                                        .snap = c->snap,
                                        .has_jerk = c->jerk,
                                        .failed = failed};
    return rows > 0 ? cuda_device_launch(c, 0, KERNEL_WRITE_FORCES, ceil_div(rows, THREADS), 1,
                                         &job, err)
                    : 0;
}

/* Reads the particle index of a noted row; row and index are -1 if no row was noted. */
static int noted(struct cuda *c, int row, struct device_row *found, struct error *err)
{
    const struct cuda_target *targets = cuda_pointer(&c->device_targets);
    *found = (struct device_row){-1, -1};
    if (row == CUDA_NO_ROW) return 0;
    found->row = row;
    for (int k = 0; k < c->targets.ni && c->targets.rows; k++)
        if (c->targets.rows[k] == found->row) row = k;
    return cuda_device_copy_out(c, &found->index, &targets[row].index, sizeof found->index, err);
}

int cuda_arrays_write_outputs(struct cuda *c, const struct device_forces *to,
                              struct device_found *found, struct error *err)
{
    int code = 0;
    if (!are_on_device(c) && to->ni)
        code = cuda_device_copy_in(c, cuda_pointer(&c->device_results), cuda_pointer(&c->results),
                                   cuda_results_bytes(c), err);
    cuda_notes(c)->out_of_range = CUDA_NO_ROW;
    if (!code && c->busy > 1)
        code = cuda_results_wait(c, c->targets.ni, err); /* sums run on several streams */
    if (!code) code = write_forces(c, to, c->targets.ni, 0, err);
    if (!code) code = cuda_device_wait(c, 0, "sum", err);
    if (!code) code = cuda_results_wait(c, c->targets.ni, err);
    if (!code) code = noted(c, cuda_notes(c)->invalid, &found->invalid, err);
    if (!code) code = noted(c, cuda_notes(c)->out_of_range, &found->out_of_range, err);
    found->left = are_on_device(c) && c->sums == SUMS_LEFT;
    if (c->rows_calls && !found->left) c->rows_calls--;
    return code;
}

int cuda_arrays_fill_nan(struct cuda *c, const struct device_forces *to, void *stream,
                         struct error *err)
{
    int code = cuda_device_wait_for_caller(c, stream, err);
    if (!code) code = write_forces(c, to, to->ni, 1, err);
    return code ? code : cuda_device_wait(c, 0, "sum", err);
}

/* ---- to the host ------------------------------------------------------------------------ */

int cuda_arrays_fetch(struct cuda *c, const struct rows *to, struct error *err)
{
    struct targets *t = &c->targets;
    const size_t ni = (size_t)t->ni;
    struct cuda_target *pinned = cuda_pointer(&c->pinned_targets);
    int code = 0;
    for (size_t i = 0; i < ni && !t->h2; i++) to->h2[i] = -1.0;
    if (ni && t->h2) code = cuda_device_copy_out(c, to->h2, t->h2, ni * sizeof *to->h2, err);
    if (!code && ni)
        code = cuda_device_copy_out(c, pinned, cuda_pointer(&c->device_targets),
                                    ni * sizeof *pinned, err);
    if (!code && ni && are_on_device(c))
        code = cuda_device_copy_out(c, cuda_pointer(&c->results), cuda_pointer(&c->device_results),
                                    cuda_results_bytes(c), err);
    if (code) return code;
    for (size_t i = 0; i < ni; i++) {
        to->index[i] = pinned[i].index;
        memcpy(to->x[i], pinned[i].x, sizeof to->x[i]);
        memcpy(to->v[i], pinned[i].v, sizeof to->v[i]);
        to->eps2[i] = pinned[i].eps2;
        to->invalid[i] = pinned[i].invalid != 0;
    }
    *t = (struct targets){.ni = t->ni,
                          .index = to->index,
                          .x = CONST3(to->x),
                          .v = CONST3(to->v),
                          .eps2 = to->eps2,
                          .rows = t->rows};
    return 0;
}
