/* distant.cu - a set of which few particles are very far from the others has a box of these alone.
 * Those beyond it act pair by pair, in double precision: on targets in the middle of the box
 * through an expansion about its centre, if there are many. */

enum {
    DISTANT_FEW = 32,    /* are summed for each target by its thread */
    DISTANT_TERMS = 29,  /* 1 + 3 + 6 + 10 derivatives; and 3 + 6 rates of those of order 1 and 2 */
    DISTANT_AT_ONCE = 2, /* targets of a warp, for which a source is read once */
    DISTANT_BLOCKS = 4096
};
/* Half the width of the middle, as a share of that of the box: the first derivatives that are left
 * out have a relative weight of its cube. */
#define DISTANT_MIDDLE 0x1p-8

namespace in_double
{
typedef double vec;
#include "shared/rsqrt.h"
} // namespace in_double

DEVICE_FN struct distant_source distant_source_of(const struct tree_device_job &job,
                                                  const struct tree_box *box, int64_t i)
{
    struct distant_source s;
    double unit[2];
    tree_halves(unit, job.jerk ? -job.flow->wide.velocity : 0);
    s.m = tree_mass_in_box(box, job.m[i]);
    for (int c = 0; c < 3; c++) {
        s.x[c] = tree_in_box(box, c, job.x[3 * i + c]);
        s.v[c] = job.jerk ? job.v[3 * i + c] * unit[0] * unit[1] : 0.0;
    }
    return s;
}

/* A target, and what distant particles do to it. */
struct distant_target {
    double x[3], v[3], acc[3], jerk[3], phi;
    int64_t number, row; /* of the particle that it is, or -1; of results */
};

/* Target k of those in the order of keys; behind the tree's own are the distant ones. */
DEVICE_FN struct distant_target distant_target_of(const struct tree_device_job &job,
                                                  const struct tree_box *box, int64_t row)
{
    struct distant_target t = {};
    double unit[2];
    const double *x = job.targets ? job.targets : job.x, *v = job.targets ? job.target_v : job.v;
    tree_halves(unit, job.jerk ? -job.flow->wide.velocity : 0);
    t.row = row;
    t.number = !job.targets ? row : job.self ? (int64_t)job.self[row] : -1;
    for (int c = 0; c < 3; c++) {
        t.x[c] = tree_in_box(box, c, x[3 * row + c]);
        t.v[c] = job.jerk && v ? v[3 * row + c] * unit[0] * unit[1] : 0.0;
    }
    return t;
}

/* All of them, side by side. */
KERNEL(tree_distant_sources, struct tree_device_job, 128, 1)
{
    const struct tree_box box = *job.box;
    const int j = (int)(blockIdx.x * 128 + threadIdx.x);
    if (j < job.distant) job.source[j] = distant_source_of(job, &box, job.order[job.n + j]);
}

/* Adds a pair, unless it is one of a target with itself, which is particle i. */
DEVICE_FN void distant_pair(const struct tree_device_job &job, double eps2,
                            const struct distant_source &s, int64_t i, struct distant_target *t)
{
    if (i == t->number) return;
    double d[3], w[3], s2 = eps2, rv = 0.0;
    for (int c = 0; c < 3; c++) d[c] = s.x[c] - t->x[c], s2 += d[c] * d[c];
    if (s2 < TREE_DEEPEST) {
        (void)fits_double(job, (job.targets ? job.targets : job.x) + 3 * t->row, i, s2);
        atomicAdd((unsigned long long *)&job.status->zero_distances, 1ULL);
        return;
    }
    const double y = in_double::rsqrt_refine(s2, rsqrt_estimate(s2)), my3 = s.m * y * y * y;
    t->phi += s.m * y;
    for (int c = 0; c < 3; c++) t->acc[c] += my3 * d[c];
    if (!job.jerk) return;
    for (int c = 0; c < 3; c++) w[c] = s.v[c] - t->v[c], rv += d[c] * w[c];
    for (int c = 0; c < 3; c++) t->jerk[c] += my3 * (w[c] - 3.0 * rv * y * y * d[c]);
}

/* Adds what was found to a target's results, in the caller's units. */
DEVICE_FN void put_distant(const struct tree_device_job &job, const struct tree_box *box,
                           const struct distant_target *t)
{
    const double *l = box->scale;
    const double mass[2] = {1.0 / box->mass_scale[0], 1.0 / box->mass_scale[1]};
    bool fits = true;
    for (int c = 0; c < 3; c++) {
        double *acc = &job.acc[3 * t->row + c];
        *acc += t->acc[c] * mass[0] * l[0] * l[0] * mass[1] * l[1] * l[1];
        fits = fits && fabs(*acc) < INFINITY;
        if (!job.jerk) continue;
        const int exponent = box->mass + job.flow->wide.velocity - 3 * box->length;
        job.jerk[3 * t->row + c] += tree_scaled(t->jerk[c], exponent);
        fits = fits && fabs(job.jerk[3 * t->row + c]) < INFINITY;
    }
    job.pot[t->row] -= t->phi * mass[0] * l[0] * mass[1] * l[1];
    if (!fits || !(fabs(job.pot[t->row]) < INFINITY)) note_too_large(job, t->row);
}

