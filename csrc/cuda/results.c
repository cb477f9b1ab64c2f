/* results.c - memory layout of a force call's results, and the wait for them. */
#include <limits.h>
#include <string.h>

#include "cuda/force.h"
#include "shared/neighbour.h"
#include "util/clock.h"
#include "util/threads.h"

/* After the results, pinned memory holds per tile: the flag, the number of entries left to the
 * host, and the number of zero-distance pairs. */
enum { SOON = 150000 }; /* nanoseconds before and after the expected end of a sum */
enum { BYTES_PER_TARGET = 8 * (NSUM + 1) + 4 * 2, BYTES_PER_TILE = 8 + 4 + 4 };

size_t cuda_results_bytes(const struct cuda *c) { return (size_t)c->stride * BYTES_PER_TARGET; }

struct cuda_results cuda_results_in(const struct cuda *c, const struct cuda_memory *m)
{
    struct cuda_results r = {.sum = cuda_pointer(m)};
    r.r2 = r.sum + NSUM * c->stride;
    r.address = (int32_t *)(r.r2 + c->stride);
    r.index = r.address + c->stride;
    return r;
}

static unsigned long long *flags_of(const struct cuda *c)
{
    return (void *)((char *)cuda_pointer(&c->results) + cuda_results_bytes(c));
}

static int32_t *left_of(const struct cuda *c)
{
    return (int32_t *)(void *)(flags_of(c) + c->stride / SMALLEST_TILE);
}

static int32_t *zero_distances_of(const struct cuda *c)
{
    return left_of(c) + c->stride / SMALLEST_TILE;
}

struct results cuda_results(const struct cuda *c)
{
    const struct cuda_results from = cuda_results_in(c, &c->results);
    struct results r = {.nearest = from.address, .index = from.index};
    for (int k = 0; k < NSUM; k++) r.sum[k] = from.sum + k * c->stride;
    return r;
}

int cuda_results_reserve(struct cuda *c, int ni, struct error *err)
{
    const int64_t n = ceil_div(ni, WIDE_ROWS) * WIDE_ROWS, tiles = n / SMALLEST_TILE;
    if (n > c->stride) {
        const int code =
            cuda_device_reserve(c, &c->results, MEMORY_PINNED,
                                (uint64_t)(n * BYTES_PER_TARGET + tiles * BYTES_PER_TILE), err);
        if (code) return code;
        c->stride = n; /* no flag may look raised */
        memset(flags_of(c), 0, (size_t)(tiles * BYTES_PER_TILE));
    }
    return c->targets.on_device ? cuda_device_reserve(c, &c->device_results, MEMORY_DEVICE,
                                                      cuda_results_bytes(c), err)
                                : 0;
}

static uint64_t row_bytes(const struct cuda *c)
{
    return (uint64_t)c->stride * ((uint64_t)(NSUM * limbs_of(MODE_DOUBLE)) * 8 + NWINDOW * 4);
}

int cuda_results_reserve_rows(struct cuda *c, struct error *err)
{
    c->rows_on_device = c->targets.on_device && c->targets.shares > 1;
    return c->rows_on_device
               ? cuda_device_reserve(c, &c->device_partial, MEMORY_DEVICE, row_bytes(c), err)
               : cuda_device_reserve(c, &c->partial, MEMORY_PINNED, row_bytes(c), err);
}

int cuda_results_fetch_rows(struct cuda *c, struct error *err)
{
    if (!c->rows_on_device) return 0;
    int code = cuda_device_reserve(c, &c->partial, MEMORY_PINNED, row_bytes(c), err);
    if (!code)
        code = cuda_device_copy_out(c, cuda_pointer(&c->partial), cuda_pointer(&c->device_partial),
                                    row_bytes(c), err);
    c->rows_on_device = 0;
    return code;
}

struct cuda_rows cuda_results_rows(const struct cuda *c)
{
    struct cuda_rows rows = {
        .limbs = cuda_pointer(c->rows_on_device ? &c->device_partial : &c->partial)};
    rows.tops = (int32_t *)(void *)(rows.limbs + NSUM * limbs_of(MODE_DOUBLE) * c->stride);
    return rows;
}

