/* arrays.c - force calls whose targets lie on the card, and whose forces go there. The sums
 * are those of cuda/sum.c; kernels take and give (arrays.cu) stand before and behind them. */
#include <limits.h>
#include <string.h>

#include "cuda/cuda.h"

enum { THREADS = 256 };
/* The driver's numbers for a stream that is none of this device's. */
enum { INVALID_HANDLE = 400, CONTEXT_DESTROYED = 709 };

static struct cuda_notes *notes_of(const struct cuda *c) { return cuda_pointer(&c->notes); }

int cuda_arrays_clear_notes(struct cuda *c, struct fault *f)
{
    const int code = cuda_device_reserve(c, &c->notes, MEMORY_PINNED, sizeof(struct cuda_notes), f);
    if (!code)
        *notes_of(c) = (struct cuda_notes){.invalid = CUDA_NO_ROW, .out_of_range = CUDA_NO_ROW};
    return code;
}

int cuda_arrays_wait_for_caller(struct cuda *c, void *stream, struct fault *f)
{
    const int error = c->device.driver.wait(stream);
    if (error == INVALID_HANDLE || error == CONTEXT_DESTROYED)
        return error_set(f, G6X_E_ARGUMENT, "the stream is none of the session's device");
    return cuda_device_check(c, error, "caller's stream", f);
}

/* ---- the way in ------------------------------------------------------------------------- */

int cuda_arrays_load_targets(struct cuda *c, struct fault *f)
{
    const struct targets *t = &c->targets;
    int code = cuda_device_reserve(c, &c->card_results, MEMORY_DEVICE,
                                   (uint64_t)c->stride * BYTES_PER_TARGET, f);
    if (!code) code = cuda_arrays_clear_notes(c, f);
    if (!code) code = cuda_arrays_wait_for_caller(c, t->stream, f);
    c->guess = t->want & WANT_NEAREST;
    if (code || !t->ni) return code;
    struct cuda_take_job job = {.index = t->index,
                                .x = (const double *)t->x,
                                .v = (const double *)t->v,
                                .eps2 = t->eps2[0],
                                .targets = cuda_pointer(&c->card_targets),
                                .notes = notes_of(c),
                                .rows = t->ni};
    c->unread = 1;
    return cuda_device_launch(c, 0, KERNEL_TAKE, ceil_div(t->ni, THREADS), 1, &job, f);
}

void cuda_arrays_keep_on_device(const struct cuda *c, struct cuda_sum_job *job)
{
    job->sum = cuda_pointer(&c->card_results);
    job->nearest_r2 = job->sum + NSUM * c->stride;
    job->nearest_address = (int32_t *)(job->nearest_r2 + c->stride);
    job->nearest_index = job->nearest_address + c->stride;
}

/* ---- the way out ------------------------------------------------------------------------ */

/* Whether the results are in the card's memory, and not in pinned memory. */
static int on_card(const struct cuda *c) { return c->targets.on_device && c->launched; }

static int give(struct cuda *c, const struct device_forces *to, int spoilt, struct fault *f)
{
    struct cuda_sum_job from = {0};
    cuda_arrays_keep_on_device(c, &from);
    struct cuda_give_job job = {.store = cuda_jparticles_store(c),
                                .time = c->time,
                                .targets = cuda_pointer(&c->card_targets),
                                .sum = from.sum,
                                .nearest_address = from.nearest_address,
                                .nearest_index = from.nearest_index,
                                .acc = (double *)to->acc,
                                .jerk = (double *)to->jerk,
                                .pot = to->pot,
                                .nearest = to->nearest,
                                .distance = to->distance,
                                .notes = notes_of(c),
                                .stride = c->stride,
                                .rows = to->ni,
                                .snap = c->snap,
                                .has_jerk = c->jerk,
                                .spoilt = spoilt};
    return to->ni > 0 ? cuda_device_launch(c, 0, KERNEL_GIVE, ceil_div(to->ni, THREADS), 1, &job, f)
                      : 0;
}

/* A row that was noted, with its index. */
static int noted(struct cuda *c, int row, struct device_row *found, struct fault *f)
{
    const struct cuda_target *targets = cuda_pointer(&c->card_targets);
    *found = (struct device_row){-1, -1};
    if (row == CUDA_NO_ROW) return 0;
    found->row = row;
    return cuda_device_copy_out(c, &found->index, (uint64_t)(uintptr_t)&targets[row].index,
                                sizeof found->index, f);
}

int cuda_arrays_hand_over(struct cuda *c, const struct device_forces *to,
                          struct device_found *found, struct fault *f)
{
    const struct driver *d = &c->device.driver;
    int code = 0;
    if (!on_card(c) && to->ni)
        code = cuda_device_copy_in(c, c->card_results.address, cuda_pointer(&c->results),
                                   (size_t)c->stride * BYTES_PER_TARGET, f);
    notes_of(c)->out_of_range = CUDA_NO_ROW;
    if (!code && c->busy > 1) code = cuda_sum_wait(c, c->targets.ni, f); /* not only for lane 0 */
    if (!code) code = give(c, to, 0, f);
    if (!code) code = cuda_device_check(c, d->wait(c->device.stream[0]), "sum", f);
    if (!code) code = cuda_sum_wait(c, c->targets.ni, f);
    if (!code) code = noted(c, notes_of(c)->invalid, &found->invalid, f);
    if (!code) code = noted(c, notes_of(c)->out_of_range, &found->out_of_range, f);
    found->left = on_card(c) && c->any_left;
    if (c->rows_guess && !found->left) c->rows_guess--;
    return code;
}

int cuda_arrays_fill_nan(struct cuda *c, const struct device_forces *to, void *stream,
                         struct fault *f)
{
    int code = cuda_arrays_wait_for_caller(c, stream, f);
    if (!code) code = give(c, to, 1, f);
    return code ? code : cuda_device_check(c, c->device.driver.wait(c->device.stream[0]), "sum", f);
}

/* ---- to the host ------------------------------------------------------------------------ */

static void unpack(const struct cuda_target *from, int ni, const struct fetched_targets *to)
{
    for (int i = 0; i < ni; i++) {
        to->index[i] = from[i].index;
        memcpy(to->x[i], from[i].x, sizeof to->x[i]);
        memcpy(to->v[i], from[i].v, sizeof to->v[i]);
        to->eps2[i] = from[i].eps2;
        to->invalid[i] = from[i].invalid != 0;
    }
}

int cuda_arrays_fetch(struct cuda *c, const struct fetched_targets *to, struct fault *f)
{
    struct targets *t = &c->targets;
    const size_t ni = (size_t)t->ni;
    struct cuda_target *pinned = cuda_pointer(&c->pinned_targets);
    int code = 0;
    for (size_t i = 0; i < ni && !t->h2; i++) to->h2[i] = -1.0;
    if (ni && t->h2)
        code = cuda_device_copy_out(c, to->h2, (uint64_t)(uintptr_t)t->h2, ni * sizeof *to->h2, f);
    if (!code && ni)
        code = cuda_device_copy_out(c, pinned, c->card_targets.address, ni * sizeof *pinned, f);
    if (!code && ni && on_card(c))
        code = cuda_device_copy_out(c, cuda_pointer(&c->results), c->card_results.address,
                                    (size_t)c->stride * BYTES_PER_TARGET, f);
    if (code) return code;
    unpack(pinned, t->ni, to);
    *t = (struct targets){.ni = t->ni,
                          .index = to->index,
                          .x = (const double (*)[3])to->x,
                          .v = (const double (*)[3])to->v,
                          .eps2 = to->eps2};
    return 0;
}
