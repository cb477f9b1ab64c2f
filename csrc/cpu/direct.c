/* direct.c - the backend of the direct sum on the CPU: its buffers, and the distribution of a force
 * call over threads. The arithmetic is in cpu/direct_kernel.c. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/backend.h"
#include "core/by_row.h"
#include "cpu/direct_kernel.h"
#include "util/memory.h"
#include "util/threads.h"
#include "simd/dispatch.h"

#define DECLARE(isa, ...)                                                                          \
    extern const struct direct_kernel cpu_direct_kernel_##isa##_32, cpu_direct_kernel_##isa##_64;
SIMD_COMPILED(DECLARE)
#define ROW(isa, ...) {&cpu_direct_kernel_##isa##_32, &cpu_direct_kernel_##isa##_64},
static const struct direct_kernel *const KERNELS[][2] = {SIMD_COMPILED(ROW)};

const struct direct_kernel *cpu_direct_kernel_choose(int isa, int mode)
{
    const int k = simd_dispatch(isa);
    return k < 0 ? NULL : KERNELS[k][mode == MODE_DOUBLE];
}

struct direct {
    const struct direct_kernel *kernel;
    int isa, mode, threads; /* threads: requested number; 0: all */
    int packing;            /* which one of the j memory */

    int64_t slots; /* capacity for j particles */
    int capacity;  /* for i particles */
    int softened;  /* some have eps2 > 0 */
    int32_t *index;

    struct direct_job job; /* has most arrays */
    struct jmemory *memory;
    int packed; /* whether rows are packed, at the time and in the units of `job` */
    _Atomic int64_t zero_distances;
    atomic_flag lock[ROW_LOCKS];
    struct neighbour_memory lists;
    uint64_t *hits; /* [rows][blocks][HIT_WORDS] of some i particles */
    int64_t hits_capacity;

    unsigned done; /* computed since submit: WANT_*; DONE_SUMS if anything */
    struct partial_row *rows_of_i;
    struct nearest *nearest;
    int32_t *nearest_address, *nearest_index;
};

/* Extra j slots, which are prefetched but never used. */
enum { PADDING = 2 * BLOCK };
/* Arrays of j particles. */
#define OF_J(d, slots, bytes)                                                                      \
    {{&(d)->job.rows, (size_t)((slots) + PADDING) * (bytes)},                                      \
     MEMORY_ARRAY((d)->job.jindex, (slots) + PADDING),                                             \
     MEMORY_ARRAY((d)->job.ranges, (slots) / BLOCK + 1),                                           \
     {0}}
/* Arrays of i particles, except fields and sums. */
#define OF_I(d, n)                                                                                 \
    {MEMORY_ARRAY((d)->index, n),         MEMORY_ARRAY((d)->job.body_range, n),                    \
     MEMORY_ARRAY((d)->job.self, n),      MEMORY_ARRAY((d)->rows_of_i, n),                         \
     MEMORY_ARRAY((d)->nearest, n),       MEMORY_ARRAY((d)->nearest_address, n),                   \
     MEMORY_ARRAY((d)->nearest_index, n), {0}}

static void direct_close(void *state)
{
    struct direct *d = state;
    if (!d) return;
    const struct memory_array of_j[] = OF_J(d, 0, 0), of_i[] = OF_I(d, 0);
    memory_free_all(of_j);
    memory_free_all(of_i);
    neighbour_lists_free(&d->lists);
    memory_free(d->hits);
    for (int k = 0; k < I_FIELDS; k++) memory_free(d->job.fields[k]);
    for (int k = 0; k < NSUM; k++) memory_free(d->job.block[k]), memory_free(d->job.sum[k]);
    memory_free(d);
}

static int choose(struct direct *d, const struct options *o, struct error *err)
{
    d->threads = o->threads;
    if (d->kernel && d->mode == o->precision && d->isa == o->isa) return 0;
    d->kernel = cpu_direct_kernel_choose(o->isa, o->precision);
    if (!d->kernel)
        return error_set(
            err, G6X_E_ARGUMENT,
            "this machine lacks the instruction set of GRAPE6_ISA; best takes what it has");
    if (d->mode != o->precision || d->isa != o->isa) {
        memory_free(d->job.rows); /* another layout */
        d->job.rows = NULL;
        d->slots = 0;
    }
    d->mode = o->precision;
    d->isa = o->isa;
    return 0;
}

