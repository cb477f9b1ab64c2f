/* sum.c - launches of the kernels that sum a force call. */
#include <string.h>

#include "cuda/force.h"
#include "cuda/jparticles.h"
#include "util/clock.h"

enum {
    FIRST_PIECE = 1024, /* i particles of the first of several launches */
    NEXT_PIECE = 4,     /* growth of the next launches, which are copied meanwhile */
    FEW_PIECES = 32768  /* below so many i particles the first launch has the second size */
};

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
        .frame = cuda_jparticles_frame(c),
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

/* Whether the CUDA blocks of a sum should predict their own addresses: only if all run at once. */
static int predicts_itself(const struct cuda *c, int64_t cuda_blocks)
{
    return c->mode != MODE_DOUBLE && c->kernel < KERNEL_MIDDLE &&
           cuda_blocks <= c->device.multiprocessors && cuda_jparticles_few_are_within(c) &&
           !c->rest.count;
}

static int sum(struct cuda *c, int stream, int first, int count, struct error *err)
{
    struct cuda_small_job job; /* wide kernels read its first member only */
    const int in_job = cuda_iparticles_are_in_job(c);
    int code = reserve_bins(c, stream, count, err), kernel = c->kernel + (c->jerk ? 1 : 0);
    if (code) return code;
    job.sum = job_of(c, stream, first, count);
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
    if (!c->predicted && !job.predicts) code = cuda_jparticles_predict(c, err);
    if (in_job)
        cuda_iparticles_pack_in_job(c, &job);
    else if (!code && !c->targets.on_device)
        code = cuda_iparticles_copy(c, stream, first, count, err);
    if (code) return code;
    if (c->kernel == KERNEL_WIDE)
        kernel =
            KERNEL_WIDE + (c->jerk ? 4 : 0) + (c->has & WANT_NEAREST ? 2 : 0) + (c->soft ? 1 : 0);
    else
        c->has |= WANT_NEAREST;
    c->tile_rows = job.sum.tile_rows;
    c->unread = 1;
    if (stream) code = cuda_device_follow(c, stream, 0, err);
    c->sum_kernel = kernel;
    if (!code) code = cuda_device_launch(c, stream, kernel, across, tiles, &job, err);
    if (!first) c->launched_at = clock_nanoseconds();
    if (!code && job.predicts) cuda_jparticles_has_predicted(c);
    return code;
}

int cuda_sum_clean_up(struct cuda *c, struct error *err)
{
    int code = c->unread ? cuda_device_idle(c, "sum", err) : 0;
    c->unread = 0;
    if (!code && (c->cut_short || (!c->settled && cuda_results_any_left(c))))
        code = cuda_device_fill(c, c->left_count.address, sizeof(int32_t), err);
    if (!code) c->cut_short = 0;
    c->settled = 1;
    return code;
}

/* Several launches, if there are many i particles. */
static int launch_all(struct cuda *c, struct error *err)
{
    /* all launches of a call need one tile size, which only the wide kernels guarantee */
    const int ni = c->targets.ni,
              first_piece = ni < FEW_PIECES ? NEXT_PIECE * FIRST_PIECE : FIRST_PIECE;
    int most = c->kernel == KERNEL_WIDE ? first_piece : MOST_ROWS, stream = 0, code = 0;
    for (int first = 0, count; first < ni && !code; first += count) {
        count = ni - first < most ? ni - first : most;
        code = sum(c, stream, first, count, err);
        most = most < MOST_ROWS / NEXT_PIECE ? NEXT_PIECE * most : MOST_ROWS;
        stream = (stream + 1) % DEVICE_STREAMS;
    }
    return code;
}

int cuda_sum_all(struct cuda *c, unsigned want, int rows, struct error *err)
{
    const int ni = c->targets.ni;
    int code = cuda_sum_clean_up(c, err);
    if (!code && rows) code = cuda_results_reserve_rows(c, err);
    if (code) return code;
    c->step++;
    c->has = want;
    c->settled = 0;
    c->has_rows = rows;
    c->launched = ni;
    c->tiles_there = 0;
    c->any_left = 0;
    c->met_zero_distances = 0;
    if (ni && (cuda_iparticles_are_in_job(c) || c->targets.on_device))
        code = launch_all(c, err);
    else if (ni)
        code = cuda_iparticles_pack(c, launch_all, err);
    c->targets.fill = NULL; /* all are filled, or the call has failed */
    if (code) c->launched = 0;
    c->cut_short = code != 0;
    return code;
}
