/* direct_tile.h - the tile arrangement of cpu/direct_kernel.c: lanes hold i, and j is broadcast.
 * Include it after cpu/direct_row.h. */

/* Close pairs of the i particles of a tile and a block. Lanes in `crowded` have more than fit. */
enum { MOST_CLOSE = 512 };
struct close_pairs {
    unsigned lanes, crowded;
    int count;
    int16_t place[MOST_CLOSE], lane[MOST_CLOSE];
};

static void close_note(struct close_pairs *c, unsigned lanes, int place)
{
    c->lanes |= lanes;
    for (; lanes; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        if (c->count == MOST_CLOSE) {
            c->crowded |= 1u << lane;
        } else {
            c->place[c->count] = (int16_t)place;
            c->lane[c->count++] = (int16_t)lane;
        }
    }
}

/* The i particles of a pass, and their sums over blocks. */
struct tile {
    real field[I_FIELDS][TILE];
    int32_t index[TILE];
    double sum[NSUM][TILE];
    real r2_min[TILE];        /* of a block */
    struct close_pairs close; /* of a block */
    double best[TILE];        /* nearest neighbour: r^2 and block so far */
    int64_t best_block[TILE];
    struct nearest exact[TILE]; /* nearest among exact pairs */
    uint64_t invalid[TILE];
    int64_t top[NWINDOW][TILE];
    int64_t limb[NSUM][MAX_LIMBS][TILE];
};

INLINE struct pair_i tile_body(const struct tile *t, int split)
{
    struct pair_i i = {0};
#define FIELD(k) v_load(t->field[k])
    i.x = FIELD(0), i.y = FIELD(1), i.z = FIELD(2);
    if (split) i.xl = FIELD(3), i.yl = FIELD(4), i.zl = FIELD(5);
    i.vx = FIELD(6), i.vy = FIELD(7), i.vz = FIELD(8), i.eps2 = FIELD(9);
#undef FIELD
    return i;
}

/* A pair between the two stages of the loop: its separation and inverse distance. */
struct stage {
    struct pair_sep r;
    vec m, y;
};

/* First stage. *d2_min keeps the smallest s^2, or the smallest r^2 if nn == 2. */
INLINE struct stage tile_first(const struct pair_i *i, const real *j, const int32_t *index,
                               const struct tile *t, const int split, const int nn, const int self,
                               vec *d2_min)
{
    const struct pair_j p = sources_of(j, ALL_LANES, split, 1);
    struct stage s = {.r = pair_separation(split, i, &p), .m = p.m};
    vec s2 = pair_distance2(&s.r, i->eps2);
    vec r2 = pair_distance2(&s.r, v_set1(0)); /* not computed unless used */
    if (self) {
        const vmask same = vmask_index(t->index, *index);
        s2 = v_select(same, v_set1(FAR_S2), s2);
        r2 = v_select(same, v_set1(FAR_S2), r2);
        s.m = v_select(same, v_set1(0), s.m);
    }
    *d2_min = v_min(*d2_min, nn == 2 ? r2 : s2);
    s.y = v_rsqrt(s2);
    return s;
}

/* Computes a sub-sum without close pairs and pairs of equal index. Records the close pairs; returns
 * the smallest r^2 of the others. */
INLINE vec tile_lane_without(struct tile *t, const int split, const int jerk, const real *j,
                             const int32_t *index, int place, int nc, struct pair_sum *sum)
{
    const int step = (split ? 10 : 7) * CHUNK;
    const vec zero = v_set1(0), far = v_set1(FAR_S2), close = v_load(t->field[10]);
    const struct pair_i i = tile_body(t, split);
    struct pair_sum own = {zero, zero, zero, zero, zero, zero, zero};
    vec r2_min = far;
    for (int c = 0; c < nc; c++, j += step, index += CHUNK, place += CHUNK) {
        const struct pair_j p = sources_of(j, ALL_LANES, split, 1);
        const struct pair_sep r = pair_separation(split, &i, &p);
        const vmask same = vmask_index(t->index, *index);
        const vec r2 = v_select(same, far, pair_distance2(&r, zero));
        const vmask is_close = v_lt(r2, close);
        const vec s2 = v_select(same, far, pair_distance2(&r, i.eps2));
        const vec m = v_select(is_close, zero, v_select(same, zero, p.m));
        if (vmask_bits(is_close)) close_note(&t->close, vmask_bits(is_close), place);
        r2_min = v_min(r2_min, v_select(is_close, far, r2));
        pair_add(jerk, &i, &p, m, v_rsqrt(v_select(is_close, far, s2)), &r, &own);
    }
    *sum = own;
    return r2_min;
}

