/* near.cu - what acts on each target by itself: cells by their moments, leaves particle by
 * particle. A warp takes a group: as many lanes as there are pairs of targets have two of them
 * each, and a share of what acts on them. */

#define TREE_CLOSE 1e-24f     /* s^2 of a pair that single precision could not sum */
#define TREE_DEEPEST 1e-200   /* and of one that double precision could not, in units of the box */
#define TREE_SCATTERED 181.0f /* radius of a group about which an expansion is poor, in boxes */

struct near_body {
    float x, y, z, phi, acc[3];
    float near; /* the least s^2 */
    float eps2; /* where particles have their own softening, of terms of cells */
};

enum { QUADRUPOLES, OCTUPOLES, SOFT_OCTUPOLES }; /* of cells on targets */
enum { KEPT_APART, BARE, OWN_EPS }; /* pairs: eps keeps them apart, or not, or is their own */

/* Cells on targets: 32 at once come to shared memory. */
template <int TERMS, int PAIRS, int TARGETS, int LANES>
DEVICE_FN void points_on(const struct tree_device_job &job, const struct tree_group *g,
                         const int32_t *list, int count, float4 *shared, struct near_body *b)
{
    const int lane = (int)threadIdx.x % 32, share = lane / LANES, SHARES = 32 / LANES;
    constexpr int PARTS = TERMS == SOFT_OCTUPOLES || PAIRS == OWN_EPS ? 6 : 5;
    for (int first = 0; first < count; first += 32) {
        const int n = min(32, count - first);
        float4 part[PARTS] = {};
        part[0].x = 4.0f; /* far from everything, without mass */
        if (lane < n) {
            const float4 *p = (const float4 *)&job.far[list[first + lane]];
            TREE_UNROLL
            for (int k = 0; k < PARTS; k++) part[k] = p[k];
            part[0].x = (part[0].x - g->x) + part[1].x, part[0].y = (part[0].y - g->y) + part[1].y;
            part[0].z = (part[0].z - g->z) + part[1].z;
            part[1].x = part[1].w;
            part[1].y = g->eps2;
        }
        __syncwarp();
        TREE_UNROLL
        for (int k = 0; k < PARTS; k++) shared[32 * k + lane] = part[k];
        __syncwarp();
        for (int k = share; k < n; k += SHARES) {
            const float4 a = shared[k], c = shared[64 + k], d = shared[96 + k], e = shared[128 + k];
            struct tree_multipole m;
            m.m = a.w, m.spread = shared[32 + k].x;
            const float eps2 = shared[32 + k].y;
            const float own = PAIRS == OWN_EPS && job.term & PAIR_OWN ? shared[160 + k].w : 0.0f;
            m.xx = c.x, m.xy = c.y, m.xz = c.z, m.yy = c.w, m.yz = d.x;
            m.xxx = d.y, m.xxy = d.z, m.xxz = d.w, m.xyy = e.x, m.xyz = e.y, m.yyy = e.z;
            m.yyz = e.w;
            if (TERMS == SOFT_OCTUPOLES) {
                const float4 f = shared[160 + k];
                m.tx = f.x, m.ty = f.y, m.tz = f.z;
            }
            TREE_UNROLL
            for (int i = 0; i < TARGETS; i++)
                tree_cell_to_point(TERMS, TERMS == SOFT_OCTUPOLES, b[i].x - a.x, b[i].y - a.y,
                                   b[i].z - a.z, PAIRS == OWN_EPS ? b[i].eps2 + own : eps2, &m,
                                   &b[i].phi, b[i].acc);
        }
    }
}

/* Target k by its place: relative to the group, or in two parts of which differences are exact. */
DEVICE_FN struct pair_i target_at(const struct tree_device_job &job, const struct tree_group *g,
                                  int k, int split)
{
    const float4 high = (job.targets ? job.target_high : job.high)[k];
    const float4 low = (job.targets ? job.target_low : job.low)[k];
    struct pair_i at = {};
    if (split) {
        at.x = high.x, at.y = high.y, at.z = high.z;
        at.xl = low.x, at.yl = low.y, at.zl = low.z;
    } else {
        at.x = (high.x - g->x) + low.x, at.y = (high.y - g->y) + low.y;
        at.z = (high.z - g->z) + low.z;
    }
    return at;
}