static int direct_open(const struct options *o, int choice, void **state, struct error *err)
{
    (void)choice;
    struct direct *d = memory_zeroed(sizeof *d);
    if (!d) return error_set(err, G6X_E_MEMORY, "out of memory at open");
    d->packing = o->fine_of != NULL;
    const int code = choose(d, o, err);
    if (code)
        memory_free(d);
    else
        *state = d;
    return code;
}

static int no_memory(struct error *err, const char *what, int64_t n)
{
    return error_set(err, G6X_E_MEMORY, "out of memory for %lld %s", (long long)n, what);
}

static int reserve_slots(struct direct *d, int64_t slots, struct error *err)
{
    if (slots <= d->slots && d->job.rows) return 0;
    const size_t number = d->mode == MODE_DOUBLE ? sizeof(double) : sizeof(float);
    const struct memory_array all[] = OF_J(d, slots, (size_t)rows_per_chunk(d->mode) * number);
    if (memory_grow_all(all)) return no_memory(err, "j particles", slots);
    d->slots = slots;
    d->packed = 0;
    return 0;
}

/* ---- sharing work ------------------------------------------------------------- */

/* A force call, cut into tasks for threads. */
struct tasks {
    struct direct *d;
    int64_t count;
    int64_t blocks;                  /* of j */
    int64_t i_step, j_step, i_parts; /* task t: i part t % i_parts, j part t / i_parts */
    struct partial_row *rows;
    struct nearest *nearest;
};

static void pack_blocks(void *direct, int64_t first, int64_t end)
{
    struct direct *d = direct;
    d->kernel->pack(&d->job, d->memory->stale[d->packing], first, end);
}

static void sum_tasks(void *tasks, int64_t from, int64_t end)
{
    const struct tasks *t = tasks;
    const struct direct *d = t->d;
    for (int64_t k = from; k < end; k++) {
        const int64_t i = k % t->i_parts * t->i_step, first = k / t->i_parts * t->j_step;
        const int64_t n = d->job.ni - i < t->i_step ? d->job.ni - i : t->i_step;
        const int64_t last = first + t->j_step < t->blocks ? first + t->j_step : t->blocks;
        d->kernel->sum(&d->job, (int)i, (int)n, first, last, t->rows + i,
                       t->nearest ? t->nearest + i : NULL);
    }
}

/* Cuts a force call into tasks for a number of threads. Many i: one task per tile. Few i: the grid
 * of i parts times j parts with the smallest largest task. */
static void cut(struct tasks *t, int threads)
{
    const int tile = t->d->kernel->tile, ni = t->d->job.ni;
    const int vector = tile < 16 ? tile : 16;
    const int64_t vectors = ceil_div(ni, vector);
    t->i_step = ni;
    t->j_step = t->blocks;
    if (threads > 1 && ceil_div(ni, tile) >= 8 * threads) {
        t->i_step = tile;
    } else if (threads > 1) {
        int64_t least = INT64_MAX;
        for (int64_t p = 1; p <= threads && p <= vectors; p++) {
            const int64_t q = threads / p < t->blocks ? threads / p : t->blocks;
            const int64_t i_step = ceil_div(vectors, p), j_step = ceil_div(t->blocks, q);
            if (i_step * j_step > least) continue; /* if equal, prefer fewer merges */
            least = i_step * j_step;
            t->i_step = i_step * vector;
            t->j_step = j_step;
        }
    }
    t->i_parts = ceil_div(ni, t->i_step);
    t->count = t->i_parts * ceil_div(t->blocks, t->j_step);
    t->d->job.shared = t->j_step < t->blocks;
}

/* ---- one force call ------------------------------------------------------------- */

/* Factors that convert block sums to the caller's units. */
static void find_units(struct direct_job *job, const struct scale *s, int mode)
{
    const int x = length_shift(s, mode), m = mass_shift(s), v = velocity_shift(s);
    for (int k = 0; k < 3; k++) {
        scale_factors(2 * x - m, job->unit[SUM_AX + k]);
        scale_factors(3 * x - m - v, job->unit[SUM_JX + k]);
    }
    scale_factors(x - m, job->unit[SUM_POT]);
}

