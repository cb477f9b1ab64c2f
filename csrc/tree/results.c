/* results.c - sums, nearest neighbours and lists of the backends cpu-tree and cuda-tree. */

#include <string.h>

#include "core/device.h"
#include "tree/state.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"

/* Softenings that the targets of one call may have: a sum on the GPU has one. */
enum { SOFTENINGS = 32 };

static void keep_row(struct octree *t, int k, const struct partial_row *row)
{
    const int i = t->row[k];
    double sum[NSUM];
    t->rows_of_i[i] = *row;
    partial_value(row, sum);
    for (int q = 0; q < NSUM; q++) t->sum[q][i] = sum[q];
}

static void keep_rows(void *context, int64_t first, int64_t end)
{
    struct octree *t = context;
    for (int k = (int)first; k < end; k++) {
        struct partial_row row;
        double sum[NSUM] = {0};
        for (int c = 0; c < 3; c++) {
            sum[SUM_AX + c] = t->acc[k][c];
            if (t->with_jerk) sum[SUM_JX + c] = t->jerk[k][c];
        }
        sum[SUM_POT] = -t->pot[k];
        partial_clear(&row);
        partial_add_block(&row, sum, limbs_of(t->options.precision));
        keep_row(t, k, &row);
    }
}

/* Whether the targets have more softenings than a GPU sums one by one. */
static int has_many_softenings(const struct octree *t)
{
    double known[SOFTENINGS];
    int n = 0;
    for (int k = 0; k < t->plain; k++) {
        int at = 0;
        while (at < n && known[at] != t->eps2[k]) at++;
        if (at < n) continue;
        if (n == SOFTENINGS) return 1;
        known[n++] = t->eps2[k];
    }
    return 0;
}

static int sum_here(struct octree *t, int jerk, int64_t *zero_distances, struct error *err)
{
    const struct tree_setting setting = {.method = t->options.tree_method,
                                         .order = t->options.tree_order,
                                         .theta = t->options.theta,
                                         .isa = t->options.isa};
    const struct tree_targets in = {t->plain, CONST3(t->x), jerk ? CONST3(t->v) : NULL,
                                    t->self,  t->eps2,      NULL};
    const struct tree_forces out = {t->acc, t->pot, jerk ? t->jerk : NULL};
    struct tree_counts counts = {0};
    int code = tree_state_build_here(t, err);
    fpenv_flush(1);
    if (!code) code = tree_boxes_sum(&t->tree, &setting, &in, &out, &counts, err);
    fpenv_flush(0);
    *zero_distances = counts.zero_distances;
    return code;
}

static int sum_by_tree(struct octree *t, unsigned want, struct error *err)
{
    const int jerk = (want & WANT_JERK) != 0;
    struct tree_request request = {
        .targets = t->plain,
        .order = t->options.tree_method == TREE_FMM ? t->options.tree_order : 0,
        .theta = t->options.theta,
        .at = &t->x[0][0],
        .velocity = jerk ? &t->v[0][0] : NULL,
        .eps2 = t->eps2,
        .self = t->self,
        .acc = &t->acc[0][0],
        .jerk = jerk ? &t->jerk[0][0] : NULL,
        .pot = t->pot};
    int done = 0, code = 0;
    if (t->on_device && !has_many_softenings(t))
        code = tree_state_by_device(t, &request, &done, err);
    if (!code && !done) code = sum_here(t, jerk, &request.zero_distances, err);
    t->zero_distances += request.zero_distances;
    if (code) return code;
    t->with_jerk = jerk;
    threads_each(t->tree.threads, t->plain, TARGETS_AT_ONCE, keep_rows, t);
    return 0;
}

