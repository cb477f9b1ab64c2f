/* sites.cu - very many particles at one place, their site, as one: the first of them, with the mass
 * and mean velocity of all. The others come after all that are in the tree. */

struct tree_sites_job {
    const double *x, *m, *v; /* [n][3], [n], [n][3]: the caller's; v may be NULL */
    const struct tree_box *box;
    const uint64_t *sorted; /* of the tree, by place, as the next */
    const int64_t *order;
    const float4 *high, *low;
    int32_t *stays,
        *kept; /* by place: 0 if it stands where the one before does, and sums up to it */
    uint64_t *new_sorted; /* of the tree without the others */
    int64_t *new_order;
    float4 *new_high, *new_low;
    int32_t *leader, *others; /* by number: the first of its site; how many others this has */
    double *mass, *velocity, *momentum; /* by number: the tree's, and of the first the site's */
    int32_t *found;                     /* how many stay; and whether one cell has several places */
    double *acc, *pot, *jerk;           /* results */
    const double *target_v;             /* of them, or NULL: they are at rest */
    const int32_t *number; /* of the particle that a target is, or -1; or NULL: its own */
    uint64_t *zero_distances;
    double eps;
    int32_t n, near, rows; /* near: without the distant */
};

DEVICE_FN bool at_place_before(const struct tree_sites_job &job, int k)
{
    if (k == 0 || k >= job.near || job.sorted[k] != job.sorted[k - 1]) return false;
    const double *a = job.x + 3 * job.order[k - 1], *b = job.x + 3 * job.order[k];
    const bool same = a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
    if (!same) job.found[1] = 1;
    return same;
}

KERNEL(tree_site_marks, struct tree_sites_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k < job.n) job.stays[k] = !at_place_before(job, k);
}

KERNEL(tree_site_moves, struct tree_sites_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x), all = job.kept[job.n - 1];
    if (k >= job.n) return;
    const int64_t i = job.order[k];
    const int to = job.kept[k] - 1;
    if (k == 0) job.found[0] = all;
    job.mass[i] = job.stays[k] ? job.m[i] : 0.0;
    for (int c = 0; c < 3 && job.v; c++) job.velocity[3 * i + c] = job.v[3 * i + c];
    job.leader[i] = (int)i;
    job.others[i] = 0;
    if (!job.stays[k]) {
        job.new_order[all + k - to - 1] = i;
        return;
    }
    job.new_order[to] = i;
    job.new_sorted[to] = job.sorted[k];
    job.new_high[to] = job.high[k];
    job.new_low[to] = job.low[k];
}

/* End of the site that begins at place k. */
DEVICE_FN int end_of_site(const struct tree_sites_job &job, int k)
{
    int first = k + 1, end = job.n;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if (job.kept[middle] > job.kept[k])
            end = middle;
        else
            first = middle + 1;
    }
    return first;
}

/* A CUDA block for the sites that begin in a stretch of places, one after another. */
KERNEL(tree_site_sums, struct tree_sites_job, 256, 1)
{
    __shared__ double shared[256];
    __shared__ int begins[256], count;
    const int t = (int)threadIdx.x, k = (int)(blockIdx.x * 256) + t;
    if (t == 0) count = 0;
    __syncthreads();
    if (k + 1 < job.n && job.stays[k] && !job.stays[k + 1]) begins[atomicAdd(&count, 1)] = k;
    __syncthreads();
    for (int site = 0; site < count; site++) {
        const int first = begins[site], end = end_of_site(job, first);
        const int64_t leader = job.order[first];
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (int at = first + t; at < end; at += 256) {
            const int64_t i = job.order[at];
            job.leader[i] = (int)leader;
            sum[3] += job.m[i];
            for (int c = 0; c < 3 && job.v; c++) sum[c] += job.m[i] * job.v[3 * i + c];
        }
        for (int c = 0; c < 4; c++) sum[c] = sum_of_block(sum[c], shared);
        if (t) continue;
        job.others[leader] = end - first - 1;
        job.mass[leader] = sum[3];
        job.new_high[job.kept[first] - 1].w = (float)tree_mass_in_box(job.box, sum[3]);
        for (int c = 0; c < 3 && job.v; c++) {
            job.momentum[3 * leader + c] = sum[c];
            if (sum[3] != 0.0) job.velocity[3 * leader + c] = sum[c] / sum[3];
        }
    }
}

/* Results of the others are those of the first. */
KERNEL(tree_site_results, struct tree_sites_job, 256, 1)
{
    const int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (k >= job.rows || job.leader[k] == k) return;
    for (int c = 0; c < 3; c++) job.acc[3 * k + c] = job.acc[3 * (int64_t)job.leader[k] + c];
    job.pot[k] = job.pot[job.leader[k]];
}

/* What the others of its site do to a target, through softening. */
KERNEL(tree_site_own, struct tree_sites_job, 256, 1)
{
    const int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int64_t i = k < job.rows ? (job.number ? (int64_t)job.number[k] : k) : -1;
    const int64_t leader = i < 0 ? -1 : (int64_t)job.leader[i];
    if (i < 0 || !job.others[leader]) return;
    if (job.eps == 0.0) {
        atomicAdd((unsigned long long *)job.zero_distances, (unsigned long long)job.others[leader]);
        return;
    }
    const double rest = job.mass[leader] - job.m[i];
    job.pot[k] -= rest / job.eps;
    for (int c = 0; c < 3 && job.jerk; c++) {
        const double own = job.target_v ? job.target_v[3 * k + c] : 0.0;
        const double rate = job.momentum[3 * leader + c] - job.m[i] * job.v[3 * i + c] - rest * own;
        job.jerk[3 * k + c] += rate / job.eps / job.eps / job.eps;
    }
}
