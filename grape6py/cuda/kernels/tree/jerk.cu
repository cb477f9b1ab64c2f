/* jerk.cu - jerks of cells and particles on each target, a second pass over the lists of
 * tree/near.cu. See shared/tree_expansion.h. */

/* Of a cell and of how it changes, in pieces of 16 bytes. */
#define JERK_FAR(terms, pairs) ((terms) == SOFT_OCTUPOLES || (pairs) == OWN_EPS ? 6 : 5)
#define JERK_PARTS(terms, pairs) (JERK_FAR(terms, pairs) + ((terms) == SOFT_OCTUPOLES ? 5 : 4))

/* Cells on a target: 32 at once come to shared memory. */
template <int TERMS, int PAIRS, int LANES>
DEVICE_FN void jerk_of_points(const struct tree_device_job &job, const struct tree_group *g,
                              const int32_t *list, int count, float4 *shared,
                              const struct jerk_body *b, float jerk[3])
{
    constexpr int ALL = JERK_PARTS(TERMS, PAIRS), FAR = JERK_FAR(TERMS, PAIRS);
    const int lane = (int)threadIdx.x % 32;
    for (int first = 0; first < count; first += 32) {
        const int n = min(32, count - first);
        __syncwarp();
        if (lane < n) {
            const int cell = list[first + lane];
            const float4 *far = (const float4 *)&job.far[cell];
            const float4 *motion = (const float4 *)&job.motion[cell];
            TREE_UNROLL
            for (int k = 0; k < FAR; k++) shared[ALL * lane + k] = far[k];
            TREE_UNROLL
            for (int k = FAR; k < ALL; k++) shared[ALL * lane + k] = motion[k - FAR];
        }
        __syncwarp();
        for (int k = lane / LANES; k < n; k += 32 / LANES) {
            const float s = job.flow->speed;
            const struct tree_multipole c =
                multipole_of((const struct tree_cell_multipole *)&shared[ALL * k], g, 1.0f);
            float v[3], unused = 0.0f, change_jerk[3] = {0.0f, 0.0f, 0.0f};
            const struct tree_multipole change =
                change_of((const struct tree_motion *)&shared[ALL * k + FAR], 1.0f, v);
            const float x = b->at.x + c.x, y = b->at.y + c.y, z = b->at.z + c.z;
            const float own = PAIRS == OWN_EPS && job.term & PAIR_OWN ? c.eps2 : 0.0f;
            const float eps2 = PAIRS == OWN_EPS ? b->far_eps2 + own : g->eps2;
            tree_cell_to_jerk(TERMS, TERMS == SOFT_OCTUPOLES, x, y, z, b->at.vx - s * v[0],
                              b->at.vy - s * v[1], b->at.vz - s * v[2], eps2, &c, jerk);
            tree_cell_to_point(TERMS, TERMS == SOFT_OCTUPOLES, x, y, z, eps2, &change, &unused,
                               change_jerk);
            TREE_UNROLL
            for (int a = 0; a < 3; a++) jerk[a] = v_fma(s, change_jerk[a], jerk[a]);
        }
    }
}

/* Particles of leaves on a target: as many as there are lanes come to shared memory. A target's own
 * pair is none, nor is one that single precision could not sum. */
template <int PAIRS, int LANES>
DEVICE_FN void jerk_of_leaves(const struct tree_device_job &job, const struct tree_group *g,
                              const int32_t *list, int count, int direction, float4 *shared,
                              const struct jerk_body *b, int target, float jerk[3])
{
    const int lane = (int)threadIdx.x % 32;
    struct pair_i at = target_at(job, g, target, 1);
    at.vx = b->at.vx, at.vy = b->at.vy, at.vz = b->at.vz, at.eps2 = b->at.eps2;
    const float speed = job.flow->speed;
    for (int leaf = 0; leaf < count; leaf++) {
        const struct tree_cell cell = job.cell[list[direction * leaf]];
        struct pair_sum sum = {};
        for (int first = cell.first; first < cell.end; first += 32) {
            const int n = min(32, cell.end - first);
            __syncwarp();
            if (lane < n) {
                float4 v = job.velocity[first + lane];
                v.x *= speed, v.y *= speed, v.z *= speed;
                shared[lane] = job.high[first + lane], shared[32 + lane] = v;
                shared[64 + lane] = job.low[first + lane];
                shared[64 + lane].w =
                    PAIRS == OWN_EPS && job.source_eps2 ? job.source_eps2[first + lane] : 0.0f;
            }
            __syncwarp();
            for (int k = lane / LANES; k < n; k += 32 / LANES) {
                const float4 p = shared[k], v = shared[32 + k], low = shared[64 + k];
                const struct pair_j j = {p.x, p.y,   p.z,   p.w,   v.x,  v.y,
                                         v.z, low.x, low.y, low.z, low.w};
                const int term = PAIR_JERK | (PAIRS == OWN_EPS ? job.term : 0);
                const struct pair_sep r = pair_separation(1, &at, &j);
                const float eps2 = PAIRS == OWN_EPS ? pair_softening(term, &at, &j) : g->eps2;
                const float s2 = pair_distance2(&r, eps2);
                const bool none = first + k == b->self || s2 < TREE_CLOSE;
                const float soft2 = PAIRS == OWN_EPS ? pair_softened2(term, &r, eps2) : s2;
                pair_add(term, &at, &j, none ? 0.0f : p.w, v_rsqrt(none ? 1.0f : soft2), &r, &sum);
            }
        }
        jerk[0] += sum.jx, jerk[1] += sum.jy, jerk[2] += sum.jz;
    }
}

