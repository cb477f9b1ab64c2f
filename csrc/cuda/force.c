/* force.c - a force call of one device: its start and its end. */
#include "cuda/force.h"

#include <limits.h>
#include <string.h>

#include "core/by_row.h"
#include "cpu/exact.h"
#include "util/memory.h"
#include "util/threads.h"

/* ---- start -------------------------------------------------------------------------------- */

static int start(struct cuda *c, const struct targets *targets, int share, int shares,
                 struct error *err)
{
    const int64_t blocks = cuda_all_blocks(c);
    int code = cuda_sum_clean_up(c, err);
    if (code) return code;
    c->targets = *targets;
    c->listed_ahead = 0;
    c->zero_distances = c->met_zero_distances = 0; /* of sums that were done again for their rows */
    uint64_t any = 0, differ = 0; /* bits: loops that the compiler makes vectors of */
    const int one = targets->on_device || (targets->alike && targets->ni);
    for (int i = 0; i < (one ? 1 : targets->ni); i++) {
        any |= bits_of(targets->eps2[i]) << 1;
        differ |= bits_of(targets->eps2[i]) ^ bits_of(targets->eps2[0]);
    }
    c->soft = any != 0;
    c->soft_alike = differ == 0;
    cuda_jparticles_set_blocks(c, blocks * share / shares, blocks * (share + 1) / shares);
    c->kernel = cuda_launch_config_kernel(c, targets->ni);
    c->launched = 0;
    code = cuda_sum_reserve_targets(c, targets->ni, err);
    if (!code) code = cuda_results_reserve(c, targets->ni, err);
    if (targets->on_device && !targets->x)
        c->guess = 0; /* kernel fused_step has stored the i particles */
    else if (!code && targets->on_device)
        code = cuda_sum_load_targets(c, err);
    if (!code && !c->nj) {
        by_row_copy(targets->from, 0, targets->ni);
        c->sums = SUMS_LAUNCHED;
        cuda_results_clear(c);
        c->has = WANT_JERK | WANT_NEAREST;
    } else if (!code) {
        code = cuda_sum_all(c, c->guess | (shares > 1 || c->rows_calls > 0 ? WANT_ROWS : 0), err);
    }
    return code;
}

int cuda_force_start(struct cuda *c, const struct upload *u, const struct targets *targets,
                     int share, int shares, struct error *err)
{
    int code = cuda_device_enter(c, err);
    if (code) return code;
    code = cuda_jparticles_update(c, u, err);
    if (!code) code = start(c, targets, share, shares, err);
    if (!code && shares == 1) cuda_neighbours_ahead(c);
    cuda_device_leave(c);
    return code;
}

/* ---- rows of partial sums ----------------------------------------------------------------- */

void cuda_force_read_rows(const struct cuda *c, int first, int count, struct partial_row *rows)
{
    const int limbs = limbs_of(c->mode);
    const struct cuda_rows from = cuda_results_rows(c);
    if (c->sums == SUMS_SETTLED) {
        memcpy(rows, c->rows + first, (size_t)count * sizeof *rows);
        return;
    }
    for (int i = 0; i < count; i++) partial_clear(&rows[i]);
    if (!c->nj) return;
    for (int w = 0; w < NWINDOW; w++) {
        const int32_t *top = from.tops + w * c->stride + first;
        for (int i = 0; i < count; i++)
            if (top[i]) rows[i].top[w] = top[i] - CUDA_TOP_ZERO;
    }
    for (int k = 0; k < NSUM; k++)
        for (int d = 0; d < limbs; d++) {
            const long long *limb = from.limbs + (k * limbs + d) * c->stride + first;
            for (int i = 0; i < count; i++) rows[i].limb[k][d] = limb[i];
        }
}

/* ---- host fallback: close pairs, and values outside the exponent range of single precision */

struct exact_tasks {
    struct cuda *c;
    struct direct_job job;
    const struct cuda_left *left;
    atomic_flag lock;
};

/* Sums of whole blocks on rows, or of some of their runs. */
static void exact_task(void *argument, int64_t first, int64_t end)
{
    struct exact_tasks *t = argument;
    const int run = t->job.mode == MODE_DOUBLE ? CUDA_RUN_DOUBLE : CUDA_RUN;
    for (int64_t k = first; k < end; k++) {
        const struct cuda_left *l = &t->left[k];
        struct nearest nearest;
        double sum[NSUM] = {0.0};
        int16_t place[CUDA_BLOCK];
        int n = 0;
        for (int p = 0; p < CUDA_BLOCK; p++)
            if ((unsigned)l->runs >> p / run & 1) place[n++] = (int16_t)p;
        cpu_exact_pairs(&t->job, l->row, l->block, place, n, sum, &nearest);
        while (atomic_flag_test_and_set(&t->lock)) threads_pause();
        partial_add_block(&t->c->rows[l->row], sum, t->job.limbs);
        cuda_results_take_nearer(t->c, l->row, nearest.r2, nearest.address);
        atomic_flag_clear(&t->lock);
    }
}

