/* direct_pack.h - prediction of the j particles (Makino and Aarseth 1992, with the snap term)
 * and conversion of j and i particles to the layout that the kernels read. */

/* Prefetch distance, in particles. */
enum { PACK_AHEAD = 24 };

struct packed_quad {
    quad x, v; /* x, y, z, m and vx, vy, vz, 0, scaled */
};

/* Origin and units of the packed numbers: (x - origin) x_unit, (v - drift) v_unit. */
struct quad_scale {
    quad origin, x_unit, drift, v_unit;
};

INLINE struct quad_scale quad_scale(const struct scale *s, const int mode)
{
    const double x = scale_power_of_two(length_shift(s, mode)),
                 v = scale_power_of_two(velocity_shift(s));
    return (struct quad_scale){.origin = q_set(s->origin[0], s->origin[1], s->origin[2], 0.0),
                               .x_unit = q_set(x, x, x, scale_power_of_two(mass_shift(s))),
                               .drift = q_set(s->drift[0], s->drift[1], s->drift[2], 0.0),
                               .v_unit = q_set(v, v, v, 0.0)};
}

/* The same Horner steps as predictor.h. Without FMA the last bits differ. */
INLINE struct packed_quad predict_quad(const struct jparticle *p, const double *k18, double time,
                                       const struct quad_scale *s)
{
    const double dt_ = time - p->time;
    const quad dt = q_set(dt_, dt_, dt_, 0.0), three = q_set1(3.0);
    const quad x0 = q_load(p->x), v0 = q_load(p->v), a2 = q_load(p->a2), j6 = q_load(p->j6);
    quad x3 = j6, v2 = j6;
    if (k18) {
        const quad k = q_load(k18);
        x3 = q_fma(dt, q_mul(q_set1(0.75), k), j6);
        v2 = q_fma(dt, k, j6);
    }
    if (MUTANT(velocity_power)) v2 = q_mul(dt, q_fma(q_set1(-1.0), j6, q_add(v2, v2)));
    struct packed_quad out;
    const quad x = q_fma(dt, q_fma(dt, q_fma(dt, x3, a2), v0), x0);
    const quad v = q_fma(dt, q_fma(dt, q_mul(three, v2), q_add(a2, a2)), v0);
    out.x = q_mul(q_sub(x, s->origin), s->x_unit);
    out.v = q_mul(q_sub(v, s->drift), s->v_unit);
    return out;
}

INLINE void pack_chunk(const struct direct_job *job, const int mode, int64_t chunk, real *row,
                       int32_t *index)
{
    const struct quad_scale scale = quad_scale(&job->scale, mode);
    const double ms = scale_power_of_two(mass_shift(&job->scale));
    const struct jmemory *memory = job->memory;
    const uint64_t least = bits_of(0x1p-100 / ms) << 1;
    unsigned empty = 0, tiny = 0;
    for (int g = 0; g < CHUNK; g += 4) {
        struct packed_quad q[4];
        for (int r = 0; r < 4; r++) {
            const int64_t a = chunk * CHUNK + g + r;
            const struct jparticle *p = &memory->body[a];
            index[g + r] = p->index;
            __builtin_prefetch((const char *)(p + PACK_AHEAD), 0, 3);
            __builtin_prefetch((const char *)(p + PACK_AHEAD) + 64, 0, 3);
            if (p->state == SLOT_SET && a < job->nj) {
                tiny |= (unsigned)((bits_of(p->mass) << 1) - 1 < least - 1) << (g + r);
                q[r] = predict_quad(p, memory->k18 && job->snap ? memory->k18[a] : NULL, job->time,
                                    &scale);
            } else {
                q[r].x = q[r].v = q_zero();
                empty |= 1u << (g + r);
            }
        }
#if REAL_BITS == 32
        if (mode == MODE_GRAPE) {
            quad lo[4];
            for (int r = 0; r < 4; r++) q_split(q[r].x, &q[r].x, &lo[r]);
            q_store_columns(row + 7 * CHUNK + g, 3, lo[0], lo[1], lo[2], lo[3]);
        }
#endif
        q_store_columns(row + g, 4, q[0].x, q[1].x, q[2].x, q[3].x);
        q_store_columns(row + 4 * CHUNK + g, 3, q[0].v, q[1].v, q[2].v, q[3].v);
    }
    /* A mass that would underflow becomes the least normal number, so that its block is summed
     * exactly (in_range). */
    for (; REAL_BITS == 32 && tiny; tiny &= tiny - 1)
        row[3 * CHUNK + __builtin_ctz(tiny)] = (real)0x1p-126;
    for (; empty; empty &= empty - 1) row[__builtin_ctz(empty)] = (real)FAR_AWAY;
}

/* Lane-wise maximum of |a|; NaN counts as the largest number. */
INLINE vec max_abs(vec most, vec a)
{
    const vec limit = v_set1(REAL_BITS == 32 ? 0x1p127 : 0x1p1023), b = v_abs(a);
    return v_max(most, v_select(v_lt(b, limit), b, limit));
}

static double largest_lane(vec a)
{
    real lane[VL];
    double most = 0.0;
    v_store(lane, a);
    for (int l = 0; l < VL; l++)
        if (lane[l] > most) most = lane[l];
    return most;
}

