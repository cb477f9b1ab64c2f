/* search.cu - neighbours and nearest particles, exactly as csrc/tree/search.c finds them. In the
 * order of their keys, particles that follow each other are near each other: runs of 32 of them
 * have boxes, 32 runs have one, and so on. A warp takes a target; each lane tests one of 32 boxes
 * or particles. */

enum { SEARCH_THREADS = 128, RUN = 32, BOX_LEVELS = 6 };

/* What these kernels are told; cuda/tree/search.py fills it. */
struct tree_search_job {
    const double *x;             /* [n][3]: the caller's */
    const int64_t *order;        /* [n]: the caller's number by place */
    double *at;                  /* [3][n]: x by place */
    double *bounds;              /* [6][boxes]: least x, y, z and largest */
    const double *targets;       /* [target_count][3], or NULL: the particles themselves */
    const int32_t *self;         /* number of the particle that a target is, or -1; or NULL */
    const int64_t *target_order; /* as order, of targets */
    const double *h2;            /* squared radii */
    const int64_t *start; /* [target_count + 1]: of rows of found; NULL: they are only counted */
    int32_t *count, *found;
    int32_t *number; /* [target_count][k] */
    double *r2;
    int32_t n, target_count, k;
    int32_t boxes, first_box[BOX_LEVELS + 1]; /* of levels, runs first */
    int32_t level;                            /* whose boxes are made */
};

/* ---- boxes ----------------------------------------------------------------------------------- */

/* A coordinate's bounds in a box, from those that the lanes have. */
DEVICE_FN void put_bounds(const struct tree_search_job &job, int box, int c, double low,
                          double high)
{
    for (int by = 16; by; by /= 2) {
        low = fmin(low, __shfl_xor_sync(EVERY, low, by));
        high = fmax(high, __shfl_xor_sync(EVERY, high, by));
    }
    if (threadIdx.x % 32) return;
    job.bounds[(int64_t)c * job.boxes + box] = low;
    job.bounds[(int64_t)(3 + c) * job.boxes + box] = high;
}

/* Positions in the order of the keys, and boxes of runs. */
KERNEL(tree_search_runs, struct tree_search_job, 128, 1)
{
    const int run = (int)(blockIdx.x * (SEARCH_THREADS / 32) + threadIdx.x / 32);
    if (run >= job.first_box[1]) return;
    const int k = RUN * run + (int)threadIdx.x % 32;
    const double *from = job.x + 3 * job.order[min(k, job.n - 1)];
    for (int c = 0; c < 3; c++) {
        const double x = from[c];
        if (k < job.n) job.at[(int64_t)c * job.n + k] = x;
        put_bounds(job, run, c, x, x);
    }
}

/* Boxes of a level, from those of the level below. */
KERNEL(tree_search_boxes, struct tree_search_job, 128, 1)
{
    const int box = (int)(blockIdx.x * (SEARCH_THREADS / 32) + threadIdx.x / 32);
    const int below = job.first_box[job.level - 1], first = job.first_box[job.level];
    if (first + box >= job.first_box[job.level + 1]) return;
    const int64_t part = min(below + RUN * box + (int)threadIdx.x % 32, first - 1);
    for (int c = 0; c < 3; c++)
        put_bounds(job, first + box, c, job.bounds[(int64_t)c * job.boxes + part],
                   job.bounds[(int64_t)(3 + c) * job.boxes + part]);
}

/* Never above the squared distance of a particle in the box, since rounding is monotonic. */
DEVICE_FN double box_distance2(const struct tree_search_job &job, int64_t box, const double at[3])
{
    double d[3];
    for (int c = 0; c < 3; c++) {
        const double to_low = job.bounds[(int64_t)c * job.boxes + box] - at[c];
        const double to_high = at[c] - job.bounds[(int64_t)(3 + c) * job.boxes + box];
        d[c] = fmax(fmax(to_low, to_high), 0.0);
    }
    return tree_squared(d);
}

/* ---- searches -------------------------------------------------------------------------------- */

/* Whose neighbours are searched, and how far: the same in all lanes. */
struct search_target {
    int64_t row;
    double at[3], limit; /* r^2 */
    int32_t skip;        /* a particle's number, or -1 */
};

/* Of this warp; false if there is none. */
DEVICE_FN bool take_target(const struct tree_search_job &job, struct search_target *t)
{
    const int64_t k = (int64_t)blockIdx.x * (SEARCH_THREADS / 32) + threadIdx.x / 32;
    if (k >= job.target_count) return false;
    const int64_t i = t->row = (job.targets ? job.target_order : job.order)[k];
    t->skip = !job.targets ? (int32_t)i : job.self ? job.self[i] : -1;
    for (int c = 0; c < 3; c++) t->at[c] = (job.targets ? job.targets : job.x)[3 * i + c];
    return true;
}

/* The particle of a run that a lane takes, if it is near enough. */
DEVICE_FN bool take_particle(const struct tree_search_job &job, const struct search_target *t,
                             int run, int32_t *number, double *r2)
{
    const int64_t k = (int64_t)RUN * run + threadIdx.x % 32;
    if (k >= job.n) return false;
    double d[3];
    for (int c = 0; c < 3; c++) d[c] = job.at[(int64_t)c * job.n + k] - t->at[c];
    *r2 = tree_squared(d);
    if (!(*r2 <= t->limit)) return false;
    *number = (int32_t)job.order[k];
    return *number != t->skip;
}

