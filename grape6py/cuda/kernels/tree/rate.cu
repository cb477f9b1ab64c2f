/* rate.cu - the rates of expansions, for jerks: a second pass over the lists of tree/far.cu. */

enum { RATE_TERMS = 56 };

/* Every `step`-th cell of a list from `first` on, to an expansion (if wanted) and its rate. */
template <int ORDER, int BOTH>
DEVICE_FN void rate_cells(const struct tree_device_job &job, const struct tree_group *g,
                          const int32_t *list, int count, int first, int step, float *local,
                          float *rate)
{
    const float u = 1.0f / g->unit, eps2 = g->eps2 * u * u, speed = job.flow->speed;
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) local[k] = rate[k] = 0.0f;
    for (int k = first; k < count; k += step) {
        const struct tree_multipole c = multipole_of(&job.far[list[k]], g, u);
        const float e2 = TREE_OWN && job.term & PAIR_OWN ? eps2 + c.eps2 : eps2;
        float own[TREE_TERMS], v[3];
        const struct tree_multipole change = change_of(&job.motion[list[k]], u, v);
        TREE_UNROLL
        for (int t = 0; t < TREE_COUNT(TREE_SOFT, ORDER); t++) own[t] = 0.0f;
        tree_cell_to_local(ORDER, TREE_SOFT, c.x, c.y, c.z, e2, &c, own);
        tree_local_along(ORDER, TREE_SOFT, own, -v[0], -v[1], -v[2], rate);
        tree_cell_to_local(ORDER, TREE_SOFT, c.x, c.y, c.z, e2, &change, rate);
        TREE_UNROLL
        for (int t = 0; BOTH && t < TREE_COUNT(TREE_SOFT, ORDER); t++) local[t] += own[t];
    }
    TREE_UNROLL
    for (int by = 16; by; by /= 2) {
        TREE_UNROLL
        for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER - 1); k++)
            rate[k] += __shfl_xor_sync(EVERY, rate[k], by);
        TREE_UNROLL
        for (int k = 0; BOTH && k < TREE_COUNT(TREE_SOFT, ORDER); k++)
            local[k] += __shfl_xor_sync(EVERY, local[k], by);
    }
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER - 1); k++) rate[k] *= speed;
}

/* Of level-2 or level-1 groups: a CUDA block each. */
template <int ORDER> DEVICE_FN void rate_large(const struct tree_device_job &job, const int level)
{
    __shared__ float part[4][TREE_COUNT(TREE_SOFT, ORDER - 1)];
    const struct tree_level_job &out = job.level[level];
    const int t = (int)threadIdx.x, slot = (int)blockIdx.x,
              id = first_group_of_level(job, level) + slot;
    const struct tree_group g = out.group[id];
    const int32_t *list =
        out.lists + (int64_t)slot * (out.capacity[0] + out.capacity[1] + out.capacity[2]);
    float local[TREE_TERMS], rate[TREE_TERMS];
    rate_cells<ORDER, 0>(job, &g, list, min(out.count[4 * slot], out.capacity[0]), t, 128, local,
                         rate);
    if (t % 32 == 0) {
        TREE_UNROLL
        for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER - 1); k++) part[t / 32][k] = rate[k];
    }
    __syncthreads();
    if (t) return;
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER - 1); k++)
        rate[k] = (part[0][k] + part[1][k]) + (part[2][k] + part[3][k]);
    if (level == 1) {
        const struct tree_group from = job.level[0].group[id / TREE_LEVEL2];
        const float *wide = job.level[0].rate + RATE_TERMS * (int64_t)(slot / TREE_LEVEL2);
        shift_local<ORDER - 1>(&from, wide, &g, rate);
    }
    TREE_UNROLL
    for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER - 1); k++)
        out.rate[RATE_TERMS * (int64_t)slot + k] = rate[k];
}

/* Adds what the expansions of a group or of a larger one do to a target. */
template <int ORDER>
DEVICE_FN void rate_on(const struct tree_device_job &job, const struct tree_group *g,
                       const float *local, float *rate, int target, float4 *sum)
{
    const struct pair_i b = jerk_body_of(job, g, target).at;
    const float u = 1.0f / g->unit;
    float phi = 0.0f, jerk[3] = {0.0f, 0.0f, 0.0f};
    tree_local_along(ORDER, TREE_SOFT, local, u * b.vx, u * b.vy, u * b.vz, rate);
    tree_local_to_point(ORDER - 1, TREE_SOFT, rate, u * b.x, u * b.y, u * b.z, &phi, jerk);
    sum->x += u * u * jerk[0], sum->y += u * u * jerk[1], sum->z += u * u * jerk[2];
}

/* Of groups, and on their targets: a warp each. */
template <int ORDER> DEVICE_FN void rate_groups(const struct tree_device_job &job)
{
    const struct tree_level_job &out = small_level(job);
    const int lane = (int)threadIdx.x % 32, slot = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    if (slot >= small_slots(job)) return;
    const struct tree_group g = out.group[small_group(job, slot)];
    const int32_t *list =
        out.lists + (int64_t)slot * (out.capacity[0] + out.capacity[1] + out.capacity[2]);
    float local[TREE_TERMS], rate[TREE_TERMS];
    rate_cells<ORDER, 1>(job, &g, list, min(out.count[4 * slot], out.capacity[0]), lane, 32, local,
                         rate);
    if (lane >= g.count) return;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    rate_on<ORDER>(job, &g, local, rate, g.first + lane, &sum);
    if (!job.from_root) {
        const int level1 = g.first / IN_LEVEL1;
        const struct tree_level_job &wide = job.level[1];
        const int64_t at = level1 - first_group_of_level(job, 1);
        const float *wide_local = wide.local + LOCAL_TERMS * at,
                    *wide_rate = wide.rate + RATE_TERMS * at;
        TREE_UNROLL
        for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER); k++) local[k] = wide_local[k];
        TREE_UNROLL
        for (int k = 0; k < TREE_COUNT(TREE_SOFT, ORDER - 1); k++) rate[k] = wide_rate[k];
        rate_on<ORDER>(job, &wide.group[level1], local, rate, g.first + lane, &sum);
    }
    job.far_jerk[g.first + lane] = sum;
}

#define RATE(order) RATE_(order)
#define RATE_(order)                                                                               \
    ORDER_KERNEL(tree_rate_level2, order, 1) { rate_large<order>(job, 0); }                        \
    ORDER_KERNEL(tree_rate_level1, order, 1) { rate_large<order>(job, 1); }                        \
    ORDER_KERNEL(tree_rate_groups, order, 1) { rate_groups<order>(job); }
RATE(TREE_ORDER)
