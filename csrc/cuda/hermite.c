/* hermite.c - Hermite integrations in device memory: all of a block step except the forces. The
 * kernels are in hermite.cu and run on the caller's stream. */
#include "cuda/arrays.h"

#include "core/hermite.h"

/* ---- the next block --------------------------------------------------------------------- */

/* The lowest number that the kernels noted as invalid, or -1. */
static int bad_of(const struct cuda_notes *notes)
{
    return notes->invalid != CUDA_NO_ROW ? notes->invalid : -1;
}

int cuda_hermite_next(struct cuda *c, const struct g6x_hermite *h, struct device_block *b,
                      struct error *err)
{
    const int64_t words = ceil_div(h->n, 32);
    const int64_t share = ceil_div(words, CUDA_NEXT_BLOCKS) * 32, blocks = ceil_div(h->n, share);
    const uint64_t heads = CUDA_NEXT_BLOCKS * (sizeof(double) + sizeof(int32_t));
    int code = cuda_device_reserve(c, &c->next, MEMORY_DEVICE, heads + (uint64_t)words * 4, err);
    if (!code) code = cuda_device_clear_notes(c, err);
    if (code) return code;
    struct cuda_notes *notes = cuda_notes(c);
    double *earliest = cuda_pointer(&c->next);
    int32_t *counts = (int32_t *)(void *)(earliest + CUDA_NEXT_BLOCKS);
    struct cuda_next_job job = {.t = h->t,
                                .dt = h->dt,
                                .common = hermite_common(h),
                                .n = h->n,
                                .share = (int32_t)share,
                                .earliest = earliest,
                                .counts = counts,
                                .bits = (uint32_t *)(counts + CUDA_NEXT_BLOCKS),
                                .address = h->address,
                                .notes = notes};
    for (int kernel = KERNEL_NEXT_TIME; kernel <= KERNEL_NEXT_LIST && !code; kernel++)
        code = cuda_device_launch_for(c, b->stream, kernel, blocks, 1, &job, err);
    if (!code) code = cuda_device_wait_for_caller(c, b->stream, err);
    b->ni = notes->count, b->time = notes->time, b->bad = bad_of(notes);
    return code;
}

/* ---- its particles ---------------------------------------------------------------------- */

static struct cuda_hermite_job job_of(const struct g6x_hermite *h, int ni, double time)
{
    return (struct cuda_hermite_job){
        .state = hermite_state_of(h),
        .rule = {h->eta, h->dtmin, h->dtmax},
        .time = time,
        .address = h->address,
        .xi = h->xi,
        .vi = h->vi,
        .acc = CONST3(h->acc),
        .jerk = CONST3(h->jerk),
        .pot = h->pot,
        .rounding = h->rounding,
        .mass = h->mass,
        .rows = ni,
        .n = h->n,
        .acting = hermite_acting(h),
    };
}

int cuda_hermite_predict(struct cuda *c, const struct g6x_hermite *h, struct device_block *b,
                         struct error *err)
{
    struct cuda_hermite_job job = job_of(h, b->ni, b->time);
    b->fine = NULL;
    if (b->noise.step > 0.0) {
        const int code = cuda_device_reserve(c, &c->fine_rows, MEMORY_PINNED, (uint64_t)h->n, err);
        if (code) return code;
        job.noise = b->noise;
        b->fine = job.fine = cuda_pointer(&c->fine_rows);
    }
    return cuda_device_launch_for(c, b->stream, KERNEL_HERMITE_PREDICT, ceil_div(b->ni, THREADS), 1,
                                  &job, err);
}

int cuda_hermite_correct(struct cuda *c, const struct g6x_hermite *h, struct device_block *b,
                         struct error *err)
{
    struct cuda_hermite_job job = job_of(h, b->ni, b->time);
    const int64_t ni = b->ni;
    job.noise = b->noise;
    if (b->field) job.field = *b->field;
    job.given = !b->field;
    job.eps2 = b->pairs;
    if (!h->field_acc && b->field && !field_is_none(b->field))
        job.noise.noise = 0.0; /* as on the host */
    job.field_acc = h->field_acc;
    job.field_jerk = h->field_jerk;
    if (b->moves) job.work = hermite_work_of(h);
    if (!b->moves) job.state.dt = NULL;
    int code = cuda_device_clear_notes(c, err);
    if (!code && b->writes) { /* memory for the block as j particles */
        code = cuda_device_reserve(c, &c->rows_of_j, MEMORY_DEVICE,
                                   (uint64_t)ni * 8 * sizeof(double), err);
        double *row = cuda_pointer(&c->rows_of_j);
        job.a2 = (double (*)[3])(void *)row;
        job.j6 = (double (*)[3])(void *)(row + 3 * ni);
        job.mass_out = row + 6 * ni;
        job.time_out = row + 7 * ni;
    }
    job.notes = cuda_notes(c);
    if (!code)
        code = cuda_device_launch_for(c, b->stream, KERNEL_HERMITE_CORRECT,
                                      ceil_div(job.rows, THREADS), 1, &job, err);
    if (!code) code = cuda_device_wait_for_caller(c, b->stream, err);
    if (b->writes)
        b->rows = (struct device_particles){.n = cuda_notes(c)->acting,
                                            .below = job.acting,
                                            .address = h->address,
                                            .time = job.time_out,
                                            .mass = job.mass_out,
                                            .j6 = CONST3(job.j6),
                                            .a2 = CONST3(job.a2),
                                            .v = CONST3(h->vi),
                                            .x = CONST3(h->xi),
                                            .stream = b->stream};
    if (code) return code;
    b->clamped = cuda_notes(c)->clamped, b->bad = bad_of(cuda_notes(c));
    return 0;
}

int cuda_hermite_watch(struct cuda *c, const struct g6x_hermite *h, const struct g6x_evolution *e,
                       void *stream, int *found, struct error *err)
{
    struct cuda_hermite_job job = job_of(h, e->ni, e->next);
    job.watch = (struct watch_row){.closer = e->closer,
                                   .farther = e->farther,
                                   .centre = {e->centre[0], e->centre[1], e->centre[2]}};
    job.nearest = e->closer > 0.0 ? h->nearest : NULL;
    job.close = h->close;
    job.left = h->left;
    int code = cuda_device_clear_notes(c, err);
    job.notes = cuda_notes(c);
    if (!code)
        code = cuda_device_launch_for(c, stream, KERNEL_HERMITE_WATCH, job.rows, 1, &job, err);
    if (!code) code = cuda_device_wait_for_caller(c, stream, err);
    *found = code ? 0 : cuda_notes(c)->unknown ? -1 : cuda_notes(c)->watched;
    return code;
}
