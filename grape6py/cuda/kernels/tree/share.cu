/* share.cu - keys in the box of all ranks' particles, and which cells another rank's targets may
 * look into: see shared/tree_share.h. Parts are packed and joined by cuda/tree/share.py. */

KERNEL(tree_whole_keys, struct tree_device_job, 256, 1)
{
    __shared__ struct tree_box box;
    if (threadIdx.x == 0) tree_whole_box(&box, job.whole);
    __syncthreads();
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.target_count) return;
    float4 high, low;
    split_point(&box, job.targets + 3 * (int64_t)k, &high, &low);
    job.key[k] = key_of(&box, high, low);
}

/* Where runs of the particles, in the order of their keys, are: a block takes a run. */
KERNEL(tree_regions, struct tree_device_job, 128, 1)
{
    __shared__ double column[7][128];
    const int t = (int)threadIdx.x, begin = (int)blockIdx.x * IN_LEVEL1;
    const double infinite = from_bits((uint64_t)0x7ff << 52);
    double low[3] = {infinite, infinite, infinite}, high[3] = {-infinite, -infinite, -infinite};
    double least = infinite;
    for (int i = begin + t; i < job.n && i < begin + IN_LEVEL1; i += 128) {
        const float4 a = job.high[i], b = job.low[i];
        const double at[3] = {(double)a.x + (double)b.x, (double)a.y + (double)b.y,
                              (double)a.z + (double)b.z};
        for (int c = 0; c < 3; c++) low[c] = fmin(low[c], at[c]), high[c] = fmax(high[c], at[c]);
        if (job.last) least = fmin(least, job.last[job.order[i]]);
    }
    for (int c = 0; c < 3; c++) column[c][t] = low[c], column[3 + c][t] = -high[c];
    column[6][t] = least;
    for (int half = 64; half; half /= 2) {
        __syncthreads();
        if (t < half)
            for (int c = 0; c < 7; c++) column[c][t] = fmin(column[c][t], column[c][t + half]);
    }
    if (t || begin >= job.n) return;
    const struct tree_box *box = job.box;
    struct tree_region *region = &job.region[blockIdx.x];
    for (int c = 0; c < 3; c++) { /* a little larger: coordinates were split into two floats */
        region->low[c] = box->centre[c] + tree_scaled(column[c][0] - 0x1p-45, box->length);
        region->high[c] = box->centre[c] - tree_scaled(column[3 + c][0] - 0x1p-45, box->length);
    }
    region->least_acc = job.last ? fmax(column[6][0], 2.3e-308) : 0.0; /* 0: none are known */
}

/* Marks inner cells, and leaves whose particles may act one by one. A warp takes a region, and
 * looks at 32 cells at once, as in a traversal. */
KERNEL(tree_mark, struct tree_device_job, 128, 8)
{
    __shared__ int32_t stacks[TRAVERSAL_WARPS][TRAVERSAL_STACK];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int k = (int)blockIdx.x * TRAVERSAL_WARPS + warp;
    if (k >= job.region_count) return;
    const struct tree_region region = job.region[k];
    const struct tree_opening o = *job.opening;
    const struct tree_cell_centre *places = job.order_of_expansion ? job.place : job.barnes_hut;
    struct tree_group g;
    tree_region_group(job.box, &region, &g);
    g.unit = tree_unit(&o, &g);
    int32_t *const stack = stacks[warp];
    int top = 1, tally[1];
    if (lane == 0) stack[0] = 0;
    __syncwarp();
    while (top > 0) {
        const int left = TRAVERSAL_STACK - 8 * TREE_LEVELS - top;
        const int taken = min(min(32, top), max(1, left / 8));
        top -= taken;
        const int cell = lane < taken ? stack[top + lane] : -1;
        __syncwarp();
        struct tree_cell c = {0, 0, 0, 0};
        bool opens = false;
        if (cell >= 0) {
            const struct tree_cell_centre p = whole(&places[cell]);
            c = whole(&job.cell[cell]);
            const struct tree_distance d = tree_distance_of(&g, p.x, p.y, p.z);
            bool point = tree_reach_point(&o, &g, p.size) < d.box;
            if (o.bound_point > 0.0f)
                point = point && tree_within_point(&o, &g, fabsf(job.far[cell].m), p.size, d.box);
            const bool light = c.child < 0 && c.end - c.first < o.least_count;
            opens = !point || light;
            if (opens) job.opened[cell] = 1; /* as other warps may */
        }
        push<1>(opens && c.child >= 0, &c, stack, &top, tally);
    }
}