/* The place of a lane's target i, or of the group's last. */
template <int LANES> DEVICE_FN int target_of(const struct tree_group *g, int lane, int i)
{
    return min(g->first + lane % LANES + LANES * i, g->first + g->count - 1);
}

/* Whether a target and a particle, by their places, are at one place: their coordinates in the box
 * may be equal where the caller's are not. Of other ranks' particles these are not known. */
DEVICE_CALL bool at_one_place(const struct tree_device_job &job, int target, int place)
{
    if (place < 0 || place >= job.n) return true;
    const double *a =
        job.targets ? job.targets + 3 * job.target_order[target] : job.x + 3 * job.order[target];
    const double *b = job.x + 3 * job.order[place];
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* Whether the caller's softening of a pair, by places, is not zero. */
DEVICE_CALL bool has_softening(const struct tree_device_job &job, int target, int place)
{
    const int64_t self = job.targets ? (int64_t)job.target_self[target] : target;
    const bool is_own = job.own_eps && self >= 0; /* a target's is a particle's, or that given */
    if (is_own ? job.own_eps[job.order[self]] > 0.0 : job.eps2_given > 0.0) return true;
    return job.own_eps && job.own_eps[job.order[place]] > 0.0;
}

/* Particles of leaves on targets. `own`: targets are among them, and perhaps pairs that are too
 * close for places relative to the group. `bare`: eps is too small to keep pairs apart. */
template <int OWN, int PAIRS, int TARGETS, int LANES>
DEVICE_FN bool leaves_on(const struct tree_device_job &job, const struct tree_group *g,
                         const int32_t *list, int count, int direction, float4 *shared,
                         const int *self, struct near_body *b, int *sources, int *zero_distances)
{
    const int lane = (int)threadIdx.x % 32, share = lane / LANES, SHARES = 32 / LANES;
    bool close = false;
    struct pair_i at_i[TARGETS];
    struct pair_sum pairs[TARGETS];
    TREE_UNROLL
    for (int i = 0; i < TARGETS; i++) {
        const int k = target_of<LANES>(g, lane, i);
        at_i[i] = OWN ? target_at(job, g, k, 1) : pair_i{b[i].x, b[i].y, b[i].z};
        if (PAIRS == OWN_EPS) at_i[i].eps2 = job.target_eps2[k];
        pairs[i] = {b[i].acc[0], b[i].acc[1], b[i].acc[2], 0.0f, 0.0f, 0.0f, b[i].phi};
    }
    for (int first = 0; first < count; first += 32) {
        int begin = 0, mine = 0;
        if (first + lane < count) {
            const struct tree_cell c = whole(&job.cell[list[direction * (first + lane)]]);
            begin = c.first, mine = c.end - c.first;
        }
        const struct leaf_particles particles = particles_of(begin, mine);
        const int all = particles.all;
        *sources += all;
        for (int at = 0; at < all; at += 64) {
            float4 p[2], rest[2];
            TREE_UNROLL
            for (int half = 0; half < 2; half++) {
                const int q = at + 32 * half + lane, place = particles_place(&particles, q);
                p[half].x = p[half].y = p[half].z = 4.0f, p[half].w = 0.0f;
                rest[half] = {};
                if (q < all) {
                    const float4 high = job.high[place], low = job.low[place];
                    p[half].x = (high.x - g->x) + low.x, p[half].y = (high.y - g->y) + low.y;
                    p[half].z = (high.z - g->z) + low.z, p[half].w = high.w;
                    if (OWN) p[half] = high, rest[half] = low;
                }
                rest[half].w = __int_as_float(q < all ? place : -2);
            }
            __syncwarp();
            shared[lane] = p[0], shared[32 + lane] = p[1];
            if (OWN) shared[64 + lane] = rest[0], shared[96 + lane] = rest[1];
            float *const eps2 = (float *)(shared + 128);
            TREE_UNROLL
            for (int half = 0; PAIRS == OWN_EPS && half < 2; half++) {
                const int place = __float_as_int(rest[half].w);
                eps2[32 * half + lane] =
                    place >= 0 && job.source_eps2 ? job.source_eps2[place] : 0.0f;
            }
            __syncwarp();
            constexpr int TURN = SHARES > 16 ? 64 / SHARES : 4; /* at once */
            const int n = min(64, all - at), rounds = (n + TURN * SHARES - 1) / (TURN * SHARES);
            for (int round = 0; round < rounds; round++) {
                TREE_UNROLL
                for (int u = 0; u < TURN; u++) {
                    const int k = (round * TURN + u) * SHARES + share;
                    const float4 p = shared[k];
                    struct pair_j j = {p.x, p.y, p.z, p.w};
                    if (PAIRS == OWN_EPS) j.eps2 = eps2[k];
                    int number = -2;
                    if (OWN) {
                        const float4 low = shared[64 + k];
                        j.xl = low.x, j.yl = low.y, j.zl = low.z, number = __float_as_int(low.w);
                    }
                    TREE_UNROLL
                    for (int i = 0; i < TARGETS; i++) {
                        const struct pair_sep r = pair_separation(OWN, &at_i[i], &j);
                        const int term = PAIRS == OWN_EPS ? job.term : PAIR_FORCE;
                        const float soft2 =
                            PAIRS == OWN_EPS ? pair_softening(term, &at_i[i], &j) : g->eps2;
                        float s2 = pair_distance2(&r, soft2), m = p.w;
                        if (OWN && number == self[i]) s2 = 1.0f, m = 0.0f;
                        if (!OWN) b[i].near = fminf(b[i].near, s2);
                        const bool none = PAIRS != KEPT_APART && s2 < TREE_CLOSE;
                        if (none) {
                            const int target = target_of<LANES>(g, lane, i);
                            const bool apart =
                                s2 > 0.0f ||
                                (PAIRS == OWN_EPS ? has_softening(job, target, number)
                                                  : job.eps2_given > 0.0) ||
                                !at_one_place(job, target, number);
                            *zero_distances += !apart && lane % LANES + LANES * i < g->count;
                            close |= apart;
                            s2 = 1.0f, m = 0.0f;
                        }
                        if (PAIRS == OWN_EPS && m != 0.0f) s2 = pair_softened2(term, &r, soft2);
                        pair_add(term, &at_i[i], &j, m, v_rsqrt(s2), &r, &pairs[i]);
                    }
                }
            }
        }
        __syncwarp();
    }
    TREE_UNROLL
    for (int i = 0; i < TARGETS; i++) {
        b[i].acc[0] = pairs[i].ax, b[i].acc[1] = pairs[i].ay, b[i].acc[2] = pairs[i].az;
        b[i].phi = pairs[i].pot;
    }
    return close;
}

/* The first of those targets is kept. */
DEVICE_CALL void note_too_large(const struct tree_device_job &job, int64_t i)
{
    atomicMax(&job.status->too_large, job.rows - (int)i);
}

/* acc and phi of a target, back in the caller's units: what led to the box's, inverted, in halves.
 */
DEVICE_FN void put_row(const struct tree_device_job &job, const struct tree_box *box, int64_t i,
                       const double sum[4])
{
    const double *l = box->scale;
    const double mass[2] = {1.0 / box->mass_scale[0], 1.0 / box->mass_scale[1]};
    bool fits = true;
    for (int c = 0; c < 3; c++) {
        const double acc = sum[c] * mass[0] * l[0] * l[0] * mass[1] * l[1] * l[1];
        fits = fits && fabs(acc) < INFINITY;
        job.acc[3 * i + c] = acc;
    }
    job.pot[i] = -sum[3] * mass[0] * l[0] * mass[1] * l[1];
    if (!fits || !(fabs(job.pot[i]) < INFINITY)) note_too_large(job, i);
}

/* BY_BLOCK: the warps of a CUDA block share one group's targets. */
template <int TERMS, int PAIRS, int TARGETS, int LANES, int BY_BLOCK>
DEVICE_FN void near(const struct tree_device_job &job)
{
    __shared__ float4 all_shared[4][TERMS == SOFT_OCTUPOLES || PAIRS == OWN_EPS ? 192 : 160];
    const struct tree_level_job &in = small_level(job);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int slot = BY_BLOCK ? (int)blockIdx.x : (int)blockIdx.x * 4 + warp;
    if (slot >= small_slots(job)) return;
    struct tree_group g = in.group[small_group(job, slot)];
    if (BY_BLOCK) {
        g.first += TARGETS * LANES * warp;
        g.count = min(g.count - TARGETS * LANES * warp, TARGETS * LANES);
        if (g.count <= 0) return;
    }
    float4 *const shared = all_shared[warp];
    const int32_t *lists =
        in.lists + (int64_t)slot * (in.capacity[0] + in.capacity[1] + in.capacity[2]);
    const int32_t *leaves = lists + in.capacity[0] + in.capacity[1];
    const int32_t *count = in.count + 4 * (int64_t)slot;
    const int points = count[LIST_M2P], others = count[LIST_P2P], own = count[3];
    if (own < 0) return; /* lists too short: summed again */
    if (g.radius > TREE_SCATTERED) {
        if (lane == 0) sum_again(job, &g, max(job.kind + 1, (int)EIGHTS));
        return;
    }
    /* Closer pairs, places relative to the group do not resolve: then other leaves are summed as
     * precisely as those that the targets are in. */
    const float close_s2 = walk_close(g.eps2, g.radius);
    struct near_body b[TARGETS];
    int self[TARGETS], sources = 0, zero_distances = 0;
    bool close = false, precise = PAIRS == OWN_EPS;
    for (;;) {
        TREE_UNROLL
        for (int i = 0; i < TARGETS; i++) {
            const int k = target_of<LANES>(&g, lane, i);
            const struct pair_i at = target_at(job, &g, k, 0);
            b[i].x = at.x, b[i].y = at.y, b[i].z = at.z;
            b[i].phi = b[i].acc[0] = b[i].acc[1] = b[i].acc[2] = 0.0f;
            b[i].near = INFINITY;
            if (PAIRS == OWN_EPS) b[i].eps2 = job.term & PAIR_SPLINE ? 0.0f : job.target_eps2[k];
            self[i] = job.targets ? job.target_self[k] : k;
        }
        points_on<TERMS, PAIRS, TARGETS, LANES>(job, &g, lists + in.capacity[0], points, shared, b);
        __syncwarp();
        if (precise) break;
        close = leaves_on<0, PAIRS, TARGETS, LANES>(job, &g, leaves, others, 1, shared, self, b,
                                                    &sources, &zero_distances);
        TREE_UNROLL
        for (int i = 0; i < TARGETS; i++) precise |= b[i].near < close_s2;
        precise = __any_sync(EVERY, precise);
        if (!precise) break;
        sources = zero_distances = 0, close = false;
    }
    for (int list = precise ? 0 : 1; list < 2; list++)
        close |= leaves_on<1, PAIRS, TARGETS, LANES>(
            job, &g, list ? leaves + in.capacity[2] - 1 : leaves, list ? own : others,
            list ? -1 : 1, shared, self, b, &sources, &zero_distances);
    const struct tree_box box = *job.box;
    TREE_UNROLL
    for (int i = 0; i < TARGETS; i++) {
        TREE_UNROLL
        for (int by = LANES; by < 32; by *= 2) {
            b[i].phi += __shfl_xor_sync(EVERY, b[i].phi, by);
            TREE_UNROLL
            for (int c = 0; c < 3; c++) b[i].acc[c] += __shfl_xor_sync(EVERY, b[i].acc[c], by);
        }
        const int k = g.first + lane % LANES + LANES * i;
        if (lane >= LANES || k >= g.first + g.count) continue;
        double sum[4] = {b[i].acc[0], b[i].acc[1], b[i].acc[2], b[i].phi};
        if (TERMS != QUADRUPOLES) {
            const float4 far = job.far_sum[k];
            sum[0] += far.x, sum[1] += far.y, sum[2] += far.z, sum[3] += far.w;
        }
        put_row(job, &box, (job.targets ? job.target_order : job.order)[k], sum);
    }
    if (PAIRS != KEPT_APART && __any_sync(EVERY, close || zero_distances)) {
        for (int by = 16; by; by /= 2) zero_distances += __shfl_xor_sync(EVERY, zero_distances, by);
        if (lane == 0)
            atomicAdd((unsigned long long *)&job.status->zero_distances,
                      (unsigned long long)zero_distances);
        for (int i = 0; i < TARGETS && close; i++) {
            const int k = g.first + lane % LANES + LANES * i;
            const int at =
                k < g.first + g.count ? atomicAdd(&job.status->close, 1) : job.close_capacity;
            if (at < job.close_capacity) job.close[at] = k;
        }
    }
    if (lane) return;
    unsigned long long *done = (unsigned long long *)job.status->done[blockIdx.x % TREE_COUNTERS];
    atomicAdd(&done[0], (unsigned long long)sources * g.count);
    atomicAdd(&done[1], (unsigned long long)points * g.count);
    if (!BY_BLOCK || warp == 0) atomicAdd(&done[2], (unsigned long long)count[LIST_M2L]);
    atomicAdd(&done[3], (unsigned long long)g.count);
}

#define NEAR(name, terms, pairs)                                                                   \
    KERNEL(name##_groups, struct tree_device_job, 128, (pairs) == OWN_EPS ? 1 : 7)                 \
    {                                                                                              \
        near<terms, pairs, 2, 16, 0>(job);                                                         \
    }                                                                                              \
    KERNEL(name##_blocks, struct tree_device_job, 128, 1) { near<terms, pairs, 1, 8, 1>(job); }    \
    KERNEL(name##_eights, struct tree_device_job, 128, 1) { near<terms, pairs, 1, 8, 0>(job); }    \
    KERNEL(name##_singles, struct tree_device_job, 128, 1) { near<terms, pairs, 1, 1, 0>(job); }
NEAR(tree_near, OCTUPOLES, KEPT_APART)
NEAR(tree_near_bare, OCTUPOLES, BARE)
NEAR(tree_near_soft, SOFT_OCTUPOLES, KEPT_APART)
NEAR(tree_near_own, OCTUPOLES, OWN_EPS)
NEAR(tree_near_soft_own, SOFT_OCTUPOLES, OWN_EPS)
NEAR(tree_near_bh, QUADRUPOLES, KEPT_APART)
NEAR(tree_near_bh_bare, QUADRUPOLES, BARE)
NEAR(tree_near_bh_own, QUADRUPOLES, OWN_EPS)

/* Whether a cell came from another rank without what is in it. */
DEVICE_FN bool is_stub(const struct tree_cell *c) { return c->child < 0 && c->first == c->end; }

/* A place in the box as an empty group's centre, and what single precision leaves of it. */
DEVICE_FN struct tree_group group_at(const double at[3], float rest[3])
{
    struct tree_group g = {};
    g.x = (float)at[0], g.y = (float)at[1], g.z = (float)at[2];
    rest[0] = (float)(at[0] - (double)g.x), rest[1] = (float)(at[1] - (double)g.y);
    rest[2] = (float)(at[2] - (double)g.z);
    return g;
}

/* Of a thread's share of what came from other ranks: particles, and cells without them. */
DEVICE_FN void add_joined(const struct tree_device_job &job, const double at[3], double eps2,
                          double sum[4])
{
    const int t = (int)threadIdx.x;
    for (int j = job.n + t; j < job.joined_n; j += 256) {
        const float4 high = job.high[j], low = job.low[j];
        const double d[3] = {(double)high.x + (double)low.x - at[0],
                             (double)high.y + (double)low.y - at[1],
                             (double)high.z + (double)low.z - at[2]};
        const double s2 = eps2 + tree_square(d);
        if (s2 == 0.0) continue;
        const double s = 1.0 / sqrt(s2), ms = (double)high.w * s;
        sum[3] += ms;
        for (int c = 0; c < 3; c++) sum[c] += ms * s * s * d[c];
    }
    float rest[3];
    const struct tree_group g = group_at(at, rest);
    for (int k = job.status->cells + t; k < job.joined_cells; k += 256) {
        const struct tree_cell cell = whole(&job.cell[k]);
        if (!is_stub(&cell)) continue;
        const struct tree_multipole m = multipole_of(&job.far[k], &g, 1.0f);
        const float x = m.x + rest[0], y = m.y + rest[1], z = m.z + rest[2];
        float phi = 0.0f, acc[3] = {0.0f, 0.0f, 0.0f};
        if (job.order_of_expansion)
            tree_cell_to_point(1, 0, x, y, z, (float)eps2, &m, &phi, acc);
        else
            tree_cell_to_point(0, 0, x, y, z, (float)eps2, &m, &phi, acc);
        sum[3] += (double)phi;
        for (int c = 0; c < 3; c++) sum[c] += (double)acc[c];
    }
}

/* The particles in the box, one after the other: by number, if that are all. */
DEVICE_FN int64_t number_in_box(const struct tree_device_job &job, int64_t k)
{
    return job.distant ? job.order[k] : k;
}

/* Whether double precision can sum a pair; if not, nor can the box, unless it is at one place. */
DEVICE_FN bool fits_double(const struct tree_device_job &job, const double *at, int64_t j,
                           double s2)
{
    if (s2 >= TREE_DEEPEST) return true;
    const double *x = job.x + 3 * j;
    if (s2 > 0.0 || job.eps2_given > 0.0 || x[0] != at[0] || x[1] != at[1] || x[2] != at[2])
        job.status->unresolved = 1;
    return false;
}

/* Targets with pairs too close for single precision: summed directly, in double, each by a CUDA
 * block; of other ranks' particles, what there is of them here. */
KERNEL(tree_close_rows, struct tree_device_job, 256, 1)
{
    __shared__ double part[4][256];
    const struct tree_box box = *job.box;
    const int t = (int)threadIdx.x, k = job.close[blockIdx.x];
    const int64_t i = (job.targets ? job.target_order : job.order)[k];
    const double *x = (job.targets ? job.targets : job.x) + 3 * i;
    const int64_t self = job.targets ? (job.self ? (int64_t)job.self[i] : -1) : i;
    const double eps2 = job.eps2_given * box.scale[0] * box.scale[1] * box.scale[0] * box.scale[1];
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int64_t at = t; at < job.n; at += 256) {
        const int64_t j = number_in_box(job, at);
        double d[3], s2 = eps2;
        for (int c = 0; c < 3; c++) {
            d[c] = (job.x[3 * j + c] - x[c]) * box.scale[0] * box.scale[1];
            s2 += d[c] * d[c];
        }
        if (j == self || !fits_double(job, x, j, s2)) continue;
        const double s = 1.0 / sqrt(s2), ms = tree_mass_in_box(&box, job.m[j]) * s;
        sum[3] += ms;
        for (int c = 0; c < 3; c++) sum[c] += ms * s * s * d[c];
    }
    if (job.joined_cells) {
        double at[3];
        for (int c = 0; c < 3; c++) at[c] = tree_in_box(&box, c, x[c]);
        add_joined(job, at, eps2, sum);
    }
    for (int c = 0; c < 4; c++) part[c][t] = sum[c];
    combine<4>(part, [](int, double a, double b) { return a + b; });
    if (t) return;
    for (int c = 0; c < 4; c++) sum[c] = part[c][0];
    put_row(job, &box, i, sum);
}
