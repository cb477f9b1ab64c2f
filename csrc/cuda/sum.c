/* sum.c - force calls on the card: which kernel takes them, and how their end is seen. */
#include <limits.h>
#include <string.h>

#include "cuda/cuda.h"
#include "util/memory.h"
#include "util/threads.h"

/* ---- where things lie --------------------------------------------------------------- */

/* Results in pinned memory; behind them per tile the flag, the number of rows and blocks left to
 * the host, and that of pairs at one place. */
enum { BYTES_PER_TILE = 8 + 4 + 4 };
enum { SMALLEST_TILE = 8 };

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

static int32_t *coincident_of(const struct cuda *c)
{
    return left_of(c) + c->stride / SMALLEST_TILE;
}

struct results cuda_sum_results(const struct cuda *c)
{
    struct results r = {.nearest = address_of(c), .index = index_of(c)};
    for (int k = 0; k < NSUM; k++) r.sum[k] = sums_of(c) + k * c->stride;
    return r;
}

static int make_room(struct cuda *c, int ni, struct fault *f)
{
    const int64_t n = ceil_div(ni, WIDE_ROWS) * WIDE_ROWS;
    const uint64_t bytes = (uint64_t)n;
    int code = cuda_device_reserve(c, &c->pinned_targets, MEMORY_PINNED,
                                   bytes * sizeof(struct cuda_target), f);
    if (!code)
        code = cuda_device_reserve(c, &c->card_targets, MEMORY_DEVICE,
                                   bytes * sizeof(struct cuda_target), f);
    if (!code && n > c->stride) {
        code = cuda_device_reserve(
            c, &c->results, MEMORY_PINNED,
            bytes * BYTES_PER_TARGET + bytes / SMALLEST_TILE * BYTES_PER_TILE, f);
        if (!code) {
            c->stride = n; /* no flag may look as if it had been raised already */
            memset(flags_of(c), 0, (size_t)(n / SMALLEST_TILE) * BYTES_PER_TILE);
        }
    }
    return code ? code : cuda_device_reserve(c, &c->left_count, MEMORY_DEVICE, sizeof(int32_t), f);
}

/* Room for the bins of a launch, which are in its lane's memory. */
static int make_room_for_bins(struct cuda *c, int lane, int rows, struct fault *f)
{
    const uint64_t n = ((uint64_t)rows + 255) / 256 * 256;
    const uint64_t row_bytes =
        (uint64_t)(NSUM * cuda_bins(c)) * 8 + NWINDOW * 4 + 8 + 4 + 4; /* see job_of */
    const int code = cuda_device_reserve(c, &c->bins[lane], MEMORY_DEVICE, n * row_bytes, f);
    return code ? code
                : cuda_device_reserve(c, &c->ended[lane], MEMORY_DEVICE, n / SMALLEST_TILE * 12, f);
}

/* Where rows of partial.h go: the fields of this alone. */
struct cuda_sum_job cuda_sum_row_arrays(const struct cuda *c)
{
    struct cuda_sum_job job = {.limbs = cuda_pointer(&c->partial)};
    job.tops = (int32_t *)(void *)(job.limbs + NSUM * limbs_of(MODE_DOUBLE) * c->stride);
    return job;
}

static int make_room_for_rows(struct cuda *c, struct fault *f)
{
    const uint64_t row_bytes = (uint64_t)(NSUM * limbs_of(MODE_DOUBLE)) * 8 + NWINDOW * 4;
    return cuda_device_reserve(c, &c->partial, MEMORY_PINNED, (uint64_t)c->stride * row_bytes, f);
}

/* ---- launching ------------------------------------------------------------------------ */

static int floor_of_40(int e) { return (e + 4000) / BIN_BITS - 100; }

