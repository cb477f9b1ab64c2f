/* traverse.cu - groups of targets, and which cells act on them: as csrc/tree/kernel.c does it. A
 * warp takes a group, and looks at 32 cells at once. */

/* Of single precision numbers, as integers of the same order. */
DEVICE_FN int ordered_int(float a)
{
    const int bits = __float_as_int(a);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

DEVICE_FN float from_ordered_int(int a) { return __int_as_float(a < 0 ? a ^ 0x7fffffff : a); }

DEVICE_FN float most_of_warp(float a) { return from_ordered_int(max_of_warp(ordered_int(a))); }
DEVICE_FN float least_of_warp(float a) { return -most_of_warp(-a); }

struct tree_bounds {
    float low[3], high[3], least_acc, eps2, most_eps2;
    int self_first, self_end;
};

DEVICE_FN void widen(struct tree_bounds *b, const struct tree_bounds *by)
{
    for (int c = 0; c < 3; c++) {
        b->low[c] = fminf(b->low[c], by->low[c]);
        b->high[c] = fmaxf(b->high[c], by->high[c]);
    }
    b->least_acc = fminf(b->least_acc, by->least_acc);
    b->eps2 = fminf(b->eps2, by->eps2);
    b->most_eps2 = fmaxf(b->most_eps2, by->most_eps2);
    b->self_first = min(b->self_first, by->self_first);
    b->self_end = max(b->self_end, by->self_end);
}

DEVICE_FN struct tree_group group_of(const struct tree_device_job &job, const struct tree_bounds *b,
                                     int first, int count)
{
    struct tree_group g;
    const float x = 0.5f * (b->low[0] + b->high[0]), y = 0.5f * (b->low[1] + b->high[1]);
    const float z = 0.5f * (b->low[2] + b->high[2]);
    g.x = x, g.y = y, g.z = z;
    g.half_x = fmaxf(b->high[0] - x, x - b->low[0]);
    g.half_y = fmaxf(b->high[1] - y, y - b->low[1]);
    g.half_z = fmaxf(b->high[2] - z, z - b->low[2]);
    g.least_acc = b->least_acc;
    g.eps2 = b->eps2;
    g.eps2_spread = b->most_eps2 - b->eps2;
    g.reach = 0.0f;
    if (job.term) tree_own_group(&g, job.term);
    g.radius = g.unit = 0.0f;
    g.first = first, g.count = count;
    g.self_first = b->self_first, g.self_end = b->self_end;
    return g;
}

DEVICE_FN float distance2(const struct tree_group *g, float4 p)
{
    const float x = p.x - g->x, y = p.y - g->y, z = p.z - g->z;
    return v_fma(z, z, v_fma(y, y, v_mul(x, x)));
}

DEVICE_FN void close_group(const struct tree_device_job &job, struct tree_group *g, float r2)
{
    g->radius = __fsqrt_rn(r2);
    g->unit = tree_unit(job.opening, g);
}

/* Of the targets of a warp's lanes. */
DEVICE_FN struct tree_group group_of_warp(const struct tree_device_job &job, int target, int first,
                                          int count, struct tree_bounds *b)
{
    const float4 p = (job.targets ? job.target_high : job.high)[target];
    b->low[0] = least_of_warp(p.x), b->high[0] = most_of_warp(p.x);
    b->low[1] = least_of_warp(p.y), b->high[1] = most_of_warp(p.y);
    b->low[2] = least_of_warp(p.z), b->high[2] = most_of_warp(p.z);
    b->least_acc = job.last_acc ? least_of_warp(job.last_acc[target]) : INFINITY;
    b->eps2 = b->most_eps2 = *job.eps2;
    if (job.term) {
        b->eps2 = least_of_warp(job.target_eps2[target]);
        b->most_eps2 = most_of_warp(job.target_eps2[target]);
    }
    const int self = job.targets ? job.target_self[target] : target;
    b->self_first = min_of_warp(self < 0 ? 0x7fffffff : self);
    b->self_end = max_of_warp(self) + 1;
    struct tree_group g = group_of(job, b, first, count);
    close_group(job, &g, most_of_warp(distance2(&g, p)));
    return g;
}

/* Groups of all levels: a CUDA block takes a level-2 group, a warp a level-1 group. */
KERNEL(tree_groups, struct tree_device_job, 256, 1)
{
    __shared__ struct tree_bounds bounds[TREE_LEVEL2];
    __shared__ struct tree_group level2;
    __shared__ float farthest[TREE_LEVEL2];
    const int n = job.target_count, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int level1 = (int)blockIdx.x * TREE_LEVEL2 + warp, first = level1 * IN_LEVEL1;
    const float4 *points = job.targets ? job.target_high : job.high;
    struct tree_bounds all;
    for (int c = 0; c < 3; c++) all.low[c] = INFINITY, all.high[c] = -INFINITY;
    all.least_acc = all.eps2 = INFINITY, all.most_eps2 = 0.0f, all.self_first = 0x7fffffff,
    all.self_end = 0;
    for (int g = 0; g < TREE_LEVEL1 && first + g * TREE_GROUP < n; g++) {
        const int at = first + g * TREE_GROUP, k = min(at + lane, n - 1);
        struct tree_bounds b;
        const struct tree_group group = group_of_warp(job, k, at, min((int)TREE_GROUP, n - at), &b);
        if (lane == 0) job.level[2].group[at / TREE_GROUP] = group;
        widen(&all, &b);
    }
    if (lane == 0) bounds[warp] = all;
    struct tree_group mine = group_of(job, &all, first, min((int)IN_LEVEL1, n - first));
    float r2 = 0.0f;
    for (int k = first + lane; k < first + IN_LEVEL1 && k < n; k += 32)
        r2 = fmaxf(r2, distance2(&mine, points[k]));
    r2 = most_of_warp(r2);
    if (lane == 0 && first < n) {
        close_group(job, &mine, r2);
        job.level[1].group[level1] = mine;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < TREE_LEVEL2; w++) widen(&all, &bounds[w]);
        level2 = group_of(job, &all, first, min((int)IN_LEVEL1 * TREE_LEVEL2, n - first));
    }
    __syncthreads();
    r2 = 0.0f;
    for (int k = first + lane; k < first + IN_LEVEL1 && k < n; k += 32)
        r2 = fmaxf(r2, distance2(&level2, points[k]));
    r2 = most_of_warp(r2);
    if (lane == 0) farthest[warp] = r2;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < TREE_LEVEL2; w++) r2 = fmaxf(r2, farthest[w]);
    close_group(job, &level2, r2);
    job.level[0].group[blockIdx.x] = level2;
}

