/* net_force.cu - accelerations, or jerks, of all particles that add up to zero, as in
 * csrc/tree/sum.c. */

/* Of particle k in a unit in which squares fit, which is given as two factors. */
DEVICE_FN void vector_in_unit(const struct tree_device_job &job, int64_t k, const double unit[2],
                              double a[3])
{
    for (int c = 0; c < 3; c++) a[c] = job.vectors[3 * k + c] * unit[0] * unit[1];
}

DEVICE_FN int exponent_of_vectors(const struct tree_device_job &job, const struct tree_box *box)
{
    const int of_acc = box->mass - 2 * box->length;
    return job.vectors == job.acc ? of_acc : of_acc + box->velocity - box->length;
}

/* Of a share of the particles. */
KERNEL(tree_net_force, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    struct tree_net_force net = {{0.0, 0.0, 0.0}, 0.0};
    double unit[2], a[3];
    tree_halves(unit, -exponent_of_vectors(job, &box));
    for (int64_t k = blockIdx.x * 256 + threadIdx.x; k < job.n; k += FLOW_PIECES * 256) {
        vector_in_unit(job, k, unit, a);
        tree_net_force_add(&net, tree_mass_in_box(&box, job.m[k]), a);
    }
    double sum[4] = {net.sum[0], net.sum[1], net.sum[2], net.sizes};
    sum_of_block(sum);
    if (threadIdx.x == 0)
        for (int c = 0; c < 4; c++) job.momenta[4 * (int)blockIdx.x + c] = sum[c];
}

KERNEL(tree_close_system, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    double sum[4], unit[2], back[2], a[3];
    for (int c = 0; c < 4; c++) sum[c] = job.momenta[4 * (int)threadIdx.x + c];
    sum_of_block(sum);
    const struct tree_net_force net = {{sum[0], sum[1], sum[2]}, sum[3]};
    const int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (k >= job.n) return;
    tree_halves(unit, -exponent_of_vectors(job, &box));
    tree_halves(back, exponent_of_vectors(job, &box));
    vector_in_unit(job, k, unit, a);
    tree_net_force_remove(&net, job.m[k], a);
    for (int c = 0; c < 3; c++) job.vectors[3 * k + c] = a[c] * back[0] * back[1];
}