void cuda_sum_units(const struct cuda *c, int32_t unit[NWINDOW], int32_t base[NWINDOW])
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
static struct cuda_sum_job job_of(const struct cuda *c, int lane, int first, int rows)
{
    const int64_t stride = ((int64_t)rows + 31) / 32 * 32;
    struct cuda_sum_job job = {
        .sources = cuda_jparticles_sources(c),
        .frame = cuda_jparticles_frame(c),
        .store = cuda_jparticles_store(c),
        .time = c->time,
        .snap = c->snap,
        .nj = (int32_t)c->nj,
        .rows = rows,
        .first_block = (int32_t)c->first_block,
        .end_block = (int32_t)c->end_block,
        .stride = (int32_t)stride,
        .targets = (const struct cuda_target *)cuda_pointer(&c->card_targets) + first,
        .left_room = (int32_t)(c->left.bytes / sizeof(struct cuda_left)),
        .left_count = cuda_pointer(&c->left_count),
        .left = cuda_pointer(&c->left),
        .first = first,
        .out_stride = (int32_t)c->stride,
        .sum = sums_of(c),
        .nearest_address = address_of(c),
        .nearest_index = index_of(c),
        .nearest_r2 = r2_of(c),
        .left_of_tile = left_of(c),
        .coincident_of_tile = coincident_of(c),
        .flag = flags_of(c),
        .step = c->step,
    };
    cuda_sum_units(c, job.unit, job.base);
    job.bin = cuda_pointer(&c->bins[lane]);
    job.nearest = (unsigned long long *)(job.bin + NSUM * cuda_bins(c) * stride);
    job.top = (int32_t *)(void *)(job.nearest + stride);
    job.nearest_place = job.top + NWINDOW * stride;
    job.nearest_lock = job.nearest_place + stride;
    job.ended = cuda_pointer(&c->ended[lane]);
    if (c->has_rows) {
        const struct cuda_sum_job to = cuda_sum_row_arrays(c);
        job.limbs = to.limbs;
        job.tops = to.tops;
    }
    if (c->targets.on_device) cuda_arrays_keep_on_device(c, &job);
    return job;
}

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
    if (t->fill) t->fill(t->context, 0, t->ni);
    memcpy(to->x, t->x, n * sizeof *to->x);
    memcpy(to->v, t->v, n * sizeof *to->v);
    memcpy(to->index, t->index, n * sizeof *to->index);
    to->eps2 = t->eps2[0];
}

/* Whether the particles that wait for the prediction are among those that it goes through. */
static int takes_few(const struct cuda *c)
{
    const struct cuda_at_rest *r = &c->rest;
    const int64_t first = r->count ? r->first : c->few_first,
                  end = r->count ? (int64_t)r->first + r->count : c->few_end;
    return (!c->few && !r->count) ||
           (first >= c->first_block * CUDA_BLOCK && end <= c->end_block * CUDA_BLOCK);
}

void cuda_sum_set_blocks(struct cuda *c, int64_t first, int64_t end)
{
    if (first != c->first_block || end != c->end_block) c->predicted = 0;
    c->first_block = first;
    c->end_block = end;
}

int cuda_sum_predict(struct cuda *c, struct fault *f)
{
    struct cuda_predict_job job;
    const int64_t quarters = cuda_blocks(c) * (CUDA_BLOCK / CUDA_QUARTER);
    int code = takes_few(c) ? 0 : cuda_jparticles_send_few(c, f);
    cuda_jparticles_prediction(c, &job);
    c->unread |= job.rest.count > 0;
    if (!code) code = cuda_device_launch(c, 0, KERNEL_PREDICT, quarters, 1, &job, f);
    if (!code) cuda_jparticles_has_predicted(c);
    return code;
}

/* Whether the CUDA blocks of a sum had better predict their own addresses, all at once. */
static int predicts_itself(const struct cuda *c, int64_t cuda_blocks)
{
    return c->mode != MODE_DOUBLE && c->kernel < KERNEL_MIDDLE &&
           cuda_blocks <= c->device.multiprocessors && takes_few(c) && !c->rest.count;
}

static int copy_targets(struct cuda *c, int lane, int first, int count, struct fault *f)
{
    const struct driver *d = &c->device.driver;
    const struct cuda_target *pinned = cuda_pointer(&c->pinned_targets);
    const uint64_t to = c->card_targets.address + (uint64_t)first * sizeof *pinned;
    cuda_iparticles_wait(c, first + count);
    return cuda_device_check(
        c, d->copy_in(to, pinned + first, (size_t)count * sizeof *pinned, c->device.stream[lane]),
        "copy", f);
}

