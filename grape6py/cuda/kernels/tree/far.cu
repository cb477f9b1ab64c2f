/* far.cu - what acts through expansions: cells on groups of all levels, and these on their
 * targets. */

/* Numbers of all lanes of a warp, added up for all of them. Through shared memory: a lane adds
 * those of one row, or two. That takes fewer instructions than exchanging each number five times.
 */
enum { SUM_ROW = 33 };
template <int COUNT> DEVICE_FN void sum_up(float *numbers, float *shared)
{
    const int lane = (int)threadIdx.x % 32;
    TREE_UNROLL
    for (int k = 0; k < COUNT; k++) shared[SUM_ROW * k + lane] = numbers[k];
    __syncwarp();
    float sum[(COUNT + 31) / 32];
    TREE_UNROLL
    for (int half = 0; half < (COUNT + 31) / 32; half++) {
        const float *row = shared + SUM_ROW * min(lane + 32 * half, COUNT - 1);
        float part[4] = {row[0], row[1], row[2], row[3]};
        TREE_UNROLL
        for (int k = 4; k < 32; k++) part[k % 4] += row[k];
        sum[half] = (part[0] + part[1]) + (part[2] + part[3]);
    }
    __syncwarp();
    TREE_UNROLL
    for (int half = 0; half < (COUNT + 31) / 32; half++)
        if (lane + 32 * half < COUNT) shared[lane + 32 * half] = sum[half];
    __syncwarp();
    TREE_UNROLL
    for (int k = 0; k < COUNT; k++) numbers[k] = shared[k];
    __syncwarp();
}

/* Every `step`-th cell of a list from `first` on, to an expansion in the group's units. */
template <int ORDER>
DEVICE_FN void expand_cells(const struct tree_device_job &job, const struct tree_group *g,
                            const int32_t *list, int count, int first, int step, float *local,
                            float *shared)
{
    const float u = 1.0f / g->unit, eps2 = g->eps2 * u * u;
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) local[k] = 0.0f;
    for (int k = first; k < count; k += step) {
        const struct tree_multipole c = multipole_of(&job.far[list[k]], g, u);
        const float own = TREE_OWN && job.term & PAIR_OWN ? eps2 + c.eps2 : eps2;
        tree_cell_to_local(ORDER, TREE_SOFT, c.x, c.y, c.z, own, &c, local);
    }
    sum_up<TREE_COUNT(TREE_SOFT, ORDER)>(local, shared);
}

/* The expansion of a larger group about a smaller one's centre, in its units, added. */
template <int ORDER>
DEVICE_FN void shift_local(const struct tree_group *from, const float *wide,
                           const struct tree_group *g, float *local)
{
    float all[TREE_TERMS], moved[TREE_TERMS];
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) all[k] = wide[k], moved[k] = 0.0f;
    const float u = 1.0f / from->unit, ratio = g->unit * u;
    tree_local_to_local(ORDER, TREE_SOFT, all, (g->x - from->x) * u, (g->y - from->y) * u,
                        (g->z - from->z) * u, moved);
    float power = ratio;
    TREE_UNROLL
    for (int n = 0; n <= ORDER; n++) {
        TREE_UNROLL
        for (int k = TREE_COUNT(TREE_SOFT, n - 1); k < TREE_COUNT(TREE_SOFT, n); k++)
            local[k] += power * moved[k];
        power *= ratio;
    }
}

/* The same, by the four warps of a CUDA block. */
template <int ORDER>
DEVICE_FN void expand_by_block(const struct tree_device_job &job, const struct tree_group *g,
                               const int32_t *list, int count, float *local)
{
    __shared__ float part[4][TREE_COUNT(TREE_SOFT, ORDER)];
    __shared__ float shared[4][SUM_ROW * TREE_COUNT(TREE_SOFT, ORDER)];
    const int t = (int)threadIdx.x;
    expand_cells<ORDER>(job, g, list, count, t, 128, local, shared[t / 32]);
    if (t % 32 == 0) {
        TREE_UNROLL
        for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) part[t / 32][k] = local[k];
    }
    __syncthreads();
    if (t < TREE_COUNT(TREE_SOFT, ORDER))
        part[0][t] = (part[0][t] + part[1][t]) + (part[2][t] + part[3][t]);
    __syncthreads();
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) local[k] = part[0][k];
}

