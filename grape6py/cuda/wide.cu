/* wide.cu - sums on many i particles: a thread takes two of them through blocks of addresses. */

enum { WIDE_THREADS = 128, PER_THREAD = 2, WIDE_ROWS = WIDE_THREADS * PER_THREAD };

/* Adds a group of addresses; places that hold a nearer neighbour are noted. */
template <bool JERK, bool NEAR, bool SOFT, bool SAME>
DEVICE_FN void wide_group(const struct target t[PER_THREAD], const real *pairs,
                          const int32_t *index, int place, struct pair_sum sum[PER_THREAD],
                          real r2_min[PER_THREAD], int near_place[PER_THREAD])
{
    enum { UNROLL = SAME || DOUBLE_MODE || (SPLIT && JERK) ? UNROLLED : 8 }; /* as registers allow */
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        sum[k].ax = sum[k].ay = sum[k].az = sum[k].jx = sum[k].jy = sum[k].jz = 0;
        sum[k].pot = 0;
    }
#pragma unroll 1
    for (int h = 0; h < CUDA_GROUP / CUDA_PLACE; h++) {
        real least[PER_THREAD];
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) least[k] = NEAR ? v_set1(FAR_S2) : r2_min[k];
#pragma unroll (UNROLL)
        for (int p = 0; p < CUDA_PLACE / 2; p++) {
            struct pair_j a, b;
            load_sources(pairs + p * PAIR_REALS, &a, &b);
            const int32_t index_a = SAME ? index[2 * p] : 0;
            const int32_t index_b = SAME ? index[2 * p + 1] : 0;
#pragma unroll
            for (int k = 0; k < PER_THREAD; k++) {
                const real r2_a = add_pair<JERK, SOFT, SAME>(
                    &t[k].i, &a, SAME && index_a == t[k].label, &sum[k]);
                const real r2_b = add_pair<JERK, SOFT, SAME>(
                    &t[k].i, &b, SAME && index_b == t[k].label, &sum[k]);
                least[k] = least_of(least[k], r2_a, r2_b);
            }
        }
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            if (!NEAR) {
                r2_min[k] = least[k];
            } else if (least[k] < r2_min[k]) {
                r2_min[k] = least[k];
                near_place[k] = place + h;
            }
        }
        pairs += CUDA_PLACE / 2 * PAIR_REALS;
        index += CUDA_PLACE;
    }
}

/* a = a + b */
template <bool JERK> DEVICE_FN void add_sums(struct pair_sum *a, const struct pair_sum *b)
{
    a->ax = v_add(a->ax, b->ax);
    a->ay = v_add(a->ay, b->ay);
    a->az = v_add(a->az, b->az);
    a->pot = v_add(a->pot, b->pot);
    if (JERK) {
        a->jx = v_add(a->jx, b->jx);
        a->jy = v_add(a->jy, b->jy);
        a->jz = v_add(a->jz, b->jz);
    }
}

/* Block sums of a thread's rows, in shared memory. */
typedef struct block_sum wide_sums[NSUM][PER_THREAD][WIDE_THREADS];

template <bool JERK>
DEVICE_FN void add_chunks(wide_sums sums, int k, const struct pair_sum *sum)
{
    const int t = (int)threadIdx.x;
    add_chunk(&sums[SUM_AX][k][t], sum->ax);
    add_chunk(&sums[SUM_AY][k][t], sum->ay);
    add_chunk(&sums[SUM_AZ][k][t], sum->az);
    add_chunk(&sums[SUM_POT][k][t], sum->pot);
    if (JERK) {
        add_chunk(&sums[SUM_JX][k][t], sum->jx);
        add_chunk(&sums[SUM_JY][k][t], sum->jy);
        add_chunk(&sums[SUM_JZ][k][t], sum->jz);
    }
}

