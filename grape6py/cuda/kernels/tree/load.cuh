/* load.cuh - what the tree's kernels take from its arrays. */

/* Structures that are fetched and put in pieces of 16 bytes. */
template <class T> union in_pieces {
    float4 piece[sizeof(T) / sizeof(float4)];
    T whole;
};

template <class T> DEVICE_FN T whole(const T *from)
{
    union in_pieces<T> copy;
    TREE_UNROLL
    for (unsigned k = 0; k < sizeof(T) / sizeof(float4); k++)
        copy.piece[k] = ((const float4 *)from)[k];
    return copy.whole;
}

template <class T> DEVICE_FN void put_whole(T *to, const T &what)
{
    union in_pieces<T> copy;
    copy.whole = what;
    TREE_UNROLL
    for (unsigned k = 0; k < sizeof(T) / sizeof(float4); k++) ((float4 *)to)[k] = copy.piece[k];
}

/* Slots of small groups that there are: of the kind that is summed. */
DEVICE_FN int small_slots(const struct tree_device_job &job)
{
    if (job.kind == GROUPS) return job.groups;
    const int left = min(job.status->again[job.kind], job.again_capacity) - job.first_slot;
    return min(left, job.slots);
}

DEVICE_FN const struct tree_level_job &small_level(const struct tree_device_job &job)
{
    return job.level[job.kind == GROUPS ? 2 : 3];
}

DEVICE_FN int small_group(const struct tree_device_job &job, int slot)
{
    return job.kind == GROUPS ? job.first_group + slot : slot;
}

/* The first level-2 or level-1 group of those whose lists there are. */
DEVICE_FN int first_group_of_level(const struct tree_device_job &job, int level)
{
    return job.first_level2 * (level ? (int)TREE_LEVEL2 : 1);
}

/* A cell's moments in a group's units, the group's centre as seen from it. */
DEVICE_FN struct tree_multipole multipole_of(const struct tree_cell_multipole *far,
                                             const struct tree_group *g, float u)
{
    const float4 *p = (const float4 *)far;
    const float4 a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5];
    const float u2 = u * u, u3 = u2 * u;
    struct tree_multipole m;
    m.x = u * ((g->x - a.x) - b.x), m.y = u * ((g->y - a.y) - b.y), m.z = u * ((g->z - a.z) - b.z);
    m.m = a.w, m.spread = u2 * b.w;
    m.xx = u2 * c.x, m.xy = u2 * c.y, m.xz = u2 * c.z, m.yy = u2 * c.w, m.yz = u2 * d.x;
    m.xxx = u3 * d.y, m.xxy = u3 * d.z, m.xxz = u3 * d.w, m.xyy = u3 * e.x, m.xyz = u3 * e.y;
    m.yyy = u3 * e.z, m.yyz = u3 * e.w, m.tx = u3 * f.x, m.ty = u3 * f.y, m.tz = u3 * f.z;
    m.eps2 = u2 * f.w;
    return m;
}

/* How a cell changes: its velocity, and the rates of its moments as if a cell's, in units of 1/u.
 */
DEVICE_FN struct tree_multipole change_of(const struct tree_motion *motion, float u, float v[3])
{
    const float4 *p = (const float4 *)motion;
    const float4 a = p[0], b = p[1], c = p[2], d = p[3], e = p[4];
    const float u2 = u * u, u3 = u2 * u;
    struct tree_multipole m;
    v[0] = u * a.x, v[1] = u * a.y, v[2] = u * a.z;
    m.m = 0.0f, m.spread = u2 * a.w;
    m.xx = u2 * b.x, m.xy = u2 * b.y, m.xz = u2 * b.z, m.yy = u2 * b.w, m.yz = u2 * c.x;
    m.xxx = u3 * c.y, m.xxy = u3 * c.z, m.xxz = u3 * c.w, m.xyy = u3 * d.x, m.xyz = u3 * d.y;
    m.yyy = u3 * d.z, m.yyz = u3 * d.w, m.tx = u3 * e.x, m.ty = u3 * e.y, m.tz = u3 * e.z;
    return m;
}

/* The particles of the leaves that the lanes of a warp have, one after the other. */
struct leaf_particles {
    int before, begin, all; /* of leaves before this lane's; its first, less these; of all leaves */
};

DEVICE_FN struct leaf_particles particles_of(int begin, int count)
{
    const int lane = (int)threadIdx.x % 32;
    int sum = count;
    TREE_UNROLL
    for (int by = 1; by < 32; by *= 2) {
        const int from = __shfl_up_sync(EVERY, sum, by);
        if (lane >= by) sum += from;
    }
    return {sum - count, begin - (sum - count), __shfl_sync(EVERY, sum, 31)};
}

/* The place of number q of them. */
DEVICE_FN int particles_place(const struct leaf_particles *p, int q)
{
    int leaf = 0;
    TREE_UNROLL
    for (int by = 16; by; by /= 2)
        if (__shfl_sync(EVERY, p->before, leaf + by) <= q) leaf += by;
    return __shfl_sync(EVERY, p->begin, leaf) + q;
}

/* ---- through expansions -------------------------------------------------------------------- */

struct jerk_body {
    struct pair_i at; /* relative to the group */
    float far_eps2;   /* of terms of cells */
    int self;
};

DEVICE_FN struct jerk_body jerk_body_of(const struct tree_device_job &job,
                                        const struct tree_group *g, int k)
{
    const float4 high = (job.targets ? job.target_high : job.high)[k];
    const float4 low = (job.targets ? job.target_low : job.low)[k];
    const float4 v = (job.targets ? job.target_velocity : job.velocity)[k];
    struct jerk_body b;
    b.at.x = (high.x - g->x) + low.x, b.at.y = (high.y - g->y) + low.y;
    b.at.z = (high.z - g->z) + low.z, b.at.xl = b.at.yl = b.at.zl = 0.0f;
    b.at.vx = v.x, b.at.vy = v.y, b.at.vz = v.z;
    b.at.eps2 = job.term ? job.target_eps2[k] : g->eps2;
    b.far_eps2 = job.term & PAIR_SPLINE ? 0.0f : b.at.eps2;
    b.self = job.targets ? job.target_self[k] : k;
    return b;
}
