/* search.cu - neighbours and nearest particles, exactly as csrc/tree/search.c finds them. A warp
 * takes a target; each lane tests a cell or a particle. */

enum { SEARCH_THREADS = 128, SEARCH_WARPS = SEARCH_THREADS / 32, SEARCH_STACK = 1024 };
enum { NEAREST_CHUNK = 32, NEAREST_MORE = 128 }; /* as many as one chunk has, as four have */

/* Bounds of a cell's particles, in units of the box, rounded outwards; the cell's children if count
 * is negative, -count of them, else its particles. */
struct tree_search_cell {
    float low[3];
    int32_t first;
    float high[3];
    int32_t count;
};

/* Arguments of these kernels; cuda/tree/search.py fills them in. */
struct tree_search_job {
    const double *x;      /* [n][3]: the caller's */
    const int64_t *order; /* [n]: the caller's number by place */
    const struct tree_box *box;
    const struct tree_cell *cell;
    const struct tree_moments *moments;
    const float4 *low;               /* [n]: as in job.h */
    struct tree_search_cell *search; /* [cells] */
    double *at;                      /* [3][n]: x by place */
    const double *targets;           /* [target_count][3], or NULL: the particles themselves */
    const int32_t *self;             /* number of the particle that a target is, or -1; or NULL */
    const uint64_t *key;             /* of targets */
    const int64_t *target_order;     /* as order, of targets */
    const double *h2;                /* squared radii */
    const int64_t *start; /* [target_count + 1]: of rows of found; NULL: they are only counted */
    int32_t *count, *found;
    int32_t *number; /* [target_count][k] */
    double *r2;
    int32_t n, cells, target_count, k;
};

/* Positions in the order of the keys. */
KERNEL(tree_search_places, struct tree_search_job, 128, 1)
{
    const int64_t k = (int64_t)blockIdx.x * SEARCH_THREADS + threadIdx.x;
    if (k >= job.n) return;
    const double *x = job.x + 3 * job.order[k];
    for (int c = 0; c < 3; c++) job.at[(int64_t)c * job.n + k] = x[c];
}

