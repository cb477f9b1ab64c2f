/* small.cu - sums on few i particles: a thread takes one of them (middle: two) through one group of
 * addresses, so that one particle already keeps a good part of the card busy. A CUDA block holds a block of addresses
 * in shared memory, mode double half of one at a time, for ABREAST i particles at once.
 * There is always a nearest neighbour and always a softening, which may be zero. */
enum { SMALL_THREADS = 256 };
enum { HELD = DOUBLE_MODE ? 2 : 4, HELD_GROUPS = 4 * HELD }; /* chunks and groups that are held */
enum { ABREAST = SMALL_THREADS / HELD_GROUPS };

/* Which i particle and which group a thread has. Usually neighbouring threads have one group, which
 * they read at once; for a few i particles one particle, so that only some warps have work. */
template <bool FEW> DEVICE_FN int lane_of(void)
{
    return FEW ? (int)threadIdx.x / HELD_GROUPS : (int)threadIdx.x % ABREAST;
}
template <bool FEW> DEVICE_FN int slot_of(void)
{
    return FEW ? (int)threadIdx.x % HELD_GROUPS : (int)threadIdx.x / ABREAST;
}
enum { GROUP_REALS = CUDA_GROUP / 2 * PAIR_REALS + PAD };    /* groups do not share their banks */

#if DOUBLE_MODE
typedef unsigned long long r2_bits; /* of a number that is not negative: in its order */
DEVICE_FN r2_bits to_bits(real r2) { return (r2_bits)__double_as_longlong(r2); }
DEVICE_FN real to_r2(r2_bits bits) { return __longlong_as_double((long long)bits); }
#else
typedef unsigned r2_bits;
DEVICE_FN r2_bits to_bits(real r2) { return (r2_bits)__float_as_int(r2); }
DEVICE_FN real to_r2(r2_bits bits) { return __int_as_float((int)bits); }
#endif

struct shared_small {
    alignas(16) real held[HELD_GROUPS * GROUP_REALS];
    real part[NSUM][HELD_GROUPS][ABREAST];
    struct target target[2 * ABREAST];
    r2_bits least[ABREAST];
    int near_place[ABREAST], near_address[ABREAST];
    bool bad[ABREAST];
    struct cuda_span span[CUDA_GROUPS];
    struct block_range range[4];
};

#ifndef GRAPE6_ON_CPU
static_assert(sizeof(struct shared_small) <= CUDA_SMALL_SHARED, "what csrc/cuda.c asks for");
#endif

/* What a group gives a row: sums, and the place with the smallest r^2. */
struct group_sum {
    struct pair_sum sum;
    real r2_min;
    int place;
};

/* Sums of a group on PER i particles. */
template <bool FEW, bool JERK, bool SAME, int PER>
DEVICE_FN void small_group(const struct target *const t[PER], const real *pairs,
                           const int32_t *index, int place, struct group_sum out[PER])
{
    enum { UNROLL = FEW && !SAME ? CUDA_PLACE / 2 : UNROLLED }; /* one warp has to keep itself busy */
    struct pair_i i[PER];
    struct pair_sum sum[PER];
#pragma unroll
    for (int k = 0; k < PER; k++) {
        i[k] = t[k]->i;
        sum[k].ax = sum[k].ay = sum[k].az = sum[k].jx = sum[k].jy = sum[k].jz = 0;
        sum[k].pot = 0;
    }
#pragma unroll 1
    for (int h = 0; h < CUDA_GROUP / CUDA_PLACE; h++) {
        real least[PER];
#pragma unroll
        for (int k = 0; k < PER; k++) least[k] = v_set1(FAR_S2);
#pragma unroll (UNROLL)
        for (int p = 0; p < CUDA_PLACE / 2; p++) {
            struct pair_j a, b;
            load_sources(pairs + p * PAIR_REALS, &a, &b);
            const int32_t index_a = SAME ? index[2 * p] : 0, index_b = SAME ? index[2 * p + 1] : 0;
#pragma unroll
            for (int k = 0; k < PER; k++) {
                const real r2_a =
                    add_pair<JERK, true, SAME>(&i[k], &a, SAME && index_a == t[k]->label, &sum[k]);
                const real r2_b =
                    add_pair<JERK, true, SAME>(&i[k], &b, SAME && index_b == t[k]->label, &sum[k]);
                least[k] = least_of(least[k], r2_a, r2_b);
            }
        }
#pragma unroll
        for (int k = 0; k < PER; k++)
            if (least[k] < out[k].r2_min) {
                out[k].r2_min = least[k];
                out[k].place = place + h;
            }
        pairs += CUDA_PLACE / 2 * PAIR_REALS;
        index += CUDA_PLACE;
    }
#pragma unroll
    for (int k = 0; k < PER; k++) out[k].sum = sum[k];
}

