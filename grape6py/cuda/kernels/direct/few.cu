/* few.cu - sums on few i particles. A thread sums one group of addresses (kernel few: one run) on
 * one i particle, so that even one particle keeps much of the GPU busy. A CUDA block holds a block
 * of addresses in shared memory (mode double: half of one at a time), which it may predict itself.
 * Nearest neighbours and softening are always computed; the softening may be zero. */
enum { SMALL_THREADS = 256, HELD = DOUBLE_MODE ? 2 : 4 /* chunks */ };
enum { HELD_RUNS = HELD * CUDA_CHUNK / RUN, HELD_GROUPS = 4 * HELD };
enum { PADDED_RUN = RUN_REALS + PAD }; /* padding against bank conflicts between runs */

/* The i particle (lane) and the addresses (slot) of a thread. Neighbouring threads have the same
 * group, which they read together; in kernel few they have the same i particle, so that only some
 * warps have work. */
template <bool FEW> struct layout {
    enum { ADDRESSES = FEW ? (int)RUN : (int)CUDA_GROUP };
    enum { SLOTS = HELD * CUDA_CHUNK / ADDRESSES, LANES = SMALL_THREADS / SLOTS };
};
template <bool FEW> DEVICE_FN int lane_of(void)
{
    return FEW ? (int)threadIdx.x / layout<FEW>::SLOTS : (int)threadIdx.x % layout<FEW>::LANES;
}
template <bool FEW> DEVICE_FN int slot_of(void)
{
    return FEW ? (int)threadIdx.x % layout<FEW>::SLOTS : (int)threadIdx.x / layout<FEW>::LANES;
}

#if DOUBLE_MODE
typedef unsigned long long r2_bits; /* bits of a non-negative number, in the same order */
DEVICE_FN r2_bits to_bits(real r2) { return (r2_bits)__double_as_longlong(r2); }
DEVICE_FN real to_r2(r2_bits bits) { return __longlong_as_double((long long)bits); }
#else
typedef unsigned r2_bits;
DEVICE_FN r2_bits to_bits(real r2) { return (r2_bits)__float_as_int(r2); }
DEVICE_FN real to_r2(r2_bits bits) { return __int_as_float((int)bits); }
#endif

enum { LANES = SMALL_THREADS / HELD_GROUPS }; /* at most */
struct shared_small {
    alignas(16) real held[HELD_RUNS * PADDED_RUN];
    union {
        real part[NSUM][SMALL_THREADS + (DOUBLE_MODE ? 32 : 8)];
        arriving_words sent; /* before the sums */
    };
    struct target target[LANES];
    r2_bits least[LANES];
    int near_place[LANES], near_address[LANES];
    bool bad[LANES];
    unsigned closed[LANES];
    int32_t index[CUDA_BLOCK];
    struct cuda_span span[CUDA_GROUPS];
    struct block_range range;
    struct cuda_span warp_span[CUDA_BLOCK / 32]; /* of 32 addresses each, if predicted here */
    struct block_range warp_range[CUDA_BLOCK / 32];
    signed char arriving[CUDA_BLOCK];
};

#ifndef GRAPE6_ON_CPU
static_assert(sizeof(struct shared_small) <= CUDA_SMALL_SHARED, "what csrc/cuda/device.c asks for");
#endif

/* Particles that arrive with a launch that predicts. */
DEVICE_FN const struct cuda_sent *sent_of(const struct cuda_small_job &job)
{
    return job.arrivals.sent ? job.arrivals.sent : job.targets.few.sent;
}

/* Copies chunks into shared memory: issues all loads before the first store. */
DEVICE_FN void hold(real *held, const real *pairs)
{
    enum { QUADS = RUN_REALS * sizeof(real) / 16 };
    enum { LOADS = HELD_RUNS * QUADS / SMALL_THREADS };
    const quad *from = (const quad *)pairs;
    quad part[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) part[k] = from[k * SMALL_THREADS + (int)threadIdx.x];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        const int q = k * SMALL_THREADS + (int)threadIdx.x;
        ((quad *)(held + q / QUADS * PADDED_RUN))[q % QUADS] = part[k];
    }
}

/* Loads indices, spans and range of the block, as kernel predict stored them. */
DEVICE_FN void hold_facts(const struct cuda_sources &sources, struct shared_small *s, int block)
{
    const int t = (int)threadIdx.x;
    const int32_t *index = &sources.index[block * CUDA_BLOCK];
    for (int k = t; k < CUDA_BLOCK; k += SMALL_THREADS) s->index[k] = index[k];
    if (t < CUDA_GROUPS) s->span[t] = sources.spans[block * CUDA_GROUPS + t];
    if (t == 32) s->range = range_of_block(&sources.ranges[4 * block]);
}

