/* build.cu - box, keys, cells and moments of the octree, as in csrc/tree/build.c. */

/* Doubles as integers of the same order. */
DEVICE_FN uint64_t ordered_bits(double a)
{
    const uint64_t bits = bits_of(a);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

DEVICE_FN double from_ordered_bits(uint64_t bits)
{
    return from_bits(bits >> 63 ? bits & ~((uint64_t)1 << 63) : ~bits);
}

/* Combines what the threads of a CUDA block have put into columns of shared memory, by halves, so
 * that the order is fixed: what becomes of each column is in its first place. */
template <int COLUMNS, class NUMBER, int THREADS, class OF_TWO>
DEVICE_FN void combine(NUMBER (*column)[THREADS], const OF_TWO &of_two)
{
    const int t = (int)threadIdx.x;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        for (int c = 0; c < COLUMNS && t < half; c++)
            column[c][t] = of_two(c, column[c][t], column[c][t + half]);
    }
    __syncthreads();
}

/* The least and largest coordinates and the largest mass, and who is not finite. */
KERNEL(tree_extent, struct tree_device_job, 256, 1)
{
    __shared__ uint64_t column[7][256];
    const unsigned t = threadIdx.x;
    const double infinite = from_bits((uint64_t)0x7ff << 52);
    double low[3] = {infinite, infinite, infinite}, high[3] = {-infinite, -infinite, -infinite};
    double mass = 0.0;
    for (int64_t k = blockIdx.x * 256 + t; k < job.n; k += gridDim.x * 256) {
        const double size = fabs(job.m[k]);
        bool finite = size < infinite;
        if (size > mass) mass = size;
        for (int c = 0; c < 3; c++) {
            const double x = job.x[3 * k + c];
            finite &= fabs(x) < infinite;
            if (x < low[c]) low[c] = x;
            if (x > high[c]) high[c] = x;
        }
        if (!finite) atomicMax(&job.status->bad, job.n - (int)k); /* the lowest number wins */
    }
    for (int c = 0; c < 3; c++) {
        column[c][t] = ordered_bits(low[c]);
        column[3 + c][t] = ordered_bits(high[c]);
    }
    column[6][t] = ordered_bits(mass);
    combine<7>(column, [](int c, uint64_t a, uint64_t b) { return (c < 3) == (a < b) ? a : b; });
    if (t >= 7) return;
    if (t < 3)
        atomicMin((unsigned long long *)&job.status->low[t], (unsigned long long)column[t][0]);
    else if (t < 6)
        atomicMax((unsigned long long *)&job.status->high[t - 3], (unsigned long long)column[t][0]);
    else
        atomicMax((unsigned long long *)&job.status->mass, (unsigned long long)column[t][0]);
}

/* Before a tree is made, and before a sum: nothing is counted yet; box, opening and eps^2. */
KERNEL(tree_begin, struct tree_device_job, 32, 1)
{
    struct tree_status *s = job.status;
    const int t = (int)threadIdx.x;
    for (int k = t; k < TREE_COUNTERS; k += 32)
        for (int c = 0; c < 4; c++) s->done[k][c] = 0;
    if (t < 3) s->need_large[t] = s->need_long[t] = s->need_singles[t] = 0;
    if (t < KINDS) s->again[t] = 0;
    double low[3], high[3];
    for (int c = 0; c < 3; c++) {
        low[c] = from_ordered_bits(s->low[c]);
        high[c] = from_ordered_bits(s->high[c]);
    }
    if (job.seeks_core) find_core(job, low, high);
    if (t) return;
    s->close = s->too_large = s->listed = 0, s->zero_distances = 0;
    for (int c = 0; c < 3; c++)
        s->low[c] = ordered_bits(low[c]), s->high[c] = ordered_bits(high[c]);
    if (job.whole)
        tree_whole_box(job.box, job.whole);
    else
        tree_box_of(job.box, low, high, from_ordered_bits(s->mass),
                    (double)(job.n + job.distant + job.merged));
    if (job.moments && !job.whole)
        job.box->usual_mass = tree_usual_mass(job.moments->total, (double)job.n);
    job.box->spread2 = job.moments && job.status->cells ? tree_spread2(job.moments) : 1.0;
    *job.opening = tree_opening_of(job.theta, job.order_of_expansion, job.soft, job.v != 0,
                                   job.bound, job.box);
    job.opening->own = job.term;
    const double *scale = job.box->scale;
    *job.eps2 = (float)(job.eps2_given * scale[0] * scale[1] * scale[0] * scale[1]);
}

