/* finish.cuh - nearest neighbours and host fallback of a row, and output of a tile's results. */

/* Updates a row's nearest neighbour. The modes with single precision pack r^2 and the place into
 * one number. Mode double keeps the place beside r^2, under a lock, which only the nearest so far
 * takes. The bits are inverted: zeroed memory means none, and the nearest is the largest. */
DEVICE_FN void offer_nearest(const struct cuda_sum_job &job, int row, real r2, int place)
{
    if (!(r2 < (real)NO_NEIGHBOUR)) return;
#if DOUBLE_MODE
    const unsigned long long key = ~bits_of(r2);
    const volatile unsigned long long *best = &job.nearest[row];
    if (atomicMax(&job.nearest[row], key) > key || *best != key) return;
    for (bool done = false; !done;) {
        if (atomicCAS(&job.nearest_lock[row], 0, 1)) continue;
        __threadfence();
        volatile unsigned long long *key_there = &job.nearest_key[row];
        volatile int32_t *there = &job.nearest_place[row];
        if (*best == key && (*key_there != key || place < *there)) {
            *key_there = key;
            *there = place;
        }
        __threadfence();
        atomicExch(&job.nearest_lock[row], 0);
        done = true;
    }
#else
    const unsigned long long high = (unsigned)~__float_as_int(r2), low = (unsigned)~place;
    atomicMax(&job.nearest[row], high << 32 | low);
#endif
}

/* r^2 of the nearest neighbour of a row, and its place; -1 if there is none. */
DEVICE_FN int best_place(const struct cuda_sum_job &job, int row, real *r2)
{
    const unsigned long long key = __ldcg(&job.nearest[row]);
    *r2 = 0;
    if (!key) return -1;
#if DOUBLE_MODE
    *r2 = from_bits(~key);
    return __ldcg(&job.nearest_place[row]);
#else
    *r2 = __int_as_float((int)~(unsigned)(key >> 32));
    return (int)~(unsigned)key;
#endif
}

DEVICE_FN void give_nearest(const struct cuda_sum_job &job, int row, int address, real r2)
{
    job.nearest_address[job.first + row] = address;
    job.nearest_index[job.first + row] = address < 0 ? 0 : job.sources.index[address];
    job.nearest_r2[job.first + row] = (double)r2;
}

/* Whether j is at distance r2 of i. */
DEVICE_FN bool is_at(const struct target *t, const struct pair_j *j, real r2)
{
    const struct pair_sep r = pair_separation(SPLIT, &t->i, j);
    return pair_distance2(&r, v_set1(0)) == r2;
}

/* A place may be an address instead: its sign bit is then set. */
DEVICE_FN int of_address(int address) { return (int)(0x80000000u | (unsigned)address); }
DEVICE_FN bool is_address(int place) { return place < -1; }
DEVICE_FN int address_of(int place) { return place & 0x7fffffff; }

/* Leaves the pairs of a row and a block, or of some runs of it, to the host. */
DEVICE_FN void leave_to_host(const struct cuda_sum_job &job, int row, int block, unsigned runs)
{
    const int k = atomicAdd(job.left_count, 1);
    if ((unsigned)k < (unsigned)job.left_capacity) { /* counts above 2^31 look negative */
        job.left[k].row = job.first + row;
        job.left[k].block = block;
        job.left[k].runs = runs;
    }
    atomicAdd(&job.ended[gridDim.y + blockIdx.y], 1u);
}

DEVICE_FN void note_zero_distances(const struct cuda_sum_job &job, int pairs)
{
    atomicAdd(&job.ended[2 * gridDim.y + blockIdx.y], (unsigned)pairs);
}

/* Whether this CUDA block is the last one of its tile: then all rows of the tile are complete. */
DEVICE_FN bool last_of_tile(const struct cuda_sum_job &job)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&job.ended[blockIdx.y], 1u) == gridDim.x - 1;
    __syncthreads();
    if (last) __threadfence();
    return last;
}

/* Writes the sums of a tile. Called by its last CUDA block. */
DEVICE_FN void store_sums(const struct cuda_sum_job &job, int first, int rows)
{
    enum { AT_ONCE = DOUBLE_MODE ? 2 : 4 }; /* rows, whose bins are on their way together */
    const int t = (int)threadIdx.x, lanes = (int)blockDim.x / 8, k = t / lanes;
    for (int n = t % lanes; k < NSUM && n < rows; n += AT_ONCE * lanes) {
        struct row_bins row[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            row[u] = load_bins(job, k, first + min(n + u * lanes, rows - 1));
#pragma unroll
        for (int u = 0; u < AT_ONCE && n + u * lanes < rows; u++) {
            const size_t to = (size_t)(job.first + first + n + u * lanes);
            const size_t stride = (size_t)job.out_stride;
            const int top = row[u].top;
            int64_t limb[3];
            highest_bins(job, k, row[u], limb);
            job.sum[k * stride + to] =
                top ? limbs_value(limb[0], limb[1], limb[2], top - CUDA_TOP_ZERO) : 0.0;
            if (!job.limbs) continue;
#pragma unroll
            for (int d = 0; d < LIMBS; d++) job.limbs[(k * LIMBS + d) * stride + to] = limb[d];
            if (k % 3 == 0) job.tops[window_of(k) * stride + to] = top;
        }
    }
}

/* Raises the tile's flag, and clears its rows for the next launch. */
DEVICE_FN void end_tile(const struct cuda_sum_job &job, int first, int rows)
{
    const int t = (int)threadIdx.x, lanes = (int)blockDim.x / 8, k = t / lanes;
    const int tile = (int)blockIdx.y, of_all = job.first / job.tile_rows + tile;
    unsigned *left = &job.ended[gridDim.y + tile],
             *zero_distances = &job.ended[2 * gridDim.y + tile];
    if (t == (int)blockDim.x - 1) {
        job.left_of_tile[of_all] = (int)__ldcg(left);
        job.zero_distances_of_tile[of_all] = (int)__ldcg(zero_distances);
    }
    __threadfence_system();
    __syncthreads();
    if (t == 0) {
        *(volatile unsigned long long *)&job.flag[of_all] = job.step;
        job.ended[tile] = *left = *zero_distances = 0;
    }
    for (int q = k; q < NSUM * BINS; q += 8)
        for (int n = t % lanes; n < rows; n += lanes)
            job.bin[(size_t)q * job.stride + first + n] = 0;
    for (int n = t % lanes; k < NWINDOW && n < rows; n += lanes)
        job.top[k * job.stride + first + n] = 0;
    for (int n = t; n < rows; n += (int)blockDim.x) {
        job.nearest[first + n] = 0; /* the next launch may have other arrays here */
        if (DOUBLE_MODE) job.nearest_key[first + n] = job.nearest_place[first + n] = 0;
    }
}

/* End of a kernel that stores nearest neighbours by address. */
DEVICE_FN void give_tile(const struct cuda_sum_job &job, int first, int rows)
{
    if (!last_of_tile(job)) return;
    const int last_warp = (int)threadIdx.x - ((int)blockDim.x - 32);
    store_sums(job, first, rows);
    for (int n = last_warp; n >= 0 && n < rows; n += 32) {
        real r2;
        const int address = best_place(job, first + n, &r2);
        give_nearest(job, first + n, address, r2);
    }
    end_tile(job, first, rows);
}
