/* row.h - the row arrangement of kernel.c: lanes hold 16 j of a chunk for one i. */

/* Chunks that are read into the cache before they are needed. */
enum { AHEAD = 6 };

struct row_result {
    double sum[NSUM]; /* scaled */
    double r2_min;
    int close; /* a pair closer than the arithmetic resolves was met */
};

INLINE struct pair_i row_body(const struct direct_job *job, int split, int i)
{
    struct pair_i p = {0};
#define FIELD(k) v_set1(((const real *)job->fields[k])[i])
    p.x = FIELD(0), p.y = FIELD(1), p.z = FIELD(2);
    if (split) p.xl = FIELD(3), p.yl = FIELD(4), p.zl = FIELD(5);
    p.vx = FIELD(6), p.vy = FIELD(7), p.vz = FIELD(8), p.eps2 = FIELD(9);
#undef FIELD
    return p;
}

INLINE struct pair_j row_sources(const real *j, const int split, const int jerk)
{
    struct pair_j p = {0};
    p.x = v_load(j), p.y = v_load(j + CHUNK), p.z = v_load(j + 2 * CHUNK);
    p.m = v_load(j + 3 * CHUNK);
    if (jerk)
        p.vx = v_load(j + 4 * CHUNK), p.vy = v_load(j + 5 * CHUNK), p.vz = v_load(j + 6 * CHUNK);
    if (split)
        p.xl = v_load(j + 7 * CHUNK), p.yl = v_load(j + 8 * CHUNK), p.zl = v_load(j + 9 * CHUNK);
    return p;
}

/* Takes the lanes out of a vector of pairs that carry the index of i or are too close (r^2 < 2);
 * the places of the latter go to the list. */
static void row_take_out(const struct direct_job *job, int i, int64_t block, int place, vec r2,
                         vec *s2, vec *m, int16_t *list, int *nlist)
{
    real r[VL], s[VL], w[VL];
    v_store(r, r2);
    v_store(s, *s2);
    v_store(w, *m);
    for (int l = 0; l < VL; l++) {
        const int same = job->jindex[block * BLOCK + place + l] == job->index[i];
        if (!same && !(r[l] < (real)2)) continue;
        if (!same) list[(*nlist)++] = (int16_t)(place + l);
        s[l] = (real)FAR_S2;
        w[l] = 0;
    }
    *s2 = v_load(s);
    *m = v_load(w);
}

/* Sums of a block on i, in the order of kernel.h. `careful`: list receives the places of
 * the pairs that were left out for being close. `self`: the block holds i's index. */
