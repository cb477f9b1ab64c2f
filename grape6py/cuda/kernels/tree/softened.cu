/* softened.cu - particles with softening of their own, and splines: what the tree's kernels take of
 * it, and direct sums in double. */

/* Of sources, in the order of their keys. */
KERNEL(tree_source_eps2, struct tree_device_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.n) return;
    const double eps = job.own_eps[job.order[k]] * job.box->scale[0] * job.box->scale[1];
    job.source_eps2[k] = (float)(eps * eps);
}

/* Of targets: that of the particle that one is, or what the sum is given. */
KERNEL(tree_target_eps2, struct tree_device_job, 256, 1)
{
    const int k = (int)(blockIdx.x * 256 + threadIdx.x);
    if (k >= job.target_count) return;
    const double *scale = job.box->scale;
    const int64_t i = job.targets ? job.target_order[k] : k;
    const int64_t self = job.targets ? (job.self ? (int64_t)job.self[i] : -1) : job.order[k];
    if (job.own_eps && self >= 0) {
        const double eps = job.own_eps[self] * scale[0] * scale[1];
        job.target_eps2[k] = (float)(eps * eps);
    } else {
        job.target_eps2[k] = (float)(job.eps2_given * scale[0] * scale[1] * scale[0] * scale[1]);
    }
}

/* Of the cells of a level, those of deeper ones being known: their means, and how far away they
 * are to be. */
KERNEL(tree_cell_eps2, struct tree_device_job, 128, 1)
{
    const int first = job.status->level_first[job.cell_level];
    const int end = job.cell_level + 1 < CELL_LEVELS ? job.status->level_first[job.cell_level + 1]
                                                     : job.status->cells;
    const int id = first + (int)(blockIdx.x * 128 + threadIdx.x);
    if (id >= end) return;
    if (!job.source_eps2) {
        job.reach[id] = 0.0f;
        return;
    }
    const struct tree_cell c = whole(&job.cell[id]);
    struct tree_eps2_sum sum = tree_eps2_begin();
    for (int k = c.first; k < c.end && c.child < 0; k++) {
        const float e = job.source_eps2[k];
        const struct tree_cell_eps2 one = {e, e, e};
        tree_eps2_add(&sum, fabs((double)job.high[k].w), &one);
    }
    for (int k = c.child; k < c.child_end && c.child >= 0; k++)
        tree_eps2_add(&sum, job.moments[k].total, &job.cell_eps2[k]);
    job.cell_eps2[id] = tree_eps2_of(&sum);
    job.far[id].eps2 = job.cell_eps2[id].mean;
    const int expands_jerk = job.v && job.order_of_expansion;
    job.reach[id] =
        tree_own_reach(&job.cell_eps2[id], job.term, job.soft, expands_jerk, (float)job.bound);
}

/* ---- direct sums --------------------------------------------------------------------------- */

namespace in_double
{
typedef double vec;
#undef GRAPE6_PAIR_H
#undef PAIR_LEAST_H2
#undef v_rsqrt
#define v_rsqrt(x) (1.0 / sqrt(x))
#include "shared/pair.h"
#undef v_rsqrt
#define v_rsqrt(x) rsqrt_estimate(x)
} // namespace in_double

/* All in the caller's units. */
struct tree_softened_job {
    const double *x, *m, *v, *eps;    /* sources: [n][3], [n], [n][3] or NULL, [n] or NULL: zeros */
    const double *at, *at_v, *at_eps; /* targets, or NULL: the sources; at_eps NULL: given_eps, but
                                         for those that are sources with their own */
    const int32_t *self;              /* the source that a target is, or -1; or NULL */
    const int32_t *close;             /* places of the targets that are wanted; or NULL: all */
    const int64_t *order;             /* targets by place */
    double *acc, *pot, *jerk;         /* jerk may be NULL */
    uint64_t *zero_distances;         /* or NULL */
    double given_eps;
    int32_t n, targets, term;
};

/* A CUDA block for each target. */
KERNEL(tree_softened_rows, struct tree_softened_job, 256, 1)
{
    __shared__ double shared[256];
    const int64_t i = job.close ? job.order[job.close[blockIdx.x]] : (int64_t)blockIdx.x;
    const int64_t self = !job.at ? i : job.self ? (int64_t)job.self[i] : -1;
    const double *at_x = (job.at ? job.at : job.x) + 3 * i, *at_v = job.at ? job.at_v : job.v;
    struct in_double::pair_i at = {at_x[0], at_x[1], at_x[2]};
    if (at_v) at.vx = at_v[3 * i], at.vy = at_v[3 * i + 1], at.vz = at_v[3 * i + 2];
    const bool is_own = self >= 0 && job.eps;
    const double at_eps = job.at_eps ? job.at_eps[i] : is_own ? job.eps[self] : job.given_eps;
    at.eps2 = at_eps * at_eps;
    struct in_double::pair_sum sum = {};
    int zero_distances = 0;
    for (int64_t k = (int)threadIdx.x; k < job.n; k += 256) {
        if (k == self) continue;
        const double *x = job.x + 3 * k, *v = job.v ? job.v + 3 * k : job.x;
        const double eps = job.eps ? job.eps[k] : 0.0;
        struct in_double::pair_j j = {x[0], x[1], x[2], job.m[k]};
        if (job.v) j.vx = v[0], j.vy = v[1], j.vz = v[2];
        j.eps2 = eps * eps;
        const struct in_double::pair_sep r = pair_separation(0, &at, &j);
        const double eps2 = pair_softening(job.term, &at, &j);
        if (pair_distance2(&r, eps2) == 0.0) {
            zero_distances++;
            continue;
        }
        const double y = 1.0 / sqrt(pair_softened2(job.term, &r, eps2));
        pair_add(job.term, &at, &j, j.m, y, &r, &sum);
    }
    const double all[7] = {sum.ax, sum.ay, sum.az, sum.pot, sum.jx, sum.jy, sum.jz};
    double total[7];
    for (int c = 0; c < (job.jerk ? 7 : 4); c++) total[c] = sum_of_block(all[c], shared);
    if (zero_distances && job.zero_distances)
        atomicAdd((unsigned long long *)job.zero_distances, (unsigned long long)zero_distances);
    if (threadIdx.x) return;
    job.pot[i] = -total[3];
    for (int c = 0; c < 3; c++) {
        job.acc[3 * i + c] = total[c];
        if (job.jerk) job.jerk[3 * i + c] = total[4 + c];
    }
}