static int direct_set_j(void *state, const struct upload *u, struct error *err)
{
    struct direct *d = state;
    struct direct_job *job = &d->job;
    jmemory_commit(u->memory);
    int code = choose(d, u->options, err);
    if (!code) code = reserve_slots(d, u->memory->capacity, err);
    if (code) return code;
    const int64_t nj = u->nj < u->memory->capacity ? u->nj : u->memory->capacity;
    const int scaled = d->packed && !memcmp(&job->scale, u->scale, sizeof job->scale);
    const int same =
        scaled && d->memory == u->memory && job->time == u->time && job->snap == u->options->snap;
    if (!same) jmemory_stale_all(u->memory, d->packing);
    if (!scaled) find_units(job, u->scale, d->mode);
    d->packed = 1;
    d->memory = u->memory;

    job->mode = d->mode;
    job->jerk = u->options->jerk;
    job->limbs = limbs_of(d->mode);
    job->nj = nj;
    job->memory = u->memory;
    job->time = u->time;
    job->snap = u->options->snap;
    if (!scaled) job->scale = *u->scale;
    job->zero_distances = &d->zero_distances;
    job->lock = d->lock;
    enum { BLOCKS_AT_ONCE = 4 };
    const int64_t blocks = ceil_div(nj, BLOCK);
    int64_t stale = 0;
    for (int64_t b = 0; b < blocks; b++)
        stale += __builtin_popcountll(u->memory->stale[d->packing][b]);
    const int64_t useful = stale / DIRECT_CHUNKS_PER_THREAD + 1;
    if (stale)
        threads_each(options_threads_for(useful, d->threads), blocks, BLOCKS_AT_ONCE, pack_blocks,
                     d);
    return 0;
}

static int reserve(struct direct *d, int ni, struct error *err)
{
    if (ni <= d->capacity) return 0;
    const int capacity = (ni + MAX_TILE - 1) / MAX_TILE * MAX_TILE;
    const size_t n = (size_t)capacity + MAX_TILE;
    const struct memory_array all[] = OF_I(d, n);
    int missing = memory_grow_all(all);
    for (int k = 0; k < I_FIELDS && !missing; k++)
        missing =
            memory_grow_all((struct memory_array[]){{&d->job.fields[k], n * sizeof(double)}, {0}});
    for (int k = 0; k < NSUM && !missing; k++)
        missing = memory_grow_all((struct memory_array[]){
            MEMORY_ARRAY(d->job.block[k], n), MEMORY_ARRAY(d->job.sum[k], n), {0}});
    if (missing) return no_memory(err, "i particles", ni);
    d->capacity = capacity;
    return 0;
}

static int direct_submit(void *state, const struct targets *targets, struct error *err)
{
    struct direct *d = state;
    struct direct_job *job = &d->job;
    const int code = reserve(d, targets->ni, err);
    if (code) return code;
    job->ni = targets->ni;
    job->x = targets->x;
    job->v = targets->v;
    job->eps2 = targets->eps2;
    by_row_copy(targets->from, 0, targets->ni);
    if (targets->ni) memcpy(d->index, targets->index, (size_t)targets->ni * sizeof *d->index);
    job->index = d->index;
    d->kernel->pack_targets(job);
    jmemory_map(d->memory);
    d->done = 0;
    d->softened = 0;
    for (int i = 0; i < job->ni; i++) {
        const int n = jmemory_find(d->memory, d->index[i], job->nj, MAX_SELF, job->self[i].address);
        job->self[i].count = n > MAX_SELF ? -1 : n;
        d->softened |= targets->eps2[i] > 0.0;
    }
    return 0;
}