INLINE void row_block(const struct direct_job *job, const int split, const int jerk, const int nn,
                      const int self, const int careful, int i, int64_t block, int nc,
                      struct row_result *out, int16_t *list, int *nlist)
{
    const int nrow = split ? 10 : 7;
    const real *j = (const real *)job->rows + (size_t)block * BLOCK * (size_t)nrow;
    const int32_t *index = job->jindex + block * BLOCK;
    const struct pair_i body = row_body(job, split, i);
    vec d2_min = v_set1(FAR_S2);
    memset(out, 0, sizeof *out);
    for (int h = 0; h * SUB_CHUNKS < nc; h++) {
        const int end = nc < (h + 1) * SUB_CHUNKS ? nc : (h + 1) * SUB_CHUNKS;
        real part[NSUM][CHUNK];
        for (int v = 0; v < CHUNK; v += VL) {
            const vec zero = v_set1(0);
            struct pair_sum sum = {zero, zero, zero, zero, zero, zero, zero};
            for (int c = h * SUB_CHUNKS; c < end; c++) {
                const real *at = j + (size_t)(c * nrow * CHUNK + v);
                const struct pair_j p = row_sources(at, split, jerk);
                const struct pair_sep r = pair_separation(split, &body, &p);
                vec s2 = pair_distance2(&r, body.eps2), m = p.m;
                vec r2 = pair_distance2(&r, v_set1(0)); /* not computed unless used */
                UNROLL
                for (int k = 0; k < nrow; k++)
                    if (jerk || k < 4 || k > 6)
                        __builtin_prefetch(at + (size_t)((AHEAD * nrow + k) * CHUNK), 0, 3);
                if (careful) {
                    row_take_out(job, i, block, c * CHUNK + v, r2, &s2, &m, list, nlist);
                } else if (self) {
                    const vmask same = vmask_index(index + c * CHUNK + v, job->index[i]);
                    s2 = v_select(same, v_set1(FAR_S2), s2);
                    r2 = v_select(same, v_set1(FAR_S2), r2);
                    m = v_select(same, v_set1(0), m);
                }
                d2_min = v_min(d2_min, nn == 2 ? r2 : s2);
                pair_add(jerk, &body, &p, m, v_rsqrt(s2), &r, &sum);
            }
            v_store(part[SUM_AX] + v, sum.ax);
            v_store(part[SUM_AY] + v, sum.ay);
            v_store(part[SUM_AZ] + v, sum.az);
            v_store(part[SUM_JX] + v, sum.jx);
            v_store(part[SUM_JY] + v, sum.jy);
            v_store(part[SUM_JZ] + v, sum.jz);
            v_store(part[SUM_POT] + v, sum.pot);
        }
        for (int l = 0; l < CHUNK; l++)
            for (int k = 0; k < NSUM; k++) out->sum[k] += (double)part[k][l];
    }
    real d2[VL];
    v_store(d2, d2_min);
    out->r2_min = d2[0];
    for (int l = 1; l < VL; l++)
        if (d2[l] < out->r2_min) out->r2_min = d2[l];
    out->close = vmask_bits(v_lt(d2_min, nn == 2 ? v_set1(2) : maybe_close(body.eps2))) != 0;
}

/* A block that holds pairs too close for the kernel: these exactly, the others as ever.
 * The sums are in the caller's units; *nearest is the nearest of the close ones. */
static void row_block_careful(const struct direct_job *job, int i, int64_t block, int nc,
                              double sum[NSUM], struct nearest *nearest)
{
    struct row_result r;
    int16_t list[BLOCK];
    int n = 0;
    if (REAL_BITS == 32 && job->mode == MODE_GRAPE)
        row_block(job, 1, 1, 0, 1, 1, i, block, nc, &r, list, &n);
    else
        row_block(job, 0, 1, 0, 1, 1, i, block, nc, &r, list, &n);
    for (int k = 0; k < NSUM; k++) sum[k] = r.sum[k] * job->unit[k][0] * job->unit[k][1];
    exact_pairs(job, i, block, list, n, sum, nearest);
}

static const real *chunk_rows(const struct direct_job *job, int64_t chunk)
{
    return (const real *)job->rows + chunk * CHUNK * rows_per_chunk(job->mode);
}

/* r^2 of i and the particles of a chunk. */
static void row_distances(const struct direct_job *job, int i, int64_t chunk, real r2[CHUNK])
{
    const int split = REAL_BITS == 32 && job->mode == MODE_GRAPE;
    const real *j = chunk_rows(job, chunk);
    const struct pair_i body = row_body(job, split, i);
    for (int v = 0; v < CHUNK; v += VL) {
        const struct pair_j p = row_sources(j + v, split, 0);
        const struct pair_sep r = pair_separation(split, &body, &p);
        v_store(r2 + v, pair_distance2(&r, v_set1(0)));
    }
}

/* The lowest address of a block whose r^2 is the smallest one found. */
static int64_t nearest_in_block(const struct direct_job *job, int i, int64_t block, double r2_min)
{
    for (int c = 0; c < chunks_of_block(job, block); c++) {
        real r2[CHUNK];
        row_distances(job, i, block * BLOCK_CHUNKS + c, r2);
        for (int l = 0; l < CHUNK; l++) {
            const int64_t a = block * BLOCK + c * CHUNK + l;
            if ((double)r2[l] == r2_min && job->jindex[a] != job->index[i]) return a;
        }
    }
    return -1;
}

/* Keeps the nearer of two; the lower address if they are equally near. */
static void nearest_keep(struct nearest *n, double r2, int64_t address)
{
    if (address < 0) return;
    if (n->address < 0 || r2 < n->r2 || (r2 == n->r2 && address < n->address)) {
        n->r2 = r2;
        n->address = address;
    }
}