/* Makes the i particles from row0 on, one per lane. */
DEVICE_FN void hold_targets(const struct cuda_small_job &job, struct shared_small *s, int row0,
                            int last, int lanes)
{
    const int t = (int)threadIdx.x;
    if (t < lanes)
        s->target[t] =
            load_target(job.sum, job.sum.targets ? NULL : &job.targets, min(row0 + t, last - 1));
}

#if !DOUBLE_MODE
/* Predicts the block instead. Fetches the arriving particles and makes the first i particles while
 * the first loads from slots are pending. */
DEVICE_FN void hold_predicted(const struct cuda_small_job &job, struct shared_small *s, int block,
                              int first_row, int last_row, int lanes)
{
    const struct cuda_arrivals &of = job.arrivals;
    const struct cuda_sent *sent = sent_of(job);
    signed char *const arriving = s->arriving;
    enum { AT_ONCE = 2 };
    const int t = (int)threadIdx.x, first = block * CUDA_BLOCK;
#pragma unroll 1
    for (int at = t; at < CUDA_BLOCK; at += AT_ONCE * SMALL_THREADS) {
        union record r[AT_ONCE];
        double k18[AT_ONCE][3];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            load_particle(job.sum.store, NULL, NULL, first + at + u * SMALL_THREADS, &r[u], k18[u]);
        if (at == t) {
            hold_targets(job, s, first_row, last_row, lanes);
            if (of.few) {
                note_arriving(of, first, CUDA_BLOCK, arriving);
                fetch_arriving(of, sent, first, CUDA_BLOCK, s->sent);
            }
            __syncthreads();
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int a = at + u * SMALL_THREADS;
            real *pair = s->held + a / RUN * PADDED_RUN + a % RUN / 2 * PAIR_REALS;
            if (of.few && arriving[a] >= 0) {
                load_particle(job.sum.store, &sent[arriving[a]], s->sent[arriving[a]], first + a,
                              &r[u], k18[u]);
                if (blockIdx.y == 0) store_particle(job.sum.store, first + a, &r[u], k18[u]);
            }
            const struct block_range e =
                range_of_warp(predict_particle(job.sum, first + a, &r[u].body, k18[u], pair));
            const struct cuda_span span = span_of_warp(r[u].body.index);
            s->index[a] = r[u].body.index;
            if (a % 32 == 0) {
                s->warp_range[a / 32] = e;
                s->warp_span[a / 32] = span;
            }
        }
    }
    __syncthreads();
    if (t < CUDA_GROUPS) s->span[t] = wider_span(s->warp_span[2 * t], s->warp_span[2 * t + 1]);
    if (t / 32 == 1) {
        const struct block_range all = range_of_warp(s->warp_range[t % 32]);
        if (t == 32) s->range = all;
    }
}

/* Stores the rest of the predicted block for later calls. */
DEVICE_FN void store_predicted(const struct cuda_sources &sources, const struct shared_small *s,
                               int block)
{
    enum { QUADS = RUN_REALS * sizeof(real) / 16 };
    const int t = (int)threadIdx.x;
    quad *to = (quad *)((real *)sources.pairs + (size_t)block * CUDA_CHUNKS * CHUNK_REALS);
    if (blockIdx.y) return;
#pragma unroll 2
    for (int q = t; q < HELD_RUNS * QUADS; q += SMALL_THREADS)
        to[q] = ((const quad *)(s->held + q / QUADS * PADDED_RUN))[q % QUADS];
    if (t < CUDA_GROUPS) sources.spans[block * CUDA_GROUPS + t] = s->span[t];
    if (t < 4) {
        struct block_range all = s->warp_range[8 * t];
        for (int w = 1; w < 8; w++) all = wider(all, s->warp_range[8 * t + w]);
        sources.ranges[4 * block + t] = all;
    }
}
#endif

/* After the pairs, neighbouring threads have neighbouring rows (lane). A thread's role for its row:
 * below NSUM, to add up that sum; NSUM, to check the ranges. */
template <bool FEW> DEVICE_FN int role_of(void) { return (int)threadIdx.x / layout<FEW>::LANES; }
template <bool FEW> DEVICE_FN int row_of(void) { return (int)threadIdx.x % layout<FEW>::LANES; }

