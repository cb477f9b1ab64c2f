/* direct_hits.h - neighbours, for cpu/direct_kernel.c: lanes hold the j of a chunk, for several i.
 * After cpu/direct_row.h.
 *
 * What is a neighbour is decided in double (separation2). That is done for the few particles near
 * the edge of a sphere alone: r^2 of the high halves of the positions, with a bound of what that
 * may be wrong by, tells of all others. */

enum { HIT_ROWS = 4 }; /* i particles at once */

/* An i particle that looks for neighbours; lengths are scaled. */
struct hit_row {
    int i, everybody;
    double limit, eps2;
    double outer, inner; /* beyond the one nobody is a neighbour, within the other everybody; outer
                            is negative if there are none, infinite if numbers are too large */
    double place_error;
};

/* The same towards a block: what r^2 of neighbours is below, and below which all are. */
struct hit_limits {
    real none, sure;
};

/* Most that a coordinate is wrong by without its low half (q_split), its exponent being x. */
static double place_error(const struct direct_job *job, int x)
{
    if (REAL_BITS == 64 || job->mode != MODE_GRAPE) return 0.0;
    return x <= 24 ? 1.0 : x > 128 ? (double)INFINITY : 1.0 + scale_power_of_two(x - 24);
}

static struct hit_row hit_row(const struct direct_job *job, int i, double h2)
{
    const double xs = scale_power_of_two(length_shift(&job->scale, job->mode));
    struct hit_row row = {.i = i, .everybody = isinf(h2) && h2 > 0.0, .outer = -1.0};
    if (!(h2 >= 0.0)) return row;
    row.limit = h2 * xs * xs;
    row.eps2 = job->eps2[i] * xs * xs;
    row.place_error = place_error(job, job->body_range[i].x);
    const double most = row.limit - row.eps2 + row.limit * 0x1p-18;
    const double least = row.limit - row.eps2 - row.limit * 0x1p-18;
    if (!(most < 0.0)) row.outer = most < HUGE_VAL ? sqrt(most) : HUGE_VAL;
    if (least > 0.0 && job->body_range[i].x <= 60) row.inner = sqrt(least);
    return row;
}

/* -1 for `none` if the kernel's numbers cannot tell. */
static struct hit_limits hit_limits(const struct direct_job *job, const struct hit_row *row,
                                    int64_t block)
{
    const double huge = REAL_BITS == 32 ? 0x1p120 : 0x1p1000, tiny = 1.0 / huge;
    const double error = 2.0 * (row->place_error + place_error(job, job->ranges[block].x));
    const double outer = row->outer + error, inner = row->inner - error;
    if (row->outer < 0.0) return (struct hit_limits){0, 0};
    if (row->everybody || !(outer * outer < huge)) return (struct hit_limits){-1, 0};
    const double sure = inner > 0.0 ? inner * inner * (1.0 - 0x1p-18) : 0.0;
    return (struct hit_limits){(real)(outer * outer * (1.0 + 0x1p-18) + tiny),
                               (real)(sure > tiny && sure < FAR_S2 / 16 ? sure : 0.0)};
}

/* Whether the particle at lane l of a chunk is a neighbour. Everybody: also whom the kernel's
 * numbers cannot hold. */
static int is_hit(const struct direct_job *job, const struct hit_row *row, const real *j, int l)
{
    if (j[l] == (real)FAR_AWAY && j[3 * CHUNK + l] == 0) return 0;
    return row->everybody || separation2(job, row->i, j, l) + row->eps2 <= row->limit;
}

/* Of the lanes of a chunk in `maybe`, those of neighbours. */
NOINLINE unsigned hits_of_chunk(const struct direct_job *job, const struct hit_row *row,
                                const struct pair_i *body, real sure, const real *j, unsigned maybe)
{
    unsigned hits = 0;
    for (int v = 0; v < CHUNK; v += VL) {
        const struct pair_j p = row_sources(j + v, 0, 0);
        const struct pair_sep r = pair_separation(0, body, &p);
        hits |= vmask_bits(v_lt(pair_distance2(&r, v_set1(0)), v_set1(sure))) << v;
    }
    hits &= maybe;
    for (unsigned near = maybe & ~hits; near; near &= near - 1) {
        const int l = __builtin_ctz(near);
        hits |= (unsigned)is_hit(job, row, j, l) << l;
    }
    return hits;
}

