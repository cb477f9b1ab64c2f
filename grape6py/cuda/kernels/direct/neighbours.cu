/* neighbours.cu - neighbour lists: pairs of a row and an index with s^2 <= h2. */

/* Squared distance in double, from the positions as the kernels hold them. */
DEVICE_FN double separation2(const struct pair_i *i, const struct pair_j *j)
{
    const real from[6] = {i->x, i->y, i->z, i->xl, i->yl, i->zl};
    const real to[6] = {j->x, j->y, j->z, j->xl, j->yl, j->zl};
    double s2 = 0.0;
    for (int k = 0; k < 3; k++) {
        double d = __dsub_rn((double)to[k], (double)from[k]);
        if (SPLIT) d = __dadd_rn(d, __dsub_rn((double)to[3 + k], (double)from[3 + k]));
        s2 = __dadd_rn(s2, __dmul_rn(d, d));
    }
    return s2;
}

/* A thread takes an address and all rows of its blockIdx.y. */
KERNEL(neighbours, struct cuda_list_job, 256, 1)
{
    enum { ROWS = 16 };
    const int a = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (a >= job.nj) return;
    const struct pair_j j = load_source((const real *)job.sources.pairs, a);
    if (j.x == v_set1(FAR_AWAY) && j.m == 0) return;
    for (int row = (int)blockIdx.y * ROWS; row < min(job.rows, (int)(blockIdx.y + 1) * ROWS); row++) {
        const struct cuda_target *from = &job.targets[row];
        const double unit = job.frame.x_unit;
        const struct target t = make_target(*from, job.frame);
        const double limit = job.h2[row] * unit * unit, eps2 = from->eps2 * unit * unit;
        const bool everybody = job.h2[row] > 0x1.fffffffffffffp1023;
        if (!everybody && !(__dadd_rn(separation2(&t.i, &j), eps2) <= limit)) continue;
        const unsigned long long k = atomicAdd(job.count, 1ull);
        if (k < (unsigned long long)job.capacity) {
            job.listed[k].row = job.first + row;
            job.listed[k].index = job.sources.index[a];
        }
    }
}
