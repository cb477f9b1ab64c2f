/* direct_pack.h - prediction of the j particles (Makino and Aarseth 1992, with the snap term)
 * and their conversion to the layout that the kernels read. */

/* Prefetch distance, in particles. */
enum { PACK_AHEAD = 24 };

/* Origin and units of the packed numbers: (x - origin) x_unit, (v - drift) v_unit. */
struct record_scale {
    records origin, x_unit, drift, v_unit;
};

INLINE struct record_scale record_scale(const struct scale *s, const int mode)
{
    const double x = scale_power_of_two(length_shift(s, mode)),
                 v = scale_power_of_two(velocity_shift(s));
    return (struct record_scale){.origin =
                                     records_set(s->origin[0], s->origin[1], s->origin[2], 0.0),
                                 .x_unit = records_set(x, x, x, scale_power_of_two(mass_shift(s))),
                                 .drift = records_set(s->drift[0], s->drift[1], s->drift[2], 0.0),
                                 .v_unit = records_set(v, v, v, 0.0)};
}

/* Predicts and scales the records at p (and p + RECORD_STEP): x, y, z, m and vx, vy, vz, 0. The
 * same Horner steps as predictor.h. Without FMA the last bits differ. */
INLINE void predict_records(const struct jparticle *p, const double (*k18)[4], double time,
                            const struct record_scale *s, records *scaled_x, records *scaled_v)
{
    enum { NEXT = RECORD_STEP * sizeof *p / sizeof(double) };
    const records dt = records_elapsed(time, &p->time, NEXT);
    const records x0 = records_load(p->x, NEXT), v0 = records_load(p->v, NEXT);
    const records a2 = records_load(p->a2, NEXT), j6 = records_load(p->j6, NEXT);
    records x3 = j6, v2 = j6;
    if (k18) {
        const records k = records_load(k18[0], 4 * RECORD_STEP);
        x3 = records_fma(dt, records_mul(records_set1(0.75), k), j6);
        v2 = records_fma(dt, k, j6);
    }
    const records v3 = records_mul(records_set1(3.0), v2);
    const records x = records_fma(dt, records_fma(dt, records_fma(dt, x3, a2), v0), x0);
    const records v = records_fma(dt, records_fma(dt, v3, records_add(a2, a2)), v0);
    *scaled_x = records_mul(records_sub(x, s->origin), s->x_unit);
    *scaled_v = records_mul(records_sub(v, s->drift), s->v_unit);
}

/* Copies the indices of a chunk, and prefetches. Returns the empty slots, a bit each. */
INLINE unsigned pack_indices(const struct direct_job *job, int64_t chunk, int32_t *index)
{
    const struct jparticle *p = &job->memory->body[chunk * CHUNK];
    const int goes_on = (chunk + 1) * CHUNK < job->nj; /* a few particles need no prefetch */
    int other = job->nj < (chunk + 1) * CHUNK;
    unsigned empty = 0;
    UNROLL
    for (int l = 0; l < CHUNK; l++) {
        if (goes_on) {
            __builtin_prefetch((const char *)(p + l + PACK_AHEAD), 0, 3);
            __builtin_prefetch((const char *)(p + l + PACK_AHEAD) + 64, 0, 3);
        }
        index[l] = p[l].index;
        other |= p[l].state ^ SLOT_SET;
    }
    for (int l = 0; other && l < CHUNK; l++)
        empty |= (unsigned)(p[l].state != SLOT_SET || chunk * CHUNK + l >= job->nj) << l;
    return empty;
}

/* Moves the empty slots of a chunk far away, without mass. */
NOINLINE void pack_empty(real *row, int nrow, unsigned empty)
{
    int32_t filled[CHUNK];
    for (int l = 0; l < CHUNK; l++) filled[l] = ~(int32_t)empty >> l & 1;
    for (int l = 0; l < CHUNK; l += VL) {
        const vmask keep = vmask_index(filled + l, 1);
        v_store(row + l, v_select(keep, v_load(row + l), v_set1(FAR_AWAY)));
        for (int k = 1; k < nrow; k++)
            v_store(row + k * CHUNK + l, v_select(keep, v_load(row + k * CHUNK + l), v_set1(0)));
    }
}

