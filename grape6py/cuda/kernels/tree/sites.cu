/* sites.cu - particles of very many at one place, their site, as one: its mass and momentum. */

struct tree_sites_job {
    const double *m, *v;            /* [n], [n][3]: the caller's; v may be NULL */
    const int64_t *member, *start;  /* numbers of particles, site by site, and where sites begin */
    double *mass, *momentum;        /* [sites], [sites][3] */
    int32_t sites, members;
};

/* A CUDA block for each site. */
KERNEL(tree_site_sums, struct tree_sites_job, 256, 1)
{
    __shared__ double shared[256];
    const int64_t site = (int)blockIdx.x, first = job.start[site];
    const int64_t end = site + 1 < job.sites ? job.start[site + 1] : job.members;
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int64_t k = first + (int)threadIdx.x; k < end; k += 256) {
        const int64_t i = job.member[k];
        sum[3] += job.m[i];
        for (int c = 0; c < 3 && job.v; c++) sum[c] += job.m[i] * job.v[3 * i + c];
    }
    for (int c = 0; c < 4; c++) {
        const double all = sum_of_block(sum[c], shared);
        if (threadIdx.x) continue;
        if (c == 3)
            job.mass[site] = all;
        else if (job.v)
            job.momentum[3 * site + c] = all;
    }
}
