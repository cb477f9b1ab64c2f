/* direct_hits.h - neighbour search, for cpu/direct_kernel.c: lanes hold the j of a chunk, for
 * several i. Include it after cpu/direct_row.h.
 *
 * Neighbours are decided in double (separation2), but only for the few particles near the edge of
 * a sphere. For all others r^2 of the high halves of the positions, with its error bound, is
 * sufficient. */

enum { HIT_ROWS = 4 }; /* i particles processed together */

/* An i particle of a neighbour search; lengths are scaled. */
struct hit_row {
    int i, everybody;
    double limit, eps2, h2; /* h2: as the caller gave it */
    /* nobody beyond `outer` is a neighbour, everybody within `inner` is. outer is negative if there
     * are no neighbours, infinite if numbers are too large */
    double outer, inner;
    double place_error;
};

/* The same limits for a block, of r^2: all neighbours are below `none`; all below `sure` are
 * neighbours. */
struct hit_limits {
    real none, sure;
};

/* Largest error of a coordinate without its low half (records_split); x is its exponent. */
static double place_error(const struct direct_job *job, int x)
{
    if (x > (REAL_BITS == 64 ? 1000 : 120)) return HUGE_VAL;
    if (REAL_BITS == 64 || job->mode != MODE_GRAPE) return 0.0;
    return x <= 24 ? 1.0 : 1.0 + scale_power_of_two(x - 24);
}

static struct hit_row hit_row(const struct direct_job *job, int i, double h2)
{
    const double xs = scale_power_of_two(length_shift(&job->scale, job->mode));
    struct hit_row row = {.i = i, .everybody = isinf(h2) && h2 > 0.0, .h2 = h2, .outer = -1.0};
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

/* Limits for a block. `none` is -1 if the kernel's precision cannot decide. */
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

/* Whether the particle at lane l of a chunk is a neighbour. row->everybody also includes particles
 * out of the kernel's range; others of these are looked at as the caller wrote them. */
static int is_hit(const struct direct_job *job, const struct hit_row *row, const real *j, int l,
                  int64_t address)
{
    if (j[l] == (real)FAR_AWAY && j[3 * CHUNK + l] == 0) return 0;
    const double r2 = separation2(job, row->i, j, l);
    if (row->everybody || r2 < HUGE_VAL) return row->everybody || r2 + row->eps2 <= row->limit;
    FPENV_X87_HERE;
    const double r = cpu_exact_distance(job, row->i, address);
    return r * r + job->eps2[row->i] <= row->h2;
}

/* Tests each particle of a block, or those with a bit in maybe[]; sets the bits of neighbours. */
NOINLINE void hits_one_by_one(const struct direct_job *job, const struct hit_row *row,
                              int64_t block, const uint64_t *maybe, uint64_t *hits)
{
    const int n = CHUNK * chunks_of_block(job, block);
    for (int q = 0; q * 64 < n; q++) {
        const int left = n - q * 64;
        uint64_t bits = left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0;
        if (maybe) bits &= maybe[q];
        for (; bits; bits &= bits - 1) {
            const int bit = __builtin_ctzll(bits), place = q * 64 + bit;
            const real *j = chunk_rows(job, block * BLOCK_CHUNKS + place / CHUNK);
            const int64_t address = block * BLOCK + place;
            hits[q] |= (uint64_t)is_hit(job, row, j, place % CHUNK, address) << bit;
        }
    }
}

/* Bits of HIT_ROWS i particles and up to four chunks: possible neighbours, and sure neighbours. */
INLINE void hits_of_chunks(const struct pair_i body[HIT_ROWS], const vec none[HIT_ROWS],
                           const vec sure[HIT_ROWS], const real *j, int step, int nc,
                           uint64_t maybe[HIT_ROWS], uint64_t hits[HIT_ROWS])
{
    for (int k = 0; k < HIT_ROWS; k++) maybe[k] = hits[k] = 0;
    for (int c = 0; c < nc; c++, j += step)
        for (int v = 0; v < CHUNK; v += VL) {
            const struct pair_j p = sources_of(j + v, EACH_LANE, 0, 0);
            UNROLL
            for (int k = 0; k < HIT_ROWS; k++) {
                const struct pair_sep r = pair_separation(0, &body[k], &p);
                const vec r2 = pair_distance2(&r, v_set1(0));
                maybe[k] |= (uint64_t)vmask_bits(v_lt(r2, none[k])) << (c * CHUNK + v);
                hits[k] |= (uint64_t)vmask_bits(v_lt(r2, sure[k])) << (c * CHUNK + v);
            }
        }
}

/* Writes bits hits[k][0..HIT_WORDS - 1] of HIT_ROWS i particles and a block. */
static void hits_of_block(const struct direct_job *job, const struct hit_row row[HIT_ROWS],
                          int64_t block, uint64_t *const hits[HIT_ROWS])
{
    const int nc = chunks_of_block(job, block), step = rows_per_chunk(job->mode) * CHUNK;
    struct pair_i body[HIT_ROWS];
    vec none[HIT_ROWS], sure[HIT_ROWS];
    uint64_t unsure[HIT_ROWS][HIT_WORDS], any[HIT_ROWS] = {0};
    unsigned all = 0, some = 0; /* bit per row */
    for (int k = 0; k < HIT_ROWS; k++) {
        const struct hit_limits limits = hit_limits(job, &row[k], block);
        body[k] = row_body(job, 0, row[k].i);
        none[k] = v_set1(limits.none);
        sure[k] = v_set1(limits.sure);
        all |= (unsigned)(limits.none < 0) << k;
        some |= (unsigned)(limits.none > 0) << k;
        memset(hits[k], 0, HIT_WORDS * sizeof *hits[k]);
    }
    const real *j = chunk_rows(job, block * BLOCK_CHUNKS);
    for (int q = 0; some && 4 * q < nc; q++) {
        uint64_t maybe[HIT_ROWS], found[HIT_ROWS];
        hits_of_chunks(body, none, sure, j + 4 * q * step, step, nc - 4 * q < 4 ? nc - 4 * q : 4,
                       maybe, found);
        for (int k = 0; k < HIT_ROWS; k++) {
            hits[k][q] = found[k];
            unsure[k][q] = maybe[k] & ~found[k];
            any[k] |= unsure[k][q];
        }
    }
    for (int k = 0; k < HIT_ROWS; k++)
        if (all >> k & 1 || any[k])
            hits_one_by_one(job, &row[k], block, all >> k & 1 ? NULL : unsure[k], hits[k]);
}

/* See struct direct_kernel. */
static void direct_hits(const struct direct_job *job, int i, int n, const double *h2, int64_t first,
                        int64_t last, uint64_t *hits, int64_t stride)
{
    uint64_t unused[HIT_WORDS];
    enum { GROUPS = HITS_AT_ONCE / HIT_ROWS };
    struct hit_row row[GROUPS][HIT_ROWS];
    for (int k = 0; k < ceil_div(n, HIT_ROWS) * HIT_ROWS; k++)
        row[k / HIT_ROWS][k % HIT_ROWS] =
            k < n ? hit_row(job, i + k, h2[k]) : hit_row(job, i, -1.0);
    for (int64_t b = first; b < last; b++)
        for (int g = 0; g * HIT_ROWS < n; g++) {
            uint64_t *to[HIT_ROWS];
            for (int k = 0; k < HIT_ROWS; k++)
                to[k] = g * HIT_ROWS + k < n ? hits + (g * HIT_ROWS + k) * stride + b * HIT_WORDS
                                             : unused;
            hits_of_block(job, row[g], b, to);
        }
}