static void add_left(struct cuda *c, int64_t count)
{
    struct exact_tasks t = {
        .c = c,
        .left = cuda_pointer(&c->left),
        .job = {.mode = c->mode,
                .limbs = limbs_of(c->mode),
                .memory = c->memory,
                .nj = c->nj,
                .time = c->time,
                .snap = c->snap,
                .scale = c->scale,
                .ni = c->targets.ni,
                .index = c->targets.index,
                .x = c->targets.x,
                .v = c->targets.v,
                .eps2 = c->targets.eps2,
                .zero_distances = &c->zero_distances},
        .lock = ATOMIC_FLAG_INIT,
    };
    threads_each(options_threads(c->threads), count, 1, exact_task, &t);
    for (int64_t k = 0; k < count; k++)
        cuda_results_round(c, t.left[k].row, &c->rows[t.left[k].row]);
}

/* Reads the number of entries of `left`. If they exceeded its capacity, enlarges it and sets
 * *again. */
static int count_left(struct cuda *c, int32_t *count, int *again, struct error *err)
{
    const uint64_t size = sizeof(struct cuda_left);
    int code = cuda_device_copy_out(c, count, cuda_pointer(&c->left_count), sizeof *count, err);
    if (!code) code = cuda_device_fill(c, c->left_count.address, sizeof *count, err);
    *again = (uint64_t)*count * size > c->left.bytes;
    if (!code && *again)
        code = cuda_device_reserve(c, &c->left, MEMORY_PINNED, (uint64_t)*count * size, err);
    return code;
}

int cuda_force_reserve_rows(struct cuda *c, struct error *err)
{
    const int ni = c->targets.ni;
    if (ni <= c->rows_capacity) return 0;
    memory_free(c->rows);
    c->rows = memory_zeroed((size_t)ni * sizeof *c->rows);
    c->rows_capacity = c->rows ? ni : 0;
    return c->rows ? 0 : error_set(err, G6X_E_MEMORY, "out of memory for %d partial sums", ni);
}

/* Repeats the call's sums if they were without partial sums, or while `left` was too small. */
int cuda_force_settle(struct cuda *c, struct error *err)
{
    int32_t left = 0;
    int again = !(c->has & WANT_ROWS);
    if (c->sums == SUMS_SETTLED) return 0;
    int code = cuda_force_reserve_rows(c, err);
    for (int round = 0; round < 3 && !code && c->nj; round++) {
        if (again) code = cuda_sum_all(c, c->has | WANT_ROWS, err);
        if (!code) code = cuda_results_wait(c, c->targets.ni, err);
        if (!code) code = count_left(c, &left, &again, err);
        if (!again) break;
    }
    if (!code && again && c->nj) code = cuda_device_check(c, INT_MAX, "repeated sum", err);
    if (!code && c->nj) code = cuda_results_fetch_rows(c, err);
    if (code) return code;
    cuda_force_read_rows(c, 0, c->targets.ni, c->rows);
    add_left(c, left);
    c->sums = SUMS_SETTLED;
    return 0;
}

/* ---- finish ------------------------------------------------------------------------------- */

static int finish(struct cuda *c, unsigned want, int count, struct error *err)
{
    int code = 0;
    c->guess = want & WANT_NEAREST;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST))
        code = cuda_sum_all(c, want | (c->has & WANT_ROWS), err);
    /* complete results are copied faster at the end, by many threads */
    if (!code && count < c->targets.ni && cuda_results_are_there(c)) return 1;
    if (!code) code = cuda_results_wait(c, count, err);
    if (!code && c->sums == SUMS_LEFT) {
        if (count < c->targets.ni) return 1;
        c->rows_calls = ROWS_CALLS; /* the next calls are likely to need them too */
        jmemory_commit(c->memory);
        code = cuda_force_settle(c, err);
    }
    if (c->rows_calls) c->rows_calls--;
    return code;
}

int cuda_force_finish(struct cuda *c, unsigned want, int count, struct error *err)
{
    int code = cuda_device_enter(c, err);
    if (code) return code;
    code = finish(c, want, count, err);
    cuda_device_leave(c);
    return code;
}