KERNEL(tree_search_cells, struct tree_search_job, 128, 1)
{
    const int k = (int)(blockIdx.x * SEARCH_THREADS + threadIdx.x);
    if (k >= job.cells) return;
    const struct tree_cell c = whole(&job.cell[k]);
    const struct tree_moments *m = &job.moments[k];
    struct tree_search_cell s;
    for (int q = 0; q < 3; q++) {
        s.low[q] = __double2float_rd(m->low[q]);
        s.high[q] = __double2float_ru(m->high[q]);
    }
    s.first = c.child >= 0 ? c.child : c.first;
    s.count = c.child >= 0 ? c.child - c.child_end : c.end - c.first;
    put_whole(&job.search[k], s);
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Whose neighbours are searched, and how far: the same in all lanes. */
struct search_target {
    int64_t row;
    double at[3], limit; /* r^2 */
    float in_box[3], margin[3],
        limit_in_box; /* in units of the box; errors of in_box and of bounds */
    int32_t skip;     /* a particle's number, or -1 */
    int32_t place;    /* near which the target stands in the order of the keys, and places */
    int32_t from, to; /* that have been looked at */
};

/* The first place whose key does not begin with less. */
DEVICE_FN int place_of(const struct tree_search_job &job, uint64_t key)
{
    int first = 0, end = job.n;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if ((unsigned)__float_as_int(job.low[middle].w) < (unsigned)front_of(key))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

DEVICE_FN void set_limit(const struct tree_search_job &job, struct search_target *t, double r2)
{
    const double *scale = job.box->scale;
    t->limit = r2;
    t->limit_in_box =
        __double2float_ru(r2 * scale[0] * scale[0] * scale[1] * scale[1] * (1.0 + 0x1p-20));
}

/* Of this warp; false if there is none. */
DEVICE_FN bool take_target(const struct tree_search_job &job, struct search_target *t)
{
    const int64_t k = (int64_t)blockIdx.x * SEARCH_WARPS + threadIdx.x / 32;
    if (k >= job.target_count) return false;
    const int64_t i = t->row = (job.targets ? job.target_order : job.order)[k];
    t->skip = !job.targets ? (int32_t)i : job.self ? job.self[i] : -1;
    for (int c = 0; c < 3; c++) {
        t->at[c] = (job.targets ? job.targets : job.x)[3 * i + c];
        t->in_box[c] = (float)tree_in_box(job.box, c, t->at[c]);
        t->margin[c] = 0x1p-22f + 0x1p-22f * fabsf(t->in_box[c]);
    }
    t->place = job.targets ? place_of(job, job.key[i]) : (int)k;
    t->from = t->to = 0;
    return true;
}

/* Whether the particle at a place is near enough and has not been looked at. */
DEVICE_FN bool is_near(const struct tree_search_job &job, const struct search_target *t, int place,
                       int32_t *number, double *r2)
{
    double d[3];
    for (int c = 0; c < 3; c++) d[c] = job.at[(int64_t)c * job.n + place] - t->at[c];
    *r2 = tree_square(d);
    if (!(*r2 <= t->limit) || (place >= t->from && place < t->to)) return false;
    *number = (int32_t)job.order[place];
    return *number != t->skip;
}

/* Whether a cell may have such particles. */
DEVICE_FN bool may_be_near(const struct search_target *t, const struct tree_search_cell *c)
{
    float near2 = 0.0f;
    for (int k = 0; k < 3; k++) {
        const float apart = fmaxf(c->low[k] - t->in_box[k], t->in_box[k] - c->high[k]);
        const float near = fmaxf(apart - t->margin[k], 0.0f);
        near2 = v_fma(near, near, near2);
    }
    return near2 <= t->limit_in_box;
}

/* Has all particles looked at that may be near enough: look_at(job, search, place, is_one), one for
 * each lane. */
template <class SEARCH> DEVICE_FN void search_tree(const struct tree_search_job &job, SEARCH *s)
{
    __shared__ int32_t stacks[SEARCH_WARPS][SEARCH_STACK];
    int32_t *const stack = stacks[threadIdx.x / 32];
    const int lane = (int)threadIdx.x % 32;
    int top = 1;
    if (lane == 0) stack[0] = 0;
    __syncwarp();
    while (top > 0) {
        /* As in traverse(): in a full stack one is taken at once, which adds 7 a level. */
        const int left = SEARCH_STACK - 8 * TREE_LEVELS - top;
        const int taken = min(min(32, top), max(1, left / 8));
        struct tree_cell children = {0, 0, 0, 0};
        int begin = 0, count = 0;
        top -= taken;
        const int cell = lane < taken ? stack[top + lane] : -1;
        __syncwarp();
        if (cell >= 0) {
            const struct tree_search_cell c = whole(&job.search[cell]);
            if (!may_be_near(s, &c))
                ;
            else if (c.count < 0)
                children.child = c.first, children.child_end = c.first - c.count;
            else
                begin = c.first, count = c.count;
        }
        int no_tally[1];
        if (__any_sync(EVERY, children.child_end)) push<1>(true, &children, stack, &top, no_tally);
        if (!__any_sync(EVERY, count)) continue;
        const struct leaf_particles particles = particles_of(begin, count);
        for (int q = lane; q - lane < particles.all; q += 32) {
            const int place = particles_place(&particles, q);
            look_at(job, s, place, q < particles.all);
        }
    }
}

/* ---- all within a radius --------------------------------------------------------------------- */

struct search_within : search_target {
    int32_t *found, count; /* or NULL: they are counted */
};

DEVICE_FN void look_at(const struct tree_search_job &job, struct search_within *s, int place,
                       bool is_one)
{
    int32_t number;
    double r2;
    is_one = is_one && is_near(job, s, place, &number, &r2);
    const unsigned who = __ballot_sync(EVERY, is_one), below = (1u << threadIdx.x % 32) - 1;
    if (s->found && is_one) s->found[s->count + __popc(who & below)] = number;
    s->count += __popc(who);
}

/* Counts neighbours or, once it is known where rows start, writes them in the order of the keys. */
KERNEL(tree_search_within, struct tree_search_job, 128, 1)
{
    struct search_within s;
    if (!take_target(job, &s)) return;
    set_limit(job, &s, job.h2[s.row]);
    s.found = job.start ? job.found + job.start[s.row] : 0;
    s.count = 0;
    search_tree(job, &s);
    if (threadIdx.x % 32 == 0) job.count[s.row] = s.count;
}

/* Puts rows into ascending order, a warp each: bitonic sorting (Batcher 1968, AFIPS Conf. Proc. 32,
 * 307) of which every step moves the larger number up, so that rows may end anywhere. */
KERNEL(tree_sort_rows, struct tree_search_job, 128, 1)
{
    const int64_t i = (int64_t)blockIdx.x * (SEARCH_WARPS) + threadIdx.x / 32;
    if (i >= job.target_count) return;
    int32_t *const row = job.found + job.start[i];
    const int64_t n = job.start[i + 1] - job.start[i];
    for (int64_t size = 2; size < 2 * n; size *= 2)
        for (int64_t half = size / 2; half; half /= 2) {
            for (int64_t p = threadIdx.x % 32;; p += 32) {
                const int64_t a = p + (p & -half); /* the first `half` of every two of them */
                const int64_t b = half == size / 2 ? a ^ (size - 1) : a + half;
                if (a >= n) break;
                if (b >= n) continue;
                const int32_t low = row[a], high = row[b];
                if (low > high) row[a] = high, row[b] = low;
            }
            __syncwarp();
        }
}

/* ---- the nearest ------------------------------------------------------------------------------
 */

enum { NOBODY = 0x7fffffff };

struct candidate {
    double r2;
    int32_t number;
};

DEVICE_FN bool is_before(struct candidate a, struct candidate b)
{
    return a.r2 < b.r2 || (a.r2 == b.r2 && a.number < b.number);
}

DEVICE_FN struct candidate of_lane(struct candidate mine, int lane)
{
    return {__shfl_sync(EVERY, mine.r2, lane), __shfl_sync(EVERY, mine.number, lane)};
}

/* A step of sorting: one of mine and another lane's. */
DEVICE_FN struct candidate one_of(struct candidate mine, int lane, bool later)
{
    const struct candidate other = of_lane(mine, lane);
    return is_before(mine, other) == later ? other : mine;
}

/* Puts a bitonic sequence into order: it ascends, then descends, or so from another lane on. */
DEVICE_FN struct candidate merged(struct candidate mine)
{
    const int lane = (int)threadIdx.x % 32;
    for (int by = 16; by; by /= 2) mine = one_of(mine, lane ^ by, lane & by);
    return mine;
}

DEVICE_FN struct candidate sorted(struct candidate mine)
{
    const int lane = (int)threadIdx.x % 32;
    for (int size = 2; size < 32; size *= 2)
        for (int by = size / 2; by; by /= 2)
            mine = one_of(mine, lane ^ by, !(lane & by) == !!(lane & size));
    return merged(mine);
}

/* The first 32 CHUNKS so far: in order, 32 in the lanes of each chunk. CHUNKS 0: the first k, in a
 * heap in the row of results, which one lane keeps. Candidates wait in shared memory until there
 * are enough of them. */
template <int CHUNKS> struct search_nearest : search_target {
    struct candidate chunk[CHUNKS ? CHUNKS : 1];
    struct candidate *waiting; /* [64] */
    struct tree_heap heap;
    int count, enough, k; /* that wait, of which some are kept, of as many in the end */
};

/* Keeps at most 32 of those that wait, the last. */
template <int CHUNKS>
DEVICE_FN void keep(const struct tree_search_job &job, struct search_nearest<CHUNKS> *s)
{
    const int lane = (int)threadIdx.x % 32, taken = min(s->count, 32);
    s->count -= taken;
    const struct candidate *const from = s->waiting + s->count;
    if constexpr (CHUNKS == 0) {
        for (int w = 0; w < taken && lane == 0; w++)
            tree_keep(&s->heap, s->k, from[w].number, from[w].r2);
        const double last = lane == 0 && s->heap.count == s->k ? s->heap.r2[0] : INFINITY;
        set_limit(job, s, __shfl_sync(EVERY, last, 0));
    } else {
        struct candidate mine = {INFINITY, NOBODY};
        if (lane < taken) mine = from[lane];
        mine = of_lane(sorted(mine), 31 - lane);
        TREE_UNROLL
        for (int c = CHUNKS - 1; c >= 0; c--) {
            const struct candidate kept = s->chunk[c];
            const bool first = is_before(mine, kept);
            s->chunk[c] = merged(first ? mine : kept);
            if (c < CHUNKS - 1) s->chunk[c + 1] = merged(first ? kept : mine);
            if (c) mine = of_lane(s->chunk[c], 31 - lane);
        }
        TREE_UNROLL
        for (int c = 0; c < CHUNKS; c++)
            if (c == (s->k - 1) / 32)
                set_limit(job, s, __shfl_sync(EVERY, s->chunk[c].r2, (s->k - 1) % 32));
    }
    __syncwarp();
}

template <int CHUNKS>
DEVICE_FN void look_at(const struct tree_search_job &job, struct search_nearest<CHUNKS> *s,
                       int place, bool is_one)
{
    struct candidate mine;
    is_one = is_one && is_near(job, s, place, &mine.number, &mine.r2);
    const unsigned who = __ballot_sync(EVERY, is_one), below = (1u << threadIdx.x % 32) - 1;
    if (is_one) s->waiting[s->count + __popc(who & below)] = mine;
    s->count += __popc(who);
    __syncwarp();
    if (s->count >= s->enough) keep(job, s);
}

/* Particles that stand near the target in the order of the keys: among them are enough to know how
 * near the others have to be. */
template <int CHUNKS>
DEVICE_FN void look_around(const struct tree_search_job &job, struct search_nearest<CHUNKS> *s)
{
    const int half = CHUNKS ? 16 * (CHUNKS + 1) : s->k, lane = (int)threadIdx.x % 32;
    const int from = max(0, s->place - half), to = min(job.n, s->place + half);
    for (int place = from + lane; place - lane < to; place += 32)
        look_at(job, s, place, place < to);
    s->from = from, s->to = to;
    while (s->count) keep(job, s);
}

template <int CHUNKS>
DEVICE_FN void put_row(const struct tree_search_job &job, struct search_nearest<CHUNKS> *s)
{
    const int lane = (int)threadIdx.x % 32;
    int32_t *const number = job.number + s->row * s->k;
    double *const r2 = job.r2 + s->row * s->k;
    if constexpr (CHUNKS == 0) {
        if (lane) return;
        tree_put_in_order(&s->heap);
        for (int64_t i = s->heap.count; i < s->k; i++) number[i] = -1, r2[i] = INFINITY;
    } else {
        TREE_UNROLL
        for (int c = 0; c < CHUNKS; c++)
            if (32 * c + lane < s->k) {
                number[32 * c + lane] = s->chunk[c].number == NOBODY ? -1 : s->chunk[c].number;
                r2[32 * c + lane] = s->chunk[c].r2;
            }
    }
}

template <int CHUNKS> DEVICE_FN void find_nearest(const struct tree_search_job &job)
{
    __shared__ struct candidate waiting[SEARCH_WARPS][64];
    struct search_nearest<CHUNKS> s;
    if (!take_target(job, &s)) return;
    set_limit(job, &s, INFINITY);
    s.k = job.k;
    s.waiting = waiting[threadIdx.x / 32];
    s.heap = {job.number + s.row * job.k, job.r2 + s.row * job.k, 0};
    s.count = 0, s.enough = min(job.k, 32);
    for (struct candidate &c : s.chunk) c = {INFINITY, NOBODY};
    look_around(job, &s);
    search_tree(job, &s);
    while (s.count) keep(job, &s);
    put_row(job, &s);
}

/* At most NEAREST_CHUNK, NEAREST_MORE, and any number. */
KERNEL(tree_search_nearest, struct tree_search_job, 128, 8) { find_nearest<1>(job); }
KERNEL(tree_search_nearest_more, struct tree_search_job, 128, 1) { find_nearest<4>(job); }
KERNEL(tree_search_nearest_many, struct tree_search_job, 128, 1) { find_nearest<0>(job); }