/* The targets that the tree does not serve. */
static int sum_directly(struct octree *t, unsigned want, struct error *err)
{
    const int first = t->plain, n = t->targets.ni - first;
    const struct targets direct = {.ni = n,
                                   .index = t->index + first,
                                   .x = CONST3(t->x + first),
                                   .v = CONST3(t->v + first),
                                   .eps2 = t->eps2 + first};
    const struct partial_row *rows;
    struct results r;
    if (!n) return 0;
    int code = t->direct_backend->submit(t->direct, &direct, err);
    if (!code) code = t->direct_backend->collect(t->direct, want, n, &r, err);
    if (!code) code = t->direct_backend->partials(t->direct, &rows, err);
    for (int k = 0; k < n && !code; k++) {
        keep_row(t, first + k, &rows[k]);
        t->nearest_address[t->row[first + k]] = r.nearest[k];
        t->nearest_index[t->row[first + k]] = r.index[k];
    }
    return code;
}

static void search_nearest(void *context, int64_t first, int64_t end)
{
    struct octree *t = context;
    double r2;
    for (int64_t k = first; k < end; k++)
        if (!tree_search_nearest(&t->tree, CONST3(t->sources.x), t->x[k], t->self[k], 1,
                                 &t->number[k], &r2))
            t->number[k] = -1;
}

static void addresses_of_nearest(void *context, int64_t first, int64_t end)
{
    struct octree *t = context;
    const struct sources *s = &t->sources;
    for (int64_t k = first; k < end; k++) {
        const int i = t->row[k], number = t->number[k];
        t->nearest_address[i] = number < 0 ? -1 : s->address[number];
        t->nearest_index[i] = number < 0 ? 0 : s->index[number];
    }
}

/* Numbers of the sources nearest to the targets come in place of those that the targets are. */
static int find_nearest(struct octree *t, struct error *err)
{
    struct tree_request request = {
        .targets = t->plain, .at = &t->x[0][0], .self = t->self, .nearest = t->number};
    int done = 0, code = t->plain ? tree_state_by_device(t, &request, &done, err) : 0;
    if (!code && !done && t->plain) code = tree_state_build_here(t, err);
    if (code) return code;
    if (!done) threads_each(t->tree.threads, t->plain, 64, search_nearest, t);
    threads_each(t->tree.threads, t->plain, TARGETS_AT_ONCE, addresses_of_nearest, t);
    return 0;
}

int tree_results_finish(void *state, unsigned want, int count, struct results *results,
                        struct error *err)
{
    struct octree *t = state;
    if (!t->by_tree) return t->direct_backend->collect(t->direct, want, count, results, err);
    const unsigned missing = want & ~t->done;
    int code = 0;
    if (!t->done || missing & WANT_JERK) code = sum_by_tree(t, want, err);
    if (!code && (!t->done || missing)) code = sum_directly(t, want | t->done, err);
    if (code) return code;
    if (missing & WANT_NEAREST) code = find_nearest(t, err);
    if (code) return code;
    t->done |= DONE_SUMS | want;
    for (int k = 0; k < NSUM; k++) results->sum[k] = t->sum[k];
    results->nearest = t->nearest_address;
    results->index = t->nearest_index;
    return 0;
}

int tree_results_partials(void *state, const struct partial_row **rows, struct error *err)
{
    struct octree *t = state;
    if (!t->by_tree) return t->direct_backend->partials(t->direct, rows, err);
    *rows = t->rows_of_i;
    return 0;
}

/* ---- neighbour lists: counted, found, and moved together where the softening left some out ----
 */

enum { ROWS_AT_ONCE = 64 };

struct seeking {
    struct octree *octree;
    int first; /* target */
    const double *h2;
    int64_t *start;
    int64_t *length; /* of what is found */
    int32_t *index;
    int by_device; /* `index` has them */
};

/* Radius to search: a little more than h2 - eps2 might round to. */
static double reach2(double h2, double eps2)
{
    return eps2 > 0.0 ? h2 - eps2 + (h2 + eps2) * 0x1p-50 : h2;
}

/* Numbers of sources around target k, of which the first `capacity` are written. */
static int64_t search(const struct seeking *s, int64_t k, int32_t *number, int64_t capacity)
{
    const struct octree *t = s->octree;
    const int64_t i = s->first + k;
    if (!(s->h2[k] >= 0.0)) return 0;
    return tree_search_within(&t->tree, CONST3(t->sources.x), t->targets.x[i],
                              reach2(s->h2[k], t->targets.eps2[i]), -1, number, capacity);
}

