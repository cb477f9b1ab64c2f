/* middle.cu - sums on some dozens of i particles. All warps of a CUDA block have the same ones, two
 * per thread, and each warp sums one chunk of the block of addresses. Nearest neighbours and
 * softening are always computed; the softening may be zero. */
enum { MIDDLE_ROWS = 32 * PER_THREAD, MIDDLE_HELD = DOUBLE_MODE ? 2 : 4 /* groups, per warp */ };

struct shared_middle {
    alignas(16) real held[CUDA_CHUNKS][MIDDLE_HELD * GROUP_REALS];
    chunk_sums sums; /* thread 32 c + l has those of chunk c on the rows l and 32 + l */
    real r2_min[PER_THREAD][WIDE_THREADS];
    int place[PER_THREAD][WIDE_THREADS];
    unsigned closed[PER_THREAD][WIDE_THREADS]; /* of a chunk; then [0][row] of a block */
    bool bad[MIDDLE_ROWS];                     /* the row's sums of the block are not deposited */
};

#ifndef GRAPE6_ON_CPU
static_assert(sizeof(struct shared_middle) <= CUDA_MIDDLE_SHARED,
              "what csrc/cuda/device.c asks for");
#endif

/* Sums of a warp's chunk. */
template <bool JERK>
DEVICE_FN void middle_chunk(const struct cuda_sum_job &job, struct shared_middle *s,
                            const struct target t[PER_THREAD], int block)
{
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    real *held = s->held[warp], r2_min[PER_THREAD];
    int place[PER_THREAD] = {};
    unsigned closed[PER_THREAD] = {};
    struct pair_sum sum[PER_THREAD];
    begin_chunk(sum, s->sums);
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) r2_min[k] = v_set1(FAR_S2);
#pragma unroll 1
    for (int g = 0; g < 4; g += MIDDLE_HELD) {
        const int group = 4 * (block * CUDA_CHUNKS + warp) + g;
        const quad *from =
            (const quad *)((const real *)job.sources.pairs + (size_t)group * GROUP_REALS);
        __syncwarp();
#pragma unroll 10
        for (int q = lane; q < (int)(sizeof s->held[0] / 16); q += 32) ((quad *)held)[q] = from[q];
        __syncwarp();
        add_groups_of<JERK, true, true, true>(job, t, held, group, MIDDLE_HELD, sum, s->sums,
                                              r2_min, place, closed);
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        s->r2_min[k][thread] = r2_min[k];
        s->place[k][thread] = place[k];
        s->closed[k][thread] = closed[k];
#pragma unroll
        for (int q = 0; !DOUBLE_MODE && q < NSUM; q++)
            s->sums[q][k][thread] = *sum_number(&sum[k], q);
    }
}

/* The nearest neighbour of a row so far. */
struct nearest_place {
    real r2;
    int place;
};

/* The closed runs of a row, from all chunks; keeps its nearest neighbour. */
DEVICE_FN unsigned middle_nearest(const struct shared_middle *s, int k, int lane, int chunks,
                                  struct nearest_place *nearest)
{
    unsigned closed = 0;
    for (int c = 0; c < chunks; c++) {
        closed |= s->closed[k][32 * c + lane];
        const real r2 = s->r2_min[k][32 * c + lane];
        if (r2 < nearest->r2) {
            nearest->r2 = r2;
            nearest->place = s->place[k][32 * c + lane];
        }
    }
    return closed;
}

enum { HALF_SUMS = 4 }; /* sums of a row in the first half of the threads */

/* Deposits a row's sums of a block, or closes its runs. Two threads take a row: the first
 * one the sums below HALF_SUMS, the second one the others, the nearest neighbour and the closed
 * runs, which it returns. Called by all threads. */