void cuda_results_set_job(const struct cuda *c, struct cuda_sum_job *job)
{
    const struct cuda_results r =
        cuda_results_in(c, c->targets.on_device ? &c->device_results : &c->results);
    job->sum = r.sum;
    job->nearest_address = r.address;
    job->nearest_index = r.index;
    job->nearest_r2 = r.r2;
    job->left_of_tile = left_of(c);
    job->zero_distances_of_tile = zero_distances_of(c);
    job->flag = flags_of(c);
    job->out_stride = (int32_t)c->stride;
    job->step = c->step;
    if (!(c->has & WANT_ROWS)) return;
    job->limbs = cuda_results_rows(c).limbs;
    job->tops = cuda_results_rows(c).tops;
}

void cuda_results_clear(const struct cuda *c)
{
    const struct cuda_results r = cuda_results_in(c, &c->results);
    if (c->stride) memset(r.sum, 0, cuda_results_bytes(c));
    for (int i = 0; i < c->targets.ni; i++) r.address[i] = -1;
}

void cuda_results_round(const struct cuda *c, int row, const struct partial_row *from)
{
    double sum[NSUM], *to = cuda_results_in(c, &c->results).sum + row;
    partial_value(from, sum);
    for (int k = 0; k < NSUM; k++) to[k * c->stride] = sum[k];
}

void cuda_results_take_nearer(const struct cuda *c, int row, double r2, int64_t address)
{
    const struct cuda_results r = cuda_results_in(c, &c->results);
    if (address < 0 || !neighbour_is_nearer(r2, address, r.r2[row], r.address[row])) return;
    r.r2[row] = r2;
    r.address[row] = (int32_t)address;
    r.index[row] = c->memory->body[address].index;
}

/* ---- waiting --------------------------------------------------------------------------- */

static int64_t tiles_of(const struct cuda *c, int count)
{
    return c->launched ? ceil_div(count, c->tile_rows) : 0;
}

/* A device that has stopped without raising its flag is lost. */
static int wait_for(struct cuda *c, const volatile unsigned long long *flag,
                    unsigned long long value, struct cuda_wait *w, const char *what,
                    struct error *err)
{
    enum { LOOKS = 64 }; /* polls of the flag for each query of the streams */
    for (unsigned looks = 1; *flag != value; looks++) {
        cuda_wait_moment(w);
        if (c->copied_at && clock_nanoseconds() > c->copied_at) {
            c->copied_at = 0;
            w->spin_end = clock_nanoseconds() + SOON; /* a nap may last as long */
            threads_wake(options_threads_for(MOST_COPIERS, c->threads));
        }
        if (looks % LOOKS) continue;
        int state = 0;
        for (int stream = 0; stream < c->busy && !state; stream++)
            state = c->device.driver.query(c->device.stream[stream]);
        if (state == DRIVER_NOT_READY || (state == 0 && *flag == value)) continue;
        return cuda_device_check(c, state ? state : INT_MAX, what, err);
    }
    return 0;
}

int cuda_results_wait_for(struct cuda *c, const volatile unsigned long long *flag,
                          unsigned long long value, const char *what, struct error *err)
{
    struct cuda_wait w = {0};
    const int code = wait_for(c, flag, value, &w, what, err);
    atomic_thread_fence(memory_order_acquire);
    return code;
}

int cuda_results_wait(struct cuda *c, int count, struct error *err)
{
    struct cuda_pace *pace = &c->pace[c->mode][c->sum_kernel];
    const double pairs = cuda_sum_pairs(c, count);
    struct cuda_wait w = cuda_wait_for_sum(pace, c->launched_at, pairs);
    for (const int64_t tiles = tiles_of(c, count); c->tiles_there < tiles; c->tiles_there++) {
        const int code = wait_for(c, flags_of(c) + c->tiles_there, c->step, &w, "sum", err);
        if (code) return code;
        if (left_of(c)[c->tiles_there] && c->sums == SUMS_LAUNCHED) c->sums = SUMS_LEFT;
        c->met_zero_distances += zero_distances_of(c)[c->tiles_there];
    }
    atomic_thread_fence(memory_order_acquire);
    /* rows complete in order, but the first ones late: no measure of the pace */
    if (pairs > 0.0 && count > c->targets.ni / 4 * 3)
        cuda_wait_learn(pace, &w, c->launched_at, pairs);
    if (count == c->targets.ni) c->unread = 0;
    return 0;
}

int cuda_results_are_there(const struct cuda *c)
{
    const volatile unsigned long long *flags = flags_of(c);
    return !c->launched || flags[tiles_of(c, c->launched) - 1] == c->step;
}

int cuda_results_any_left(const struct cuda *c)
{
    int any = 0;
    for (int64_t t = tiles_of(c, c->launched) - 1; t >= 0; t--) any |= left_of(c)[t];
    return any;
}