/* A target's jerk, back in the caller's units. */
DEVICE_FN void put_jerk(const struct tree_device_job &job, int k, const double jerk[3])
{
    const struct tree_box *box = &job.flow->wide;
    const int64_t i = (job.targets ? job.target_order : job.order)[k];
    const int exponent = box->mass + box->velocity - 3 * box->length;
    for (int c = 0; c < 3; c++) {
        const double scaled = tree_scaled(jerk[c], exponent);
        job.jerk[3 * i + c] = scaled;
        if (!(fabs(scaled) < INFINITY)) note_too_large(job, i);
    }
}

/* Groups that tree/near.cu has summed again get theirs then, too. */
template <int TERMS, int PAIRS, int LANES> DEVICE_FN void jerks(const struct tree_device_job &job)
{
    __shared__ float4 all_shared[4][JERK_PARTS(TERMS, PAIRS) * 32];
    const struct tree_level_job &in = small_level(job);
    const int lane = (int)threadIdx.x % 32, slot = (int)(blockIdx.x * 4 + threadIdx.x / 32);
    if (slot >= small_slots(job)) return;
    const struct tree_group g = in.group[small_group(job, slot)];
    float4 *const shared = all_shared[threadIdx.x / 32];
    const int32_t *points = in.lists +
                            (int64_t)slot * (in.capacity[0] + in.capacity[1] + in.capacity[2]) +
                            in.capacity[0];
    const int32_t *leaves = points + in.capacity[1], *count = in.count + 4 * (int64_t)slot;
    const int target = g.first + lane % LANES, k = min(target, g.first + g.count - 1);
    const struct jerk_body b = jerk_body_of(job, &g, k);
    float jerk[3] = {0.0f, 0.0f, 0.0f};
    jerk_of_points<TERMS, PAIRS, LANES>(job, &g, points, count[LIST_M2P], shared, &b, jerk);
    jerk_of_leaves<PAIRS, LANES>(job, &g, leaves, count[LIST_P2P], 1, shared, &b, k, jerk);
    jerk_of_leaves<PAIRS, LANES>(job, &g, leaves + in.capacity[2] - 1, count[3], -1, shared, &b, k,
                                 jerk);
    TREE_UNROLL
    for (int by = LANES; by < 32; by *= 2) {
        TREE_UNROLL
        for (int c = 0; c < 3; c++) jerk[c] += __shfl_xor_sync(EVERY, jerk[c], by);
    }
    if (lane >= LANES || target >= g.first + g.count) return;
    double sum[3] = {jerk[0], jerk[1], jerk[2]};
    if (TERMS != QUADRUPOLES) {
        const float4 far = job.far_jerk[target];
        sum[0] += far.x, sum[1] += far.y, sum[2] += far.z;
    }
    put_jerk(job, target, sum);
}