DEVICE_FN void split_point(const struct tree_box *box, const double *x, float4 *high, float4 *low)
{
    tree_split(tree_in_box(box, 0, x[0]), &high->x, &low->x);
    tree_split(tree_in_box(box, 1, x[1]), &high->y, &low->y);
    tree_split(tree_in_box(box, 2, x[2]), &high->z, &low->z);
    high->w = low->w = 0.0f;
}

DEVICE_FN uint64_t key_of(const struct tree_box *box, float4 high, float4 low)
{
    const float at[3] = {high.x, high.y, high.z}, rest[3] = {low.x, low.y, low.z};
    return tree_key_of(box, at, rest);
}

/* Of particles beyond the box, which are behind all others; and of those that are far beyond it. */
#define DISTANT_KEY (~(uint64_t)0 - 1)
DEVICE_FN uint64_t particle_key_of(const struct tree_box *box, float4 high, float4 low)
{
    return is_distant(box, high, 1.0f)
               ? DISTANT_KEY + (is_distant(box, high, (float)DISTANT_POINT) ? 1 : 0)
               : key_of(box, high, low);
}

/* Keys, and what is gathered in their order: one stretch of memory a particle. */
KERNEL(tree_keys, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.n) return;
    const double x[3] = {job.x[3 * (int64_t)k], job.x[3 * (int64_t)k + 1],
                         job.x[3 * (int64_t)k + 2]};
    float4 high, low;
    split_point(&box, x, &high, &low);
    high.w = (float)tree_mass_in_box(&box, job.m[k]);
    job.key[k] = particle_key_of(&box, high, low);
    if (job.key[k] >= DISTANT_KEY) atomicAdd(&job.status->distant, 1);
    if (job.key[k] == DISTANT_KEY) atomicAdd(&job.status->closer, 1);
    job.packed[2 * (int64_t)k] = high;
    job.packed[2 * (int64_t)k + 1] = low;
}

DEVICE_FN void key_of_target(const struct tree_device_job &job, const struct tree_box &box)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.target_count) return;
    float4 high, low;
    split_point(&box, job.targets + 3 * (int64_t)k, &high, &low);
    job.key[k] = key_of(&box, high, low);
}

KERNEL(tree_target_keys, struct tree_device_job, 256, 1) { key_of_target(job, *job.box); }

/* A key's first 32 digits. */
DEVICE_FN int front_of(uint64_t key) { return (int)(key >> 31); }

/* Points in order; and keys, which are made again: that is faster than gathering them. */
KERNEL(tree_gather, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.n) return;
    const int64_t i = job.order[k];
    const float4 high = job.packed[2 * i];
    float4 low = job.packed[2 * i + 1];
    const uint64_t key = particle_key_of(&box, high, low);
    low.w = __int_as_float(front_of(key));
    job.high[k] = high;
    job.low[k] = low;
    job.sorted[k] = key;
}

/* The place of a particle, found by its key and number. -1: beyond the box. */
DEVICE_FN int place_of(const struct tree_device_job &job, const struct tree_box *box, int number)
{
    float4 high, low;
    split_point(box, job.x + 3 * (int64_t)number, &high, &low);
    if (is_distant(box, high, 1.0f)) return -1;
    const uint64_t key = key_of(box, high, low);
    int first = 0, end = job.n - 1;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        const float4 rest = job.low[middle];
        uint64_t its = (uint64_t)(uint32_t)__float_as_int(rest.w) << 31;
        if ((int)(its >> 31) == front_of(key)) its = key_of(box, job.high[middle], rest);
        if (its < key)
            first = middle + 1;
        else
            end = middle;
    }
    while (first < job.n - 1 && job.order[first] != number) first++;
    return first;
}

/* The place of each particle by its number. */
KERNEL(tree_ranks, struct tree_device_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k < job.n + job.distant) job.rank[job.order[k]] = k < job.n ? k : -1;
}

/* Last accelerations of the targets in units of the box. */
KERNEL(tree_gather_last, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.target_count) return;
    const int64_t i = (job.targets ? job.target_order : job.order)[k];
    const double unit = box.mass_scale[0] * box.mass_scale[1], per = box.scale[0] * box.scale[1];
    job.last_acc[k] = (float)(job.last[i] * unit / per / per);
}