/* Copies groups into shared memory: all loads are under way before the first store. */
DEVICE_FN void hold(real *held, const real *pairs)
{
    enum { QUADS = CUDA_GROUP / 2 * PAIR_REALS * sizeof(real) / 16 };
    enum { LOADS = HELD_GROUPS * QUADS / SMALL_THREADS };
    const quad *from = (const quad *)pairs;
    quad part[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) part[k] = from[k * SMALL_THREADS + (int)threadIdx.x];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        const int q = k * SMALL_THREADS + (int)threadIdx.x;
        ((quad *)(held + q / QUADS * GROUP_REALS))[q % QUADS] = part[k];
    }
}

/* Adds the groups' sums of a row per lane; the thread in slot k keeps sum number k in *own. */
template <bool FEW>
DEVICE_FN void add_groups(struct shared_small *s, const struct pair_sum *sum, int chunks,
                          struct block_sum *own)
{
    const int lane = lane_of<FEW>(), slot = slot_of<FEW>();
    s->part[SUM_AX][slot][lane] = sum->ax;
    s->part[SUM_AY][slot][lane] = sum->ay;
    s->part[SUM_AZ][slot][lane] = sum->az;
    s->part[SUM_JX][slot][lane] = sum->jx;
    s->part[SUM_JY][slot][lane] = sum->jy;
    s->part[SUM_JZ][slot][lane] = sum->jz;
    s->part[SUM_POT][slot][lane] = sum->pot;
    __syncthreads();
    if (slot >= NSUM) return;
    for (int c = 0; c < chunks; c++) {
        const real (*group)[ABREAST] = &s->part[slot][4 * c];
#if DOUBLE_MODE
        for (int g = 0; g < 4; g++) add_chunk(own, group[g][lane]);
#else
        add_chunk(own, v_add(v_add(group[0][lane], group[1][lane]),
                             v_add(group[2][lane], group[3][lane])));
#endif
    }
}

/* Deposits a row per lane, unless it is the host's business. Threads in the slots of the sums
 * look at these, the next one at the ranges; all look for the nearest neighbour. */
template <bool FEW, bool JERK>
DEVICE_FN void end_row(const struct cuda_sum_job &job, struct shared_small *s,
                       const struct target *t, int row, bool active, int block,
                       const struct group_sum *group, struct block_sum own)
{
    const int lane = lane_of<FEW>(), slot = slot_of<FEW>();
    const bool adds = slot < NSUM && (JERK || window_of(slot) != WINDOW_JERK);
    if (slot == 0) {
        s->least[lane] = to_bits(v_set1(FAR_S2));
        s->near_place[lane] = s->near_address[lane] = 0x7fffffff;
        s->bad[lane] = false;
    }
    __syncthreads();
    atomicMin(&s->least[lane], to_bits(group->r2_min));
    if (adds) {
        own = settled(own, window_of(slot));
        if (!fits_bins(own.hi, job.unit[window_of(slot)])) s->bad[lane] = true;
    }
    __syncthreads();
    const real r2_min = to_r2(s->least[lane]);
    if (group->r2_min == r2_min) atomicMin(&s->near_place[lane], group->place);
    if (slot == NSUM) {
        const struct block_range range = range_of_block(s->range);
        if (!(r2_min >= v_set1(2)) || !in_range(MODE, &t->range, &range)) s->bad[lane] = true;
    }
    __syncthreads();
    const bool good = !s->bad[lane];
    if (active && adds && good) deposit(job, row, slot, own);
    for (int q = slot; good && r2_min < (real)NO_NEIGHBOUR && q < CUDA_PLACE; q += HELD_GROUPS) {
        const int address = s->near_place[lane] * CUDA_PLACE + q;
        const int of_block = address % CUDA_BLOCK;
        const struct pair_j j = load_source(
            HELD == (int)CUDA_CHUNKS ? s->held + of_block / CUDA_GROUP * GROUP_REALS
                                     : (const real *)job.sources.pairs +
                                           (size_t)(address / CUDA_GROUP) * (GROUP_REALS - PAD),
            of_block % CUDA_GROUP);
        const bool same = may_hold(s->span[of_block / CUDA_GROUP], t->label) &&
                          job.sources.index[address] == t->label;
        if (!same && is_at(t, &j, r2_min)) atomicMin(&s->near_address[lane], address);
    }
    __syncthreads();
    if (!active || slot) return;
    if (good)
        offer_nearest(job, row, r2_min, s->near_address[lane]);
    else
        leave_to_host(job, row, block);
}

