/* many.cu - sums on many i particles: a thread sums blocks of addresses on two of them. */

enum { WIDE_THREADS = 128, PER_THREAD = 2, WIDE_ROWS = WIDE_THREADS * PER_THREAD };
enum { ROWS_UNROLLED = SPLIT ? 1 : PER_THREAD }; /* without, mode single is 4 % slower */

/* Block sums of a thread's rows, in shared memory. */
typedef struct block_sum wide_sums[NSUM][PER_THREAD][WIDE_THREADS];
/* Chunk sums in shared memory: for mode double, which has too few registers. */
typedef real chunk_sums[NSUM][PER_THREAD][WIDE_THREADS];

/* Adds a group to the sums of a chunk. If SAME, compares indices. */
template <bool JERK, bool NEAR, bool SOFT, bool SAME, bool CHECK>
DEVICE_FN void add_group_to(const struct target t[PER_THREAD], const real *pairs,
                            const int32_t *index, int place, struct pair_sum chunk[PER_THREAD],
                            chunk_sums waiting, real r2_min[PER_THREAD], int near_place[PER_THREAD],
                            unsigned closed[PER_THREAD])
{
    /* as many pairs as the instruction cache holds; a rare case must not evict the other loop */
    enum { UNROLL = SAME ? 2 : JERK || DOUBLE_MODE ? UNROLLED : 8 };
    const int lane = (int)threadIdx.x % 32;
    const struct labels_in_warp labels = {SAME ? index[lane] : 0, SAME ? index[32 + lane] : 0};
    struct pair_sum group[PER_THREAD];
    add_group<JERK, NEAR, SOFT, SAME, CHECK, PER_THREAD, UNROLL>(t, pairs, RUN_REALS, labels, place,
                                                                 group, r2_min, near_place, closed);
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
#if DOUBLE_MODE
#pragma unroll
        for (int q = 0; q < NSUM; q++) {
            real *sum = &waiting[q][k][threadIdx.x];
            if (is_wanted(JERK, q)) *sum = v_add(*sum, *sum_number(&group[k], q));
        }
#else
        add_sums<JERK>(&chunk[k], group[k]);
#endif
    }
}

/* Adds up to 32 groups, one after another. Indices are compared only in groups that may hold one of
 * the warp's i particles. */
template <bool JERK, bool NEAR, bool SOFT, bool CHECK>
DEVICE_FN void
add_groups_of(const struct cuda_sum_job &job, const struct target t[PER_THREAD], const real *pairs,
              int group, int groups, struct pair_sum chunk[PER_THREAD], chunk_sums waiting,
              real r2_min[PER_THREAD], int near_place[PER_THREAD], unsigned closed[PER_THREAD])
{
    unsigned same = 0;
    for (int g = 0; g < groups; g++) {
        bool mine = false;
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++)
            mine = mine || may_hold(job.sources.spans[group + g], t[k].label);
        if (__any_sync(0xffffffffu, mine)) same |= 1u << g;
    }
    if (SPLIT && !same) { /* most chunks: without the choice, 1 % faster in mode grape alone */
#pragma unroll 1
        for (int g = 0; g < groups; g++)
            add_group_to<JERK, NEAR, SOFT, false, CHECK>(t, pairs + g * GROUP_REALS, NULL,
                                                         (group + g) * PLACES, chunk, waiting,
                                                         r2_min, near_place, closed);
        return;
    }
#pragma unroll 1
    for (int g = 0; g < groups; g++) {
        const int32_t *index = &job.sources.index[(group + g) * CUDA_GROUP];
        const real *from = pairs + g * GROUP_REALS;
        const int place = (group + g) * PLACES;
        if (same >> g & 1)
            add_group_to<JERK, NEAR, SOFT, true, CHECK>(t, from, index, place, chunk, waiting,
                                                        r2_min, near_place, closed);
        else
            add_group_to<JERK, NEAR, SOFT, false, CHECK>(t, from, index, place, chunk, waiting,
                                                         r2_min, near_place, closed);
    }
}