static void count_lists(void *seeking, int64_t first, int64_t end)
{
    const struct seeking *s = seeking;
    for (int64_t k = first; k < end; k++) s->start[k + 1] = search(s, k, NULL, 0);
}

static void find_lists(void *seeking, int64_t first, int64_t end)
{
    const struct seeking *s = seeking;
    const struct sources *from = &s->octree->sources;
    for (int64_t k = first; k < end; k++) {
        const double *at = s->octree->targets.x[s->first + k];
        const double eps2 = s->octree->targets.eps2[s->first + k];
        int32_t *list = s->index + s->start[k];
        const int64_t most = s->start[k + 1] - s->start[k];
        const int64_t found = s->by_device ? most : search(s, k, list, most);
        int64_t n = 0;
        for (int64_t q = 0; q < found; q++) {
            const double *x = from->x[list[q]];
            const double dx = x[0] - at[0], dy = x[1] - at[1], dz = x[2] - at[2];
            if (eps2 == 0.0 || (dx * dx + dy * dy) + dz * dz + eps2 <= s->h2[k])
                list[n++] = from->index[list[q]];
        }
        s->length[k] = n;
        neighbour_lists_sort(list, n);
    }
}

/* Lists of the first `count` targets, one behind the other. */
static void move_together(const struct seeking *s, int count)
{
    int64_t end = 0;
    for (int k = 0; k < count; k++) {
        const int64_t from = s->start[k], n = s->length[k];
        if (n && from != end)
            memmove(s->index + end, s->index + from, (size_t)n * sizeof *s->index);
        s->start[k] = end;
        end += n;
    }
    s->start[count] = end;
}

/* Has the device count the neighbours of some targets, or find them. */
static int ask_device(struct seeking *s, int count, int64_t *length, int32_t *list,
                      struct error *err)
{
    struct octree *t = s->octree;
    double *const h2 = memory_zeroed((size_t)count * sizeof *h2);
    if (!h2) return tree_state_no_memory(err, "radii", count);
    for (int k = 0; k < count; k++)
        h2[k] = s->h2[k] >= 0.0 ? reach2(s->h2[k], t->targets.eps2[s->first + k]) : -1.0;
    struct tree_request request = {.targets = count,
                                   .at = &t->targets.x[s->first][0],
                                   .h2 = h2,
                                   .length = length,
                                   .list = list};
    const int code = tree_state_by_device(t, &request, &s->by_device, err);
    memory_free(h2);
    return code;
}

int tree_results_lists(void *state, int first, int count, const double *h2,
                       struct neighbour_lists *lists, struct error *err)
{
    struct octree *t = state;
    struct neighbour_memory *m = &t->lists;
    if (!t->by_tree) return t->direct_backend->neighbours(t->direct, first, count, h2, lists, err);
    if (neighbour_lists_reserve_starts(m, 2 * (int64_t)count + 1))
        return tree_state_no_memory(err, "neighbour lists", count);
    struct seeking s = {t, first, h2, m->start, m->start + count + 1, NULL, 0};
    int code = 0;
    s.start[0] = 0; /* lengths of lists come in place of the ends */
    if (count && t->on_device) code = ask_device(&s, count, s.start + 1, NULL, err);
    if (count && !code && !s.by_device) code = tree_state_build_here(t, err);
    if (code) return code;
    if (!s.by_device) threads_each(t->tree.threads, count, ROWS_AT_ONCE, count_lists, &s);
    const int fit = neighbour_lists_place(s.start, count);
    if (neighbour_lists_reserve(m, s.start[fit]))
        return tree_state_no_memory(err, "neighbours", s.start[fit]);
    s.index = m->index;
    if (s.by_device) code = ask_device(&s, fit, NULL, s.index, err);
    if (code) return code;
    threads_each(t->tree.threads, fit, ROWS_AT_ONCE, find_lists, &s);
    move_together(&s, fit);
    *lists = (struct neighbour_lists){fit, m->start, m->index};
    return 0;
}
