/* sites.cu - particles of very many at one place, their site, as one: its mass and momentum. */

struct tree_sites_job {
    const double *x, *m, *v;       /* [n][3], [n], [n][3]: the caller's; v may be NULL */
    const int64_t *member, *start; /* numbers of particles, site by site, and where sites begin */
    double *mass, *momentum;       /* [sites], [sites][3] */
    int32_t *others;               /* whether some stand elsewhere than the first of their site */
    int32_t sites, members;
};

DEVICE_FN int64_t end_of_site(const struct tree_sites_job &job, int64_t site)
{
    return site + 1 < job.sites ? job.start[site + 1] : job.members;
}

KERNEL(tree_site_check, struct tree_sites_job, 256, 1)
{
    const int64_t site = (int)blockIdx.x, first = job.start[site], end = end_of_site(job, site);
    const double *at = job.x + 3 * job.member[first];
    for (int64_t k = first + (int)threadIdx.x; k < end; k += 256) {
        const double *x = job.x + 3 * job.member[k];
        if (x[0] != at[0] || x[1] != at[1] || x[2] != at[2]) *job.others = 1;
    }
}

/* A CUDA block for each site. */
KERNEL(tree_site_sums, struct tree_sites_job, 256, 1)
{
    const int64_t site = (int)blockIdx.x, first = job.start[site], end = end_of_site(job, site);
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int64_t k = first + (int)threadIdx.x; k < end; k += 256) {
        const int64_t i = job.member[k];
        sum[3] += job.m[i];
        for (int c = 0; c < 3 && job.v; c++) sum[c] += job.m[i] * job.v[3 * i + c];
    }
    sum_of_block(sum);
    if (threadIdx.x) return;
    job.mass[site] = sum[3];
    for (int c = 0; c < 3 && job.v; c++) job.momentum[3 * site + c] = sum[c];
}