/* Squared distance, unsoftened and scaled, in double from the positions that the kernel
 * holds; j points at lane l = 0 of a chunk. */
static double separation2(const struct direct_job *job, int i, const real *j, int l)
{
    const int split = REAL_BITS == 32 && job->mode == MODE_GRAPE;
    double s2 = 0.0;
    for (int k = 0; k < 3; k++) {
        double d = (double)j[k * CHUNK + l] - (double)((const real *)job->fields[k])[i];
        if (split)
            d += (double)j[(7 + k) * CHUNK + l] - (double)((const real *)job->fields[3 + k])[i];
        s2 += d * d;
    }
    return s2;
}

static int neighbours_of_block(const struct direct_job *job, int i, double h2, int64_t block,
                               int32_t address[BLOCK])
{
    const double xs = power_of_two(length_shift(&job->scale, job->mode));
    const double limit = h2 * xs * xs, eps2 = job->eps2[i] * xs * xs;
    const real rough = (real)(limit - eps2 + limit * 0x1p-18);
    const int everybody = isinf(h2); /* also whom the kernel's numbers cannot hold */
    int n = 0;
    for (int c = 0; c < chunks_of_block(job, block); c++) {
        const int64_t chunk = block * BLOCK_CHUNKS + c;
        const real *j = chunk_rows(job, chunk);
        real r2[CHUNK];
        row_distances(job, i, chunk, r2);
        for (int l = 0; l < CHUNK; l++)
            if ((everybody || r2[l] <= rough) &&
                !(j[l] == (real)FAR_AWAY && j[3 * CHUNK + l] == 0) &&
                (everybody || separation2(job, i, j, l) + eps2 <= limit))
                address[n++] = (int32_t)(chunk * CHUNK + l);
    }
    return n;
}

static int holds_self(const struct self_places *s, int64_t block)
{
    if (s->count < 0) return 1;
    for (int k = 0; k < s->count; k++)
        if (s->address[k] / BLOCK == block) return 1;
    return 0;
}

/* The whole work of one i particle. */
INLINE void row_sum(const struct direct_job *job, const int split, const int jerk, const int nn,
                    int i, int64_t first, int64_t last, struct partial_row *row,
                    struct nearest *nearest)
{
    double best = NO_NEIGHBOUR;
    int64_t best_block = -1;
    struct partial_row own;
    struct nearest exact = {.address = -1};
    partial_clear(&own);
    for (int64_t b = first; b < last; b++) {
        const int nc = chunks_of_block(job, b);
        struct row_result r;
        if (!in_range(job->mode, &job->body_range[i], &job->ranges[b])) {
            struct nearest n;
            exact_block(job, i, b, r.sum, &n);
            if (nn) nearest_keep(&exact, n.r2, n.address);
        } else {
            if (holds_self(&job->self[i], b))
                row_block(job, split, jerk, nn, 1, 0, i, b, nc, &r, NULL, NULL);
            else
                row_block(job, split, jerk, nn, 0, 0, i, b, nc, &r, NULL, NULL);
            if (r.close) {
                struct nearest n;
                row_block_careful(job, i, b, nc, r.sum, &n);
                if (n.address >= 0) r.r2_min = NO_NEIGHBOUR;
                if (nn) nearest_keep(&exact, n.r2, n.address);
            } else {
                for (int k = 0; k < NSUM; k++)
                    r.sum[k] = r.sum[k] * job->unit[k][0] * job->unit[k][1];
            }
            if (nn && r.r2_min < best) {
                best = r.r2_min;
                best_block = b;
            }
        }
        partial_add_block(&own, r.sum, job->limbs);
    }
    if (nn && best_block >= 0)
        nearest_keep(&exact, best, nearest_in_block(job, i, best_block, best));
    rows_lock(job, i);
    if (job->shared)
        partial_merge(row, &own, job->limbs);
    else
        *row = own;
    if (nn) nearest_keep(nearest, exact.r2, exact.address);
    rows_unlock(job, i);
}
