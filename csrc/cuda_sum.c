/* cuda_sum.c - force calls on the card: which kernel takes them, and how their end is seen. */
#include <limits.h>
#include <string.h>

#include "cuda.h"
#include "memory.h"
#include "threads.h"

/* ---- where things lie --------------------------------------------------------------- */

/* Results in pinned memory: 7 sums, r^2, addresses and indices per target; then per tile the
 * flag and the number of pairs left to the host. */
enum { BYTES_PER_TARGET = 8 * (NSUM + 1) + 4 * 2, BYTES_PER_TILE = 8 + 4 };
enum { SMALLEST_TILE = 16 };

static double *sums_of(const struct cuda *c) { return cuda_pointer(&c->results); }
static double *r2_of(const struct cuda *c) { return sums_of(c) + NSUM * c->stride; }
static int32_t *address_of(const struct cuda *c) { return (int32_t *)(r2_of(c) + c->stride); }
static int32_t *index_of(const struct cuda *c) { return address_of(c) + c->stride; }
static unsigned long long *flags_of(const struct cuda *c)
{
    return (unsigned long long *)(void *)(index_of(c) + c->stride);
}
static int32_t *left_of(const struct cuda *c)
{
    return (int32_t *)(void *)(flags_of(c) + c->stride / SMALLEST_TILE);
}

struct results cuda_results(const struct cuda *c)
{
    struct results r = {.nearest = address_of(c), .index = index_of(c)};
    for (int k = 0; k < NSUM; k++) r.sum[k] = sums_of(c) + k * c->stride;
    return r;
}

static int make_room(struct cuda *c, int ni, struct fault *f)
{
    const int64_t n = ((int64_t)ni + WIDE_ROWS - 1) / WIDE_ROWS * WIDE_ROWS;
    const int64_t rows = n < PIECE ? n : PIECE;
    const uint64_t bytes = (uint64_t)n;
    int code =
        cuda_reserve(c, &c->pinned_targets, MEMORY_PINNED, bytes * sizeof(struct cuda_target), f);
    if (!code)
        code =
            cuda_reserve(c, &c->card_targets, MEMORY_DEVICE, bytes * sizeof(struct cuda_target), f);
    if (!code && n > c->stride) {
        code = cuda_reserve(c, &c->results, MEMORY_PINNED,
                            bytes * BYTES_PER_TARGET + bytes / SMALLEST_TILE * BYTES_PER_TILE, f);
        if (!code) {
            c->stride = n; /* no flag may look as if it had been raised already */
            memset(flags_of(c), 0, (size_t)(n / SMALLEST_TILE) * BYTES_PER_TILE);
        }
    }
    const uint64_t row_bytes =
        (uint64_t)(NSUM * cuda_bins(c)) * 8 + NWINDOW * 4 + 8 + 4 + 4; /* see rows_at */
    if (!code) code = cuda_reserve(c, &c->bins, MEMORY_DEVICE, (uint64_t)rows * row_bytes, f);
    if (!code)
        code = cuda_reserve(c, &c->counters, MEMORY_DEVICE,
                            64 + (uint64_t)(rows / SMALLEST_TILE) * 8, f);
    return code;
}

/* ---- launching ------------------------------------------------------------------------ */

static int floor_of_40(int e) { return (e + 4000) / BIN_BITS - 100; }

void cuda_units(const struct cuda *c, int32_t unit[NWINDOW], int32_t base[NWINDOW])
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

/* What all launches of this call share. */
static struct cuda_sum_job job_of(const struct cuda *c, int first, int rows, int keep)
{
    const int64_t stride = ((int64_t)rows + 31) / 32 * 32;
    struct cuda_sum_job job = {
        .sources = cuda_sources(c),
        .x_unit = power_of_two(length_shift(&c->scale, c->mode)),
        .v_unit = power_of_two(velocity_shift(&c->scale)),
        .nj = (int32_t)c->nj,
        .rows = rows,
        .stride = (int32_t)stride,
        .targets = (const struct cuda_target *)cuda_pointer(&c->card_targets) + first,
        .keep = keep,
        .left_room = (int32_t)(c->left.bytes / sizeof(struct cuda_left)),
        .left_count = cuda_pointer(&c->counters),
        .left = cuda_pointer(&c->left),
        .first = first,
        .out_stride = (int32_t)c->stride,
        .sum = sums_of(c),
        .nearest_address = address_of(c),
        .nearest_index = index_of(c),
        .nearest_r2 = r2_of(c),
        .left_of_tile = left_of(c),
        .flag = flags_of(c),
        .step = c->step,
    };
    cuda_units(c, job.unit, job.base);
    job.bin = cuda_pointer(&c->bins);
    job.nearest = (unsigned long long *)(job.bin + NSUM * cuda_bins(c) * stride);
    job.top = (int32_t *)(void *)(job.nearest + stride);
    job.nearest_place = job.top + NWINDOW * stride;
    job.nearest_lock = job.nearest_place + stride;
    job.ended = (unsigned *)cuda_pointer(&c->counters) + 16;
    return job;
}