static void compute(struct direct *d, unsigned want)
{
    struct tasks t = {.d = d, .blocks = ceil_div(d->job.nj, BLOCK), .rows = d->rows_of_i};
    d->job.jerk = (want & WANT_JERK) != 0;
    d->job.nearest = want & WANT_NEAREST ? 1 + d->softened : 0;
    t.nearest = d->job.nearest ? d->nearest : NULL;
    const int64_t useful = d->job.nj * d->job.ni / DIRECT_PAIRS_PER_THREAD + 1;
    const int threads = options_threads_for(useful, d->threads);
    d->job.alone = t.blocks == 1;
    if (t.blocks && d->job.ni) cut(&t, threads);
    for (int i = 0; i < d->job.ni; i++) {
        if (d->job.shared || !t.blocks) partial_clear(&d->rows_of_i[i]);
        d->nearest[i].address = -1;
    }
    threads_each(threads, t.count, 1, sum_tasks, &t);
    for (int i = 0; i < d->job.ni; i++) {
        const int64_t nearest = d->nearest[i].address;
        double sum[NSUM];
        if (!d->job.alone) partial_value(&d->rows_of_i[i], sum);
        for (int k = 0; k < NSUM && !d->job.alone; k++) d->job.sum[k][i] = sum[k];
        d->nearest_address[i] = (int32_t)nearest;
        d->nearest_index[i] = nearest < 0 ? 0 : d->job.jindex[nearest];
    }
}

static int direct_collect(void *state, unsigned want, int count, struct results *results,
                          struct error *err)
{
    struct direct *d = state;
    (void)count;
    (void)err;
    if (!d->done || (d->done & want) != want) compute(d, want);
    d->done |= DONE_SUMS | want;
    for (int k = 0; k < NSUM; k++) results->sum[k] = d->job.sum[k];
    results->nearest = d->nearest_address;
    results->index = d->nearest_index;
    return 0;
}

static int direct_partials(void *state, const struct partial_row **rows, struct error *err)
{
    struct direct *d = state;
    (void)err;
    for (int i = 0; i < d->job.ni && d->job.alone; i++) {
        double sum[NSUM];
        for (int k = 0; k < NSUM; k++) sum[k] = d->job.block[k][i];
        partial_clear(&d->rows_of_i[i]);
        partial_add_block(&d->rows_of_i[i], sum, d->job.limbs);
    }
    *rows = d->rows_of_i;
    return 0;
}

/* ---- neighbour lists ------------------------------------------------------------ */

/* A kernel sets a bit for each pair of neighbours; the bits are counted and converted to lists. All
 * steps run on several threads. */
enum {
    HITS = 1 << 19,               /* words of hits at a time, unless one i particle has more */
    HIT_PAIRS_PER_THREAD = 65536, /* with fewer, a second thread does not pay */
    LISTS_AT_ONCE = 32            /* rows that a thread converts to lists at a time */
};