/* Adds a chunk: (group 0 + group 1) + (group 2 + group 3); mode double: group after group. */
template <bool JERK, bool NEAR, bool SOFT, bool SAME>
DEVICE_FN void wide_chunk(const struct target t[PER_THREAD], const real *pairs,
                          const int32_t *index, int place, wide_sums sums,
                          real r2_min[PER_THREAD], int near_place[PER_THREAD])
{
    enum { REALS = CUDA_GROUP / 2 * PAIR_REALS, PLACES = CUDA_GROUP / CUDA_PLACE };
#if DOUBLE_MODE
#pragma unroll 1
    for (int g = 0; g < 4; g++) {
        struct pair_sum group[PER_THREAD];
        wide_group<JERK, NEAR, SOFT, SAME>(t, pairs + g * REALS, index + g * CUDA_GROUP,
                                           place + g * PLACES, group, r2_min, near_place);
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) add_chunks<JERK>(sums, k, &group[k]);
    }
#else
    struct pair_sum sum[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        sum[k].ax = sum[k].ay = sum[k].az = sum[k].jx = sum[k].jy = sum[k].jz = 0;
        sum[k].pot = 0;
    }
#pragma unroll 1
    for (int g = 0; g < 4; g += 2) {
        struct pair_sum half[PER_THREAD], other[PER_THREAD];
        wide_group<JERK, NEAR, SOFT, SAME>(t, pairs + g * REALS, index + g * CUDA_GROUP,
                                           place + g * PLACES, half, r2_min, near_place);
        wide_group<JERK, NEAR, SOFT, SAME>(t, pairs + (g + 1) * REALS,
                                           index + (g + 1) * CUDA_GROUP, place + (g + 1) * PLACES,
                                           other, r2_min, near_place);
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            add_sums<JERK>(&half[k], &other[k]);
            add_sums<JERK>(&sum[k], &half[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) add_chunks<JERK>(sums, k, &sum[k]);
#endif
}

/* Deposits a row's sums of a block and zeroes them, unless they are the host's business. */
template <bool JERK>
DEVICE_FN bool deposit_block(const struct cuda_sum_job &job, const struct target *t, int row,
                             int block, wide_sums sums, int k, real r2_min)
{
    const int thread = (int)threadIdx.x;
    const struct block_range range = range_of_block(&job.sources.ranges[4 * block]);
    bool good = r2_min >= v_set1(2) && in_range(MODE, &t->range, &range);
#pragma unroll 1
    for (int q = 0; q < NSUM; q++) {
        const struct block_sum s = settled(sums[q][k][thread], window_of(q));
        sums[q][k][thread] = s;
        good = good && fits_bins(s.hi, job.unit[window_of(q)]);
    }
    if (!good) leave_to_host(job, row, block);
#pragma unroll 1
    for (int q = 0; q < NSUM; q++) {
        if (good) deposit(job, row, q, sums[q][k][thread]);
        sums[q][k][thread] = no_sum();
    }
    return good;
}

/* The lowest address of a place at distance r2, among 16. */
DEVICE_FN int address_at(const struct cuda_sum_job &job, const struct target *t, int place,
                         real r2)
{
    const real *pairs = (const real *)job.sources.pairs + (size_t)place * (CUDA_PLACE / 2) * PAIR_REALS;
    int found = -1;
#pragma unroll 2
    for (int p = CUDA_PLACE / 2 - 1; p >= 0; p--) {
        struct pair_j a, b;
        const int address = place * CUDA_PLACE + 2 * p;
        load_sources(pairs + p * PAIR_REALS, &a, &b);
        if (is_at(t, &b, r2) && job.sources.index[address + 1] != t->label) found = address + 1;
        if (is_at(t, &a, r2) && job.sources.index[address] != t->label) found = address;
    }
    return found;
}

template <bool JERK, bool NEAR, bool SOFT> DEVICE_FN void wide(const struct cuda_sum_job &job)
{
    alignas(16) __shared__ real staged[CHUNK_REALS];
    __shared__ wide_sums sums;
    __shared__ real near_r2[PER_THREAD][WIDE_THREADS]; /* of the blocks so far */
    __shared__ int near_place[PER_THREAD][WIDE_THREADS];
    const int thread = (int)threadIdx.x;
    const int first = (int)blockIdx.y * WIDE_ROWS;
    const int blocks = (job.nj + CUDA_BLOCK - 1) / CUDA_BLOCK;
    const int begin = (int)blockIdx.x * job.step_blocks;
    const int end = min(blocks, begin + job.step_blocks);
    struct target t[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int row = first + k * WIDE_THREADS + thread;
        t[k] = load_target(job, NULL, min(row, job.rows - 1));
        near_r2[k][thread] = v_set1(FAR_S2);
        near_place[k][thread] = 0;
        for (int q = 0; q < NSUM; q++) sums[q][k][thread] = no_sum();
    }
#pragma unroll 1
    for (int block = begin; block < end; block++) {
        const int chunks = chunks_of(job.nj, block);
        real r2_min[PER_THREAD];
        int place[PER_THREAD];
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            r2_min[k] = v_set1(FAR_S2);
            place[k] = 0;
        }
#pragma unroll 1
        for (int c = 0; c < chunks; c++) {
            const int chunk = block * CUDA_CHUNKS + c;
            const quad *from =
                (const quad *)((const real *)job.sources.pairs + (size_t)chunk * CHUNK_REALS);
            __syncthreads();
#pragma unroll 5
            for (int q = thread; q < (int)(sizeof staged / 16); q += WIDE_THREADS)
                ((quad *)staged)[q] = from[q];
            __syncthreads();
            bool mine = false;
            for (int g = 0; g < 4; g++) {
                const struct cuda_span span = job.sources.spans[4 * chunk + g];
#pragma unroll
                for (int k = 0; k < PER_THREAD; k++) mine = mine || may_hold(span, t[k].label);
            }
            const int32_t *index = &job.sources.index[chunk * CUDA_CHUNK];
            const int places = chunk * (CUDA_CHUNK / CUDA_PLACE);
            if (__any_sync(0xffffffffu, mine))
                wide_chunk<JERK, NEAR, SOFT, true>(t, staged, index, places, sums, r2_min, place);
            else
                wide_chunk<JERK, NEAR, SOFT, false>(t, staged, index, places, sums, r2_min, place);
        }
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            const int row = first + k * WIDE_THREADS + thread;
            if (row < job.rows && deposit_block<JERK>(job, &t[k], row, block, sums, k, r2_min[k]) &&
                NEAR && r2_min[k] < near_r2[k][thread]) {
                near_r2[k][thread] = r2_min[k];
                near_place[k][thread] = place[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int row = first + k * WIDE_THREADS + thread;
        if (NEAR && row < job.rows) offer_nearest(job, row, near_r2[k][thread], near_place[k][thread]);
    }
    if (!last_of_tile(job)) return;
    const int rows = min((int)WIDE_ROWS, job.rows - first);
    give_sums(job, first, rows);
#pragma unroll 1
    for (int k = 0; NEAR && k < PER_THREAD; k++) {
        const int row = first + k * WIDE_THREADS + thread;
        if (row >= job.rows) break;
        real r2;
        const int at = best_place(job, row, &r2);
        const struct target own = load_target(job, NULL, row);
        give_nearest(job, row, at < 0 ? -1 : address_at(job, &own, at, r2), r2);
    }
    end_tile(job, first, rows);
}

enum { WIDE_BLOCKS = DOUBLE_MODE ? 3 : 4 };
#define WIDE(name, jerk, near, soft)                                                               \
    KERNEL(name, struct cuda_sum_job, WIDE_THREADS, WIDE_BLOCKS) { wide<jerk, near, soft>(job); }
WIDE(wide_plain, false, false, false)
WIDE(wide_soft, false, false, true)
WIDE(wide_near, false, true, false)
WIDE(wide_near_soft, false, true, true)
WIDE(wide_jerk, true, false, false)
WIDE(wide_jerk_soft, true, false, true)
WIDE(wide_jerk_near, true, true, false)
WIDE(wide_jerk_near_soft, true, true, true)
