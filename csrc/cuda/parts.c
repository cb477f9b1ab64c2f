/* parts.c - a share of a force call's sum as a part (kernels/direct/parts.cu), and the results of a
 * call from the parts of all shares. */

#include "cuda/arrays.h"
#include "cuda/force.h"
#include "util/memory.h"

enum { ROWS_OF_MERGE = 32 };

/* A part from the rows of the host, to which pairs were left. */
static void pack(const struct cuda *c, char *part)
{
    const int ni = c->targets.ni, limbs = limbs_of(c->mode);
    const struct cuda_results from = cuda_results_in(c, &c->results);
    int64_t *limb = (int64_t *)(void *)part;
    double *r2 = (double *)(void *)(limb + (int64_t)NSUM * limbs * ni);
    int32_t *top = (int32_t *)(void *)(r2 + ni), *address = top + (int64_t)NWINDOW * ni;
    for (int i = 0; i < ni; i++) {
        const struct partial_row *row = &c->rows[i];
        for (int k = 0; k < NSUM; k++)
            for (int d = 0; d < limbs; d++)
                limb[(int64_t)(k * limbs + d) * ni + i] = row->limb[k][d];
        for (int w = 0; w < NWINDOW; w++)
            top[(int64_t)w * ni + i] =
                row->invalid >> w & 1 ? CUDA_TOP_INVALID : row->top[w] + CUDA_TOP_ZERO;
        r2[i] = c->has & WANT_NEAREST ? from.r2[i] : 0.0;
        address[i] = c->has & WANT_NEAREST ? from.address[i] : -1;
    }
}

static int store_from_host(struct cuda *c, void *part, struct error *err)
{
    const int64_t bytes = part_bytes(c->mode, c->targets.ni);
    char *packed = memory_zeroed((size_t)bytes);
    if (!packed)
        return error_set(err, G6X_E_MEMORY, "out of memory for a part of %d rows", c->targets.ni);
    pack(c, packed);
    const int code = cuda_device_copy_in(c, part, packed, (size_t)bytes, err);
    memory_free(packed);
    return code;
}

int cuda_parts_store(struct cuda *c, void *part, void *stream, int *left, struct error *err)
{
    const int code = cuda_results_wait(c, c->targets.ni, err);
    *left = !code && c->sums == SUMS_LEFT;
    if (code || *left) return code;
    if (c->sums == SUMS_SETTLED) return store_from_host(c, part, err);
    const struct cuda_rows rows = cuda_results_rows(c);
    const struct cuda_results nearest = cuda_results_in(c, &c->device_results);
    struct cuda_store_part_job job = {.limbs = rows.limbs,
                                      .tops = rows.tops,
                                      .r2 = c->has & WANT_NEAREST ? nearest.r2 : NULL,
                                      .address = nearest.address,
                                      .stride = c->stride,
                                      .part = part,
                                      .rows = c->targets.ni};
    return cuda_device_launch_for(c, stream, KERNEL_STORE_PART, ceil_div(job.rows, THREADS), 1,
                                  &job, err);
}

int cuda_parts_merge(struct cuda *c, void *parts, int64_t bytes, int count, void *stream,
                     struct error *err)
{
    const struct cuda_results to = cuda_results_in(c, &c->device_results);
    struct cuda_merge_parts_job job = {.parts = parts,
                                       .part_bytes = bytes,
                                       .store = cuda_jparticles_store(c),
                                       .sum = to.sum,
                                       .nearest_r2 = to.r2,
                                       .nearest_address = to.address,
                                       .nearest_index = to.index,
                                       .stride = c->stride,
                                       .rows = c->targets.ni,
                                       .count = count};
    const int code = cuda_device_launch_for(c, stream, KERNEL_MERGE_PARTS,
                                            ceil_div(job.rows, ROWS_OF_MERGE), 1, &job, err);
    c->targets.on_device = 1; /* as are the results, also after pairs were left to the host */
    c->sums = SUMS_SETTLED;
    return code ? code : cuda_device_follow(c, 0, stream, err);
}