/* ---- the walk ------------------------------------------------------------------------------ */

enum { TRAVERSAL_WARPS = 4, TRAVERSAL_STACK = 1024 }; /* of a CUDA block; of a warp */
enum { LIST_M2L, LIST_M2P, LIST_P2P, LISTS, LIST_REST = LIST_P2P };

/* Waits for the warps that walk together. */
template <int WARPS> DEVICE_FN void meet(void)
{
    if (WARPS == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* The sum of what the warps before this one have, and that of all. A tally serves again after the
 * next meeting. */
template <int WARPS> DEVICE_FN int before_warp(int mine, int *tally, int *all)
{
    *all = mine;
    if (WARPS == 1) return 0;
    if (threadIdx.x % 32 == 0) tally[threadIdx.x / 32] = mine;
    __syncthreads();
    int before = *all = 0;
    TREE_UNROLL
    for (int w = 0; w < WARPS; w++) {
        if (w == (int)threadIdx.x / 32) before = *all;
        *all += tally[w];
    }
    return before;
}

/* Appends the cells of those lanes that want it; whether they fit or not, they are counted. */
template <int WARPS>
DEVICE_FN void append(bool wanted, int cell, int32_t *list, int direction, int capacity, int *count,
                      int *tally)
{
    const unsigned who = __ballot_sync(EVERY, wanted), below = (1u << threadIdx.x % 32) - 1;
    if (WARPS == 1 && !who) return;
    int all;
    const int at = *count + before_warp<WARPS>(__popc(who), tally, &all) + __popc(who & below);
    if (wanted && at < capacity) list[direction * at] = cell;
    *count += all;
}

/* Pushes the children of those lanes' cells. They fit: see how many are taken at once. */
template <int WARPS>
DEVICE_FN void push(bool wanted, const struct tree_cell *c, int32_t *stack, int *top, int *tally)
{
    const int lane = (int)threadIdx.x % 32, mine = wanted ? c->child_end - c->child : 0;
    int sum = mine, all;
    for (int by = 1; by < 32; by *= 2) {
        const int from = __shfl_up_sync(EVERY, sum, by);
        if (lane >= by) sum += from;
    }
    const int before = before_warp<WARPS>(__shfl_sync(EVERY, sum, 31), tally, &all);
    for (int k = 0; k < mine; k++) stack[*top + before + sum - mine + k] = c->child + k;
    *top += all;
    meet<WARPS>();
}

DEVICE_FN int targets_of(int kind)
{
    return kind < EIGHTS ? (int)TREE_GROUP : kind == EIGHTS ? 8 : 1;
}

/* Has a group summed as something else. One thread calls it. */
DEVICE_FN void sum_again(const struct tree_device_job &job, const struct tree_group *g, int kind)
{
    const int size = targets_of(kind), parts = (g->count + size - 1) / size;
    const int at = atomicAdd(&job.status->again[kind], parts);
    for (int k = 0; k < parts && at + k < job.again_capacity; k++)
        job.again[kind][at + k] = g->first + size * k;
}

/* Groups of one kind, as tree_groups makes groups. */
KERNEL(tree_groups_of_kind, struct tree_device_job, 128, 1)
{
    const int lane = (int)threadIdx.x % 32, slot = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    if (slot >= small_slots(job)) return;
    const int id = small_group(job, slot);
    const int first =
        job.kind == GROUPS ? (int)TREE_GROUP * id : job.again[job.kind][job.first_slot + slot];
    const int count = min(targets_of(job.kind), job.target_count - first);
    struct tree_bounds b;
    const struct tree_group group =
        group_of_warp(job, first + min(lane, count - 1), first, count, &b);
    if (lane == 0) small_level(job).group[id] = group;
}

/* Walks the tree with a warp from its root; `look` says of a cell whether it is opened. */
template <class Look>
DEVICE_FN void walk_of_warp(const struct tree_device_job &job,
                            const struct tree_cell_centre *places, int32_t *stack, Look look)
{
    const int lane = (int)threadIdx.x % 32;
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
            const struct tree_cell_centre place = whole(&places[cell]);
            c = whole(&job.cell[cell]);
            opens = look(cell, c, place);
        }
        push<1>(opens && c.child >= 0, &c, stack, &top, tally);
    }
}

