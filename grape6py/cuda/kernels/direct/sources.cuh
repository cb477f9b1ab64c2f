/* sources.cuh - memory layout of the j particles at a pair of addresses, for the fewest loads of 16
 * bytes. Mode grape, 5 loads for two particles; single 4; double 8:
 *   grape   x y z m | xl yl zl vx | vy vz vy' vz' | x' y' z' m' | xl' yl' zl' vx'
 *   single  x y z m | vx vy vz 0 | the same of the other
 *   double  x y | z m | vx vy | vz 0 | the same of the other
 */
#if SPLIT
enum { PAIR_REALS = 20 };
#else
enum { PAIR_REALS = 16 };
#endif
enum { CHUNK_REALS = CUDA_CHUNK / 2 * PAIR_REALS, PAD = 16 / sizeof(real) };

/* Stores a particle at its odd or even place in a pair. */
DEVICE_FN void store_source(real *p, int odd, const real x[3], const real lo[3], real m,
                            const real v[3])
{
#if SPLIT
    real *q = p + 12 * odd;
    q[0] = x[0], q[1] = x[1], q[2] = x[2], q[3] = m;
    q[4] = lo[0], q[5] = lo[1], q[6] = lo[2], q[7] = v[0];
    p[8 + 2 * odd] = v[1], p[9 + 2 * odd] = v[2];
#else
    real *q = p + 8 * odd;
    q[0] = x[0], q[1] = x[1], q[2] = x[2], q[3] = m;
    q[4] = v[0], q[5] = v[1], q[6] = v[2], q[7] = 0;
#endif
}

#if DOUBLE_MODE
typedef double2 quad;
#else
typedef float4 quad;
#endif

DEVICE_FN void load_sources(const real *pair, struct pair_j *a, struct pair_j *b)
{
    const quad *q = (const quad *)pair;
#if DOUBLE_MODE
    const quad a0 = q[0], a1 = q[1], a2 = q[2], a3 = q[3];
    const quad b0 = q[4], b1 = q[5], b2 = q[6], b3 = q[7];
    a->x = a0.x, a->y = a0.y, a->z = a1.x, a->m = a1.y;
    a->vx = a2.x, a->vy = a2.y, a->vz = a3.x;
    b->x = b0.x, b->y = b0.y, b->z = b1.x, b->m = b1.y;
    b->vx = b2.x, b->vy = b2.y, b->vz = b3.x;
#elif SPLIT
    const quad q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3], q4 = q[4];
    a->x = q0.x, a->y = q0.y, a->z = q0.z, a->m = q0.w;
    a->xl = q1.x, a->yl = q1.y, a->zl = q1.z;
    a->vx = q1.w, a->vy = q2.x, a->vz = q2.y;
    b->x = q3.x, b->y = q3.y, b->z = q3.z, b->m = q3.w;
    b->xl = q4.x, b->yl = q4.y, b->zl = q4.z;
    b->vx = q4.w, b->vy = q2.z, b->vz = q2.w;
#else
    const quad q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3];
    a->x = q0.x, a->y = q0.y, a->z = q0.z, a->m = q0.w;
    a->vx = q1.x, a->vy = q1.y, a->vz = q1.z;
    b->x = q2.x, b->y = q2.y, b->z = q2.z, b->m = q2.w;
    b->vx = q3.x, b->vy = q3.y, b->vz = q3.z;
#endif
}

/* The source at an address. */
DEVICE_FN struct pair_j load_source(const real *sources, int address)
{
    struct pair_j both[2];
    load_sources(sources + (size_t)(address / 2) * PAIR_REALS, &both[0], &both[1]);
    return address & 1 ? both[1] : both[0];
}

/* An i particle in the form of pair.h. */
struct target {
    struct pair_i i;
    int32_t label;
    struct body_range range;
    real close; /* r^2 of pairs below this needs double */
};

/* An i particle as the caller wrote it. */
DEVICE_FN struct cuda_target target_of(const struct cuda_sum_job &job,
                                       const struct cuda_packed_targets *in_job, int row)
{
    if (!in_job) return job.targets[row];
    const double *x = in_job->x[row], *v = in_job->v[row];
    return {{x[0], x[1], x[2]}, {v[0], v[1], v[2]}, in_job->eps2, in_job->index[row], 0};
}

DEVICE_FN struct target load_target(const struct cuda_sum_job &job,
                                    const struct cuda_packed_targets *in_job, int row)
{
    const struct cuda_target from = target_of(job, in_job, row);
    const struct cuda_units &units = job.units;
    struct target t;
    double x[3], v[3], far = 0.0, fast = 0.0;
    for (int k = 0; k < 3; k++) {
        x[k] = (from.x[k] - units.origin[k]) * units.x_unit;
        v[k] = (from.v[k] - units.drift[k]) * units.v_unit;
        far = fmax(far, fabs(x[k]));
        fast = fmax(fast, fabs(v[k]));
    }
    const double eps2 = from.eps2 * units.x_unit * units.x_unit;
    split_position(x[0], &t.i.x, &t.i.xl);
    split_position(x[1], &t.i.y, &t.i.yl);
    split_position(x[2], &t.i.z, &t.i.zl);
    t.i.vx = (real)v[0], t.i.vy = (real)v[1], t.i.vz = (real)v[2];
    t.i.eps2 = (real)eps2;
    t.label = from.index;
    t.range.x = (int16_t)exponent_of(far);
    t.range.v = (int16_t)exponent_of(fast);
    t.range.eps2 = (int16_t)exponent_of(eps2);
    t.close = power_of_two(close_exponent(MODE, t.range.x));
    return t;
}

DEVICE_FN bool may_hold(struct cuda_span span, int32_t label)
{
    return (uint32_t)label - (uint32_t)span.low <= (uint32_t)span.high - (uint32_t)span.low;
}

/* Chunks of a block that hold addresses below nj. */
DEVICE_FN int chunks_of(int nj, int block)
{
    return min((int)CUDA_CHUNKS, (nj - block * CUDA_BLOCK + CUDA_CHUNK - 1) / CUDA_CHUNK);
}

/* The range that includes two ranges of particles. */
DEVICE_FN struct block_range wider(struct block_range a, struct block_range b)
{
    a.x = max(a.x, b.x);
    a.v = max(a.v, b.v);
    a.v_massive = max(a.v_massive, b.v_massive);
    a.m_low = a.m_low == EXPONENT_NONE   ? b.m_low
              : b.m_low == EXPONENT_NONE ? a.m_low
                                         : min(a.m_low, b.m_low);
    a.m_high = max(a.m_high, b.m_high);
    return a;
}

DEVICE_FN struct block_range range_of_block(const struct block_range *quarters)
{
    return wider(wider(quarters[0], quarters[1]), wider(quarters[2], quarters[3]));
}
