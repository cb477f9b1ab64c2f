/* hermite.cu - a Hermite integration whose particles live on the GPU: which of them are next,
 * their prediction, their correction. The arithmetic is hermite_step.h's. */

/* ---- the next block --------------------------------------------------------------------- */

DEVICE_FN double step_end(const struct cuda_next_job &job, int p)
{
    return hermite_step_end(job.t[p], job.dt[p], job.common);
}

/* The least of all threads' values, to thread 0. 256 threads. */
DEVICE_FN double least_of_block(double mine, double *shared)
{
    const unsigned t = threadIdx.x;
    shared[t] = mine;
    for (unsigned half = 128; half; half /= 2) {
        __syncthreads();
        if (t < half && shared[t + half] < shared[t]) shared[t] = shared[t + half];
    }
    __syncthreads();
    return shared[0];
}

KERNEL(next_time, struct cuda_next_job, 256, 1)
{
    __shared__ double shared[256];
    const int first = (int)blockIdx.x * job.share;
    double least = from_bits((uint64_t)0x7ff << 52);
    for (int k = (int)threadIdx.x; k < job.share && first + k < job.n; k += 256) {
        const double end = step_end(job, first + k);
        if (end < least) least = end;
    }
    least = least_of_block(least, shared);
    if (threadIdx.x == 0) job.earliest[blockIdx.x] = least;
}

KERNEL(next_count, struct cuda_next_job, 256, 1)
{
    __shared__ double shared[256];
    __shared__ int count;
    const unsigned t = threadIdx.x;
    if (t == 0) count = 0;
    const double never = from_bits((uint64_t)0x7ff << 52);
    const double time = least_of_block(t < gridDim.x ? job.earliest[t] : never, shared);
    const int first = (int)blockIdx.x * job.share;
    for (int k = (int)t; k < job.share; k += 256) { /* whole warps, since share is so */
        const int p = first + k;
        const unsigned bits =
            __ballot_sync(0xffffffffu, p < job.n && step_end(job, p < job.n ? p : 0) == time);
        if (t % 32 == 0 && p < job.n) {
            job.bits[p / 32] = bits;
            if (bits) atomicAdd(&count, __popc(bits));
        }
    }
    __syncthreads();
    if (t != 0) return;
    job.counts[blockIdx.x] = count;
    if (blockIdx.x == 0) job.notes->time = time;
}

/* How much the threads before this one have, and `before`; all of them and `before` go to *end. */
DEVICE_FN int place_of(int mine, int before, int *shared, int *end)
{
    const unsigned t = threadIdx.x;
    int value = mine;
    for (unsigned by = 1; by < 256; by *= 2) {
        __syncthreads();
        shared[t] = value;
        __syncthreads();
        if (t >= by) value += shared[t - by];
    }
    __syncthreads();
    shared[t] = value;
    __syncthreads();
    *end = before + shared[255];
    return before + value - mine;
}

KERNEL(next_list, struct cuda_next_job, 256, 1)
{
    __shared__ int shared[256];
    const int t = (int)threadIdx.x, block = (int)blockIdx.x;
    int at, end;
    (void)place_of(t < block ? job.counts[t] : 0, 0, shared, &at);
    if (block == (int)gridDim.x - 1 && t == 0) job.notes->count = at + job.counts[block];
    const int first = block * job.share / 32, words = job.share / 32;
    for (int base = 0; base < words; base += 256, at = end) {
        const int w = first + base + t;
        unsigned bits = base + t < words && w < (job.n + 31) / 32 ? job.bits[w] : 0;
        int to = place_of(__popc(bits), at, shared, &end);
        for (; bits; bits &= bits - 1) job.address[to++] = 32 * w + __ffs((int)bits) - 1;
    }
}

/* ---- its particles ---------------------------------------------------------------------- */

KERNEL(hermite_predict, struct cuda_hermite_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row < job.rows)
        hermite_predict_one(&job.state, job.address[row], job.time, job.xi[row], job.vi[row]);
}

KERNEL(hermite_correct, struct cuda_hermite_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.rows) return;
    const int p = job.address[row];
    const double *acc = job.acc[row], *jerk = job.jerk[row], pot = job.pot[row];
    const double noise = job.rounding ? job.rounding[p] * (pot * pot) : -1.0;
    double x[3], v[3];
    if (hermite_correct_one(&job.rule, &job.state, p, job.time, acc, jerk, noise, x, v))
        atomicAdd(&job.notes->held, 1);
    if (!are_numbers(x) || !are_numbers(v) || !is_number(job.mass[p]))
        atomicMin(&job.notes->invalid, row);
    for (int k = 0; k < 3; k++) {
        job.xi[row][k] = x[k];
        job.vi[row][k] = v[k];
        if (!job.a2) continue;
        job.a2[row][k] = acc[k] / 2.0;
        job.j6[row][k] = jerk[k] / 6.0;
    }
    if (!job.a2) return;
    job.mass_out[row] = job.mass[p];
    job.time_out[row] = job.time;
}