DEVICE_FN double eps2_in_box(const struct tree_device_job &job, const struct tree_box *box)
{
    return job.eps2_given * box->scale[0] * box->scale[1] * box->scale[0] * box->scale[1];
}

/* The expansion about the box's centre, by the threads of one CUDA block. */
KERNEL(tree_distant_terms, struct tree_device_job, 256, 1)
{
    __shared__ double shared[256];
    const struct tree_box box = *job.box;
    const double eps2 = eps2_in_box(job, &box);
    double sum[DISTANT_TERMS] = {};
    for (int j = (int)threadIdx.x; j < job.distant; j += 256) {
        const struct distant_source s = job.source[j];
        const double *d = s.x, *v = s.v, y = 1.0 / sqrt(tree_square(d) + eps2), y2 = y * y;
        const double g1 = s.m * y * y2, g2 = 3.0 * g1 * y2, g3 = 5.0 * g2 * y2;
        int term = 0, rate = 20;
        sum[term++] += s.m * y;
        for (int a = 0; a < 3; a++) sum[term++] += g1 * d[a];
        double first[3] = {0.0, 0.0, 0.0}, second[6] = {};
        for (int a = 0, ab = 0; a < 3; a++)
            for (int b = a; b < 3; b++, ab++) {
                const double two = g2 * d[a] * d[b] - (a == b ? g1 : 0.0);
                sum[term++] += two;
                first[a] += two * v[b], first[b] += a == b ? 0.0 : two * v[a];
                for (int c = 0; c < 3; c++) {
                    const double three = g3 * d[a] * d[b] * d[c] - (a == b ? g2 * d[c] : 0.0) -
                                         (a == c ? g2 * d[b] : 0.0) - (b == c ? g2 * d[a] : 0.0);
                    second[ab] += three * v[c];
                }
            }
        for (int a = 0; a < 3; a++)
            for (int b = a; b < 3; b++)
                for (int c = b; c < 3; c++)
                    sum[term++] += g3 * d[a] * d[b] * d[c] - (a == b ? g2 * d[c] : 0.0) -
                                   (a == c ? g2 * d[b] : 0.0) - (b == c ? g2 * d[a] : 0.0);
        for (int a = 0; a < 3; a++) sum[rate++] -= first[a];
        for (int ab = 0; ab < 6; ab++) sum[rate++] -= second[ab];
    }
    for (int k = 0; k < DISTANT_TERMS; k++) {
        const double all = sum_of_block(sum[k], shared);
        if (threadIdx.x == 0) job.momenta[k] = all;
    }
}

/* The expansion on a target: phi, its gradient, and the rate of that. */
DEVICE_FN void distant_expansion(const double *terms, struct distant_target *t)
{
    const double *x = t->x, *v = t->v, *one = terms + 1, *two = terms + 4, *three = terms + 10;
    const double *rate1 = terms + 20, *rate2 = terms + 23;
    double by_one = 0.0, by_two = 0.0, by_three = 0.0;
    for (int a = 0; a < 3; a++) {
        t->acc[a] = one[a];
        t->jerk[a] = rate1[a];
        by_one += one[a] * x[a];
    }
    for (int a = 0, ab = 0; a < 3; a++)
        for (int b = a; b < 3; b++, ab++) {
            by_two += (a == b ? 0.5 : 1.0) * two[ab] * x[a] * x[b];
            t->acc[a] += two[ab] * x[b];
            t->jerk[a] += two[ab] * v[b] + rate2[ab] * x[b];
            if (a == b) continue;
            t->acc[b] += two[ab] * x[a];
            t->jerk[b] += two[ab] * v[a] + rate2[ab] * x[a];
        }
    for (int a = 0, abc = 0; a < 3; a++)
        for (int b = a; b < 3; b++)
            for (int c = b; c < 3; c++, abc++) {
                const int at[3] = {a, b, c};
                const double same = a == b && b == c ? 6.0 : a == b || b == c ? 2.0 : 1.0;
                const double by = three[abc] / same;
                by_three += by * x[a] * x[b] * x[c];
                for (int k = 0; k < 3; k++) { /* each index once as the derivative's */
                    const int p = at[(k + 1) % 3], q = at[(k + 2) % 3];
                    t->acc[at[k]] += by * x[p] * x[q];
                    t->jerk[at[k]] += by * (x[p] * v[q] + v[p] * x[q]);
                }
            }
    t->phi = terms[0] + by_one + by_two + by_three;
}

/* What the box does to a target far beyond it: mass, and second moments with their trace. The
 * centre moves; how the moments change has no weight so far away. */