/* The i particles of a launch on their way to pinned memory. */
struct packing {
    const struct targets *targets;
    struct cuda_target *to; /* of target number 0 */
    int end;
    _Atomic int next;
};

enum { ROWS_WORTH_A_THREAD = 4096, MOST_COPIERS = 4, COPIED_AT_ONCE = 256 };

static void pack_rows(const struct packing *p, int first, int end)
{
    const struct targets *t = p->targets;
    for (int i = first; i < end; i++) {
        struct cuda_target *to = &p->to[i];
        if (t->fill && (i - first) % COPIED_AT_ONCE == 0)
            t->fill(t->context, i, end - i < COPIED_AT_ONCE ? end - i : COPIED_AT_ONCE);
        memcpy(to->x, t->x[i], sizeof to->x);
        memcpy(to->v, t->v[i], sizeof to->v);
        to->eps2 = t->eps2[i];
        to->index = t->index[i];
    }
}

static void pack_task(void *packing)
{
    struct packing *p = packing;
    for (int i; (i = atomic_fetch_add(&p->next, ROWS_WORTH_A_THREAD)) < p->end;)
        pack_rows(p, i, p->end - i < ROWS_WORTH_A_THREAD ? p->end : i + ROWS_WORTH_A_THREAD);
}

static void pack_targets(struct cuda *c, int first, int count)
{
    struct packing p = {&c->targets, cuda_pointer(&c->pinned_targets), first + count, first};
    const int cores = c->threads ? c->threads : options_cores();
    const int threads = cores < MOST_COPIERS ? cores : MOST_COPIERS;
    const int worth = count / ROWS_WORTH_A_THREAD;
    threads_run(worth < threads ? (worth ? worth : 1) : threads, pack_task, &p);
}

static int64_t parts(int64_t n, int64_t step) { return (n + step - 1) / step; }

/* I particles that a CUDA block of a kernel takes at once. */
static int abreast(const struct cuda *c, int kernel)
{
    if (kernel == KERNEL_WIDE) return WIDE_ROWS;
    return (c->mode == MODE_DOUBLE ? 32 : 16) * (kernel == KERNEL_MIDDLE ? 2 : 1);
}

/* Which kernel fills the card: each takes more i particles than the one before, and is faster
 * if there are enough of them. All give the same bits. */
static int choose_kernel(const struct cuda *c, int ni)
{
    const int64_t blocks = parts(c->nj, CUDA_BLOCK), places = c->device.multiprocessors;
    if (ni > PIECE || (ni >= WIDE_ROWS && 2 * blocks * parts(ni, WIDE_ROWS) >= 3 * places))
        return KERNEL_WIDE;
    if (blocks * parts(ni, abreast(c, KERNEL_MIDDLE)) >= 2 * places && ni > abreast(c, KERNEL_SOME))
        return KERNEL_MIDDLE;
    return ni <= abreast(c, KERNEL_FEW) / 2 ? KERNEL_FEW : KERNEL_SOME;
}

/* How i and j are dealt out. A tile of i particles that takes several rounds keeps its j. */
static void cut_small(const struct cuda *c, int ni, struct cuda_sum_job *job)
{
    const int rows = abreast(c, c->kernel);
    const int64_t blocks = parts(c->nj, CUDA_BLOCK), tiles = parts(ni, rows);
    const int64_t wanted = parts(8 * (int64_t)c->device.multiprocessors, blocks);
    job->tile_rows = (int32_t)(parts(tiles, wanted < tiles ? wanted : tiles) * rows);
    job->step_blocks = 1;
}