NOINLINE vec tile_lane_close(struct tile *t, int split, int jerk, const real *j,
                             const int32_t *index, int place, int nc, struct pair_sum *sum)
{
#define WITHOUT(split, jerk) tile_lane_without(t, split, jerk, j, index, place, nc, sum)
    return EACH_KIND(split, jerk, WITHOUT);
#undef WITHOUT
}

/* Sub-sum of one lane over nc chunks; j points to that lane of the first chunk. The loop has two
 * stages, one pair apart, so that the sums of the previous pair hide the latency of the root.
 * Prefetches `ahead`. If an r^2 or s^2 is below `close`, computes the sub-sum again without close
 * pairs. */
INLINE struct pair_sum tile_lane_fast(struct tile *t, const int split, const int jerk, const int nn,
                                      const int self, const struct pair_i *i, const real *j,
                                      const int32_t *index, int place, int nc, const char *ahead,
                                      vec close, vec *d2_min)
{
    const int step = (split ? 10 : 7) * CHUNK;
    const vec zero = v_set1(0);
    const real *const first = j;
    const int32_t *const first_index = index;
    struct pair_sum sum = {zero, zero, zero, zero, zero, zero, zero};
    vec d2 = v_set1(FAR_S2);
    struct stage now = tile_first(i, j, index, t, split, nn, self, &d2);
    for (int c = 1; c < nc; c++, j += step, ahead += (size_t)step / CHUNK * sizeof(real)) {
        index += CHUNK;
        const struct stage next = tile_first(i, j + step, index, t, split, nn, self, &d2);
        const struct pair_j p = sources_of(j, ALL_LANES, split, 1);
        __builtin_prefetch(ahead, 0, 3);
        pair_add(jerk, i, &p, self ? now.m : p.m, now.y, &now.r, &sum);
        now = next;
    }
    const struct pair_j p = sources_of(j, ALL_LANES, split, 1);
    pair_add(jerk, i, &p, self ? now.m : p.m, now.y, &now.r, &sum);
    if (vmask_bits(v_lt(d2, close)))
        d2 = tile_lane_close(t, split, jerk, first, first_index, place, nc, &sum);
    *d2_min = v_min(*d2_min, d2);
    return sum;
}

/* After this many close pairs in a block, more are expected: every lane uses tile_lane_close. */
enum { EXPECTED_AFTER = 3 };

/* Adds the sub-sum of one lane to t->sum. */
INLINE void tile_lane(struct tile *t, const int split, const int jerk, const int nn, const int self,
                      const struct pair_i *i, const real *j, const int32_t *index, int place,
                      int nc, const char *ahead, vec close, vec *d2_min)
{
    struct pair_sum sum;
    if (t->close.count < EXPECTED_AFTER) {
        sum =
            tile_lane_fast(t, split, jerk, nn, self, i, j, index, place, nc, ahead, close, d2_min);
    } else {
        const vec r2_min = tile_lane_close(t, split, jerk, j, index, place, nc, &sum);
        *d2_min = v_min(*d2_min, r2_min);
    }
    v_accumulate(t->sum[SUM_AX], sum.ax);
    v_accumulate(t->sum[SUM_AY], sum.ay);
    v_accumulate(t->sum[SUM_AZ], sum.az);
    v_accumulate(t->sum[SUM_POT], sum.pot);
    if (jerk) {
        v_accumulate(t->sum[SUM_JX], sum.jx);
        v_accumulate(t->sum[SUM_JY], sum.jy);
        v_accumulate(t->sum[SUM_JZ], sum.jz);
    }
}

/* Writes the sums of one block of nc chunks to t->sum. Bit 16 h + l of `self`: lane l of half h
 * holds an index of the tile. Close pairs are left out and recorded in t->close. */
INLINE void tile_block(struct tile *t, const int split, const int jerk, const int nn, const real *j,
                       const int32_t *index, int nc, unsigned self)
{
    const int nrow = split ? 10 : 7;
    const size_t half = (size_t)SUB_CHUNKS * CHUNK;
    const struct pair_i i = tile_body(t, split);
    const vec limit = v_load(t->field[10]), close = nn == 2 ? limit : maybe_close(i.eps2, limit);
    vec d2_min = v_set1(FAR_S2);
    memset(t->sum, 0, sizeof t->sum);
    t->close.lanes = t->close.crowded = 0;
    t->close.count = 0;
    for (int h = 0; nc > 0; h++, nc -= SUB_CHUNKS, j += half * (size_t)nrow, index += half) {
        const int n = nc < SUB_CHUNKS ? nc : SUB_CHUNKS;
        const char *ahead = (const char *)(j + half * (size_t)nrow);
        for (int l = 0; l < CHUNK; l++, ahead += SUB_CHUNKS * (size_t)nrow * sizeof(real)) {
            if (self >> (16 * h + l) & 1)
                tile_lane(t, split, jerk, nn, 1, &i, j + l, index + l, h * (int)half + l, n, ahead,
                          close, &d2_min);
            else
                tile_lane(t, split, jerk, nn, 0, &i, j + l, index + l, h * (int)half + l, n, ahead,
                          close, &d2_min);
        }
    }
    v_store(t->r2_min, d2_min);
}

