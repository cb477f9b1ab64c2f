/* motion.cu - what jerks need: velocities of particles and targets, and how cells move and
 * change, as in csrc/tree/build.c. */

/* The largest component of n velocities, as bits, and who is not finite. 256 threads call it. */
DEVICE_FN void find_fastest(const double *v, int n, uint64_t *fastest, int *bad)
{
    __shared__ uint64_t column[1][256];
    const unsigned t = threadIdx.x;
    const double infinite = from_bits((uint64_t)0x7ff << 52);
    double most = 0.0;
    for (int64_t k = blockIdx.x * 256 + t; k < n; k += gridDim.x * 256) {
        bool finite = true;
        for (int c = 0; c < 3; c++) {
            const double size = fabs(v[3 * k + c]);
            finite &= size < infinite;
            if (size < infinite && size > most) most = size;
        }
        if (!finite && bad) atomicMax(bad, n - (int)k); /* the lowest number wins */
    }
    column[0][t] = bits_of(most);
    combine<1>(column, [](int, uint64_t a, uint64_t b) { return a > b ? a : b; });
    if (t == 0) atomicMax((unsigned long long *)fastest, (unsigned long long)column[0][0]);
}

KERNEL(tree_speeds, struct tree_device_job, 256, 1)
{
    find_fastest(job.v, job.n, &job.flow->fastest, &job.status->bad);
}

KERNEL(tree_target_speeds, struct tree_device_job, 256, 1)
{
    find_fastest(job.target_v, job.target_count, &job.flow->targets_fastest, 0);
}

/* ---- the frame ----------------------------------------------------------------------------- */

enum { FLOW_PIECES = 256 };

/* Four sums of the threads of a CUDA block become those of all, in every thread; once a kernel. */
DEVICE_FN void sum_of_block(double sum[4])
{
    __shared__ double column[4][256];
    for (int c = 0; c < 4; c++) column[c][threadIdx.x] = sum[c];
    combine<4>(column, [](int, double a, double b) { return a + b; });
    for (int c = 0; c < 4; c++) sum[c] = column[c][0];
}

/* Momentum and mass of a share of the particles. */
KERNEL(tree_momenta, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int t = (int)threadIdx.x;
    double sum[4] = {0.0, 0.0, 0.0, 0.0}, unit[2];
    tree_halves(unit, -tree_speed_exponent(from_bits(job.flow->fastest)));
    for (int64_t k = blockIdx.x * 256 + t; k < job.n; k += FLOW_PIECES * 256) {
        const double m = tree_mass_in_box(&box, fabs(job.m[k]));
        for (int c = 0; c < 3; c++) sum[c] += m * (job.v[3 * k + c] * unit[0] * unit[1]);
        sum[3] += m;
    }
    sum_of_block(sum);
    if (t == 0)
        for (int c = 0; c < 4; c++) job.momenta[4 * (int)blockIdx.x + c] = sum[c];
}

KERNEL(tree_frame, struct tree_device_job, 32, 1)
{
    if (threadIdx.x) return;
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < 4 * FLOW_PIECES; k++) sum[k % 4] += job.momenta[k];
    job.box->velocity = tree_speed_exponent(from_bits(job.flow->fastest));
    for (int c = 0; c < 3; c++) job.box->frame[c] = sum[3] > 0.0 ? sum[c] / sum[3] : 0.0;
}

/* The unit of velocity that holds those of the targets, too. */
KERNEL(tree_widen_frame, struct tree_device_job, 32, 1)
{
    if (threadIdx.x) return;
    struct tree_flow *flow = job.flow;
    flow->wide = *job.box;
    flow->speed = tree_widen(&flow->wide, tree_speed_exponent(from_bits(flow->targets_fastest)));
    flow->targets_fastest = 0;
}

DEVICE_FN float4 velocity_in_box(const struct tree_box *box, const double *v)
{
    double unit[2], in[3];
    tree_halves(unit, -box->velocity);
    for (int c = 0; c < 3; c++) in[c] = (v ? v[c] * unit[0] * unit[1] : 0.0) - box->frame[c];
    float4 all;
    all.x = (float)in[0], all.y = (float)in[1], all.z = (float)in[2], all.w = 0.0f;
    return all;
}

KERNEL(tree_gather_velocities, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k < job.n) job.velocity[k] = velocity_in_box(&box, job.v + 3 * job.order[k]);
}

KERNEL(tree_gather_target_velocities, struct tree_device_job, 256, 1)
{
    const struct tree_box box = job.flow->wide;
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.target_count) return;
    const double *v = job.target_v ? job.target_v + 3 * job.target_order[k] : 0;
    job.target_velocity[k] = velocity_in_box(&box, v);
}

/* ---- cells --------------------------------------------------------------------------------- */

DEVICE_FN void keep_rates(const struct tree_device_job &job, int id, const struct tree_rates *r)
{
    struct tree_motion motion;
    tree_motion_single(r, &motion);
    job.rates[id] = *r;
    put_whole(&job.motion[id], motion);
}

KERNEL(tree_leaf_rates, struct tree_device_job, 128, 1)
{
    const int id = (int)(blockIdx.x * 128 + threadIdx.x);
    if (id >= job.status->cells) return;
    const struct tree_cell cell = whole(&job.cell[id]);
    if (cell.child >= 0) return;
    struct tree_rates r = {};
    tree_leaf_rates(job, &cell, &job.moments[id], &r);
    keep_rates(job, id, &r);
}

KERNEL(tree_inner_rates, struct tree_device_job, 128, 1)
{
    for_inner_cells(job, [&](int id, const struct tree_cell *cell) {
        struct tree_rates r = {};
        tree_inner_rates(job, cell, &job.moments[id], &r);
        keep_rates(job, id, &r);
    });
}