static void cut_wide(const struct cuda *c, int rows, struct cuda_sum_job *job)
{
    const int64_t blocks = parts(c->nj, CUDA_BLOCK), tiles = parts(rows, WIDE_ROWS);
    const int64_t places = 4 * (int64_t)c->device.multiprocessors;
    const int64_t wanted = parts(8 * places, tiles);
    job->tile_rows = WIDE_ROWS;
    job->step_blocks = (int32_t)(wanted >= blocks ? 1 : blocks / wanted);
}

static void pack_in_job(const struct cuda *c, struct cuda_packed_targets *to)
{
    const struct targets *t = &c->targets;
    const size_t n = (size_t)t->ni;
    if (t->fill) t->fill(t->context, 0, t->ni);
    memcpy(to->x, t->x, n * sizeof *to->x);
    memcpy(to->v, t->v, n * sizeof *to->v);
    memcpy(to->index, t->index, n * sizeof *to->index);
    to->eps2 = t->eps2[0];
}

/* Addresses that a prediction has to cover: what is used, and what is on its way. */
static int64_t blocks_to_predict(const struct cuda *c)
{
    const int64_t end = c->few && c->few_end > c->nj ? c->few_end : c->nj;
    return parts(end, CUDA_BLOCK);
}

/* Launches the prediction by itself. */
static int predict(struct cuda *c, struct fault *f)
{
    struct cuda_predict_job job;
    const int64_t quarters = blocks_to_predict(c) * (CUDA_BLOCK / CUDA_QUARTER);
    cuda_prediction(c, &job);
    const int code = cuda_launch(c, KERNEL_PREDICT, quarters, 1, &job, f);
    if (!code) cuda_has_predicted(c);
    return code;
}

int cuda_sum(struct cuda *c, int first, int count, unsigned want, int keep, struct fault *f)
{
    struct cuda_small_job job; /* of the wide kernels, its beginning */
    struct cuda_target *pinned = (struct cuda_target *)cuda_pointer(&c->pinned_targets) + first;
    const int in_job = c->kernel != KERNEL_WIDE && count <= CUDA_IN_JOB && c->soft_alike;
    int code = 0, kernel = c->kernel + (c->jerk ? 1 : 0);
    job.sum = job_of(c, first, count, keep);
    if (in_job) {
        job.sum.targets = NULL;
        pack_in_job(c, &job.targets);
    } else {
        const size_t bytes = (size_t)count * sizeof *pinned;
        pack_targets(c, first, count);
        code = cuda_check(c,
                          c->device.driver.copy_in((uint64_t)(uintptr_t)job.sum.targets, pinned,
                                                   bytes, c->device.stream),
                          "copy", f);
    }
    if (c->kernel == KERNEL_WIDE)
        cut_wide(c, count, &job.sum);
    else
        cut_small(c, count, &job.sum);
    if (!code && !c->predicted) code = predict(c, f);
    if (code) return code;
    if (c->kernel == KERNEL_WIDE)
        kernel =
            KERNEL_WIDE + (c->jerk ? 4 : 0) + (want & WANT_NEAREST ? 2 : 0) + (c->soft ? 1 : 0);
    else
        c->has |= WANT_NEAREST;
    c->tile_rows = job.sum.tile_rows;
    c->unread = 1;
    return cuda_launch(c, kernel, parts(parts(c->nj, CUDA_BLOCK), job.sum.step_blocks),
                       parts(count, job.sum.tile_rows), &job, f);
}

/* What the last call has left behind: bins that were kept, the count of pairs for the host. */
static int clean_up(struct cuda *c, struct fault *f)
{
    const struct driver *d = &c->device.driver;
    int code = c->unread ? cuda_check(c, d->wait(c->device.stream), "sum", f) : 0;
    c->unread = 0;
    if (!code && c->kept)
        code =
            cuda_check(c, d->fill(c->bins.address, 0, c->bins.bytes, c->device.stream), "fill", f);
    if (!code && !c->settled && cuda_left(c, c->launched))
        code = cuda_check(c, d->fill(c->counters.address, 0, 64, c->device.stream), "fill", f);
    if (!code) c->kept = 0;
    c->settled = 1;
    return code;
}