/* Moves the windows of lane i up as far as its block sums need. */
static void tile_raise(struct tile *t, const int i, const int limbs)
{
    for (int k = 0; k < NSUM; k++) {
        const int w = window_of(k);
        if ((bits_of(t->sum[k][i]) >> 52 & 0x7ff) == 0x7ff) {
            t->invalid[i] |= (uint64_t)1 << w;
            t->sum[k][i] = 0.0;
        }
        const int64_t by = bin_of(t->sum[k][i]) - t->top[w][i];
        if (by <= 0) continue;
        t->top[w][i] += by;
        for (int q = 3 * w; q < NSUM && window_of(q) == w; q++)
            for (int d = limbs - 1; d >= 0; d--)
                t->limb[q][d][i] = d >= by ? t->limb[q][d - by][i] : 0;
    }
}

/* Adds the block sums, in the caller's units, to the bins (partial.h), lane by lane. NaN and Inf
 * are treated as values of the highest bin until tile_raise. */
static void tile_bin(struct tile *t, const int n, const int limbs)
{
    int higher = 0;
    for (int k = 0; k < NSUM; k++) {
        const int64_t *top = t->top[window_of(k)];
        for (int i = 0; i < n; i++) {
            const int64_t b = bin_of(t->sum[k][i]);
            higher |= (b > top[i]) | (b == -BIN_LOWEST);
        }
    }
    for (int i = 0; higher && i < n; i++) tile_raise(t, i, limbs);
    for (int k = 0; k < NSUM; k++) {
        const int64_t *top = t->top[window_of(k)];
        for (int i = 0; i < n; i++) {
            const int64_t b = bin_of(t->sum[k][i]), d = top[i] - b;
            int64_t q0, q1, q2;
            const double a0 = t->sum[k][i] * bin_inverse(b);
            const double a1 = (a0 - bin_round(a0, &q0)) * 0x1p40;
            const double a2 = (a1 - bin_round(a1, &q1)) * 0x1p40;
            bin_round(a2, &q2);
            t->limb[k][0][i] += d == 0 ? q0 : 0;
            t->limb[k][1][i] += d == 0 ? q1 : d == 1 ? q0 : 0;
            if (limbs == 3) t->limb[k][2][i] += d == 0 ? q2 : d == 1 ? q1 : d == 2 ? q0 : 0;
        }
    }
}

static void tile_take(struct tile *t, const struct direct_job *job, int i)
{
    for (int k = 0; k < I_FIELDS; k++)
        memcpy(t->field[k], (const real *)job->fields[k] + i, sizeof t->field[k]);
    memcpy(t->index, job->index + i, sizeof t->index);
    if (!job->alone) memset(t->limb, 0, sizeof t->limb);
    memset(t->invalid, 0, sizeof t->invalid);
    for (int l = 0; l < TILE; l++) {
        for (int w = 0; w < NWINDOW; w++) t->top[w][l] = BIN_LOWEST;
        t->best[l] = NO_NEIGHBOUR;
        t->best_block[l] = -1;
        t->exact[l].address = -1;
    }
}

/* Writes a row; if other threads add to it too, adds the sums instead. */
static void tile_give(const struct direct_job *job, const struct tile *t, int l,
                      struct partial_row *row)
{
    struct partial_row own, *const to = job->shared ? &own : row;
    to->invalid = (uint32_t)t->invalid[l];
    for (int w = 0; w < NWINDOW; w++) to->top[w] = (int32_t)t->top[w][l];
    for (int k = 0; k < NSUM; k++)
        for (int d = 0; d < MAX_LIMBS; d++) to->limb[k][d] = t->limb[k][d][l];
    if (job->shared) partial_merge(row, &own, job->limbs);
}

/* Bits of tile_block's `self` for particles i .. i + n - 1 and a block. */
static unsigned self_lanes(const struct direct_job *job, int i, int n, int64_t block)
{
    unsigned lanes = 0;
    for (int l = i; l < i + n; l++) {
        const struct self_places *s = &job->self[l];
        if (s->count < 0) return ~0u;
        for (int k = 0; k < s->count; k++)
            if (s->address[k] / BLOCK == block) {
                const int a = s->address[k] % BLOCK;
                lanes |= 1u << (16 * (a / (SUB_CHUNKS * CHUNK)) + a % CHUNK);
            }
    }
    return lanes;
}

/* Bodies that bound all of a tile: the largest of all exponents; the same with the smallest
 * velocity; the same with the smallest non-zero velocity. If these are in range, all are. */
