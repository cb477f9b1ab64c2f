/* sum.c - the i particles' way to the device, and launches of the kernels that sum a force call. */
#include <pthread.h>
#include <string.h>

#include "core/by_row.h"
#include "cuda/force.h"
#include "util/clock.h"
#include "util/memory.h"
#include "util/threads.h"

enum {
    WAKING = 60000, /* nanoseconds that threads take to wake up */
    ROWS_PER_THREAD = 1024,
    FIRST_PIECE = 1024, /* i particles of the first of several launches */
    NEXT_PIECE = 4,     /* growth of the next launches, which are copied meanwhile */
    FEW_PIECES = 32768  /* below so many i particles the first launch is larger */
};

int cuda_sum_reserve_targets(struct cuda *c, int ni, struct error *err)
{
    const uint64_t n = (uint64_t)(ceil_div(ni, WIDE_ROWS) * WIDE_ROWS),
                   bytes = n * sizeof(struct cuda_target);
    const int code = cuda_device_reserve(c, &c->pinned_targets, MEMORY_PINNED, bytes, err);
    return code ? code : cuda_device_reserve(c, &c->device_targets, MEMORY_DEVICE, bytes, err);
}

int cuda_sum_load_targets(struct cuda *c, struct error *err)
{
    const struct targets *t = &c->targets;
    int code = cuda_device_clear_notes(c, err);
    if (!code) code = cuda_device_wait_for_caller(c, t->stream, err);
    c->guess = t->want & WANT_NEAREST;
    if (code || !t->ni) return code;
    if (t->rows) {
        code = cuda_device_reserve(c, &c->list, MEMORY_PINNED, (uint64_t)t->ni * 4, err);
        if (code) return code;
        memcpy(cuda_pointer(&c->list), t->rows, (size_t)t->ni * 4);
    }
    struct cuda_read_targets_job job = {.list = t->rows ? cuda_pointer(&c->list) : NULL,
                                        .index = t->index,
                                        .x = (const double *)t->x,
                                        .v = (const double *)t->v,
                                        .eps2 = t->eps2[0],
                                        .targets = cuda_pointer(&c->device_targets),
                                        .notes = cuda_notes(c),
                                        .rows = t->ni};
    c->unread = 1;
    return cuda_device_launch(c, 0, KERNEL_READ_TARGETS, ceil_div(t->ni, THREADS), 1, &job, err);
}

/* ---- i particles from memory of the host: other threads pack them into pinned memory while the
 * caller's thread launches kernels */

struct packing {
    struct cuda *c;
    struct error *err;
    int code, chunks;
    pthread_t caller;
    _Atomic int next;
    _Atomic unsigned char *done; /* [chunks] */
    int there;                   /* all chunks before this one are packed */
};

static void pack_chunk(struct packing *p, int chunk)
{
    const struct targets *t = &p->c->targets;
    struct cuda_target *to = cuda_pointer(&p->c->pinned_targets);
    const int first = chunk * ROWS_AT_ONCE,
              end = t->ni - first < ROWS_AT_ONCE ? t->ni : first + ROWS_AT_ONCE;
    by_row_copy(t->from, first, end - first);
    for (int i = first; i < end; i++) {
        memcpy(to[i].x, t->x[i], sizeof to->x);
        memcpy(to[i].v, t->v[i], sizeof to->v);
        to[i].eps2 = t->eps2[i];
        to[i].index = t->index[i];
    }
    atomic_store_explicit(&p->done[chunk], 1, memory_order_release);
}

/* Packs the next chunk, if it is before `limit`. */
static int pack_next(struct packing *p, int limit)
{
    int chunk = atomic_load(&p->next);
    while (chunk < limit)
        if (atomic_compare_exchange_weak(&p->next, &chunk, chunk + 1)) {
            pack_chunk(p, chunk);
            return 1;
        }
    return 0;
}

