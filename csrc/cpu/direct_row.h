/* direct_row.h - the row arrangement of cpu/direct_kernel.c: lanes hold 16 j of a chunk for one i.
 */

#include "shared/neighbour.h"

/* Prefetch distance, in chunks. */
enum { AHEAD = 6 };

struct row_result {
    double sum[NSUM + 1]; /* scaled; and a zero */
    double r2_min;
    int nclose; /* close pairs, not in the sums; `close` has their offsets */
    int16_t close[BLOCK];
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

enum { EACH_LANE, ALL_LANES };
/* The j particles at a place of a chunk and behind it, one in each lane; or that one in all. */
INLINE struct pair_j sources_of(const real *j, const int lanes, const int split, const int jerk)
{
    struct pair_j p = {0};
#define FIELD(k) (lanes == ALL_LANES ? v_set1(j[(k) * CHUNK]) : v_load(j + (k) * CHUNK))
    p.x = FIELD(0), p.y = FIELD(1), p.z = FIELD(2), p.m = FIELD(3);
    if (jerk) p.vx = FIELD(4), p.vy = FIELD(5), p.vz = FIELD(6);
    if (split) p.xl = FIELD(7), p.yl = FIELD(8), p.zl = FIELD(9);
#undef FIELD
    return p;
}

/* Sums a stretch of chunks without close pairs and pairs of i's own index. Records the close pairs.
 */
INLINE void row_stretch_without(const int split, const int jerk, const struct pair_i *body,
                                vec close, const real *j, const int32_t *index, int label,
                                int place, int nc, struct pair_sum *sum, struct row_result *out)
{
    const vec zero = v_set1(0), far = v_set1(FAR_S2);
    const int step = (split ? 10 : 7) * CHUNK;
    for (int c = 0; c < nc; c++, j += step, index += CHUNK, place += CHUNK) {
        const struct pair_j p = sources_of(j, EACH_LANE, split, jerk);
        const struct pair_sep r = pair_separation(split, body, &p);
        const vmask same = vmask_index(index, label);
        const vec r2 = v_select(same, far, pair_distance2(&r, zero));
        const vmask is_close = v_lt(r2, close);
        const vec s2 = v_select(same, far, pair_distance2(&r, body->eps2));
        const vec m = v_select(is_close, zero, v_select(same, zero, p.m));
        for (unsigned lanes = vmask_bits(is_close); lanes; lanes &= lanes - 1)
            out->close[out->nclose++] = (int16_t)(place + __builtin_ctz(lanes));
        pair_add(jerk, body, &p, m, v_rsqrt(v_select(is_close, far, s2)), &r, sum);
    }
}

NOINLINE void row_stretch_close(int split, int jerk, const struct pair_i *body, vec close,
                                const real *j, const int32_t *index, int label, int place, int nc,
                                struct pair_sum *sum, struct row_result *out)
{
#define WITHOUT(split, jerk)                                                                       \
    row_stretch_without(split, jerk, body, close, j, index, label, place, nc, sum, out)
    EACH_KIND(split, jerk, WITHOUT);
#undef WITHOUT
}

/* Chunks of a stretch. If one has close pairs, its sum is discarded and computed again without
 * them. */
enum { STRETCH = 8 };

#ifndef v_add_in_order
/* Adds the lanes of each vector to a sum in double, one after another. */
INLINE void v_add_in_order(vec a, vec b, vec c, vec d, double sum[4])
{
    real lane[4][VL];
    v_store(lane[0], a), v_store(lane[1], b), v_store(lane[2], c), v_store(lane[3], d);
    for (int l = 0; l < VL; l++)
        for (int k = 0; k < 4; k++) sum[k] += (double)lane[k][l];
}
#endif

/* Sums of a block on i, in the order of cpu/direct_kernel.h. `self`: the block holds i's index. */
INLINE void row_block(const struct direct_job *job, const int split, const int jerk, const int nn,
                      const int self, int i, int64_t block, int nc, struct row_result *out)
{
    const int nrow = split ? 10 : 7;
    const real *j = (const real *)job->rows + (size_t)block * BLOCK * (size_t)nrow;
    const int32_t *index = job->jindex + block * BLOCK;
    const struct pair_i body = row_body(job, split, i);
    const vec limit = v_set1(((const real *)job->fields[10])[i]);
    const vec close = nn == 2 ? limit : maybe_close(body.eps2, limit);
    vec d2_min = v_set1(FAR_S2);
    memset(out->sum, 0, sizeof out->sum);
    out->nclose = 0;
    for (int h = 0; h * SUB_CHUNKS < nc; h++) {
        const int end = nc < (h + 1) * SUB_CHUNKS ? nc : (h + 1) * SUB_CHUNKS;
        for (int v = 0; v < CHUNK; v += VL) {
            const vec zero = v_set1(0);
            struct pair_sum sum = {zero, zero, zero, zero, zero, zero, zero};
            for (int first = h * SUB_CHUNKS; first < end; first += STRETCH) {
                const struct pair_sum before = sum;
                const int last = end < first + STRETCH ? end : first + STRETCH;
                vec d2 = v_set1(FAR_S2);
                for (int c = first; c < last; c++) {
                    const real *at = j + (size_t)(c * nrow * CHUNK + v);
                    const struct pair_j p = sources_of(at, EACH_LANE, split, jerk);
                    const struct pair_sep r = pair_separation(split, &body, &p);
                    vec s2 = pair_distance2(&r, body.eps2), m = p.m;
                    vec r2 = pair_distance2(&r, v_set1(0)); /* not computed unless used */
                    UNROLL
                    for (int k = 0; k < nrow; k++)
                        if (jerk || k < 4 || k > 6)
                            __builtin_prefetch(at + (size_t)((AHEAD * nrow + k) * CHUNK), 0, 3);
                    if (self) {
                        const vmask same = vmask_index(index + c * CHUNK + v, job->index[i]);
                        s2 = v_select(same, v_set1(FAR_S2), s2);
                        r2 = v_select(same, v_set1(FAR_S2), r2);
                        m = v_select(same, v_set1(0), m);
                    }
                    d2 = v_min(d2, nn == 2 ? r2 : s2);
                    pair_add(jerk, &body, &p, m, v_rsqrt(s2), &r, &sum);
                }
                d2_min = v_min(d2_min, d2);
                if (!vmask_bits(v_lt(d2, close))) continue;
                sum = before;
                row_stretch_close(split, jerk, &body, limit, j + first * nrow * CHUNK + v,
                                  index + first * CHUNK + v, job->index[i], first * CHUNK + v,
                                  last - first, &sum, out);
            }
            v_add_in_order(sum.ax, sum.ay, sum.az, sum.jx, out->sum + SUM_AX);
            v_add_in_order(sum.jy, sum.jz, sum.pot, zero, out->sum + SUM_JY);
        }
    }
    real d2[VL];
    v_store(d2, d2_min);
    out->r2_min = d2[0];
    for (int l = 1; l < VL; l++)
        if (d2[l] < out->r2_min) out->r2_min = d2[l];
}

static void in_units(const struct direct_job *job, double sum[NSUM])
{
    for (int k = 0; k < NSUM; k++) sum[k] = sum[k] * job->unit[k][0] * job->unit[k][1];
}

static int by_place(const void *a, const void *b)
{
    return *(const int16_t *)a - *(const int16_t *)b;
}

/* Adds close pairs to sums in the caller's units, in the order of their offsets; *nearest becomes
 * the nearest of them. */
static void close_pairs_exactly(const struct direct_job *job, int i, int64_t block, int16_t *place,
                                int n, double sum[NSUM], struct nearest *nearest)
{
    if (n > 1) qsort(place, (size_t)n, sizeof *place, by_place);
    cpu_exact_pairs(job, i, block, place, n, sum, nearest);
}

/* The sums of a block with many close pairs, in the caller's units. */
NOINLINE void row_block_crowded(const struct direct_job *job, int split, int jerk, int i,
                                int64_t block, double sum[NSUM], struct nearest *nearest)
{
    struct row_result r;
    const int nc = chunks_of_block(job, block);
#define ALL_OF_BLOCK(split, jerk) row_block(job, split, jerk, 0, 1, i, block, nc, &r)
    EACH_KIND(split, jerk, ALL_OF_BLOCK);
#undef ALL_OF_BLOCK
    in_units(job, r.sum);
    memcpy(sum, r.sum, NSUM * sizeof *sum);
    close_pairs_exactly(job, i, block, r.close, r.nclose, sum, nearest);
}

static const real *chunk_rows(const struct direct_job *job, int64_t chunk)
{
    return (const real *)job->rows + chunk * CHUNK * rows_per_chunk(job->mode);
}

/* The lowest address of a block whose r^2 is the smallest one found. */
static int64_t nearest_in_block(const struct direct_job *job, int i, int64_t block, double r2_min)
{
    const int split = REAL_BITS == 32 && job->mode == MODE_GRAPE;
    const struct pair_i body = row_body(job, split, i);
    const vec found = v_set1((real)r2_min); /* exact: r2_min was a real */
    for (int c = 0; c < chunks_of_block(job, block); c++) {
        const int64_t chunk = block * BLOCK_CHUNKS + c;
        const real *j = chunk_rows(job, chunk);
        unsigned equal = 0;
        for (int v = 0; v < CHUNK; v += VL) {
            const struct pair_j p = sources_of(j + v, EACH_LANE, split, 0);
            const struct pair_sep r = pair_separation(split, &body, &p);
            equal |= vmask_bits(v_eq(pair_distance2(&r, v_set1(0)), found)) << v;
        }
        for (; equal; equal &= equal - 1) {
            const int64_t a = chunk * CHUNK + __builtin_ctz(equal);
            if (job->jindex[a] != job->index[i]) return a;
        }
    }
    return -1;
}

/* Replaces *n if (r2, address) is nearer. */
static void nearest_keep(struct nearest *n, double r2, int64_t address)
{
    if (address < 0) return;
    if (neighbour_is_nearer(r2, address, n->r2, n->address)) {
        n->r2 = r2;
        n->address = address;
    }
}

/* Squared distance, without softening and scaled, in double from the packed positions; j points to
 * lane 0 of a chunk. */
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

static int holds_self(const struct self_places *s, int64_t block)
{
    if (s->count < 0) return 1;
    for (int k = 0; k < s->count; k++)
        if (s->address[k] / BLOCK == block) return 1;
    return 0;
}

/* Writes the sums of the only block for n i particles, and rounded ones: sum k of the l-th is
 * sums[k lanes + l]. */
INLINE void alone_give(const struct direct_job *job, int i, int n, const int lanes,
                       const double *sums)
{
    double rounded[NSUM * lanes];
    const size_t bytes = (size_t)n * sizeof *sums;
    partial_round(lanes, sums, job->limbs, rounded);
    for (int k = 0; k < NSUM; k++) {
        memcpy(job->block[k] + i, sums + k * lanes, bytes);
        memcpy(job->sum[k] + i, rounded + k * lanes, bytes);
    }
}

/* The complete sum of one i particle. */
INLINE void row_sum(const struct direct_job *job, const int split, const int jerk, const int nn,
                    int i, int64_t first, int64_t last, struct partial_row *row,
                    struct nearest *nearest)
{
    double best = NO_NEIGHBOUR;
    int64_t best_block = -1;
    struct partial_row own;
    struct nearest exact = {.address = -1};
    if (!job->alone) partial_clear(&own);
    for (int64_t b = first; b < last; b++) {
        const int nc = chunks_of_block(job, b);
        struct row_result r;
        if (!in_range(job->mode, &job->body_range[i], &job->ranges[b])) {
            struct nearest n;
            memset(r.sum, 0, sizeof r.sum);
            cpu_exact_pairs(job, i, b, NULL, BLOCK, r.sum, &n);
            if (nn) nearest_keep(&exact, n.r2, n.address);
        } else {
            if (holds_self(&job->self[i], b))
                row_block(job, split, jerk, nn, 1, i, b, nc, &r);
            else
                row_block(job, split, jerk, nn, 0, i, b, nc, &r);
            in_units(job, r.sum);
            if (r.nclose) {
                struct nearest n;
                close_pairs_exactly(job, i, b, r.close, r.nclose, r.sum, &n);
                if (n.address >= 0) r.r2_min = NO_NEIGHBOUR;
                if (nn) nearest_keep(&exact, n.r2, n.address);
            }
            if (nn && r.r2_min < best) {
                best = r.r2_min;
                best_block = b;
            }
        }
        if (job->alone)
            alone_give(job, i, 1, 1, r.sum);
        else
            partial_add_block(&own, r.sum, job->limbs);
    }
    if (nn && best_block >= 0)
        nearest_keep(&exact, best, nearest_in_block(job, i, best_block, best));
    rows_lock(job, i);
    if (job->shared)
        partial_merge(row, &own, job->limbs);
    else if (!job->alone)
        *row = own;
    if (nn) nearest_keep(nearest, exact.r2, exact.address);
    rows_unlock(job, i);
}