KERNEL(tree_gather_targets, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.target_count) return;
    const int64_t i = job.target_order[k];
    split_point(&box, job.targets + 3 * i, &job.target_high[k], &job.target_low[k]);
    const int self = job.self ? job.self[i] : -1;
    job.target_self[k] = self < 0 ? -1 : job.rank ? job.rank[self] : place_of(job, &box, self);
}

/* ---- cells ---------------------------------------------------------------------------------
 *
 * A particle's leaf lies one level below the deepest cell with more than TREE_LEAF particles that
 * holds it: the deepest that TREE_LEAF + 1 consecutive keys with this one among them share. Cells
 * begin with a particle on the levels below those it shares with the particle before, down to its
 * leaf. So where cells begin and end is known from neighbouring keys, and their numbers, level by
 * level in the order of keys, from counts. Number n stands for the end of all. */

/* Levels on which two keys lie in one cell. */
DEVICE_FN int shared_levels(uint64_t a, uint64_t b)
{
    return a == b ? TREE_LEVELS : (__clzll((int64_t)(a ^ b)) - 1) / 3;
}

enum { CELL_BLOCK = 1024, CELL_LEVELS = TREE_LEVELS + 1 };

/* The levels on which cells begin with a particle are above begin and up to leaf; -1: none. */
DEVICE_FN void levels_at(const struct tree_device_job &job, int k, int *begin, int *leaf)
{
    const int levels = k >= 0 && k < job.n ? job.levels[k] : 0;
    *leaf = (levels & 255) - 1;
    *begin = (levels >> 8) - 1;
}

KERNEL(tree_count, struct tree_device_job, 1024, 1)
{
    __shared__ uint64_t key[CELL_BLOCK + 2 * TREE_LEAF];
    __shared__ int common[CELL_BLOCK + TREE_LEAF], begins[CELL_LEVELS];
    const int t = (int)threadIdx.x, first = (int)blockIdx.x * CELL_BLOCK - TREE_LEAF;
    const int n = job.n - job.status->distant; /* which the host does not know yet */
    for (int k = t; k < CELL_BLOCK + 2 * TREE_LEAF; k += CELL_BLOCK)
        key[k] = first + k >= 0 && first + k < n ? job.sorted[first + k] : 0;
    if (t < CELL_LEVELS) begins[t] = 0;
    __syncthreads();
    for (int k = t; k < CELL_BLOCK + TREE_LEAF; k += CELL_BLOCK)
        common[k] = first + k >= 0 && first + k + TREE_LEAF < n
                        ? shared_levels(key[k], key[k + TREE_LEAF])
                        : -1;
    __syncthreads();
    const int k = first + TREE_LEAF + t;
    int leaf = -1, begin = -1;
    if (k < n) {
        for (int j = 0; j <= TREE_LEAF; j++) leaf = max(leaf, common[t + j]);
        leaf = min(leaf + 1, (int)TREE_LEVELS);
        if (k) begin = min(shared_levels(key[t + TREE_LEAF - 1], key[t + TREE_LEAF]), leaf);
        job.levels[k] = (uint16_t)((leaf + 1) | (begin + 1) << 8);
        if (begin < TREE_LEVELS && common[t + TREE_LEAF] == TREE_LEVELS && k + TREE_CROWD < n &&
            job.sorted[k + TREE_CROWD] == key[t + TREE_LEAF])
            atomicAdd(&job.status->crowds, 1);
    }
    for (int level = 0; level < CELL_LEVELS; level++) {
        const unsigned here = __ballot_sync(0xffffffffu, level > begin && level <= leaf);
        if (t % 32 == 0 && here) atomicAdd(&begins[level], __popc(here));
    }
    __syncthreads();
    if (t < CELL_LEVELS) job.counts[t * job.blocks + (int)blockIdx.x] = begins[t];
}

/* How many cells there are, and on which levels. */
KERNEL(tree_levels, struct tree_device_job, 32, 1)
{
    const int t = (int)threadIdx.x;
    if (t >= CELL_LEVELS) return;
    job.status->level_first[t] = job.summed[t * job.blocks] - job.counts[t * job.blocks];
    if (t) return;
    job.status->cells = job.summed[CELL_LEVELS * job.blocks - 1];
    job.status->level_first[CELL_LEVELS] = job.status->cells;
}