/* Exponents of a packed block. Empty slots are at FAR_AWAY, without mass. */
static struct block_range range_of_block(const real *row, int nrow, int nc)
{
    const vec zero = v_set1(0), far = v_set1(FAR_AWAY);
    const vec none = v_set1(REAL_BITS == 32 ? 0x1p-126 : 0x1p-1022);
    vec x = zero, v = zero, v_massive = zero, m = zero;
    vec m_low = v_set1(REAL_BITS == 32 ? 0x1p127 : 0x1p1023);
    const vec no_mass = m_low;
    for (int c = 0; c < nc; c++, row += nrow * CHUNK)
        for (int l = 0; l < CHUNK; l += VL) {
            const vec mass = v_abs(v_load(row + 3 * CHUNK + l)), x0 = v_load(row + l);
            const vmask massless = v_lt(mass, none);
            const vec moved = v_select(v_lt(x0, far), x0, v_select(v_lt(far, x0), x0, zero));
            const vec placed = v_select(massless, moved, x0);
            x = max_abs(max_abs(max_abs(x, placed), v_load(row + CHUNK + l)),
                        v_load(row + 2 * CHUNK + l));
            for (int k = 4; k < 7; k++) {
                const vec moved = v_load(row + k * CHUNK + l);
                v = max_abs(v, moved);
                v_massive = max_abs(v_massive, v_select(massless, zero, moved));
            }
            m = max_abs(m, mass);
            m_low = v_min(m_low, v_select(massless, no_mass, mass));
        }
    real lane[VL];
    double low = largest_lane(no_mass);
    v_store(lane, m_low);
    for (int l = 0; l < VL; l++)
        if (lane[l] < low) low = lane[l];
    const double high = largest_lane(m);
    const struct block_range range = {
        (int16_t)exponent_of(largest_lane(x)), (int16_t)exponent_of(largest_lane(v)),
        (int16_t)exponent_of(largest_lane(v_massive)),
        (int16_t)(high > 0.0 ? exponent_of(low) : EXPONENT_NONE), (int16_t)exponent_of(high)};
    return range;
}

static void pack_blocks(const struct direct_job *job, void *rows, int32_t *index,
                        struct block_range *ranges, uint64_t *stale, int64_t first, int64_t last)
{
    const int nrow = rows_per_chunk(job->mode);
    for (int64_t b = first; b < last; b++) {
        const int nc = chunks_of_block(job, b);
        const uint64_t requested = nc == BLOCK_CHUNKS ? ~(uint64_t)0 : ((uint64_t)1 << nc) - 1;
        const uint64_t todo = stale[b] & requested;
        if (!todo) continue;
        real *block = (real *)rows + (size_t)b * BLOCK * (size_t)nrow;
        for (uint64_t bits = todo; bits; bits &= bits - 1) {
            const int c = __builtin_ctzll(bits);
            const int64_t chunk = b * BLOCK_CHUNKS + c;
            real *row = block + (size_t)(c * nrow * CHUNK);
            if (REAL_BITS == 64)
                pack_chunk(job, MODE_DOUBLE, chunk, row, index + chunk * CHUNK);
            else if (job->mode == MODE_GRAPE)
                pack_chunk(job, MODE_GRAPE, chunk, row, index + chunk * CHUNK);
            else
                pack_chunk(job, MODE_SINGLE, chunk, row, index + chunk * CHUNK);
        }
        stale[b] &= ~todo;
        ranges[b] = range_of_block(block, nrow, nc);
    }
}

/* Converts i particles first..last-1 from job->x, v, eps2 to fields and body_range. */
static void pack_targets(const struct direct_job *job, void *const fields[I_FIELDS],
                         struct body_range *range, int first, int last)
{
    const double xs = scale_power_of_two(length_shift(&job->scale, job->mode));
    const double vs = scale_power_of_two(velocity_shift(&job->scale));
    for (int i = first; i < last; i++) {
        uint64_t x = 0, v = 0; /* largest magnitudes, as bits */
        for (int k = 0; k < 3; k++) {
            const double a = (job->x[i][k] - job->scale.origin[k]) * xs;
            const double b = (job->v[i][k] - job->scale.drift[k]) * vs;
            double hi = a;
#if REAL_BITS == 32
            if (job->mode == MODE_GRAPE) {
                const double round = 6755399441055744.0;
                hi = (float)(a < 0x1p40 && a > -0x1p40 ? a + round - round : a);
                ((real *)fields[3 + k])[i] = (real)(a - hi);
            }
#endif
            ((real *)fields[k])[i] = (real)hi;
            ((real *)fields[6 + k])[i] = (real)b;
            if (bits_of(a) << 1 > x) x = bits_of(a) << 1;
            if (bits_of(b) << 1 > v) v = bits_of(b) << 1;
        }
        const double e = job->eps2[i] * xs * xs;
        ((real *)fields[9])[i] = (real)e;
        range[i] =
            (struct body_range){(int16_t)exponent_of(from_bits(x >> 1)),
                                (int16_t)exponent_of(from_bits(v >> 1)), (int16_t)exponent_of(e)};
        ((real *)fields[10])[i] = (real)scale_power_of_two(close_exponent(job->mode, range[i].x));
    }
}