/* The whole call. */
static int sum_all(struct cuda *c, unsigned want, int keep, struct fault *f)
{
    const int ni = c->targets.ni;
    int code = clean_up(c, f);
    c->step++;
    c->has = want;
    c->settled = 0;
    c->kept = keep && ni <= PIECE;
    c->launched = ni;
    for (int first = 0, count; first < ni && !code; first += count) {
        /* all launches of a call have tiles of one size: only the wide kernels have that always */
        const int whole = first || c->kept || c->kernel != KERNEL_WIDE;
        const int most = whole ? PIECE : FIRST_PIECE;
        count = ni - first < most ? ni - first : most;
        code = cuda_sum(c, first, count, want, c->kept, f);
    }
    c->targets.fill = NULL; /* all are there */
    return code;
}

int cuda_start(void *state, const struct targets *targets, const struct walk *walks, int nwalks,
               struct fault *f)
{
    struct cuda *c = state;
    if (nwalks != 1 || walks->i_first || walks->j_first || walks->i_count != targets->ni ||
        walks->j_count != c->nj || targets->on_device)
        return error_set(f, G6X_E_ARGUMENT, "this backend takes one plain walk at a time");
    int code = cuda_enter(c, f);
    if (!code) code = clean_up(c, f);
    if (code) return code;
    c->targets = *targets;
    c->soft = 0;
    c->soft_alike = 1;
    for (int i = 0; i < targets->ni; i++) {
        c->soft |= targets->eps2[i] > 0.0;
        c->soft_alike &= targets->eps2[i] == targets->eps2[0];
    }
    c->kernel = choose_kernel(c, targets->ni);
    c->list_rows = 0;
    c->launched = 0;
    code = make_room(c, targets->ni, f);
    if (!code && !c->nj) {
        if (targets->fill) targets->fill(targets->context, 0, targets->ni);
        c->settled = 0;
        if (c->stride) memset(cuda_pointer(&c->results), 0, (size_t)c->stride * BYTES_PER_TARGET);
        for (int i = 0; i < targets->ni; i++) address_of(c)[i] = -1;
        c->has = WANT_JERK | WANT_NEAREST;
    } else if (!code) {
        code = sum_all(c, c->guess, c->keep_guess > 0, f);
    }
    cuda_leave(c);
    return code;
}

/* ---- the end --------------------------------------------------------------------------- */

/* Waits for one tile. A card that has stopped without giving its results is lost. */
static int wait_for_tile(struct cuda *c, int64_t tile, struct fault *f)
{
    const volatile unsigned long long *flag = flags_of(c) + tile;
    for (unsigned spins = 0; *flag != c->step; spins++) {
        threads_pause();
        if (spins % 4096 != 4095) continue;
        const int state = c->device.driver.query(c->device.stream);
        if (state == DRIVER_NOT_READY || (state == 0 && *flag == c->step)) continue;
        return cuda_check(c, state ? state : INT_MAX, "sum", f);
    }
    return 0;
}

int cuda_wait(struct cuda *c, int count, struct fault *f)
{
    const int64_t tiles = c->launched ? parts(count, c->tile_rows) : 0;
    for (int64_t t = 0; t < tiles; t++) {
        const int code = wait_for_tile(c, t, f);
        if (code) return code;
    }
    atomic_thread_fence(memory_order_acquire);
    if (count == c->targets.ni) c->unread = 0;
    return 0;
}

int cuda_left(const struct cuda *c, int count)
{
    const int64_t tiles = c->launched ? parts(count, c->tile_rows) : 0;
    int any = 0;
    for (int64_t t = 0; t < tiles; t++) any |= left_of(c)[t];
    return any;
}

int cuda_finish(void *state, unsigned want, int count, struct results *results, struct fault *f)
{
    struct cuda *c = state;
    int code = cuda_enter(c, f);
    if (code) return code;
    c->guess = want & WANT_NEAREST;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST))
        code = sum_all(c, want, c->kept, f);
    if (!code) code = cuda_wait(c, count, f);
    if (!code && !c->settled && cuda_left(c, count)) {
        c->keep_guess = KEEP_CALLS; /* it will happen again */
        code = cuda_settle(c, f);
    }
    if (c->keep_guess) c->keep_guess--;
    *results = cuda_results(c);
    cuda_leave(c);
    return code;
}