/* i particles processed at a time: `rows` of them, starting at number `first`. */
struct batch {
    struct direct *d;
    const double *h2;
    int first, rows;
    int64_t blocks;       /* of j */
    int64_t parts;        /* parts of the i particles, `step` <= HITS_AT_ONCE in each */
    int64_t step, j_step; /* task t: i part t % parts, blocks from (t / parts) j_step on */
    int64_t *start;       /* [rows + 1] of the lists */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void find_hits(void *batch, int64_t first, int64_t end)
{
    const struct batch *b = batch;
    const int64_t stride = b->blocks * HIT_WORDS;
    for (int64_t t = first; t < end; t++) {
        const int64_t i = t % b->parts * b->step, j = t / b->parts * b->j_step;
        b->d->kernel->hits(&b->d->job, b->first + (int)i, (int)smaller(b->rows - i, b->step),
                           b->h2 + i, j, smaller(b->blocks, j + b->j_step), b->d->hits + i * stride,
                           stride);
    }
}

static void count_hits(void *batch, int64_t first, int64_t end)
{
    const struct batch *b = batch;
    const int64_t words = b->blocks * HIT_WORDS;
    for (int64_t k = first; k < end; k++) {
        const uint64_t *hits = b->d->hits + k * words;
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
        const uint64_t *hits = b->d->hits + k * words;
        int32_t *const list = b->d->lists.index + b->start[k], *to = list;
        for (int64_t w = 0; w < words; w++)
            for (uint64_t bits = hits[w]; bits; bits &= bits - 1)
                *to++ = b->d->job.jindex[w * 64 + __builtin_ctzll(bits)];
        neighbour_lists_sort(list, b->start[k + 1] - b->start[k]);
    }
}

/* Cuts the work into tasks: parts of i; if there are few i, parts of j too. */
static void cut_batch(struct batch *b, int threads)
{
    const int64_t each = ceil_div(ceil_div(b->rows, 4 * threads), 4) * 4;
    b->step = smaller(each, HITS_AT_ONCE);
    b->parts = ceil_div(b->rows, b->step);
    b->j_step = threads > 1 ? ceil_div(b->blocks * b->parts, 4 * threads) : b->blocks;
    b->j_step = smaller(b->j_step, b->blocks);
}

/* Appends the lists of a batch. Returns the number of rows done, or -1 if out of memory. */
static int find_some(struct batch *b)
{
    struct direct *d = b->d;
    const int threads =
        options_threads_for((int64_t)b->rows * d->job.nj / HIT_PAIRS_PER_THREAD + 1, d->threads);
    const int64_t hits = (int64_t)b->rows * b->blocks * HIT_WORDS;
    if (hits > d->hits_capacity) {
        uint64_t *more = memory_grown(d->hits, (size_t)hits * sizeof *more);
        if (!more) return -1;
        d->hits = more;
        d->hits_capacity = hits;
    }
    cut_batch(b, threads);
    threads_each(threads, b->parts * ceil_div(b->blocks, b->j_step), 1, find_hits, b);
    threads_each(threads, b->rows, LISTS_AT_ONCE, count_hits, b);
    const int fit = neighbour_lists_place(b->start, b->rows);
    if (neighbour_lists_reserve(&d->lists, b->start[fit])) return -1;
    threads_each(threads, fit, LISTS_AT_ONCE, make_lists, b);
    return fit;
}

static int direct_neighbours(void *state, int first, int count, const double *h2,
                             struct neighbour_lists *lists, struct error *err)
{
    struct direct *d = state;
    struct batch b = {.d = d, .blocks = ceil_div(d->job.nj, BLOCK)};
    const int64_t row_words = b.blocks * HIT_WORDS;
    const int64_t most = row_words && HITS / row_words > 0 ? HITS / row_words : 1;
    int done = 0, rows = 0;
    int missing = neighbour_lists_reserve_starts(&d->lists, count);
    if (!missing) memset(d->lists.start, 0, (size_t)(count + 1) * sizeof *d->lists.start);
    while (!missing && b.blocks && done < count && rows == b.rows) {
        b.first = first + done;
        b.rows = (int)smaller(most, count - done);
        b.h2 = h2 + done;
        b.start = d->lists.start + done;
        rows = find_some(&b);
        missing = rows < 0;
        done += rows;
    }
    if (missing)
        return error_set(err, G6X_E_MEMORY, "out of memory for neighbour lists of %d particles",
                         count);
    *lists = (struct neighbour_lists){b.blocks ? done : count, d->lists.start, d->lists.index};
    return 0;
}

/* ---- the backend ---------------------------------------------------------------- */

static int64_t direct_zero_distances(void *state)
{
    struct direct *d = state; /* not changed now by threads: mostly it is zero already */
    return d->zero_distances ? atomic_exchange(&d->zero_distances, 0) : 0;
}

static void direct_describe(void *state, const struct options *o, char *buffer, int length)
{
    char text[64];
    (void)state;
    (void)snprintf(text, sizeof text, "cpu %s", simd_dispatch_name(o->isa));
    error_copy(text, buffer, length);
}

static const struct backend one_mode = {
    .open = direct_open,
    .set_j = direct_set_j,
    .submit = direct_submit,
    .collect = direct_collect,
    .partials = direct_partials,
    .neighbours = direct_neighbours,
    .zero_distances = direct_zero_distances,
    .describe = direct_describe,
    .close = direct_close,
};

static int open_by_row(const struct options *o, int choice, void **state, struct error *err)
{
    return by_row_open(&one_mode, o, choice, state, err);
}

const struct backend cpu_direct_backend = {
    .most_rows = 4096,
    .name = "cpu",
    .open = open_by_row,
    BY_ROW_FUNCTIONS,
};