KERNEL(tree_cells, struct tree_device_job, 1024, 1)
{
    __shared__ int before[CELL_LEVELS][32];
    const int t = (int)threadIdx.x, warp = t / 32, k = (int)blockIdx.x * CELL_BLOCK + t;
    int leaf, begin, last_leaf, last_begin;
    levels_at(job, k, &begin, &leaf);
    levels_at(job, k - 1, &last_begin, &last_leaf);
    if (k > job.n) last_leaf = -1;
    /* levels on which some cell begins or ends in this warp */
    const int deepest = max(leaf, last_leaf);
    const int low = min_of_warp(deepest > begin ? begin + 1 : (int)CELL_LEVELS);
    const int high = max_of_warp(deepest > begin ? deepest : -1);
    for (int level = t % 32; level < CELL_LEVELS; level += 32) before[level][warp] = 0;
    __syncwarp();
    for (int level = low; level <= high; level++) {
        const unsigned here = __ballot_sync(EVERY, level > begin && level <= leaf);
        if (t % 32 == 0) before[level][warp] = __popc(here);
    }
    __syncthreads();
    if (t < CELL_LEVELS) {
        const int at = t * job.blocks + (int)blockIdx.x;
        int sum = job.summed[at] - job.counts[at];
        for (int w = 0; w < 32; w++) {
            const int count = before[t][w];
            before[t][w] = sum;
            sum += count;
        }
    }
    __syncthreads();
    int leaf_id = -1;
    /* the number of cells of the level above that have begun before */
    int above = low > 0 && low < CELL_LEVELS ? before[low - 1][warp] : 0;
    for (int level = low; level <= high; level++) {
        const bool begins = level > begin && level <= leaf;
        const unsigned here = __ballot_sync(EVERY, begins);
        const int id = before[level][warp] + __popc(here & ((1u << t % 32) - 1));
        if (begins) {
            job.cell[id].first = k;
            if (level == leaf) job.cell[id].child = -1, leaf_id = id;
            if (level - 1 > begin && level) job.cell[above].child = id;
            job.above[id] = level == 0 ? -1 : level - 1 > begin ? above : above - 1;
        }
        /* cells of the particle before that end here, on this level and the one above */
        if (level > begin && level <= last_leaf) job.cell[id - 1].end = k;
        if (level - 1 > begin && level - 1 < last_leaf && level && k)
            job.cell[above - 1].child_end = id;
        above = id;
    }
    if (k < job.n) job.leaf_at[k] = leaf_id;
}

/* ---- moments ------------------------------------------------------------------------------- */

/* Points of some leaves that lie together, in shared memory; later ones are fetched. */
enum { LEAF_THREADS = 128, LEAF_SPAN = 1024, LEAF_STAGED = LEAF_SPAN + TREE_LEAF };
struct staged_points {
    float4 high[LEAF_STAGED], low[LEAF_STAGED];
    int first;
};

/* What csrc/shared/tree_upward.h takes: of those leaves, and of any cells. */
struct staged_leaves {
    const struct tree_device_job *job;
    const struct staged_points *p;
};

DEVICE_FN void join(float4 high, float4 low, double x[3], double *m)
{
    x[0] = (double)high.x + (double)low.x;
    x[1] = (double)high.y + (double)low.y;
    x[2] = (double)high.z + (double)low.z;
    *m = (double)high.w;
}

DEVICE_FN void tree_point(const struct staged_leaves &t, int k, double x[3], double *m)
{
    const bool near = k - t.p->first < LEAF_STAGED;
    join(near ? t.p->high[k - t.p->first] : t.job->high[k],
         near ? t.p->low[k - t.p->first] : t.job->low[k], x, m);
}

DEVICE_FN void tree_point(const struct tree_device_job &job, int k, double x[3], double *m)
{
    join(job.high[k], job.low[k], x, m);
}

DEVICE_FN void tree_velocity(const struct tree_device_job &job, int k, double v[3])
{
    const float4 in_box = job.velocity[k];
    v[0] = (double)in_box.x, v[1] = (double)in_box.y, v[2] = (double)in_box.z;
}

#define tree_moments_at(job, k) (&(job).moments[k])
#define tree_child(job, k) whole(&(job).moments[k])
#define tree_rates_at(job, k) (&(job).rates[k])
#define TREE_OF_ANY template <class SOURCE>
#define TREE_SOURCE const SOURCE &
#include "shared/tree_upward.h"

DEVICE_FN void keep_moments(const struct tree_device_job &job, int id, struct tree_moments *c)
{
    struct tree_cell_multipole far;
    struct tree_cell_centre place;
    tree_close(c);
    tree_single(c, &far, &place);
    put_whole(&job.moments[id], *c);
    put_whole(&job.far[id], far);
    put_whole(&job.place[id], place);
}

