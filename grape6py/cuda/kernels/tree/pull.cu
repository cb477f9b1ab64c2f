/* pull.cu - the targets' last accelerations, or estimates of them, of which a bound is a share: the
 * least that counts is a small share of their mean. */

/* The sum of a block's numbers, one a thread, for all of its threads. */
DEVICE_FN double sum_of_block(double mine, double shared[256])
{
    __syncthreads();
    shared[threadIdx.x] = mine;
    combine<1>((double (*)[256])shared, [](int, double a, double b) { return a + b; });
    return shared[0];
}

/* Sums of FLOW_PIECES pieces. */
KERNEL(tree_least_pull, struct tree_device_job, 256, 1)
{
    __shared__ double shared[256];
    const int64_t n = job.target_count, piece = (int)blockIdx.x;
    const int64_t first = piece * n / FLOW_PIECES, end = (piece + 1) * n / FLOW_PIECES;
    double sum = 0.0;
    for (int64_t k = first + (int)threadIdx.x; k < end; k += 256) sum += (double)job.last_acc[k];
    const double all = sum_of_block(sum, shared);
    if (threadIdx.x == 0) job.momenta[piece] = all;
}

KERNEL(tree_raise_pulls, struct tree_device_job, 256, 1)
{
    __shared__ double shared[256];
    const int k = (int)(blockIdx.x * 256 + threadIdx.x), n = job.target_count;
    const double sum = sum_of_block(job.momenta[threadIdx.x], shared);
    const float least = (float)fmax(TREE_LEAST_ESTIMATE, TREE_LEAST_ACC * (sum / (double)n));
    if (k < n) job.last_acc[k] = fmaxf(least, job.last_acc[k]);
}