/* Has all runs of a box looked at that may be near enough, the nearest first. Distances of boxes
 * are rounded downwards. */
template <int LEVEL, class SEARCH>
DEVICE_FN void search_box(const struct tree_search_job &job, int box, SEARCH *search)
{
    if constexpr (LEVEL == 0) {
        look_at(job, box, search);
    } else {
        const unsigned NONE = 0xffffffffu;
        const int lane = (int)threadIdx.x % 32, first = RUN * box;
        const int at = job.first_box[LEVEL - 1] + first + lane;
        unsigned mine = NONE;
        if (at < job.first_box[LEVEL])
            mine = (unsigned)__float_as_int(__double2float_rd(box_distance2(job, at, search->at)));
        for (;;) {
            const unsigned least = __reduce_min_sync(EVERY, mine);
            const double distance2 = __int_as_float((int)least);
            if (least == NONE || !(distance2 <= search->limit)) return;
            const int nearest = __ffs((int)__ballot_sync(EVERY, mine == least)) - 1;
            if (lane == nearest) mine = NONE;
            search_box<LEVEL - 1>(job, first + nearest, search);
        }
    }
}

/* ---- all within a radius --------------------------------------------------------------------- */

struct search_within : search_target {
    int32_t *found, count; /* or NULL: they are counted */
};

DEVICE_FN void look_at(const struct tree_search_job &job, int run, struct search_within *s)
{
    int32_t number;
    double r2;
    const bool is_one = take_particle(job, s, run, &number, &r2);
    const unsigned who = __ballot_sync(EVERY, is_one), below = (1u << threadIdx.x % 32) - 1;
    if (s->found && is_one) s->found[s->count + __popc(who & below)] = number;
    s->count += __popc(who);
}

/* Counts neighbours or, once it is known where rows start, writes them in the order of the keys. */
KERNEL(tree_search_within, struct tree_search_job, 128, 1)
{
    struct search_within s;
    if (!take_target(job, &s)) return;
    s.limit = job.h2[s.row];
    s.found = job.start ? job.found + job.start[s.row] : 0;
    s.count = 0;
    search_box<BOX_LEVELS>(job, 0, &s);
    if (threadIdx.x % 32 == 0) job.count[s.row] = s.count;
}

/* Puts rows into ascending order, a warp each: bitonic sorting (Batcher 1968, AFIPS Conf. Proc. 32,
 * 307) of which every step moves the larger number up, so that rows may end anywhere. */
KERNEL(tree_sort_rows, struct tree_search_job, 128, 1)
{
    const int64_t i = (int64_t)blockIdx.x * (SEARCH_THREADS / 32) + threadIdx.x / 32;
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
template <int CHUNKS> DEVICE_FN void keep(struct search_nearest<CHUNKS> *s)
{
    const int lane = (int)threadIdx.x % 32, taken = min(s->count, 32);
    s->count -= taken;
    const struct candidate *const from = s->waiting + s->count;
    if constexpr (CHUNKS == 0) {
        for (int w = 0; w < taken && lane == 0; w++)
            tree_keep(&s->heap, s->k, from[w].number, from[w].r2);
        if (lane == 0 && s->heap.count == s->k) s->limit = s->heap.r2[0];
        s->limit = __shfl_sync(EVERY, s->limit, 0);
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
                s->limit = __shfl_sync(EVERY, s->chunk[c].r2, (s->k - 1) % 32);
    }
    __syncwarp();
}

template <int CHUNKS>
DEVICE_FN void look_at(const struct tree_search_job &job, int run, struct search_nearest<CHUNKS> *s)
{
    struct candidate mine;
    const bool is_one = take_particle(job, s, run, &mine.number, &mine.r2);
    const unsigned who = __ballot_sync(EVERY, is_one), below = (1u << threadIdx.x % 32) - 1;
    if (is_one) s->waiting[s->count + __popc(who & below)] = mine;
    s->count += __popc(who);
    __syncwarp();
    if (s->count >= s->enough) keep(s);
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
    __shared__ struct candidate waiting[SEARCH_THREADS / 32][64];
    struct search_nearest<CHUNKS> s;
    if (!take_target(job, &s)) return;
    s.limit = INFINITY;
    s.k = job.k;
    s.waiting = waiting[threadIdx.x / 32];
    s.heap = {job.number + s.row * job.k, job.r2 + s.row * job.k, 0};
    s.count = 0, s.enough = min(job.k, 32);
    for (struct candidate &c : s.chunk) c = {INFINITY, NOBODY};
    search_box<BOX_LEVELS>(job, 0, &s);
    while (s.count) keep(&s);
    put_row(job, &s);
}

/* As many as one chunk has, as four have, and any number. */
KERNEL(tree_search_nearest, struct tree_search_job, 128, 1) { find_nearest<1>(job); }
KERNEL(tree_search_nearest_more, struct tree_search_job, 128, 1) { find_nearest<4>(job); }
KERNEL(tree_search_nearest_many, struct tree_search_job, 128, 1) { find_nearest<0>(job); }
