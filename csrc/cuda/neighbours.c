/* neighbours.c - neighbour lists: all those of a force call at once, up to the memory limit. The
 * device writes pairs of an i particle and an index to pinned memory, in any order. */
#include <string.h>

#include "cuda/force.h"
#include "util/threads.h"

enum { LISTED_CAPACITY = 1 << 20, LISTED_PER_THREAD = 1 << 15 };
enum { ROWS_AT_ONCE = 4096 };

/* i particles to pack, from number `first` on. */
struct packing_lists {
    const struct targets *from;
    const double *h2;
    int first;
    struct cuda_list_target *to;
};

static void pack(void *packing, int64_t first, int64_t end)
{
    const struct packing_lists *p = packing;
    for (int64_t k = first; k < end; k++) {
        memcpy(p->to[k].x, p->from->x[p->first + k], sizeof p->to[k].x);
        p->to[k].eps2 = p->from->eps2[p->first + k];
        p->to[k].h2 = p->h2[k];
    }
}

/* Waits for the last search; *total is its number of pairs. */
static int wait_for_pairs(struct cuda *c, int64_t *total, struct error *err)
{
    const volatile unsigned long long *there = cuda_pointer(&c->list_there);
    const int code = cuda_results_wait_for(c, &there[1], c->list_step, "neighbours", err);
    *total = (int64_t)there[0];
    return code;
}

static int reserve(struct cuda *c, int rows, struct error *err)
{
    const uint64_t bytes = (uint64_t)rows * sizeof(struct cuda_list_target), line = 64;
    int64_t pairs;
    int code = cuda_device_reserve(c, &c->list_there, MEMORY_PINNED, line, err);
    if (!code) code = wait_for_pairs(c, &pairs, err); /* of a search that nobody waited for */
    if (!code)
        code = cuda_device_reserve(c, &c->listed, MEMORY_PINNED,
                                   LISTED_CAPACITY * sizeof(struct cuda_listed), err);
    if (!code) code = cuda_device_reserve(c, &c->list_count, MEMORY_DEVICE, line, err);
    if (!code) code = cuda_device_reserve(c, &c->list_pinned, MEMORY_PINNED, bytes, err);
    return code ? code : cuda_device_reserve(c, &c->list_targets, MEMORY_DEVICE, bytes, err);
}

static int send(struct cuda *c, int first, int rows, const double *h2, struct error *err)
{
    const int code = reserve(c, rows, err);
    if (code) return code;
    struct packing_lists p = {&c->targets, h2, first, cuda_pointer(&c->list_pinned)};
    const int64_t chunks = ceil_div(rows, ROWS_AT_ONCE);
    threads_each(options_threads_for(chunks < MOST_COPIERS ? chunks : MOST_COPIERS, c->threads),
                 rows, ROWS_AT_ONCE, pack, &p);
    return cuda_device_check(c,
                             c->device.driver.copy_in(c->list_targets.address, p.to,
                                                      (size_t)rows * sizeof *p.to,
                                                      c->device.stream[0]),
                             "copy", err);
}

/* Launches the search for the pairs of the first `rows` i particles, which go to c->listed. */
static int launch(struct cuda *c, int rows, struct error *err)
{
    const int64_t blocks = ceil_div(c->nj, CUDA_BLOCK);
    const int few = ceil_div(rows, CUDA_LIST_ROWS) * blocks < c->device.multiprocessors;
    struct cuda_list_job job = {
        .sources = cuda_jparticles_sources(c),
        .store = cuda_jparticles_store(c),
        .time = c->time,
        .snap = c->snap,
        .units = cuda_jparticles_units(c),
        .nj = (int32_t)c->nj,
        .rows = rows,
        .tile_rows = few ? CUDA_LIST_ROWS / 8 : CUDA_LIST_ROWS,
        .capacity = (int64_t)(c->listed.bytes / sizeof(struct cuda_listed)),
        .targets = cuda_pointer(&c->list_targets),
        .count = cuda_pointer(&c->list_count),
        .listed = cuda_pointer(&c->listed),
        .there = cuda_pointer(&c->list_there),
        .step = c->list_step + 1,
    };
    const int code = cuda_device_launch(c, 0, KERNEL_NEIGHBOURS, blocks,
                                        ceil_div(rows, job.tile_rows), &job, err);
    c->list_step += !code;
    return code;
}

void cuda_neighbours_ahead(struct cuda *c)
{
    const struct targets *t = &c->targets;
    if (!c->lists_asked || t->on_device || !t->h2 || !t->ni || t->ni > MOST_ROWS || !c->nj) return;
    struct error unasked = {.quiet = 1}; /* if it fails, so does the search that is asked for */
    c->lists_asked = 0;
    if (!send(c, 0, t->ni, t->h2, &unasked) && !launch(c, t->ni, &unasked)) c->listed_ahead = t->ni;
}