DEVICE_FN void begin_chunk(struct pair_sum chunk[PER_THREAD], chunk_sums waiting)
{
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        chunk[k] = no_pairs();
#pragma unroll
        for (int q = 0; DOUBLE_MODE && q < NSUM; q++) waiting[q][k][threadIdx.x] = 0;
    }
}

/* What a thread keeps of a row beside the loop over pairs: in memory, since a function that is not
 * inlined writes to it. */
struct wide_row {
    int32_t label;
    struct body_range range;
    real close, r2_min; /* the least of the block's, without closed runs */
    int place;
    unsigned closed;
};

/* Adds the sums of a chunk to those of the block. */
template <bool JERK>
DEVICE_FN void end_chunk(const struct pair_sum sum[PER_THREAD], chunk_sums waiting, wide_sums sums)
{
    const int thread = (int)threadIdx.x;
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++)
#pragma unroll
        for (int q = 0; q < NSUM; q++)
            if (is_wanted(JERK, q))
                add_chunk(&sums[q][k][thread],
                          DOUBLE_MODE ? waiting[q][k][thread] : *sum_number(&sum[k], q));
}

/* A chunk with a close pair, without the runs that have one. */
template <bool JERK, bool NEAR, bool SOFT>
DEVICE_CALL void open_chunk(const struct cuda_sum_job &job, const real *staged, int chunk,
                            chunk_sums waiting, wide_sums sums, struct wide_row own[PER_THREAD])
{
    struct target t[PER_THREAD];
    struct pair_sum sum[PER_THREAD];
    real r2_min[PER_THREAD];
    int place[PER_THREAD];
    unsigned closed[PER_THREAD];
    begin_chunk(sum, waiting);
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int row = (int)(blockIdx.y * WIDE_ROWS + k * WIDE_THREADS + threadIdx.x);
        t[k] = load_target(job, NULL, min(row, job.rows - 1));
        r2_min[k] = own[k].r2_min, place[k] = own[k].place, closed[k] = own[k].closed;
    }
#pragma unroll 1
    for (int g = 0; g < 4; g++)
        add_group_to<JERK, NEAR, SOFT, true, true>(
            t, staged + g * GROUP_REALS, &job.sources.index[(4 * chunk + g) * CUDA_GROUP],
            (4 * chunk + g) * PLACES, sum, waiting, r2_min, place, closed);
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++)
        own[k].r2_min = r2_min[k], own[k].place = place[k], own[k].closed = closed[k];
    end_chunk<JERK>(sum, waiting, sums);
}

/* Deposits a row's sums of a block, or closes its runs; zeroes them. */
template <bool JERK>
DEVICE_FN bool deposit_block(const struct cuda_sum_job &job, struct wide_row *own, int row,
                             int block, wide_sums sums, int k)
{
    const int thread = (int)threadIdx.x;
    const struct block_range range = range_of_block(&job.sources.ranges[4 * block]);
    bool good = in_range(MODE, &own->range, &range);
    struct block_sum sum[NSUM];
#pragma unroll
    for (int q = 0; q < NSUM; q++) {
        sum[q] = settled(sums[q][k][thread], window_of(q));
        sums[q][k][thread] = no_sum();
        good = good && fits_bins(sum[q].hi, job.unit[window_of(q)]);
    }
    if (!good) own->closed = runs_beyond(job, &own->range, &range, row, block);
#pragma unroll
    for (int q = 0; q < NSUM; q++)
        if (good) deposit(job, row, q, sum[q]);
    return good;
}