DEVICE_FN bool stand_together(const struct tree_device_job &job, int i, int j, double *r2)
{
    const double *a = job.x + 3 * job.order[i], *b = job.x + 3 * job.order[j];
    double d[3];
    for (int c = 0; c < 3; c++) d[c] = (a[c] - b[c]) * job.box->scale[0] * job.box->scale[1];
    *r2 = tree_square(d);
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* Whether a leaf's particles are kept apart by too few digits, as in csrc/tree/pieces.c: many in a
 * small leaf, or any if there is no other leaf. Those at one place may be there. */
DEVICE_FN bool is_unresolved(const struct tree_device_job &job, int first, int end, double radius)
{
    const bool alone = job.status->cells == 1;
    double r2, closest = TREE_UNRESOLVED * TREE_UNRESOLVED;
    if (!alone && (end - first < TREE_CLUMP || radius >= TREE_UNRESOLVED)) return false;
    for (int k = first + 1; k < end; k++)
        for (int i = alone ? first : k - 1; i < k; i++)
            if (!stand_together(job, i, k, &r2) && (!alone || r2 < closest)) return true;
    return false;
}

/* As is_unresolved, by all threads, of a leaf of the deepest level with many particles: whether
 * there are so many about one of them that a share of the box's digits is left. */
DEVICE_FN bool is_clumped(const struct tree_device_job &job, int first, int end)
{
    const double closest = 0x1p-6 * TREE_UNRESOLVED;
    for (int i = first + (int)threadIdx.x; i < end; i += LEAF_THREADS) {
        int near = 0;
        for (int k = first; k < end; k++) {
            double r2;
            near += !stand_together(job, i, k, &r2) && r2 < closest * closest;
        }
        if (near >= TREE_CLUMP - 1) return true;
    }
    return false;
}

/* A CUDA block takes the leaves that begin in a stretch of particles, a thread each. */
KERNEL(tree_leaf_moments, struct tree_device_job, 128, 1)
{
    __shared__ struct staged_points points;
    __shared__ int leaves[LEAF_SPAN], count;
    const int t = (int)threadIdx.x, first = (int)blockIdx.x * LEAF_SPAN;
    if (t == 0) points.first = first, count = 0;
    __syncthreads();
    for (int k = t; k < LEAF_STAGED && first + k < job.n; k += LEAF_THREADS) {
        points.high[k] = job.high[first + k];
        points.low[k] = job.low[first + k];
        if (k < LEAF_SPAN && job.leaf_at[first + k] >= 0)
            leaves[atomicAdd(&count, 1)] = job.leaf_at[first + k];
    }
    __syncthreads();
    for (int k = t; k < count; k += LEAF_THREADS) {
        const struct tree_cell cell = whole(&job.cell[leaves[k]]);
        struct tree_moments c;
        tree_begin(&c);
        tree_leaf_moments(staged_leaves{&job, &points}, &cell, &c);
        if (is_unresolved(job, cell.first, cell.end, c.radius)) job.status->unresolved = 1;
        keep_moments(job, leaves[k], &c);
    }
    for (int k = 0; k < count; k++) {
        const struct tree_cell cell = whole(&job.cell[leaves[k]]);
        if (cell.end - cell.first > TREE_LEAF && is_clumped(job, cell.first, cell.end))
            job.status->unresolved = 1;
    }
}

/* Inner cells, from below: who completes the children of a cell goes on with that. */
template <class MAKE>
DEVICE_FN void for_inner_cells(const struct tree_device_job &job, const MAKE &make)
{
    const int id = (int)(blockIdx.x * 128 + threadIdx.x);
    if (id >= job.status->cells || job.cell[id].child >= 0) return;
    for (int above = job.above[id]; above >= 0; above = job.above[above]) {
        const struct tree_cell cell = whole(&job.cell[above]);
        __threadfence();
        const int before = atomicAdd(&job.complete[above], 1);
        __threadfence(); /* what has been kept of the others can be read now */
        if (before < cell.child_end - cell.child - 1) return;
        make(above, &cell);
    }
}

KERNEL(tree_inner_moments, struct tree_device_job, 128, 1)
{
    for_inner_cells(job, [&](int id, const struct tree_cell *cell) {
        struct tree_moments c;
        tree_begin(&c);
        tree_inner_moments(job, cell, &c);
        keep_moments(job, id, &c);
    });
}