DEVICE_FN void box_on_distant(const struct tree_device_job &job, double eps2,
                              struct distant_target *t)
{
    const struct tree_moments root = job.moments[0];
    const double *q = root.second;
    double r[3], u[3] = {0.0, 0.0, 0.0}, w[3] = {0.0, 0.0, 0.0}, s2 = eps2;
    for (int c = 0; c < 3; c++) {
        r[c] = t->x[c] - root.x[c], s2 += r[c] * r[c];
        if (job.jerk)
            w[c] = t->v[c] - job.flow->wide.frame[c] -
                   (double)(job.flow->speed * (&job.motion[0].vx)[c]);
    }
    const double m[3][3] = {{q[0], q[1], q[2]}, {q[1], q[3], q[4]}, {q[2], q[4], q[5]}};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) u[a] += m[a][b] * r[b];
    const double y = 1.0 / sqrt(s2), y2 = y * y, y3 = y * y2, trace = q[0] + q[3] + q[5];
    const double rur = r[0] * u[0] + r[1] * u[1] + r[2] * u[2];
    const double rw = r[0] * w[0] + r[1] * w[1] + r[2] * w[2];
    const double along = -root.m + y2 * (1.5 * trace - 7.5 * y2 * rur);
    t->phi += y * (root.m + y2 * (1.5 * y2 * rur - 0.5 * trace));
    for (int a = 0; a < 3; a++) {
        t->acc[a] += y3 * (along * r[a] + 3.0 * y2 * u[a]);
        t->jerk[a] -= root.m * y3 * (w[a] - 3.0 * rw * y2 * r[a]);
    }
}

/* On each target, or on a list if it needs all pairs. The results of distant particles begin with
 * what those in the box do to them. */
KERNEL(tree_distant_on_targets, struct tree_device_job, 256, 1)
{
    const struct tree_box box = *job.box;
    const int64_t k = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (k >= (job.targets ? job.rows : job.n + job.distant)) return;
    const int64_t row = job.targets ? k : job.order[k], beyond = job.targets ? -1 : k - job.n;
    const double eps2 = eps2_in_box(job, &box);
    const bool is_near = beyond >= 0 && beyond < job.closer;
    struct distant_target t = distant_target_of(job, &box, row);
    const double half = -box.low[0];
    const bool is_point =
        job.targets ? fmax(fabs(t.x[0]), fmax(fabs(t.x[1]), fabs(t.x[2]))) > DISTANT_POINT * half
                    : beyond >= job.closer;
    if (is_near || is_point) {
        for (int c = 0; c < 3; c++) {
            job.acc[3 * row + c] = is_near ? job.near_acc[3 * beyond + c] : 0.0;
            if (job.jerk) job.jerk[3 * row + c] = is_near ? job.near_jerk[3 * beyond + c] : 0.0;
        }
        job.pot[row] = is_near ? job.near_pot[beyond] : 0.0;
    }
    if (is_point) { /* in single precision, what the box does could be 0 */
        box_on_distant(job, eps2, &t);
        put_distant(job, &box, &t);
        t = distant_target_of(job, &box, row);
    }
    const double middle = DISTANT_MIDDLE * half;
    if (job.distant <= DISTANT_FEW) {
        for (int j = 0; j < job.distant; j++)
            distant_pair(job, eps2, job.source[j], job.order[job.n + j], &t);
    } else if (fabs(t.x[0]) < middle && fabs(t.x[1]) < middle && fabs(t.x[2]) < middle) {
        distant_expansion(job.momenta, &t);
    } else {
        job.listed[atomicAdd(&job.status->listed, 1)] = (int32_t)row;
        return;
    }
    put_distant(job, &box, &t);
}

/* All pairs of those on the list: a warp for some after others. */
KERNEL(tree_distant_pairs, struct tree_device_job, 128, 1)
{
    const struct tree_box box = *job.box;
    const double eps2 = eps2_in_box(job, &box);
    const int lane = (int)threadIdx.x % 32, all = job.status->listed;
    const int warp = (int)(blockIdx.x * 128 + threadIdx.x) / 32, warps = 4 * (int)gridDim.x;
    for (int k = DISTANT_AT_ONCE * warp; k < all; k += DISTANT_AT_ONCE * warps) {
        struct distant_target at[DISTANT_AT_ONCE];
        TREE_UNROLL
        for (int i = 0; i < DISTANT_AT_ONCE; i++)
            at[i] = distant_target_of(job, &box, job.listed[min(k + i, all - 1)]);
        for (int j = lane; j < job.distant; j += 32) {
            const struct distant_source s = job.source[j];
            const int64_t number = job.order[job.n + j];
            TREE_UNROLL
            for (int i = 0; i < DISTANT_AT_ONCE; i++)
                if (k + i < all) distant_pair(job, eps2, s, number, &at[i]);
        }
        TREE_UNROLL
        for (int i = 0; i < DISTANT_AT_ONCE; i++) {
            struct distant_target *t = &at[i];
            for (int by = 16; by; by /= 2) {
                for (int c = 0; c < 3; c++) {
                    t->acc[c] += __shfl_xor_sync(EVERY, t->acc[c], by);
                    t->jerk[c] += __shfl_xor_sync(EVERY, t->jerk[c], by);
                }
                t->phi += __shfl_xor_sync(EVERY, t->phi, by);
            }
            if (lane == 0 && k + i < all) put_distant(job, &box, t);
        }
    }
}