/* Sums of one block of addresses on the rows of a tile. */
template <bool FEW, bool JERK, int PER>
DEVICE_FN void small_block(const struct cuda_sum_job &job,
                           const struct cuda_packed_targets *in_job, struct shared_small *s,
                           int first, int last)
{
    const int thread = (int)threadIdx.x, lane = lane_of<FEW>(), slot = slot_of<FEW>();
    const int block = (int)blockIdx.x, chunks = chunks_of(job.nj, block);
    const real *pairs =
        (const real *)job.sources.pairs + (size_t)block * CUDA_CHUNKS * CHUNK_REALS;
    if (thread >= 64 && thread < 64 + CUDA_GROUPS)
        s->span[thread - 64] = job.sources.spans[block * CUDA_GROUPS + thread - 64];
    else if (thread >= 96 && thread < 100)
        s->range[thread - 96] = job.sources.ranges[4 * block + thread - 96];
#pragma unroll 1
    for (int row0 = first; row0 < last; row0 += PER * ABREAST) {
        struct group_sum group[PER];
        struct block_sum own[PER];
        const struct target *t[PER];
        if (row0 > first) __syncthreads();
        if (thread < PER * ABREAST)
            s->target[thread] = load_target(job, in_job, min(row0 + thread, last - 1));
        if (HELD == (int)CUDA_CHUNKS && row0 == first) hold(s->held, pairs);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            t[k] = &s->target[k * ABREAST + lane];
            group[k].r2_min = v_set1(FAR_S2);
            group[k].place = 0x7fffffff;
            own[k] = no_sum();
        }
#pragma unroll 1
        for (int half = 0; half < chunks; half += HELD) {
            if (HELD < (int)CUDA_CHUNKS) {
                __syncthreads();
                hold(s->held, pairs + half * CHUNK_REALS);
            }
            __syncthreads();
            const int g = half * 4 + slot, of_all = block * CUDA_GROUPS + g;
            const real *held = s->held + slot * GROUP_REALS;
            const struct pair_sum nothing = {0, 0, 0, 0, 0, 0, 0};
            const int32_t *index = &job.sources.index[of_all * CUDA_GROUP];
            const int place = of_all * (CUDA_GROUP / CUDA_PLACE);
            bool same = false;
#pragma unroll
            for (int k = 0; k < PER; k++) same = same || may_hold(s->span[g], t[k]->label);
            if (row0 + lane >= last)
                group[0].sum = group[PER - 1].sum = nothing;
            else if (same)
                small_group<FEW, JERK, true, PER>(t, held, index, place, group);
            else
                small_group<FEW, JERK, false, PER>(t, held, index, place, group);
#pragma unroll
            for (int k = 0; k < PER; k++) {
                if (k) __syncthreads();
                add_groups<FEW>(s, &group[k].sum, min((int)HELD, chunks - half), &own[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const int row = row0 + k * ABREAST + lane;
            __syncthreads();
            end_row<FEW, JERK>(job, s, t[k], row, row < last, block, &group[k], own[k]);
        }
    }
}

/* The results, if this was the last block of addresses. */
DEVICE_FN void small_end(const struct cuda_sum_job &job, int first, int rows)
{
    if (!last_of_tile(job)) return;
    const int last_warp = (int)threadIdx.x - ((int)SMALL_THREADS - 32);
    give_sums(job, first, rows);
    for (int n = last_warp; n >= 0 && n < rows; n += 32) {
        real r2;
        const int address = best_place(job, first + n, &r2);
        give_nearest(job, first + n, address, r2);
    }
    end_tile(job, first, rows);
}

template <bool FEW, bool JERK, int PER>
DEVICE_FN void small(const struct cuda_sum_job &job, const struct cuda_packed_targets *in_job)
{
    SHARED_BY_LAUNCH(struct shared_small, s);
    const int first = (int)blockIdx.y * job.tile_rows;
    const int last = min(job.rows, first + job.tile_rows);
    small_block<FEW, JERK, PER>(job, in_job, s, first, last);
    small_end(job, first, last - first);
}

#define SMALL(name, few, per, blocks, jerk)                                                       \
    KERNEL(name, struct cuda_small_job, SMALL_THREADS, blocks)                                     \
    {                                                                                              \
        small<few, jerk, per>(job.sum, job.sum.targets ? NULL : &job.targets);                     \
    }
enum { MIDDLE_BLOCKS = DOUBLE_MODE ? 1 : 2 };
SMALL(few, true, 1, 1, false)
SMALL(few_jerk, true, 1, 1, true)
SMALL(some, false, 1, 2, false)
SMALL(some_jerk, false, 1, 2, true)
SMALL(middle, false, 2, MIDDLE_BLOCKS, false)
SMALL(middle_jerk, false, 2, MIDDLE_BLOCKS, true)
