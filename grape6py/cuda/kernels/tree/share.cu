/* share.cu - keys in the box of all ranks' particles, and which cells another rank's targets may
 * look into: see shared/tree_share.h. Parts are joined by cuda/tree/share.py. */

KERNEL(tree_whole_keys, struct tree_device_job, 256, 1)
{
    __shared__ struct tree_box box;
    if (threadIdx.x == 0) tree_whole_box(&box, job.whole);
    __syncthreads();
    key_of_target(job, box);
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
    combine<7>(column, [](int, double a, double b) { return fmin(a, b); });
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
    tree_region_group(job.box, &region, *job.eps2, &g);
    g.unit = tree_unit(&o, &g);
    const bool by_weight = tree_goes_by_weight(&o);
    walk_of_warp(job, places, stacks[warp],
                 [&](int cell, const tree_cell &c, const tree_cell_centre &p) {
                     const struct tree_distance d = tree_distance_of(&o, &g, p.x, p.y, p.z);
                     bool point = tree_reach_point(&o, &g, p.size, 0.0f) < d.box;
                     if (point && by_weight) {
                         const struct tree_cell_multipole *far = &job.far[cell];
                         const struct tree_weight w =
                             tree_weight_of(&g, far->m, far->spread, p.size, tree_bodies_of(&c));
                         point = tree_within_point(&o, &g, &w, d.box);
                     }
                     const bool opens = !point || (c.child < 0 && c.end - c.first < o.least_count);
                     if (opens) job.opened[cell] = 1; /* as other warps may */
                     return opens;
                 });
}

/* Which cells are in a part: the root, and those in cells that are opened; and how many particles
 * are in those that are opened leaves. */
KERNEL(subtree_cells, struct tree_device_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.status->cells) return;
    if (k == 0) job.in_part[0] = 1;
    if (!job.opened[k]) return;
    const struct tree_cell c = job.cell[k];
    if (c.child < 0)
        job.in_leaf[k] = c.end - c.first;
    else
        for (int child = c.child; child < c.child_end; child++) job.in_part[child] = 1;
}

/* Packs a part: see shared/tree_share.h. in_part and in_leaf are summed up. */
KERNEL(tree_pack, struct tree_device_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x), all = job.status->cells;
    if (k >= all) return;
    const int number = job.in_part[k] - 1, before = k ? job.in_part[k - 1] : 0;
    if (number < before) return; /* not in it */
    const int64_t cells = job.in_part[all - 1], particles = job.in_leaf[all - 1];
    const bool moving = job.v != 0;
    const struct tree_cell_centre *places = job.order_of_expansion ? job.place : job.barnes_hut;
    struct subtree_header *header = (struct subtree_header *)job.part;
    struct tree_cell *cell = (struct tree_cell *)(header + 1);
    struct tree_cell_multipole *far = (struct tree_cell_multipole *)(cell + cells);
    struct tree_cell_centre *place = (struct tree_cell_centre *)(far + cells);
    struct tree_motion *motion = (struct tree_motion *)(place + cells);
    float4 *high = (float4 *)(motion + (moving ? cells : 0)), *low = high + particles;
    float4 *velocity = low + particles, *end = velocity + (moving ? particles : 0);
    if (k == 0) {
        header->cells = cells, header->particles = particles, header->moving = moving;
        header->bytes = (char *)end - (char *)header;
    }
    const struct tree_cell c = job.cell[k];
    struct tree_cell as = {0, 0, -1, subtree_bodies(&c)};
    if (job.opened[k] && c.child >= 0) {
        as.end = as.child_end;
        as.child = job.in_part[c.child] - 1;
        as.child_end = as.child + c.child_end - c.child;
    } else if (job.opened[k]) {
        as.end = job.in_leaf[k], as.first = as.end - (c.end - c.first);
        for (int i = 0; i < c.end - c.first; i++) {
            float4 rest = job.low[c.first + i];
            rest.w = 0.0f; /* where the tree has digits of keys */
            high[as.first + i] = job.high[c.first + i], low[as.first + i] = rest;
            if (moving) velocity[as.first + i] = job.velocity[c.first + i];
        }
    }
    cell[number] = as, far[number] = job.far[k], place[number] = places[k];
    if (moving) motion[number] = job.motion[k];
}