/* The lowest of the addresses of a place at squared distance r2; -1 if there is none. */
DEVICE_FN int address_at(const struct cuda_sum_job &job, const struct target *t, int place, real r2)
{
    const real *pairs = (const real *)job.sources.pairs + (size_t)place * (PLACE / 2) * PAIR_REALS;
    int found = -1;
#pragma unroll 4
    for (int p = PLACE / 2 - 1; p >= 0; p--) {
        struct pair_j a, b;
        const int address = place * PLACE + 2 * p;
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
#if DOUBLE_MODE
    __shared__ chunk_sums waiting;
#else
    real(*waiting)[PER_THREAD][WIDE_THREADS] = NULL;
#endif
    __shared__ real near_r2[PER_THREAD][WIDE_THREADS]; /* of the blocks so far */
    __shared__ int near_place[PER_THREAD][WIDE_THREADS];
    const int thread = (int)threadIdx.x;
    const int first = (int)blockIdx.y * WIDE_ROWS;
    const int begin = job.first_block + (int)blockIdx.x * job.step_blocks;
    const int end = min(job.end_block, begin + job.step_blocks);
    struct target t[PER_THREAD];
    struct wide_row own[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int row = first + k * WIDE_THREADS + thread;
        t[k] = load_target(job, NULL, min(row, job.rows - 1));
        own[k].label = t[k].label, own[k].range = t[k].range, own[k].close = t[k].close;
        near_r2[k][thread] = v_set1(FAR_S2);
        near_place[k][thread] = 0;
        for (int q = 0; q < NSUM; q++) sums[q][k][thread] = no_sum();
    }
#pragma unroll 1
    for (int block = begin; block < end; block++) {
        const int chunks = chunks_of(job.nj, block);
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++)
            own[k].r2_min = v_set1(FAR_S2), own[k].place = 0, own[k].closed = 0;
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
            struct pair_sum sum[PER_THREAD];
            real least[PER_THREAD];
            int place[PER_THREAD] = {};
            bool any_close = false;
#pragma unroll
            for (int k = 0; k < PER_THREAD; k++)
                least[k] = v_set1(FAR_S2), t[k].label = own[k].label;
            begin_chunk(sum, waiting);
            add_groups_of<JERK, NEAR, SOFT, false>(job, t, staged, 4 * chunk, 4, sum, waiting,
                                                   least, place, NULL);
#pragma unroll
            for (int k = 0; k < PER_THREAD; k++) any_close = any_close || least[k] < own[k].close;
            if (__any_sync(0xffffffffu, any_close)) { /* seldom */
                open_chunk<JERK, NEAR, SOFT>(job, staged, chunk, waiting, sums, own);
                continue;
            }
            end_chunk<JERK>(sum, waiting, sums);
#pragma unroll
            for (int k = 0; NEAR && k < PER_THREAD; k++)
                if (least[k] < own[k].r2_min) own[k].r2_min = least[k], own[k].place = place[k];
        }
#pragma unroll(ROWS_UNROLLED)
        for (int k = 0; k < PER_THREAD; k++) {
            const int row = first + k * WIDE_THREADS + thread;
            const bool active = row < job.rows;
            const bool good = active && deposit_block<JERK>(job, &own[k], row, block, sums, k);
            if (good && NEAR && own[k].r2_min < near_r2[k][thread]) {
                near_r2[k][thread] = own[k].r2_min;
                near_place[k][thread] = own[k].place;
            }
            if (__any_sync(0xffffffffu, active && own[k].closed))
                close_rows(job, NULL, {NULL, NULL}, JERK, NEAR ? NEAR_BY_PLACE : NEAR_NOT,
                           row - thread % 32, block, active ? own[k].closed : 0);
        }
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int row = first + k * WIDE_THREADS + thread;
        if (NEAR && row < job.rows)
            offer_nearest(job, row, near_r2[k][thread], near_place[k][thread]);
    }
    if (!last_of_tile(job)) return;
    const int rows = min((int)WIDE_ROWS, job.rows - first);
    store_sums(job, first, rows);
#pragma unroll 1
    for (int k = 0; NEAR && k < PER_THREAD; k++) {
        const int row = first + k * WIDE_THREADS + thread;
        if (row >= job.rows) break;
        real r2;
        const int at = best_place(job, row, &r2);
        const struct target own = load_target(job, NULL, row);
        const int address = at == -1         ? -1
                            : is_address(at) ? address_of(at)
                                             : address_at(job, &own, at, r2);
        give_nearest(job, row, address, r2);
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