/* Adds the parts of a row, chunk after chunk. */
template <bool FEW>
DEVICE_FN void add_parts(struct shared_small *s, struct pair_sum sum, int chunks,
                         struct block_sum *own)
{
    typedef layout<FEW> at;
    enum { RUNS = FEW && !DOUBLE_MODE ? 2 : 1 }; /* of a group, not yet added */
    const int next_row = FEW ? at::SLOTS + 1 : 1, next_slot = FEW ? 1 : at::LANES;
    const int to = lane_of<FEW>() * next_row + slot_of<FEW>() * next_slot;
#pragma unroll
    for (int q = 0; q < NSUM; q++) s->part[q][to] = *sum_number(&sum, q);
    __syncthreads();
    if (role_of<FEW>() >= NSUM) return;
    const real *part = &s->part[role_of<FEW>()][row_of<FEW>() * next_row];
    for (int c = 0; c < chunks; c++) {
        real chunk = 0;
#pragma unroll
        for (int g = 0; g < 4; g++, part += RUNS * next_slot)
            chunk = v_add(chunk, RUNS == 2 ? v_add(part[0], part[next_slot]) : part[0]);
        add_chunk(own, chunk);
    }
}

/* Deposits the rows' sums, or closes their runs; finds the nearest neighbours. */
template <bool FEW, bool JERK>
DEVICE_FN void end_rows(const struct cuda_sum_job &job, struct shared_small *s, int row0, int last,
                        int block, struct nearest_place nearest, unsigned closed,
                        struct block_sum own)
{
    const int pair_lane = lane_of<FEW>(), lane = row_of<FEW>(), role = role_of<FEW>();
    const struct target *t = &s->target[lane];
    const int row = row0 + lane;
    const bool active = row < last, adds = role < NSUM && is_wanted(JERK, role);
    if (role == 0) {
        s->least[lane] = to_bits(v_set1(FAR_S2));
        s->near_place[lane] = s->near_address[lane] = 0x7fffffff;
        s->bad[lane] = false;
        s->closed[lane] = 0;
    }
    __syncthreads();
    if (closed) atomicOr(&s->closed[pair_lane], closed);
    atomicMin(&s->least[pair_lane], to_bits(nearest.r2));
    if (adds) {
        own = settled(own, window_of(role));
        if (!fits_bins(own.hi, job.unit[window_of(role)])) s->bad[lane] = true;
    }
    __syncthreads();
    if (nearest.r2 == to_r2(s->least[pair_lane]))
        atomicMin(&s->near_place[pair_lane], nearest.place);
    const real r2_min = to_r2(s->least[lane]);
    if (role == NSUM && !in_range(MODE, &t->range, &s->range)) s->bad[lane] = true;
    __syncthreads();
    const bool good = !s->bad[lane];
    if (active && adds && good) deposit(job, row, role, own);
    for (int q = role; good && r2_min < (real)NO_NEIGHBOUR && q < PLACE; q += layout<FEW>::SLOTS) {
        const int address = s->near_place[lane] * PLACE + q, a = address % CUDA_BLOCK;
        const struct pair_j j = HELD == (int)CUDA_CHUNKS
                                    ? load_source(s->held + a / RUN * PADDED_RUN, a % RUN)
                                    : load_source((const real *)job.sources.pairs, address);
        if (s->index[a] != t->label && is_at(t, &j, r2_min))
            atomicMin(&s->near_address[lane], address);
    }
    __syncthreads();
    if (!active || role) return;
    if (good) {
        offer_nearest(job, row, r2_min, s->near_address[lane]);
    } else {
        s->closed[lane] = runs_beyond(job, &t->range, &s->range, row, block);
    }
}

/* Sums the closed runs of the rows, one warp per row. */
template <bool FEW, bool JERK>
DEVICE_FN void close_small(const struct cuda_small_job &job, const struct shared_small *s, int row0,
                           int last, int block)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    enum { WARPS = SMALL_THREADS / 32 };
    const bool own = lane < (int)layout<FEW>::LANES && lane % WARPS == warp && row0 + lane < last;
    const unsigned closed = own ? s->closed[lane] : 0;
    if (!__any_sync(0xffffffffu, closed != 0)) return;
    const bool some_arrive = job.predicts && job.arrivals.few;
    close_rows(job.sum, job.sum.targets ? NULL : &job.targets,
               {some_arrive ? s->arriving : NULL, sent_of(job)}, JERK, NEAR_BY_ADDRESS, row0, block,
               closed);
}