/* Whether a search for these lists was launched. */
static int is_ahead(const struct cuda *c, int first, int rows, const double *h2)
{
    const struct cuda_list_target *sent = cuda_pointer(&c->list_pinned);
    int same = !first && rows == c->listed_ahead;
    for (int k = 0; same && k < rows; k++) same = bits_of(sent[k].h2) == bits_of(h2[k]);
    return same;
}

/* ---- pairs to lists: each thread looks through all pairs for those of its rows -------------- */

struct sorting {
    const struct cuda_listed *listed;
    int64_t total;
    int64_t *start; /* [rows + 1]; at first, row's length is at row + 1 */
    int64_t *next;  /* [rows] position of the row's next index */
    int32_t *index;
};

static void count_pairs(void *sorting, int64_t first, int64_t end)
{
    const struct sorting *s = sorting;
    for (int64_t k = 0; k < s->total; k++) {
        const int64_t row = s->listed[k].row;
        if (row >= first && row < end) s->start[row + 1]++;
    }
}

static void place_pairs(void *sorting, int64_t first, int64_t end)
{
    const struct sorting *s = sorting;
    for (int64_t row = first; row < end; row++) s->next[row] = s->start[row];
    for (int64_t k = 0; k < s->total; k++) {
        const int64_t row = s->listed[k].row;
        if (row >= first && row < end) s->index[s->next[row]++] = s->listed[k].index;
    }
    for (int64_t row = first; row < end; row++)
        neighbour_lists_sort(s->index + s->start[row], s->start[row + 1] - s->start[row]);
}

static int sort(struct cuda *c, int rows, int64_t total, struct neighbour_lists *lists,
                struct error *err)
{
    struct neighbour_memory *m = &c->lists;
    if (neighbour_lists_reserve_starts(m, 2 * (int64_t)rows + 1) ||
        neighbour_lists_reserve(m, total))
        return error_set(err, G6X_E_MEMORY, "out of memory for lists of %lld neighbours",
                         (long long)total);
    struct sorting s = {cuda_pointer(&c->listed), total, m->start, m->start + rows + 1, m->index};
    const int threads = options_threads_for(total / LISTED_PER_THREAD + 1, c->threads);
    memset(s.start, 0, ((size_t)rows + 1) * sizeof *s.start);
    threads_each(threads, rows, ceil_div(rows, threads), count_pairs, &s);
    for (int row = 0; row < rows; row++) s.start[row + 1] += s.start[row];
    threads_each(threads, rows, ceil_div(rows, threads), place_pairs, &s);
    *lists = (struct neighbour_lists){rows, m->start, m->index};
    return 0;
}

/* ---- a call --------------------------------------------------------------------------------- */

/* Makes the lists of as many i particles from `first` on as fit in memory. */
static int make_lists(struct cuda *c, int first, int rows, const double *h2,
                      struct neighbour_lists *lists, struct error *err)
{
    int64_t total = 0;
    int launched = is_ahead(c, first, rows, h2);
    int code = launched ? 0 : send(c, first, rows, h2, err);
    c->listed_ahead = 0;
    for (; !code; launched = 0) {
        const int64_t capacity = (int64_t)(c->listed.bytes / sizeof(struct cuda_listed));
        if (!launched) code = launch(c, rows, err);
        if (!code) code = wait_for_pairs(c, &total, err);
        if (code || total <= capacity) break;
        const int64_t fit = rows * (int64_t)(NEIGHBOURS_AT_ONCE / 2) / total;
        if (rows > 1 && total > NEIGHBOURS_AT_ONCE)
            rows = fit > 1 ? (int)fit : 1;
        else
            code = cuda_device_reserve(c, &c->listed, MEMORY_PINNED,
                                       (uint64_t)total * sizeof(struct cuda_listed), err);
    }
    return code ? code : sort(c, rows, total, lists, err);
}

int cuda_neighbours(struct cuda *c, int first, int count, const double *h2,
                    struct neighbour_lists *lists, struct error *err)
{
    const int64_t share[2] = {c->first_block, c->end_block};
    if (!c->nj) {
        if (neighbour_lists_reserve_starts(&c->lists, count))
            return error_set(err, G6X_E_MEMORY, "out of memory for %d neighbour lists", count);
        memset(c->lists.start, 0, ((size_t)count + 1) * sizeof *c->lists.start);
        *lists = (struct neighbour_lists){count, c->lists.start, c->lists.index};
        return 0;
    }
    int code = cuda_device_enter(c, err);
    if (code) return code;
    c->lists_asked = 1;
    code = cuda_results_wait(c, c->targets.ni, err);
    cuda_jparticles_set_blocks(c, 0, cuda_all_blocks(c));
    if (!code && !c->predicted) code = cuda_jparticles_predict(c, err);
    if (!code) code = make_lists(c, first, count < MOST_ROWS ? count : MOST_ROWS, h2, lists, err);
    /* the call's sums may still be requested */
    cuda_jparticles_set_blocks(c, share[0], share[1]);
    cuda_device_leave(c);
    return code;
}