template <bool JERK>
DEVICE_FN unsigned middle_row(const struct cuda_sum_job &job, struct shared_middle *s,
                              const struct target *t, int first, int rows, int block, int chunks,
                              struct nearest_place *nearest)
{
    const int n = (int)threadIdx.x % MIDDLE_ROWS, k = n / 32, lane = n % 32, row = first + n;
    const bool second = (int)threadIdx.x >= (int)MIDDLE_ROWS;
    const struct block_range range = range_of_block(&job.sources.ranges[4 * block]);
    struct nearest_place here = {v_set1(FAR_S2), 0};
    const unsigned closed = second ? middle_nearest(s, k, lane, chunks, &here) : 0;
    struct block_sum sum[HALF_SUMS];
    bool good = !second || in_range(MODE, &t->range, &range);
#pragma unroll
    for (int p = 0; p < HALF_SUMS; p++) {
        const int q = second ? HALF_SUMS + p : p;
        sum[p] = no_sum();
        if (q >= NSUM || !is_wanted(JERK, q)) continue;
        for (int c = 0; c < chunks; c++) add_chunk(&sum[p], s->sums[q][k][32 * c + lane]);
        sum[p] = settled(sum[p], window_of(q));
        good = good && fits_bins(sum[p].hi, job.unit[window_of(q)]);
    }
    if (!good) s->bad[n] = true;
    __syncthreads();
    if (n >= rows) return 0;
    if (s->bad[n]) return second ? runs_beyond(job, &t->range, &range, row, block) : 0;
#pragma unroll
    for (int p = 0; p < HALF_SUMS; p++) {
        const int q = second ? HALF_SUMS + p : p;
        if (q < NSUM && is_wanted(JERK, q)) deposit(job, row, q, sum[p]);
    }
    if (here.r2 < nearest->r2) *nearest = here;
    return closed;
}

template <bool JERK>
DEVICE_FN void middle(const struct cuda_sum_job &job, const struct cuda_packed_targets *in_job)
{
    SHARED_BY_LAUNCH(struct shared_middle, s);
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int first = (int)blockIdx.y * MIDDLE_ROWS, rows = min((int)MIDDLE_ROWS, job.rows - first);
    const int begin = job.first_block + (int)blockIdx.x * job.step_blocks;
    const int end = min(job.end_block, begin + job.step_blocks);
    struct nearest_place nearest = {v_set1(FAR_S2), 0};
    struct target t[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++)
        t[k] = load_target(job, in_job, first + min(32 * k + lane, rows - 1));
    const int n = thread % MIDDLE_ROWS; /* this thread's row in middle_row */
    const bool second = thread >= (int)MIDDLE_ROWS;
    const struct target own = n / 32 ? t[1] : t[0];
#pragma unroll 1
    for (int block = begin; block < end; block++) {
        const int chunks = chunks_of(job.nj, block);
        if (!second) s->bad[n] = false;
        if (warp < chunks) middle_chunk<JERK>(job, s, t, block);
        __syncthreads();
        const unsigned closed =
            middle_row<JERK>(job, s, &own, first, rows, block, chunks, &nearest);
        if (!__syncthreads_or(closed != 0)) continue;
        if (second) s->closed[0][n] = closed;
        __syncthreads();
        enum { EACH = MIDDLE_ROWS / (WIDE_THREADS / 32) }; /* rows of a warp */
        close_rows(job, in_job, {NULL, NULL}, JERK, NEAR_BY_ADDRESS, first + warp * EACH, block,
                   lane < (int)EACH ? s->closed[0][warp * EACH + lane] : 0);
        __syncthreads();
    }
    if (second && n < rows && nearest.r2 < (real)NO_NEIGHBOUR)
        offer_nearest(job, first + n, nearest.r2, address_at(job, &own, nearest.place, nearest.r2));
    give_tile(job, first, rows);
}

#define MIDDLE(name, jerk)                                                                         \
    KERNEL(name, struct cuda_small_job, WIDE_THREADS, WIDE_BLOCKS)                                 \
    {                                                                                              \
        middle<jerk>(job.sum, job.sum.targets ? NULL : &job.targets);                              \
    }
MIDDLE(middle, false)
MIDDLE(middle_jerk, true)