/* Sums of a thread's addresses, from one half of the block or all of it. */
template <bool FEW, bool JERK, bool SAME>
DEVICE_FN void small_sums(const struct shared_small *s, int lane, int slot, int first,
                          struct pair_sum *sum, struct nearest_place *nearest, unsigned *closed)
{
    enum { UNROLL = FEW && !SAME ? 8 : UNROLLED }; /* one warp must hide its latency */
    const struct target t = s->target[lane];
    const int own = slot * layout<FEW>::ADDRESSES, a = first + own;
    const real *pairs = s->held + own / RUN * PADDED_RUN;
    const struct labels_in_memory labels = {&s->index[a % CUDA_BLOCK]};
    if (FEW)
        add_run<JERK, true, true, SAME, true, 1, UNROLL>(&t, pairs, labels, 0, a / PLACE, sum,
                                                         &nearest->r2, &nearest->place, closed);
    else
        add_group<JERK, true, true, SAME, true, 1, UNROLL>(
            &t, pairs, PADDED_RUN, labels, a / PLACE, sum, &nearest->r2, &nearest->place, closed);
}

/* Sums of one block of addresses on the rows of a tile. */
template <bool FEW, bool JERK>
DEVICE_FN void small_block(const struct cuda_small_job &job, struct shared_small *s, int first,
                           int last)
{
    typedef layout<FEW> at;
    const int lane = lane_of<FEW>(), slot = slot_of<FEW>();
    const int block = job.sum.first_block + (int)blockIdx.x;
    const int chunks = chunks_of(job.sum.nj, block);
    const real *pairs =
        (const real *)job.sum.sources.pairs + (size_t)block * CUDA_CHUNKS * CHUNK_REALS;
#if !DOUBLE_MODE
    if (job.predicts)
        hold_predicted(job, s, block, first, last, at::LANES);
    else
#endif
        hold_facts(job.sum.sources, s, block);
    const bool held = HELD == (int)CUDA_CHUNKS;
    if (held && !job.predicts) hold(s->held, pairs);
    if (!job.predicts) hold_targets(job, s, first, last, at::LANES);
#pragma unroll 1
    for (int row0 = first; row0 < last; row0 += at::LANES) {
        const bool active = row0 + lane < last;
        struct nearest_place nearest = {v_set1(FAR_S2), 0};
        struct block_sum own = no_sum();
        unsigned closed = 0;
        if (row0 > first) {
            __syncthreads();
            hold_targets(job, s, row0, last, at::LANES);
        }
#pragma unroll 1
        for (int half = 0; half < chunks; half += HELD) {
            if (!held) {
                __syncthreads();
                hold(s->held, pairs + half * CHUNK_REALS);
            }
            __syncthreads();
            const int at_group = half * 4 + slot * at::ADDRESSES / CUDA_GROUP;
            const int address = block * CUDA_BLOCK + half * CUDA_CHUNK;
            struct pair_sum sum = no_pairs();
            if (active && may_hold(s->span[at_group], s->target[lane].label))
                small_sums<FEW, JERK, true>(s, lane, slot, address, &sum, &nearest, &closed);
            else if (active)
                small_sums<FEW, JERK, false>(s, lane, slot, address, &sum, &nearest, &closed);
            add_parts<FEW>(s, sum, min((int)HELD, chunks - half), &own);
        }
        __syncthreads();
        end_rows<FEW, JERK>(job.sum, s, row0, last, block, nearest, closed, own);
        __syncthreads();
        close_small<FEW, JERK>(job, s, row0, last, block);
    }
}

template <bool FEW, bool JERK> DEVICE_FN void small(const struct cuda_small_job &job)
{
    SHARED_BY_LAUNCH(struct shared_small, s);
    const int first = (int)blockIdx.y * job.sum.tile_rows;
    const int last = min(job.sum.rows, first + job.sum.tile_rows);
    small_block<FEW, JERK>(job, s, first, last);
#if DOUBLE_MODE
    give_tile(job.sum, first, last - first);
#else
    const int block = job.sum.first_block + (int)blockIdx.x;
    int32_t *index = job.sum.sources.index + block * CUDA_BLOCK;
    if (job.predicts) /* every tile reads them again at its end */
        for (int k = (int)threadIdx.x; k < CUDA_BLOCK; k += SMALL_THREADS) index[k] = s->index[k];
    give_tile(job.sum, first, last - first);
    if (job.predicts) store_predicted(job.sum.sources, s, block); /* the host need not wait */
#endif
}

#define SMALL(name, few, blocks, jerk)                                                             \
    KERNEL(name, struct cuda_small_job, SMALL_THREADS, blocks) { small<few, jerk>(job); }
SMALL(few, true, 1, false)
SMALL(few_jerk, true, 1, true)
SMALL(some, false, 2, false)
SMALL(some_jerk, false, 2, true)