/* Sends i particles, once these and those before them are packed. */
static int send_targets(struct cuda *c, struct packing *p, int stream, int first, int count,
                        struct error *err)
{
    const struct driver *d = &c->device.driver;
    const struct cuda_target *pinned = cuda_pointer(&c->pinned_targets);
    const uint64_t to = c->device_targets.address + (uint64_t)first * sizeof *pinned;
    const int limit = (first + count + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    while (p->there < limit)
        if (atomic_load_explicit(&p->done[p->there], memory_order_acquire))
            p->there++;
        else if (!pack_next(p, limit))
            threads_pause();
    return cuda_device_check(
        c, d->copy_in(to, pinned + first, (size_t)count * sizeof *pinned, c->device.stream[stream]),
        "copy", err);
}

/* Whether the i particles fit in the kernel's parameters. */
static int are_in_job(const struct cuda *c)
{
    return !c->targets.on_device && c->kernel != KERNEL_WIDE && c->targets.ni <= CUDA_IN_JOB &&
           c->soft_alike;
}

static void pack_in_job(const struct cuda *c, struct cuda_small_job *job)
{
    const struct targets *t = &c->targets;
    const size_t n = (size_t)t->ni;
    struct cuda_packed_targets *to = &job->targets;
    job->sum.targets = NULL;
    by_row_copy(t->from, 0, t->ni);
    memcpy(to->x, t->x, n * sizeof *to->x);
    memcpy(to->v, t->v, n * sizeof *to->v);
    memcpy(to->index, t->index, n * sizeof *to->index);
    to->eps2 = t->eps2[0];
}

/* ---- launches ---------------------------------------------------------------------------- */

static int bins_of(const struct cuda *c)
{
    return c->mode == MODE_DOUBLE ? CUDA_BINS_DOUBLE : CUDA_BINS;
}

/* Reserves the bins of a launch; each stream has its own. */
static int reserve_bins(struct cuda *c, int stream, int rows, struct error *err)
{
    const uint64_t n = ((uint64_t)rows + 255) / 256 * 256;
    const uint64_t row_bytes =
        (uint64_t)(NSUM * bins_of(c)) * 8 + NWINDOW * 4 + 8 + 8 + 4 + 4; /* see job_of */
    const int code = cuda_device_reserve(c, &c->bins[stream], MEMORY_DEVICE, n * row_bytes, err);
    return code ? code
                : cuda_device_reserve(c, &c->ended[stream], MEMORY_DEVICE, n / SMALLEST_TILE * 12,
                                      err);
}

static int floor_of_40(int e) { return (e + 4000) / BIN_BITS - 100; }

static void set_units(const struct cuda *c, int32_t unit[NWINDOW], int32_t base[NWINDOW])
{
    const int x = length_shift(&c->scale, c->mode), m = mass_shift(&c->scale);
    const int v = velocity_shift(&c->scale);
    const int lowest = c->mode == MODE_DOUBLE ? CUDA_LOWEST : -126;
    unit[WINDOW_ACC] = 2 * x - m;
    unit[WINDOW_JERK] = 3 * x - m - v;
    unit[WINDOW_POT] = x - m;
    for (int w = 0; w < NWINDOW; w++)
        base[w] = floor_of_40(lowest + unit[w]) - (limbs_of(c->mode) - 1);
}

/* The job of a launch, without its tiles and its share of blocks. */
static struct cuda_sum_job job_of(const struct cuda *c, int stream, int first, int rows)
{
    const int64_t stride = ((int64_t)rows + 31) / 32 * 32;
    struct cuda_sum_job job = {
        .sources = cuda_jparticles_sources(c),
        .units = cuda_jparticles_units(c),
        .store = cuda_jparticles_store(c),
        .time = c->time,
        .snap = c->snap,
        .nj = (int32_t)c->nj,
        .rows = rows,
        .first_block = (int32_t)c->first_block,
        .end_block = (int32_t)c->end_block,
        .stride = (int32_t)stride,
        .targets = (const struct cuda_target *)cuda_pointer(&c->device_targets) + first,
        .left_capacity = (int32_t)(c->left.bytes / sizeof(struct cuda_left)),
        .left_count = cuda_pointer(&c->left_count),
        .left = cuda_pointer(&c->left),
        .first = first,
    };
    set_units(c, job.unit, job.base);
    job.bin = cuda_pointer(&c->bins[stream]);
    job.nearest = (unsigned long long *)(job.bin + NSUM * bins_of(c) * stride);
    job.nearest_key = job.nearest + stride;
    job.top = (int32_t *)(void *)(job.nearest_key + stride);
    job.nearest_place = job.top + NWINDOW * stride;
    job.nearest_lock = job.nearest_place + stride;
    job.ended = cuda_pointer(&c->ended[stream]);
    cuda_results_set_job(c, &job);
    return job;
}

static int sum(struct cuda *c, struct packing *p, int stream, int first, int count,
               struct error *err)
{
    struct cuda_small_job job; /* wide kernels read its first member only */
    const int in_job = are_in_job(c);
    int code = reserve_bins(c, stream, count, err), kernel = c->kernel + (c->jerk ? 1 : 0);
    if (code) return code;
    job.sum = job_of(c, stream, first, count);
    cuda_launch_config_blocks(c, count, &job.sum);
    const int64_t across = ceil_div(cuda_blocks(c), job.sum.step_blocks);
    const int64_t tiles = ceil_div(count, job.sum.tile_rows);
    /* CUDA blocks predict their own addresses only if all run at once. */
    job.predicts = !c->predicted && c->mode != MODE_DOUBLE && c->kernel < KERNEL_MIDDLE &&
                   across * tiles <= c->device.multiprocessors &&
                   cuda_jparticles_few_are_within(c) && !c->rest.count;
    if (job.predicts) {
        job.arrivals = cuda_jparticles_arrivals(c);
        if (in_job && count <= CUDA_FEW_IN_JOB && c->few <= CUDA_SENT_IN_JOB) {
            memcpy(job.targets.few.sent, job.arrivals.sent,
                   (size_t)c->few * sizeof *job.arrivals.sent);
            job.arrivals.sent = NULL;
        }
    }
    if (!c->predicted && !job.predicts) code = cuda_jparticles_predict(c, err);
    if (in_job)
        pack_in_job(c, &job);
    else if (!code && !c->targets.on_device)
        code = send_targets(c, p, stream, first, count, err);
    if (code) return code;
    if (c->kernel == KERNEL_WIDE)
        kernel =
            KERNEL_WIDE + (c->jerk ? 4 : 0) + (c->has & WANT_NEAREST ? 2 : 0) + (c->soft ? 1 : 0);
    else
        c->has |= WANT_NEAREST;
    c->tile_rows = job.sum.tile_rows;
    c->unread = 1;
    if (stream) code = cuda_device_follow(c, stream, c->device.stream[0], err);
    c->sum_kernel = kernel;
    if (!code) code = cuda_device_launch(c, stream, kernel, across, tiles, &job, err);
    if (!first) {
        const struct cuda_pace *pace = &c->pace[c->mode][kernel];
        c->launched_at = clock_nanoseconds();
        c->copied_at =
            c->launched_at - WAKING + (int64_t)(pace->least * cuda_sum_pairs(c, c->targets.ni));
        if (c->targets.ni < COPIED_ROWS || pace->least <= 0.0) c->copied_at = 0;
    }
    if (!code && job.predicts) cuda_jparticles_has_predicted(c);
    return code;
}

int cuda_sum_clean_up(struct cuda *c, struct error *err)
{
    int code = c->unread ? cuda_device_idle(c, "sum", err) : 0;
    c->unread = 0;
    if (!code &&
        (c->sums == SUMS_CUT_SHORT || (c->sums != SUMS_SETTLED && cuda_results_any_left(c))))
        code = cuda_device_fill(c, c->left_count.address, sizeof(int32_t), err);
    c->sums = code ? SUMS_CUT_SHORT : SUMS_SETTLED;
    return code;
}

/* I particles of the first of several launches. Of few, it fills the device: otherwise the second
 * one finds some places free and waits for the others, and the device is half empty twice. */
static int first_piece(const struct cuda *c)
{
    const int64_t fills = cuda_launch_config_places(c) / cuda_blocks(c) * WIDE_ROWS;
    if (c->targets.ni >= FEW_PIECES) return FIRST_PIECE;
    return fills > NEXT_PIECE * FIRST_PIECE ? (int)fills : NEXT_PIECE * FIRST_PIECE;
}

/* Several launches, if there are many i particles; `p`: they are being packed, or NULL. */
static int launch_all(struct cuda *c, struct packing *p, struct error *err)
{
    /* all launches of a call need one tile size, which only the wide kernels guarantee */
    const int ni = c->targets.ni;
    int most = c->kernel == KERNEL_WIDE ? first_piece(c) : MOST_ROWS, stream = 0, code = 0;
    for (int first = 0, count; first < ni && !code; first += count) {
        count = ni - first < most ? ni - first : most;
        code = sum(c, p, stream, first, count, err);
        most = most < MOST_ROWS / NEXT_PIECE ? NEXT_PIECE * most : MOST_ROWS;
        stream = (stream + 1) % DEVICE_STREAMS;
    }
    return code;
}

static void pack_task(void *packing)
{
    struct packing *p = packing;
    if (pthread_equal(pthread_self(), p->caller))
        p->code = launch_all(p->c, p, p->err);
    else
        while (pack_next(p, p->chunks)) continue;
}

static int pack_and_launch(struct cuda *c, struct error *err)
{
    struct packing p = {.c = c,
                        .err = err,
                        .chunks = (c->targets.ni + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE,
                        .caller = pthread_self()};
    const int cores = options_threads(c->threads);
    const int most = cores < MOST_COPIERS ? cores : MOST_COPIERS;
    const int useful = c->targets.ni / ROWS_PER_THREAD;
    p.done = memory_zeroed((size_t)p.chunks);
    if (!p.done)
        return error_set(err, G6X_E_MEMORY, "out of memory for %d particles", c->targets.ni);
    threads_run(useful < most ? useful : most, pack_task, &p);
    memory_free((void *)p.done);
    return p.code;
}

int cuda_sum_all(struct cuda *c, unsigned want, struct error *err)
{
    const int ni = c->targets.ni;
    int code = want & WANT_ROWS ? cuda_results_reserve_rows(c, err) : 0;
    if (!code) code = cuda_sum_clean_up(c, err); /* last: what is there stays */
    if (code) return code;
    c->step++;
    c->has = want;
    c->launched = ni;
    c->tiles_there = 0;
    c->met_zero_distances = 0;
    if (ni && (are_in_job(c) || c->targets.on_device))
        code = launch_all(c, NULL, err);
    else if (ni)
        code = pack_and_launch(c, err);
    c->targets.from = NULL; /* all are copied, or the call has failed */
    if (code) c->launched = 0;
    c->sums = code ? SUMS_CUT_SHORT : SUMS_LAUNCHED;
    return code;
}
