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