/* Expansions of level-2 or level-1 groups: a CUDA block each. */
template <int ORDER> DEVICE_FN void expand_large(const struct tree_device_job &job, const int level)
{
    const struct tree_level_job &out = job.level[level];
    const int t = (int)threadIdx.x, slot = (int)blockIdx.x,
              id = first_group_of_level(job, level) + slot;
    const struct tree_group g = out.group[id];
    const int32_t *list =
        out.lists + (int64_t)slot * (out.capacity[0] + out.capacity[1] + out.capacity[2]);
    float local[TREE_TERMS];
    expand_by_block<ORDER>(job, &g, list, min(out.count[4 * slot], out.capacity[0]), local);
    if (t) return;
    if (level == 1) {
        const struct tree_group from = job.level[0].group[id / TREE_LEVEL2];
        const float *wide = job.level[0].local + LOCAL_TERMS * (int64_t)(slot / TREE_LEVEL2);
        shift_local<ORDER>(&from, wide, &g, local);
    }
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++)
        out.local[LOCAL_TERMS * (int64_t)slot + k] = local[k];
}

/* Adds what the expansion of a group or of a larger one does to a target. */
template <int ORDER>
DEVICE_FN void local_on(const struct tree_group *g, const float *local, float4 high, float4 low,
                        float4 *sum)
{
    const float u = 1.0f / g->unit;
    float phi = 0.0f, acc[3] = {0.0f, 0.0f, 0.0f};
    tree_local_to_point(ORDER, TREE_SOFT, local, u * ((high.x - g->x) + low.x),
                        u * ((high.y - g->y) + low.y), u * ((high.z - g->z) + low.z), &phi, acc);
    sum->x += u * u * acc[0], sum->y += u * u * acc[1], sum->z += u * u * acc[2];
    sum->w += u * phi;
}

/* Expansions of groups, and on their targets: a warp each, or a CUDA block each. */
template <int ORDER, int BY_BLOCK> DEVICE_FN void expand_groups(const struct tree_device_job &job)
{
    const struct tree_level_job &out = small_level(job);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int slot = BY_BLOCK ? (int)blockIdx.x : (int)blockIdx.x * 4 + warp;
    if (slot >= small_slots(job)) return;
    const struct tree_group g = out.group[small_group(job, slot)];
    const int32_t *list =
        out.lists + (int64_t)slot * (out.capacity[0] + out.capacity[1] + out.capacity[2]);
    const int count = min(out.count[4 * slot], out.capacity[0]);
    float local[TREE_TERMS];
    if (BY_BLOCK) {
        expand_by_block<ORDER>(job, &g, list, count, local);
    } else {
        __shared__ float shared[4][SUM_ROW * TREE_COUNT(TREE_SOFT, ORDER)];
        expand_cells<ORDER>(job, &g, list, count, lane, 32, local, shared[warp]);
    }
    if (lane >= g.count || (BY_BLOCK && warp)) return;
    const float4 high = (job.targets ? job.target_high : job.high)[g.first + lane];
    const float4 low = (job.targets ? job.target_low : job.low)[g.first + lane];
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    local_on<ORDER>(&g, local, high, low, &sum);
    if (!job.from_root) {
        const int level1 = g.first / IN_LEVEL1;
        const float *wide =
            job.level[1].local + LOCAL_TERMS * (int64_t)(level1 - first_group_of_level(job, 1));
        TREE_UNROLL
        for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) local[k] = wide[k];
        local_on<ORDER>(&job.level[1].group[level1], local, high, low, &sum);
    }
    job.far_sum[g.first + lane] = sum;
}

#if TREE_SOFT && TREE_OWN
#define ORDER_NAME(name, order) name##_##order##_soft_own
#elif TREE_SOFT
#define ORDER_NAME(name, order) name##_##order##_soft
#elif TREE_OWN
#define ORDER_NAME(name, order) name##_##order##_own
#else
#define ORDER_NAME(name, order) name##_##order
#endif
#define ORDER_KERNEL(name, order, blocks)                                                          \
    KERNEL(ORDER_NAME(name, order), struct tree_device_job, 128, blocks)
/* CUDA blocks at a time on a multiprocessor: as many as there are registers for. */
enum { EXPAND_BLOCKS = TREE_SOFT ? (TREE_ORDER < 5 ? 4 : 3) : TREE_ORDER < 6 ? 5 : 4 };

#define EXPAND(order) EXPAND_(order)
#define EXPAND_(order)                                                                             \
    ORDER_KERNEL(tree_expand_level2, order, 1) { expand_large<order>(job, 0); }                    \
    ORDER_KERNEL(tree_expand_level1, order, 1) { expand_large<order>(job, 1); }                    \
    ORDER_KERNEL(tree_expand_groups, order, EXPAND_BLOCKS) { expand_groups<order, 0>(job); }       \
    ORDER_KERNEL(tree_expand_blocks, order, EXPAND_BLOCKS) { expand_groups<order, 1>(job); }
EXPAND(TREE_ORDER)