/* Asks for each particle of a block. */
static void hits_one_by_one(const struct direct_job *job, const struct hit_row *row, int64_t block,
                            uint16_t *hits)
{
    for (int c = 0; c < chunks_of_block(job, block); c++) {
        const real *j = chunk_rows(job, block * BLOCK_CHUNKS + c);
        unsigned found = 0;
        for (int l = 0; l < CHUNK; l++) found |= (unsigned)is_hit(job, row, j, l) << l;
        hits[c] = (uint16_t)found;
    }
}

/* Of HIT_ROWS i particles and a block; hits of chunk c of row k: hits[k][c]. */
static void hits_of_block(const struct direct_job *job, const struct hit_row row[HIT_ROWS],
                          int64_t block, uint16_t *const hits[HIT_ROWS])
{
    const int nc = chunks_of_block(job, block), step = rows_per_chunk(job->mode) * CHUNK;
    struct hit_limits limits[HIT_ROWS];
    struct pair_i body[HIT_ROWS];
    vec none[HIT_ROWS];
    int any = 0;
    for (int k = 0; k < HIT_ROWS; k++) {
        body[k] = row_body(job, 0, row[k].i);
        limits[k] = hit_limits(job, &row[k], block);
        none[k] = v_set1(limits[k].none);
        any |= limits[k].none > 0;
        memset(hits[k], 0, BLOCK_CHUNKS * sizeof *hits[k]);
    }
    const real *j = chunk_rows(job, block * BLOCK_CHUNKS);
    for (int c = 0; any && c < nc; c++, j += step) {
        unsigned maybe[HIT_ROWS] = {0};
        for (int v = 0; v < CHUNK; v += VL) {
            const struct pair_j p = row_sources(j + v, 0, 0);
            UNROLL
            for (int k = 0; k < HIT_ROWS; k++) {
                const struct pair_sep r = pair_separation(0, &body[k], &p);
                maybe[k] |= vmask_bits(v_lt(pair_distance2(&r, v_set1(0)), none[k])) << v;
            }
        }
        if (!(maybe[0] | maybe[1] | maybe[2] | maybe[3])) continue;
        for (int k = 0; k < HIT_ROWS; k++)
            if (maybe[k])
                hits[k][c] =
                    (uint16_t)hits_of_chunk(job, &row[k], &body[k], limits[k].sure, j, maybe[k]);
    }
    for (int k = 0; k < HIT_ROWS; k++)
        if (limits[k].none < 0) hits_one_by_one(job, &row[k], block, hits[k]);
}

/* See struct direct_kernel. */
static void direct_hits(const struct direct_job *job, int i, int n, const double *h2, int64_t first,
                        int64_t last, uint16_t *hits, int64_t stride)
{
    uint16_t unused[BLOCK_CHUNKS];
    enum { GROUPS = HITS_AT_ONCE / HIT_ROWS };
    struct hit_row row[GROUPS][HIT_ROWS];
    for (int k = 0; k < ceil_div(n, HIT_ROWS) * HIT_ROWS; k++)
        row[k / HIT_ROWS][k % HIT_ROWS] =
            k < n ? hit_row(job, i + k, h2[k]) : hit_row(job, i, -1.0);
    for (int64_t b = first; b < last; b++)
        for (int g = 0; g * HIT_ROWS < n; g++) {
            uint16_t *to[HIT_ROWS];
            for (int k = 0; k < HIT_ROWS; k++)
                to[k] = g * HIT_ROWS + k < n ? hits + (g * HIT_ROWS + k) * stride + b * BLOCK_CHUNKS
                                             : unused;
            hits_of_block(job, row[g], b, to);
        }
}