/* A mass that would underflow becomes the least normal number, so that its block is summed exactly
 * (in_range). */
NOINLINE void pack_tiny(const struct jparticle *p, double unit, unsigned maybe, real *mass)
{
    const uint64_t least = bits_of(0x1p-100 / unit) << 1;
    for (; maybe; maybe &= maybe - 1) {
        const int l = __builtin_ctz(maybe);
        if ((bits_of(p[l].mass) << 1) - 1 < least - 1) mass[l] = (real)0x1p-126;
    }
}

INLINE void pack_chunk(const struct direct_job *job, const int mode,
                       const struct record_scale *scale, int64_t chunk, real *row, int32_t *index)
{
    enum { VECTORS = RECORD_GROUP / RECORDS };
    const struct jmemory *memory = job->memory;
    const unsigned empty = pack_indices(job, chunk, index);
    unsigned light = 0;
    for (int g = 0; g < CHUNK; g += RECORD_GROUP) {
        records x[VECTORS], v[VECTORS];
        UNROLL
        for (int n = 0; n < VECTORS; n++) {
            const unsigned used = 1u | (unsigned)(RECORDS - 1) << RECORD_STEP;
            const int64_t a = chunk * CHUNK + g + record_of(n);
            x[n] = v[n] = records_set1(0.0);
            if (!(~empty >> (g + record_of(n)) & used)) continue; /* few j particles */
            predict_records(&memory->body[a], memory->k18 && job->snap ? &memory->k18[a] : NULL,
                            job->time, scale, &x[n], &v[n]);
        }
#if REAL_BITS == 32
        if (mode == MODE_GRAPE) {
            records lo[VECTORS];
            UNROLL
            for (int n = 0; n < VECTORS; n++) records_split(x[n], &x[n], &lo[n]);
            records_store_columns(row + 7 * CHUNK + g, 3, lo);
        }
#endif
        records_store_columns(row + g, 4, x);
        records_store_columns(row + 4 * CHUNK + g, 3, v);
    }
    if (empty) pack_empty(row, rows_per_chunk(mode), empty);
    for (int l = 0; REAL_BITS == 32 && l < CHUNK; l += VL)
        light |= vmask_bits(v_lt(v_abs(v_load(row + 3 * CHUNK + l)), v_set1(0x1p-100))) << l;
    if (light & ~empty)
        pack_tiny(&memory->body[chunk * CHUNK], scale_power_of_two(mass_shift(&job->scale)),
                  light & ~empty, row + 3 * CHUNK);
}

#ifndef v_max_abs
/* Lane-wise maximum of most and |a|; NaN counts as the largest number. */
INLINE vec v_max_abs(vec most, vec a)
{
    const vec limit = v_set1(REAL_BITS == 32 ? 0x1p127 : 0x1p1023), b = v_abs(a);
    return v_max(most, v_select(v_lt(b, limit), b, limit));
}
#endif

/* Largest magnitudes of a block, lane by lane, and the smallest mass that is not zero. */
struct block_extremes {
    vec x, v, v_massive, m, m_low;
};
#define NO_MASS (REAL_BITS == 32 ? 0x1p127 : 0x1p1023)

