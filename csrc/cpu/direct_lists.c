/* direct_lists.c - see direct_lists.h. A kernel sets a bit for each pair of neighbours; the bits
 * are counted and converted to lists. All steps run on several threads. */
#include "cpu/direct_lists.h"

#include <string.h>

#include "g6lib.h"
#include "core/options.h"
#include "util/memory.h"
#include "util/threads.h"

enum {
    HITS = 1 << 19,           /* words of hits at a time, unless one i particle has more */
    PAIRS_PER_THREAD = 65536, /* with fewer, a second thread does not pay */
    ROWS_AT_ONCE = 32         /* rows that a thread converts to lists at a time */
};

/* i particles processed at a time: `rows` of them, starting at number `first`. */
struct batch {
    const struct direct_kernel *kernel;
    const struct direct_job *job;
    const double *h2;
    int first, rows;
    int64_t blocks;       /* of j */
    int64_t parts;        /* parts of the i particles, `step` <= HITS_AT_ONCE in each */
    int64_t step, j_step; /* task t: i part t % parts, blocks from (t / parts) j_step on */
    uint64_t *hits;       /* [rows][blocks][HIT_WORDS] */
    int64_t *start;       /* start[rows + 1], index: the lists */
    int32_t *index;
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void find_hits(void *batch, int64_t first, int64_t end)
{
    const struct batch *b = batch;
    const int64_t stride = b->blocks * HIT_WORDS;
    for (int64_t t = first; t < end; t++) {
        const int64_t i = t % b->parts * b->step, j = t / b->parts * b->j_step;
        b->kernel->hits(b->job, b->first + (int)i, (int)smaller(b->rows - i, b->step), b->h2 + i, j,
                        smaller(b->blocks, j + b->j_step), b->hits + i * stride, stride);
    }
}

static void count_hits(void *batch, int64_t first, int64_t end)
{
    const struct batch *b = batch;
    const int64_t words = b->blocks * HIT_WORDS;
    for (int64_t k = first; k < end; k++) {
        const uint64_t *hits = b->hits + k * words;
        int64_t n = 0;
        for (int64_t w = 0; w < words; w++) n += __builtin_popcountll(hits[w]);
        b->start[k + 1] = n;
    }
}

static void make_lists(void *batch, int64_t first, int64_t end)
{
    const struct batch *b = batch;
    const int64_t words = b->blocks * HIT_WORDS;
    for (int64_t k = first; k < end; k++) {
        const uint64_t *hits = b->hits + k * words;
        int32_t *to = b->index + b->start[k];
        for (int64_t w = 0; w < words; w++)
            for (uint64_t bits = hits[w]; bits; bits &= bits - 1)
                *to++ = b->job->jindex[w * 64 + __builtin_ctzll(bits)];
        neighbour_lists_sort(b->index + b->start[k], b->start[k + 1] - b->start[k]);
    }
}

/* Cuts the work into tasks: parts of i; if there are few i, parts of j too. */
static void cut(struct batch *b, int threads)
{
    const int64_t each = ceil_div(ceil_div(b->rows, 4 * threads), 4) * 4;
    b->step = smaller(each, HITS_AT_ONCE);
    b->parts = ceil_div(b->rows, b->step);
    b->j_step = threads > 1 ? ceil_div(b->blocks * b->parts, 4 * threads) : b->blocks;
    b->j_step = smaller(b->j_step, b->blocks);
}

/* Appends the lists of a batch. Returns the number of rows done, or -1 if out of memory. */
static int find_some(struct direct_lists *d, struct batch *b, int asked)
{
    const int threads =
        options_threads_for((int64_t)b->rows * b->job->nj / PAIRS_PER_THREAD + 1, asked);
    const int64_t hits = (int64_t)b->rows * b->blocks * HIT_WORDS;
    if (hits > d->hits_capacity) {
        uint64_t *more = memory_grown(d->hits, (size_t)hits * sizeof *more);
        if (!more) return -1;
        d->hits = more;
        d->hits_capacity = hits;
    }
    b->hits = d->hits;
    cut(b, threads);
    threads_each(threads, b->parts * ceil_div(b->blocks, b->j_step), 1, find_hits, b);
    threads_each(threads, b->rows, ROWS_AT_ONCE, count_hits, b);
    const int fit = neighbour_lists_place(b->start, b->rows);
    if (neighbour_lists_reserve(&d->memory, b->start[fit])) return -1;
    b->index = d->memory.index;
    threads_each(threads, fit, ROWS_AT_ONCE, make_lists, b);
    return fit;
}

int cpu_direct_lists_find(struct direct_lists *d, const struct direct_kernel *kernel,
                          const struct direct_job *job, int threads, int first, int count,
                          const double *h2, struct neighbour_lists *lists, struct error *err)
{
    struct batch b = {.kernel = kernel, .job = job, .blocks = ceil_div(job->nj, BLOCK)};
    const int64_t row_words = b.blocks * HIT_WORDS;
    const int64_t most = row_words && HITS / row_words > 0 ? HITS / row_words : 1;
    int done = 0, rows = 0;
    int missing = neighbour_lists_reserve_starts(&d->memory, count);
    if (!missing) memset(d->memory.start, 0, (size_t)(count + 1) * sizeof *d->memory.start);
    while (!missing && b.blocks && done < count && rows == b.rows) {
        b.first = first + done;
        b.rows = (int)smaller(most, count - done);
        b.h2 = h2 + done;
        b.start = d->memory.start + done;
        rows = find_some(d, &b, threads);
        missing = rows < 0;
        done += rows;
    }
    if (missing)
        return error_set(err, G6X_E_MEMORY, "out of memory for neighbour lists of %d particles",
                         count);
    *lists = (struct neighbour_lists){b.blocks ? done : count, d->memory.start, d->memory.index};
    return 0;
}

void cpu_direct_lists_free(struct direct_lists *d)
{
    neighbour_lists_free(&d->memory);
    memory_free(d->hits);
    d->hits = NULL;
    d->hits_capacity = 0;
}