/* Lets a lane begin after what has been launched on lane 0. */
static int follow(struct cuda *c, int lane, struct fault *f)
{
    const struct driver *d = &c->device.driver;
    const int code =
        cuda_device_check(c, d->record(c->device.event, c->device.stream[0]), "event", f);
    return code ? code
                : cuda_device_check(c, d->follow(c->device.stream[lane], c->device.event, 0),
                                    "event", f);
}

static int sum(struct cuda *c, int lane, int first, int count, unsigned want, struct fault *f)
{
    struct cuda_small_job job; /* of the wide kernels, its beginning */
    const int in_job = are_in_job(c);
    int code = make_room_for_bins(c, lane, count, f), kernel = c->kernel + (c->jerk ? 1 : 0);
    if (code) return code;
    job.sum = job_of(c, lane, first, count);
    cuda_launch_config_blocks(c, count, &job.sum);
    const int64_t across = ceil_div(cuda_blocks(c), job.sum.step_blocks);
    const int64_t tiles = ceil_div(count, job.sum.tile_rows);
    job.predicts = !c->predicted && predicts_itself(c, across * tiles);
    if (job.predicts) {
        job.arrivals = cuda_jparticles_arrivals(c);
        if (in_job && count <= CUDA_FEW_IN_JOB && c->few <= CUDA_SENT_IN_JOB) {
            memcpy(job.targets.few.sent, job.arrivals.sent,
                   (size_t)c->few * sizeof *job.arrivals.sent);
            job.arrivals.sent = NULL;
        }
    }
    if (!c->predicted && !job.predicts) code = cuda_sum_predict(c, f);
    if (in_job)
        pack_in_job(c, &job);
    else if (!code && !c->targets.on_device)
        code = copy_targets(c, lane, first, count, f);
    if (code) return code;
    if (c->kernel == KERNEL_WIDE)
        kernel =
            KERNEL_WIDE + (c->jerk ? 4 : 0) + (want & WANT_NEAREST ? 2 : 0) + (c->soft ? 1 : 0);
    else
        c->has |= WANT_NEAREST;
    c->tile_rows = job.sum.tile_rows;
    c->unread = 1;
    if (lane) code = follow(c, lane, f);
    if (!code) code = cuda_device_launch(c, lane, kernel, across, tiles, &job, f);
    if (!code && job.predicts) cuda_jparticles_has_predicted(c);
    return code;
}

/* Whether any launch of the last call may have left pairs to the host. */
static int left_behind(const struct cuda *c)
{
    const int64_t tiles = c->launched ? ceil_div(c->launched, c->tile_rows) : 0;
    int any = 0;
    for (int64_t t = 0; t < tiles; t++) any |= left_of(c)[t];
    return any;
}

/* What the last call has left behind: the count of pairs for the host. */
static int clean_up(struct cuda *c, struct fault *f)
{
    int code = c->unread ? cuda_device_idle(c, "sum", f) : 0;
    c->unread = 0;
    if (!code && (c->cut_short || (!c->settled && left_behind(c))))
        code = cuda_device_fill(c, c->left_count.address, sizeof(int32_t), f);
    if (!code) c->cut_short = 0;
    c->settled = 1;
    return code;
}

/* Launches what the whole call needs: several sums, if there are many i particles. */
static int launch_all(struct cuda *c, void *want, struct fault *f)
{
    /* all launches of a call have tiles of one size: only the wide kernels have that always */
    const int ni = c->targets.ni,
              first_piece = ni < FEW_PIECES ? NEXT_PIECE * FIRST_PIECE : FIRST_PIECE;
    int most = c->kernel == KERNEL_WIDE ? first_piece : PIECE, lane = 0, code = 0;
    for (int first = 0, count; first < ni && !code; first += count) {
        count = ni - first < most ? ni - first : most;
        code = sum(c, lane, first, count, *(const unsigned *)want, f);
        most = most < PIECE / NEXT_PIECE ? NEXT_PIECE * most : PIECE;
        lane = (lane + 1) % DEVICE_STREAMS;
    }
    return code;
}