/* Adds a packed chunk. Empty slots are at FAR_AWAY, without mass. */
INLINE void extremes_add(struct block_extremes *e, const real *row)
{
    const vec zero = v_set1(0), least = v_set1(REAL_BITS == 32 ? 0x1p-126 : 0x1p-1022);
    UNROLL
    for (int l = 0; l < CHUNK; l += VL) {
        const vec mass = v_abs(v_load(row + 3 * CHUNK + l)), x0 = v_load(row + l);
        const vmask massless = v_lt(mass, least);
        const vec placed = v_select(v_eq(x0, v_set1(FAR_AWAY)), zero, x0);
        e->x = v_max_abs(e->x, v_select(massless, placed, x0));
        e->x = v_max_abs(v_max_abs(e->x, v_load(row + CHUNK + l)), v_load(row + 2 * CHUNK + l));
        vec v = zero;
        for (int k = 4; k < 7; k++) v = v_max_abs(v, v_load(row + k * CHUNK + l));
        e->v = v_max_abs(e->v, v);
        e->v_massive = v_max_abs(e->v_massive, v_select(massless, zero, v));
        e->m = v_max_abs(e->m, mass);
        e->m_low = v_min(e->m_low, v_select(massless, v_set1(NO_MASS), mass));
    }
}

/* Exponent of the largest lane. No lane is negative, so their bits are in the same order; NaN is
 * the largest. */
static int largest_exponent(vec a)
{
#if REAL_BITS == 32
    uint32_t bits[VL], most = 0;
#else
    uint64_t bits[VL], most = 0;
#endif
    real largest;
    memcpy(bits, &a, sizeof bits);
    for (int l = 0; l < VL; l++) most = bits[l] > most ? bits[l] : most;
    memcpy(&largest, &most, sizeof largest);
    return exponent_of(largest);
}

static struct block_range range_of_extremes(const struct block_extremes *e)
{
    real lane[VL], low = (real)NO_MASS;
    v_store(lane, e->m_low);
    for (int l = 0; l < VL; l++)
        if (lane[l] < low) low = lane[l];
    const int high = largest_exponent(e->m);
    return (struct block_range){(int16_t)largest_exponent(e->x), (int16_t)largest_exponent(e->v),
                                (int16_t)largest_exponent(e->v_massive),
                                (int16_t)(high == EXPONENT_NONE ? EXPONENT_NONE : exponent_of(low)),
                                (int16_t)high};
}

/* Packs the stale chunks of a block (the bits of todo) and finds the range of all of its chunks. */
INLINE struct block_range pack_block(const struct direct_job *job, const int mode, int64_t block,
                                     uint64_t todo, real *row, int32_t *index)
{
    const struct record_scale scale = record_scale(&job->scale, mode);
    const vec zero = v_set1(0);
    struct block_extremes e = {zero, zero, zero, zero, v_set1(NO_MASS)};
    const int nc = chunks_of_block(job, block);
    for (int c = 0; c < nc; c++, row += rows_per_chunk(mode) * CHUNK) {
        const int64_t chunk = block * BLOCK_CHUNKS + c;
        if (todo >> c & 1) pack_chunk(job, mode, &scale, chunk, row, index + chunk * CHUNK);
        extremes_add(&e, row);
    }
    return range_of_extremes(&e);
}

static void pack_blocks(const struct direct_job *job, uint64_t *stale, int64_t first, int64_t last)
{
    int32_t *const index = job->jindex;
    struct block_range *const ranges = job->ranges;
    const int nrow = rows_per_chunk(job->mode);
    for (int64_t b = first; b < last; b++) {
        const int nc = chunks_of_block(job, b);
        const uint64_t requested = nc == BLOCK_CHUNKS ? ~(uint64_t)0 : ((uint64_t)1 << nc) - 1;
        const uint64_t todo = stale[b] & requested;
        if (!todo) continue;
        real *row = (real *)job->rows + (size_t)b * BLOCK * (size_t)nrow;
        if (REAL_BITS == 64)
            ranges[b] = pack_block(job, MODE_DOUBLE, b, todo, row, index);
        else if (job->mode == MODE_GRAPE)
            ranges[b] = pack_block(job, MODE_GRAPE, b, todo, row, index);
        else
            ranges[b] = pack_block(job, MODE_SINGLE, b, todo, row, index);
        stale[b] &= ~todo;
    }
}
