/* search.cu - neighbours and nearest particles, as csrc/tree/search.c finds them: a thread
 * takes a target, in the order of the keys, and walks down from the root. It keeps what is left of
 * each level above its cell, so that the depth of the tree is all the room it needs. */

/* What these kernels are told; cuda/tree/search.py fills it, field by field in this order. */
struct tree_search_job {
    const double *x;      /* [n][3]: the caller's */
    const int64_t *order; /* [n]: the caller's number by place */
    const struct tree_box *box;
    const struct tree_cell *cell;
    const struct tree_moments *moments;
    const double *targets;       /* [target_count][3], or NULL: the particles themselves */
    const int32_t *self;         /* number of the particle that a target is, or -1; or NULL */
    const int64_t *target_order; /* as order, of targets */
    const double *h2;            /* squared radii */
    const int64_t *start; /* [target_count + 1]: of rows of found; NULL: they are only counted */
    int32_t *count, *found;
    int32_t *number; /* [target_count][k] */
    double *r2;
    int32_t target_count, k;
};

enum { SEARCH_THREADS = 128 };

struct search_target {
    int64_t row;
    int32_t skip; /* a particle's number, or -1 */
    struct tree_around around;
};

/* Of this thread; false if there is none. */
DEVICE_FN bool take_target(const struct tree_search_job &job, struct search_target *t)
{
    const int64_t k = (int64_t)blockIdx.x * SEARCH_THREADS + threadIdx.x;
    if (k >= job.target_count) return false;
    const int64_t i = t->row = (job.targets ? job.target_order : job.order)[k];
    t->skip = !job.targets ? (int32_t)i : job.self ? job.self[i] : -1;
    t->around = tree_around_place(job.box, (job.targets ? job.targets : job.x) + 3 * i);
    return true;
}

/* Counts neighbours or, once it is known where rows start, writes them in the order of the tree. */
KERNEL(tree_search_within, struct tree_search_job, 128, 1)
{
    int32_t next[CELL_LEVELS], end[CELL_LEVELS];
    struct search_target t;
    if (!take_target(job, &t)) return;
    const double h2 = job.h2[t.row];
    int32_t *const found = job.start ? job.found + job.start[t.row] : 0;
    int32_t count = 0;
    int level = 0;
    next[0] = 0, end[0] = 1;
    while (level >= 0) {
        if (next[level] == end[level]) {
            level--;
            continue;
        }
        const int32_t id = next[level]++;
        double nearest, farthest;
        tree_distances2(&t.around, &job.moments[id], &nearest, &farthest);
        if (!(nearest <= h2)) continue;
        const struct tree_cell c = job.cell[id];
        const bool all = farthest <= h2;
        if (c.child >= 0 && !all) {
            level++;
            next[level] = c.child, end[level] = c.child_end;
            continue;
        }
        for (int32_t p = c.first; p < c.end; p++) {
            const int64_t n = job.order[p];
            if (n == t.skip || !(all || tree_distance2(&t.around, job.x + 3 * n) <= h2)) continue;
            if (found) found[count] = (int32_t)n;
            count++;
        }
    }
    job.count[t.row] = count;
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

/* The children of a cell that are not farther than this, the nearest first: how many above bit 24,
 * and which, three bits each, from bit 0 on. */
DEVICE_FN uint32_t nearest_children(const struct tree_search_job &job,
                                    const struct tree_around *around, const struct tree_cell *c,
                                    double limit)
{
    double distance[8];
    uint32_t order = 0, count = 0;
    for (int32_t child = c->child; child < c->child_end; child++) {
        double nearest, farthest;
        tree_distances2(around, &job.moments[child], &nearest, &farthest);
        if (nearest > limit) continue;
        uint32_t k = count++;
        for (; k && distance[k - 1] > nearest; k--) distance[k] = distance[k - 1];
        distance[k] = nearest;
        const uint32_t before = order & ((1u << 3 * k) - 1), after = order >> 3 * k;
        order = before | (uint32_t)(child - c->child) << 3 * k | after << (3 * k + 3);
    }
    return order | count << 24;
}

KERNEL(tree_search_nearest, struct tree_search_job, 128, 1)
{
    int32_t first[CELL_LEVELS];
    uint32_t left[CELL_LEVELS]; /* see nearest_children */
    struct search_target t;
    if (!take_target(job, &t)) return;
    struct tree_heap list = {job.number + t.row * job.k, job.r2 + t.row * job.k, 0};
    const double infinite = from_bits((uint64_t)0x7ff << 52);
    int level = 0;
    first[0] = 0, left[0] = 1u << 24;
    while (level >= 0) {
        const uint32_t order = left[level];
        if (!(order >> 24)) {
            level--;
            continue;
        }
        const int32_t id = first[level] + (int32_t)(order & 7);
        left[level] = (order & 0xffffffu) >> 3 | ((order >> 24) - 1) << 24;
        const double limit = list.count == job.k ? list.r2[0] : infinite;
        double nearest, farthest;
        tree_distances2(&t.around, &job.moments[id], &nearest, &farthest);
        if (nearest > limit) {
            level--; /* what is left of this level is no nearer */
            continue;
        }
        const struct tree_cell c = job.cell[id];
        if (c.child >= 0) {
            level++;
            first[level] = c.child, left[level] = nearest_children(job, &t.around, &c, limit);
            continue;
        }
        for (int32_t p = c.first; p < c.end; p++) {
            const int64_t n = job.order[p];
            if (n == t.skip) continue;
            tree_keep(&list, job.k, (int32_t)n, tree_distance2(&t.around, job.x + 3 * n));
        }
    }
    tree_put_in_order(&list);
    for (int64_t k = list.count; k < job.k; k++) list.number[k] = -1, list.r2[k] = infinite;
}