#define JERKS(name, terms, pairs)                                                                  \
    KERNEL(name##_groups, struct tree_device_job, 128, 1) { jerks<terms, pairs, 32>(job); }        \
    KERNEL(name##_eights, struct tree_device_job, 128, 1) { jerks<terms, pairs, 8>(job); }         \
    KERNEL(name##_singles, struct tree_device_job, 128, 1) { jerks<terms, pairs, 1>(job); }
JERKS(tree_jerk, OCTUPOLES, BARE)
JERKS(tree_jerk_soft, SOFT_OCTUPOLES, BARE)
JERKS(tree_jerk_own, OCTUPOLES, OWN_EPS)
JERKS(tree_jerk_soft_own, SOFT_OCTUPOLES, OWN_EPS)
JERKS(tree_jerk_bh, QUADRUPOLES, BARE)
JERKS(tree_jerk_bh_own, QUADRUPOLES, OWN_EPS)

/* As add_joined in tree/near.cu. The target's velocity is in the unit of the sum. */
DEVICE_FN void add_joined_jerk(const struct tree_device_job &job, const struct tree_box *box,
                               const double at[3], const double velocity[3], double eps2,
                               double sum[3])
{
    const int t = (int)threadIdx.x;
    const float speed = job.flow->speed;
    double own[3]; /* in the frame of the particles */
    for (int c = 0; c < 3; c++) own[c] = velocity[c] - box->frame[c];
    for (int j = job.n + t; j < job.joined_n; j += 256) {
        const float4 high = job.high[j], low = job.low[j], w = job.velocity[j];
        const double d[3] = {(double)high.x + (double)low.x - at[0],
                             (double)high.y + (double)low.y - at[1],
                             (double)high.z + (double)low.z - at[2]};
        const double v[3] = {(double)(speed * w.x) - own[0], (double)(speed * w.y) - own[1],
                             (double)(speed * w.z) - own[2]};
        const double s2 = eps2 + tree_square(d), rv = d[0] * v[0] + d[1] * v[1] + d[2] * v[2];
        if (s2 == 0.0) continue;
        const double s = 1.0 / sqrt(s2), ms3 = (double)high.w * s * s * s;
        for (int c = 0; c < 3; c++) sum[c] += ms3 * (v[c] - 3.0 * rv * s * s * d[c]);
    }
    float rest[3];
    const struct tree_group g = group_at(at, rest);
    for (int k = job.status->cells + t; k < job.joined_cells; k += 256) {
        const struct tree_cell cell = whole(&job.cell[k]);
        if (!is_stub(&cell)) continue;
        float v[3], unused = 0.0f, jerk[3] = {0.0f, 0.0f, 0.0f}, by_change[3] = {0.0f, 0.0f, 0.0f};
        const struct tree_multipole m = multipole_of(&job.far[k], &g, 1.0f);
        const struct tree_multipole change = change_of(&job.motion[k], 1.0f, v);
        const float x = m.x + rest[0], y = m.y + rest[1], z = m.z + rest[2], eps = (float)eps2;
        for (int c = 0; c < 3; c++) v[c] = (float)own[c] - speed * v[c];
        if (job.order_of_expansion) {
            tree_cell_to_jerk(1, 0, x, y, z, v[0], v[1], v[2], eps, &m, jerk);
            tree_cell_to_point(1, 0, x, y, z, eps, &change, &unused, by_change);
        } else {
            tree_cell_to_jerk(0, 0, x, y, z, v[0], v[1], v[2], eps, &m, jerk);
            tree_cell_to_point(0, 0, x, y, z, eps, &change, &unused, by_change);
        }
        for (int c = 0; c < 3; c++) sum[c] += (double)jerk[c] + (double)(speed * by_change[c]);
    }
}

/* As tree_close_rows. */
KERNEL(tree_close_jerks, struct tree_device_job, 256, 1)
{
    __shared__ double part[3][256];
    const struct tree_box box = job.flow->wide;
    const int t = (int)threadIdx.x, k = job.close[blockIdx.x];
    const int64_t i = (job.targets ? job.target_order : job.order)[k];
    const double *x = (job.targets ? job.targets : job.x) + 3 * i;
    const double *own = job.targets ? job.target_v : job.v;
    const int64_t self = job.targets ? (job.self ? (int64_t)job.self[i] : -1) : i;
    const double eps2 = job.eps2_given * box.scale[0] * box.scale[1] * box.scale[0] * box.scale[1];
    double sum[3] = {0.0, 0.0, 0.0}, unit[2], mine[3];
    tree_halves(unit, -box.velocity);
    for (int c = 0; c < 3; c++) mine[c] = own ? own[3 * i + c] * unit[0] * unit[1] : 0.0;
    for (int64_t at = t; at < job.n; at += 256) {
        const int64_t j = number_in_box(job, at);
        double d[3], v[3], s2 = eps2, rv = 0.0;
        for (int c = 0; c < 3; c++) {
            d[c] = (job.x[3 * j + c] - x[c]) * box.scale[0] * box.scale[1];
            v[c] = job.v[3 * j + c] * unit[0] * unit[1] - mine[c];
            s2 += d[c] * d[c], rv += d[c] * v[c];
        }
        if (j == self || !fits_double(job, x, j, s2)) continue;
        const double s = 1.0 / sqrt(s2), ms3 = tree_mass_in_box(&box, job.m[j]) * s * s * s;
        for (int c = 0; c < 3; c++) sum[c] += ms3 * (v[c] - 3.0 * rv * s * s * d[c]);
    }
    if (job.joined_cells) {
        double at[3];
        for (int c = 0; c < 3; c++) at[c] = tree_in_box(&box, c, x[c]);
        add_joined_jerk(job, &box, at, mine, eps2, sum);
    }
    for (int c = 0; c < 3; c++) part[c][t] = sum[c];
    combine<3>(part, [](int, double a, double b) { return a + b; });
    if (t) return;
    for (int c = 0; c < 3; c++) sum[c] = part[c][0];
    put_jerk(job, k, sum);
}
