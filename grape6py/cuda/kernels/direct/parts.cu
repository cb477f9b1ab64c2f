/* parts.cu - sums of several devices, of which each has summed other blocks of addresses: the part
 * of each is given out, and all parts are merged. Bits are those of one device: partial.h.
 *
 * A part of n rows: limbs [sum][limb][n], r^2 of the nearest neighbours [n], tops [window][n],
 * addresses of the nearest neighbours [n]. */

#include "shared/neighbour.h"

enum { PART_LIMBS = NSUM * LIMBS };

struct part {
    long long *limbs;
    double *r2;
    int32_t *tops, *address;
};

DEVICE_FN struct part part_at(void *memory, int rows)
{
    struct part p;
    p.limbs = (long long *)memory;
    p.r2 = (double *)(p.limbs + (size_t)PART_LIMBS * rows);
    p.tops = (int32_t *)(p.r2 + rows);
    p.address = p.tops + (size_t)NWINDOW * rows;
    return p;
}

/* One thread per row. */
KERNEL(store_part, struct cuda_store_part_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.rows) return;
    const struct part to = part_at(job.part, job.rows);
    for (int k = 0; k < PART_LIMBS; k++)
        to.limbs[(size_t)k * job.rows + row] = job.limbs[k * job.stride + row];
    for (int w = 0; w < NWINDOW; w++)
        to.tops[(size_t)w * job.rows + row] = job.tops[w * job.stride + row];
    to.r2[row] = job.r2 ? job.r2[row] : 0.0;
    to.address[row] = job.r2 ? job.address[row] : -1;
}

DEVICE_FN double merged_sum(const struct cuda_merge_parts_job &job, int row, int k)
{
    const int w = window_of(k);
    int top = 0;
    int64_t limb[3] = {0, 0, 0};
    for (int p = 0; p < job.count; p++) {
        const struct part from = part_at(job.parts + p * job.part_bytes, job.rows);
        const int theirs = from.tops[(size_t)w * job.rows + row];
        top = theirs > top ? theirs : top;
    }
    if (top == CUDA_TOP_INVALID) return quiet_nan();
    for (int p = 0; p < job.count; p++) {
        const struct part from = part_at(job.parts + p * job.part_bytes, job.rows);
        const int down = top - from.tops[(size_t)w * job.rows + row];
        for (int d = 0; d < LIMBS; d++) {
            const int64_t a = from.limbs[(size_t)(k * LIMBS + d) * job.rows + row];
            for (int to = 0; to < LIMBS; to++)
                if (to == d + down) limb[to] += a;
        }
    }
    return top ? limbs_value(limb[0], limb[1], limb[2], top - CUDA_TOP_ZERO) : 0.0;
}

DEVICE_FN void merge_nearest(const struct cuda_merge_parts_job &job, int row)
{
    double r2 = 0.0;
    int address = -1;
    for (int p = 0; p < job.count; p++) {
        const struct part from = part_at(job.parts + p * job.part_bytes, job.rows);
        const int theirs = from.address[row];
        if (theirs < 0 || !neighbour_is_nearer(from.r2[row], theirs, r2, address)) continue;
        r2 = from.r2[row];
        address = theirs;
    }
    job.nearest_address[row] = address;
    /* of all slots: only this share's particles are predicted */
    job.nearest_index[row] =
        address < 0 ? 0 : (int32_t)job.store.body[11 * job.store.slots + address];
    job.nearest_r2[row] = r2;
}

/* Eight threads per row, in whole warps: one for each sum, and one for the nearest neighbour. */
KERNEL(merge_parts, struct cuda_merge_parts_job, 256, 1)
{
    const int k = (int)threadIdx.x / 32, row = (int)(blockIdx.x * 32 + threadIdx.x % 32);
    if (row >= job.rows) return;
    if (k < NSUM)
        job.sum[k * job.stride + row] = merged_sum(job, row, k);
    else
        merge_nearest(job, row);
}