int cuda_sum_all(struct cuda *c, unsigned want, int rows, struct fault *f)
{
    const int ni = c->targets.ni;
    int code = clean_up(c, f);
    if (!code && rows) code = make_room_for_rows(c, f);
    if (code) return code;
    c->step++;
    c->has = want;
    c->settled = 0;
    c->has_rows = rows;
    c->launched = ni;
    c->tiles_there = 0;
    c->any_left = 0;
    c->coincident = 0;
    if (ni && (are_in_job(c) || c->targets.on_device))
        code = launch_all(c, &want, f);
    else if (ni)
        code = cuda_iparticles_pack(c, launch_all, &want, f);
    c->targets.fill = NULL; /* all are there, or the call has failed */
    if (code) c->launched = 0;
    c->cut_short = code != 0;
    return code;
}

static int start(struct cuda *c, const struct targets *targets, int share, int shares,
                 struct fault *f)
{
    const int64_t blocks = cuda_all_blocks(c);
    int code = clean_up(c, f);
    if (code) return code;
    c->targets = *targets;
    c->soft = 0;
    c->soft_alike = 1;
    for (int i = 0; i < (targets->on_device ? 1 : targets->ni); i++) {
        c->soft |= targets->eps2[i] > 0.0;
        c->soft_alike &= targets->eps2[i] == targets->eps2[0];
    }
    cuda_sum_set_blocks(c, blocks * share / shares, blocks * (share + 1) / shares);
    c->kernel = cuda_launch_config_kernel(c, targets->ni);
    c->list_rows = 0;
    c->launched = 0;
    code = make_room(c, targets->ni, f);
    if (!code && targets->on_device) code = cuda_arrays_load_targets(c, f);
    if (!code && !c->nj) {
        if (targets->fill) targets->fill(targets->context, 0, targets->ni);
        c->settled = 0;
        if (c->stride) memset(cuda_pointer(&c->results), 0, (size_t)c->stride * BYTES_PER_TARGET);
        for (int i = 0; i < targets->ni; i++) address_of(c)[i] = -1;
        c->has = WANT_JERK | WANT_NEAREST;
    } else if (!code) {
        code = cuda_sum_all(c, c->guess, shares > 1 || c->rows_guess > 0, f);
    }
    return code;
}

int cuda_sum_start(struct cuda *c, const struct upload *u, const struct targets *targets, int share,
                   int shares, struct fault *f)
{
    int code = cuda_device_enter(c, f);
    if (code) return code;
    code = cuda_jparticles_update(c, u, f);
    if (!code) code = start(c, targets, share, shares, f);
    cuda_device_leave(c);
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
        int state = 0;
        for (int lane = 0; lane < c->busy && !state; lane++)
            state = c->device.driver.query(c->device.stream[lane]);
        if (state == DRIVER_NOT_READY || (state == 0 && *flag == c->step)) continue;
        return cuda_device_check(c, state ? state : INT_MAX, "sum", f);
    }
    return 0;
}

int cuda_sum_is_done(const struct cuda *c)
{
    const volatile unsigned long long *flags = flags_of(c);
    return !c->launched || flags[ceil_div(c->launched, c->tile_rows) - 1] == c->step;
}

int cuda_sum_wait(struct cuda *c, int count, struct fault *f)
{
    const int64_t tiles = c->launched ? ceil_div(count, c->tile_rows) : 0;
    for (; c->tiles_there < tiles; c->tiles_there++) {
        const int code = wait_for_tile(c, c->tiles_there, f);
        if (code) return code;
        c->any_left |= left_of(c)[c->tiles_there];
        c->coincident += coincident_of(c)[c->tiles_there];
    }
    atomic_thread_fence(memory_order_acquire);
    if (count == c->targets.ni) c->unread = 0;
    return 0;
}

int cuda_sum_finish(struct cuda *c, unsigned want, int count, struct fault *f)
{
    int code = cuda_device_enter(c, f);
    if (code) return code;
    c->guess = want & WANT_NEAREST;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST))
        code = cuda_sum_all(c, want, c->has_rows, f);
    if (!code) code = cuda_sum_wait(c, count, f);
    if (!code && !c->settled && c->any_left) {
        if (count < c->targets.ni) {
            cuda_device_leave(c);
            return 1;
        }
        c->rows_guess = ROWS_CALLS; /* it will happen again */
        jmemory_commit(c->memory);
        code = cuda_partials_settle(c, f);
    }
    if (c->rows_guess) c->rows_guess--;
    cuda_device_leave(c);
    return code;
}