struct tile_range {
    struct body_range fast, slow, creeping;
};

static struct tile_range tile_range(const struct direct_job *job, int i, int n)
{
    struct tile_range t = {job->body_range[i], job->body_range[i], job->body_range[i]};
    for (int l = 1; l < n; l++) {
        const struct body_range *r = &job->body_range[i + l];
        if (r->x > t.fast.x) t.fast.x = r->x;
        if (r->eps2 > t.fast.eps2) t.fast.eps2 = r->eps2;
        if (r->v > t.fast.v) t.fast.v = r->v;
        if (r->v < t.slow.v) t.slow.v = r->v;
        if (r->v != EXPONENT_NONE && (r->v < t.creeping.v || t.creeping.v == EXPONENT_NONE))
            t.creeping.v = r->v;
    }
    t.slow.x = t.creeping.x = t.fast.x;
    t.slow.eps2 = t.creeping.eps2 = t.fast.eps2;
    return t;
}

/* Completes the sums of a block for a lane, in the caller's units: adds its close pairs, or
 * computes the whole block exactly if it is out of range. */
static void tile_lane_exactly(const struct direct_job *job, struct tile *t, int split, int jerk,
                              int i, int l, int64_t block, int fits, int nn)
{
    double sum[NSUM];
    struct nearest near;
    if (!fits && !in_range(job->mode, &job->body_range[i + l], &job->ranges[block])) {
        memset(sum, 0, sizeof sum);
        cpu_exact_pairs(job, i + l, block, NULL, BLOCK, sum, &near);
        t->r2_min[l] = (real)NO_NEIGHBOUR;
    } else if (t->close.crowded >> l & 1) {
        row_block_crowded(job, split, jerk, i + l, block, sum, &near);
    } else if (t->close.lanes >> l & 1) {
        int16_t place[MOST_CLOSE];
        int count = 0;
        for (int k = 0; k < t->close.count; k++)
            if (t->close.lane[k] == l) place[count++] = t->close.place[k];
        for (int k = 0; k < NSUM; k++) sum[k] = t->sum[k][l];
        close_pairs_exactly(job, i + l, block, place, count, sum, &near);
    } else {
        return;
    }
    if (near.address >= 0) t->r2_min[l] = (real)NO_NEIGHBOUR;
    if (nn) nearest_keep(&t->exact[l], near.r2, near.address);
    for (int k = 0; k < NSUM; k++) t->sum[k][l] = sum[k];
}

/* The complete sums of up to TILE i particles. */
INLINE void tile_sum(const struct direct_job *job, const int split, const int jerk, const int nn,
                     int i, int n, int64_t first, int64_t last, struct partial_row *rows,
                     struct nearest *nearest)
{
    const size_t nrow = split ? 10 : 7;
    struct tile t;
    const struct tile_range range = tile_range(job, i, n);
    tile_take(&t, job, i);
    for (int64_t b = first; b < last; b++) {
        const int nc = chunks_of_block(job, b);
        const unsigned self = self_lanes(job, i, n, b);
        const real *j = (const real *)job->rows + (size_t)b * BLOCK * nrow;
        const int32_t *index = job->jindex + b * BLOCK;
        tile_block(&t, split, jerk, nn, j, index, nc, self);
        const struct block_range *r = &job->ranges[b];
        const int fits = in_range(job->mode, &range.fast, r) &&
                         in_range(job->mode, &range.slow, r) &&
                         in_range(job->mode, &range.creeping, r);
        for (int k = 0; k < NSUM; k++)
            for (int l = 0; l < TILE; l++)
                t.sum[k][l] = t.sum[k][l] * job->unit[k][0] * job->unit[k][1];
        if (t.close.lanes || !fits)
            for (int l = 0; l < n; l++) tile_lane_exactly(job, &t, split, jerk, i, l, b, fits, nn);
        if (nn)
            for (int l = 0; l < TILE; l++)
                if (t.r2_min[l] < t.best[l]) {
                    t.best[l] = t.r2_min[l];
                    t.best_block[l] = b;
                }
        if (job->alone)
            alone_give(job, i, n, TILE, t.sum[0]);
        else
            tile_bin(&t, TILE, job->limbs);
    }
    int64_t address[TILE];
    if (nn)
        for (int l = 0; l < n; l++)
            address[l] =
                t.best_block[l] < 0 ? -1 : nearest_in_block(job, i + l, t.best_block[l], t.best[l]);
    rows_lock(job, i);
    for (int l = 0; l < n; l++) {
        if (!job->alone) tile_give(job, &t, l, &rows[l]);
        if (nn) {
            nearest_keep(&nearest[l], t.best[l], address[l]);
            nearest_keep(&nearest[l], t.exact[l].r2, t.exact[l].address);
        }
    }
    rows_unlock(job, i);
}