/* Whether a cell has a target of a group, which may lie far apart: by their places, or -1. */
DEVICE_FN bool has_target(const struct tree_cell &c, const struct tree_group *g, const int *self)
{
    if (c.first >= g->self_end || c.end <= g->self_first) return false;
    for (int k = 0; k < 32; k++)
        if (c.first <= self[k] && self[k] < c.end) return true;
    return false;
}

/* How strong the field is at groups of targets (shared/tree_pull.h): a warp each. */
KERNEL(tree_pulls, struct tree_device_job, 128, 8)
{
    __shared__ int32_t stacks[TRAVERSAL_WARPS][TRAVERSAL_STACK], selves[TRAVERSAL_WARPS][32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, n = job.target_count;
    const int first = ((int)blockIdx.x * TRAVERSAL_WARPS + warp) * TREE_GROUP;
    if (first >= n) return;
    const int target = min(first + lane, n - 1), *self = selves[warp];
    selves[warp][lane] = job.targets ? job.target_self[target] : target;
    struct tree_bounds b;
    const struct tree_group g =
        group_of_warp(job, target, first, min((int)TREE_GROUP, n - first), &b);
    struct tree_pull sum = tree_pull_none();
    walk_of_warp(job, job.place, stacks[warp],
                 [&](int cell, const tree_cell &c, const tree_cell_centre &at) {
                     const float place[4] = {at.x, at.y, at.z, at.size};
                     const bool own = has_target(c, &g, self);
                     const bool opens = c.child >= 0 && (own || !tree_pull_is_whole(&g, place));
                     if (!opens && !own) tree_pull_add(&sum, &g, place, job.far[cell].m);
                     return opens;
                 });
    TREE_UNROLL
    for (int by = 16; by; by /= 2)
        for (int k = 0; k < 4; k++) sum.of[k] += __shfl_xor_sync(EVERY, sum.of[k], by);
    const float all[5] = {sum.of[0], sum.of[1], sum.of[2], sum.of[3], most_of_warp(sum.varies)};
    if (first + lane < n) job.last_acc[target] = tree_pull_of(all);
}

DEVICE_FN bool has_capacity(const int capacity[LISTS], const int count[LISTS], int own_leaves)
{
    return count[LIST_M2L] <= capacity[LIST_M2L] && count[LIST_M2P] <= capacity[LIST_M2P] &&
           count[LIST_P2P] + own_leaves <= capacity[LIST_P2P];
}

DEVICE_FN void note_need(int32_t *need, const int count[LISTS], int own_leaves)
{
    atomicMax(&need[LIST_M2L], count[LIST_M2L]);
    atomicMax(&need[LIST_M2P], count[LIST_M2P]);
    atomicMax(&need[LIST_P2P], count[LIST_P2P] + own_leaves);
}

/* A group's lists, by a warp, or by all of a CUDA block. */
template <int WARPS, int OWN>
DEVICE_FN void traverse(const struct tree_device_job &job, const int level, int slot,
                        int32_t *stack, int tally[LISTS + 2][WARPS])
{
    const struct tree_level_job &out = level < 2 ? job.level[level] : small_level(job);
    const int LANES = 32 * WARPS, lane = (int)threadIdx.x % LANES, large = level < 2;
    const struct tree_group g =
        out.group[large ? first_group_of_level(job, level) + slot : small_group(job, slot)];
    struct tree_opening o = *job.opening;
    if (!OWN) o.own = 0; /* a constant, which takes no time */
    const struct tree_cell_centre *places = job.order_of_expansion ? job.place : job.barnes_hut;
    const bool by_weight = tree_goes_by_weight(&o);
    const float small = v_mul(o.passed_on, g.radius), soft = tree_reach_soft(&o, &g);
    int32_t *const lists =
        out.lists + (int64_t)slot * (out.capacity[0] + out.capacity[1] + out.capacity[2]);
    int32_t *const list[LISTS] = {lists, lists + out.capacity[0],
                                  lists + out.capacity[0] + out.capacity[1]};
    int count[LISTS] = {0, 0, 0}, own_leaves = 0, top = 0, next = 0, end = 0;
    const int32_t *from = 0;
    if ((level == 0 || job.from_root) && job.root_count) {
        from = job.roots; /* which the stack need not hold at once */
        end = job.root_count;
    } else if (level == 0 || job.from_root) {
        if (lane == 0) stack[0] = 0;
        top = 1;
        meet<WARPS>();
    } else {
        const int parent =
            g.first / (level == 1 ? IN_LEVEL2 : IN_LEVEL1) - first_group_of_level(job, level - 1);
        const struct tree_level_job &above = job.level[level - 1];
        from = above.lists +
               (int64_t)parent * (above.capacity[0] + above.capacity[1] + above.capacity[2]) +
               above.capacity[0] + above.capacity[1];
        end = min(above.count[4 * parent + LIST_REST], above.capacity[2]);
    }
    bool fits = true;
    while (fits && (top > 0 || next < end)) {
        /* Each adds 7 at most. In a full stack one is taken at once, which adds 7 a level. */
        const int left = WARPS * TRAVERSAL_STACK - 8 * TREE_LEVELS - top;
        const int taken = min(min(LANES, top), max(1, left / 8));
        const int more = top > taken ? 0 : LANES - taken;
        int cell = -1;
        top -= taken;
        if (lane < taken)
            cell = stack[top + lane];
        else if (more && next + lane - taken < end)
            cell = from[next + lane - taken];
        next = min(end, next + more);
        meet<WARPS>();
        enum { NOTHING, LOCAL, POINT, LEAF, OWN_LEAF, OPEN } what = NOTHING;
        struct tree_cell c = {0, 0, 0, 0};
        if (cell >= 0) {
            const struct tree_cell_centre p = whole(&places[cell]);
            c = whole(&job.cell[cell]);
            const struct tree_distance d = tree_distance_of(&o, &g, p.x, p.y, p.z);
            const bool own = c.first < g.self_end && c.end > g.self_first;
            const float apart = OWN ? g.reach + job.reach[cell] : 0.0f;
            const float reach = tree_reach_point(&o, &g, p.size, apart);
            bool point = !large && reach < d.box && !own;
            bool local = job.order_of_expansion &&
                         tree_reach_local(&o, level, &g, p.size, apart) < d.centre &&
                         reach < d.centre && d.box > 0.0f && soft < d.centre && !own;
            if (by_weight && (local || point)) {
                const struct tree_cell_multipole *far = &job.far[cell];
                const struct tree_weight w =
                    tree_weight_of(&g, far->m, far->spread, p.size, tree_bodies_of(&c));
                local = local && tree_within_local(&o, &g, &w, d.centre);
                point = point && !local && tree_within_point(&o, &g, &w, d.box);
            }
            if (local)
                what = LOCAL;
            else if (large)
                what = c.child < 0 || p.size < small ? LEAF : OPEN;
            else if (c.child >= 0 ? point
                                  : c.first == c.end || (point && c.end - c.first >= o.least_count))
                what = POINT;
            else
                what = c.child >= 0 ? OPEN : own ? OWN_LEAF : LEAF;
        }
        const int *most = out.capacity;
        append<WARPS>(what == LOCAL, cell, list[LIST_M2L], 1, most[LIST_M2L], &count[LIST_M2L],
                      tally[LIST_M2L]);
        append<WARPS>(what == LEAF, cell, list[LIST_P2P], 1, most[LIST_P2P], &count[LIST_P2P],
                      tally[LIST_P2P]);
        if (!large) { /* own leaves stand at the list's other end, downwards */
            append<WARPS>(what == POINT, cell, list[LIST_M2P], 1, most[LIST_M2P], &count[LIST_M2P],
                          tally[LIST_M2P]);
            append<WARPS>(what == OWN_LEAF, cell, list[LIST_P2P] + most[LIST_P2P] - 1, -1,
                          most[LIST_P2P], &own_leaves, tally[LISTS]);
        }
        push<WARPS>(what == OPEN, &c, stack, &top, tally[LISTS + 1]);
        /* What will be summed again is not walked to its end, unless its need has to be known. */
        fits = large || job.kind >= SINGLES || has_capacity(out.capacity, count, own_leaves);
    }
    fits = large || has_capacity(out.capacity, count, own_leaves);
    if (lane) return;
    int32_t *const counts = out.count + 4 * (int64_t)slot;
    counts[0] = count[0], counts[1] = count[1], counts[2] = count[2], counts[3] = own_leaves;
    if (large) {
        atomicMax(&job.status->need_large[LIST_M2L], count[LIST_M2L]);
        atomicMax(&job.status->need_large[LIST_REST], count[LIST_REST]);
        return;
    }
    if (job.kind == LONG_GROUPS) note_need(job.status->need_long, count, own_leaves);
    if (fits) return;
    counts[0] = counts[1] = counts[2] = 0, counts[3] = -1;
    if (job.kind == SINGLES) note_need(job.status->need_singles, count, own_leaves);
    int kind = job.kind + 1;
    if (kind == LONG_GROUPS && !has_capacity(job.level[3].capacity, count, own_leaves))
        kind = EIGHTS;
    sum_again(job, &g, kind);
}

#define TRAVERSE(name, own, level, number)                                                         \
    KERNEL(name, struct tree_device_job, 128, 9)                                                   \
    {                                                                                              \
        __shared__ int32_t stack[TRAVERSAL_WARPS][TRAVERSAL_STACK];                                \
        const int warp = (int)threadIdx.x / 32, slot = (int)blockIdx.x * TRAVERSAL_WARPS + warp;   \
        int tally[LISTS + 2][1]; /* a warp alone needs none */                                     \
        if (slot < (number)) traverse<1, own>(job, level, slot, stack[warp], tally);               \
    }
/* A CUDA block each: of few groups, a warp alone is slow. */
#define TRAVERSE_BLOCKS(name, own)                                                                 \
    KERNEL(name, struct tree_device_job, 128, 8)                                                   \
    {                                                                                              \
        __shared__ int32_t stack[TRAVERSAL_WARPS * TRAVERSAL_STACK];                               \
        __shared__ int tally[LISTS + 2][TRAVERSAL_WARPS];                                          \
        if ((int)blockIdx.x < small_slots(job))                                                    \
            traverse<TRAVERSAL_WARPS, own>(job, 2, (int)blockIdx.x, stack, tally);                 \
    }
#define TRAVERSALS(kind, own)                                                                      \
    TRAVERSE(tree_traverse##kind##_level2, own, 0, job.level2_groups)                              \
    TRAVERSE(tree_traverse##kind##_level1, own, 1, job.level1_groups)                              \
    TRAVERSE(tree_traverse##kind##_groups, own, 2, small_slots(job))                               \
    TRAVERSE_BLOCKS(tree_traverse##kind##_blocks, own)
TRAVERSALS(, 0)
TRAVERSALS(_own, 1)

/* Places as Barnes and Hut's walk takes them. */
KERNEL(tree_barnes_hut, struct tree_device_job, 128, 1)
{
    const int id = (int)(blockIdx.x * 128 + threadIdx.x);
    if (id >= job.status->cells) return;
    int level = 0;
    while (id >= job.status->level_first[level + 1]) level++;
    struct tree_cell_centre place = job.place[id];
    place.size = tree_barnes_hut_size(&job.moments[id], job.box->low, ldexp(job.box->side, -level),
                                      job.theta);
    job.barnes_hut[id] = place;
}
