/* cuda_rows.c - partial sums of the card as rows of partial.h, and the pairs that the card has
 * left to the host: too close ones, and what single precision's exponents do not hold. */
#include <string.h>

#include "cuda.h"
#include "exact.h"
#include "memory.h"
#include "threads.h"

/* ---- from bins to rows ------------------------------------------------------------------ */

/* Rows first.. from copies of the card's bins and tops. */
static void rows_from_bins(struct cuda *c, int first, int count, int64_t stride, const int64_t *bin,
                           const int32_t *top)
{
    const int bins = cuda_bins(c), limbs = limbs_of(c->mode);
    int32_t unit[NWINDOW], base[NWINDOW];
    cuda_units(c, unit, base);
    for (int i = 0; i < count; i++) {
        struct partial_row *row = &c->rows[first + i];
        partial_clear(row);
        for (int k = 0; k < NSUM; k++) {
            const int w = window_of(k), t = top[w * stride + i] - CUDA_TOP_ZERO;
            if (t == -CUDA_TOP_ZERO) continue;
            row->top[w] = t;
            for (int d = 0; d < limbs; d++)
                row->limb[k][d] = bin[(k * bins + t - base[w] - d) * stride + i];
        }
    }
}

/* Fetches the rows of a launch that kept its bins. */
static int fetch(struct cuda *c, int first, int count, struct fault *f)
{
    const int bins = cuda_bins(c);
    const int64_t stride = ((int64_t)count + 31) / 32 * 32, words = NSUM * bins * stride;
    const size_t bytes = (size_t)(words + stride) * 8 + (size_t)(NWINDOW * stride) * 4;
    char *copy = memory_zeroed(bytes);
    if (!copy)
        return error_set(f, G6X_E_MEMORY, "out of memory for the partial sums of %d particles",
                         count);
    const int code = cuda_copy_out(c, copy, c->bins[0].address, bytes, f);
    if (!code)
        rows_from_bins(c, first, count, stride, (const int64_t *)(void *)copy,
                       (const int32_t *)(void *)(copy + (words + stride) * 8));
    memory_free(copy);
    return code;
}

/* ---- what is left to the host ----------------------------------------------------------- */

struct exact_tasks {
    struct cuda *c;
    struct direct_job job;
    const struct cuda_left *left;
    int64_t count;
    _Atomic int64_t next;
    atomic_flag lock;
};

static void nearer(struct cuda *c, const struct cuda_left *l, const struct nearest *n)
{
    const struct results r = cuda_results(c);
    double *r2 = (double *)(uintptr_t)r.sum[0] + NSUM * c->stride;
    int32_t *address = (int32_t *)(uintptr_t)r.nearest, *index = (int32_t *)(uintptr_t)r.index;
    if (n->address < 0) return;
    if (address[l->row] >= 0 &&
        !(n->r2 < r2[l->row] || (n->r2 == r2[l->row] && n->address < address[l->row])))
        return;
    r2[l->row] = n->r2;
    address[l->row] = (int32_t)n->address;
    index[l->row] = c->memory->body[n->address].index;
}

static void exact_task(void *argument)
{
    struct exact_tasks *t = argument;
    for (int64_t k; (k = atomic_fetch_add(&t->next, 1)) < t->count;) {
        const struct cuda_left *l = &t->left[k];
        struct nearest n;
        double sum[NSUM];
        exact_block(&t->job, l->row, l->block, sum, &n);
        while (atomic_flag_test_and_set(&t->lock)) threads_pause();
        partial_add_block(&t->c->rows[l->row], sum, t->job.limbs);
        nearer(t->c, l, &n);
        atomic_flag_clear(&t->lock);
    }
}

static void add_left(struct cuda *c, int64_t count)
{
    struct exact_tasks t = {
        .c = c,
        .left = cuda_pointer(&c->left),
        .count = count,
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
                .coincidences = &c->coincidences},
        .lock = ATOMIC_FLAG_INIT,
    };
    const int threads = c->threads ? c->threads : options_cores();
    threads_run(count < threads ? (int)count : threads, exact_task, &t);
    const struct results r = cuda_results(c);
    for (int64_t k = 0; k < count; k++) {
        double sum[NSUM];
        const int row = t.left[k].row;
        partial_value(&c->rows[row], sum);
        for (int q = 0; q < NSUM; q++) ((double *)(uintptr_t)r.sum[q])[row] = sum[q];
    }
}

/* How many pairs the launch has left, with room for them all: else it is to be done again. */
static int count_left(struct cuda *c, int32_t *count, int *again, struct fault *f)
{
    const uint64_t size = sizeof(struct cuda_left);
    int code = cuda_copy_out(c, count, c->left_count.address, sizeof *count, f);
    if (!code) code = cuda_fill(c, c->left_count.address, sizeof *count, f);
    *again = (uint64_t)*count * size > c->left.bytes;
    if (!code && *again)
        code = cuda_reserve(c, &c->left, MEMORY_PINNED, (uint64_t)*count * size, f);
    return code;
}

/* A piece once more, so that its bins are kept, until there is room for what it leaves. */
static int settle_piece(struct cuda *c, int first, int count, int launched, struct fault *f)
{
    int code = 0, again = !launched;
    int32_t left = 0;
    for (int round = 0; round < 3 && !code; round++) {
        if (again) {
            if (round || launched) code = cuda_fill(c, c->bins[0].address, c->bins[0].bytes, f);
            if (!code) code = cuda_fill(c, c->left_count.address, sizeof left, f);
            if (!code) code = cuda_sum(c, 0, first, count, c->has, 1, f);
        }
        if (!code) code = count_left(c, &left, &again, f);
        if (!again) break;
    }
    if (!code) code = fetch(c, first, count, f);
    if (!code) add_left(c, left);
    return code;
}

static int settle_pieces(struct cuda *c, void *nothing, struct fault *f)
{
    const int ni = c->targets.ni;
    int code = 0;
    (void)nothing;
    for (int first = 0; first < ni && !code; first += PIECE) {
        const int count = ni - first < PIECE ? ni - first : PIECE;
        code = settle_piece(c, first, count, c->kept, f);
        if (!code && !c->kept) code = cuda_fill(c, c->bins[0].address, c->bins[0].bytes, f);
    }
    return code;
}

static int room_for_rows(struct cuda *c, struct fault *f)
{
    const int ni = c->targets.ni;
    if (ni <= c->rows_room) return 0;
    memory_free(c->rows);
    c->rows = memory_zeroed((size_t)ni * sizeof *c->rows);
    c->rows_room = c->rows ? ni : 0;
    return c->rows ? 0 : error_set(f, G6X_E_MEMORY, "out of memory for %d partial sums", ni);
}

int cuda_settle(struct cuda *c, struct fault *f)
{
    const int ni = c->targets.ni;
    if (c->settled) return 0;
    int code = room_for_rows(c, f);
    if (!code) code = cuda_idle(c, "sum", f);
    if (!c->kept) c->step++;
    for (int i = 0; !code && !c->nj && i < ni; i++) partial_clear(&c->rows[i]);
    if (!c->nj) c->settled = !code;
    if (!c->nj || code) return code;
    code = cuda_pack_targets(c, settle_pieces, NULL, f); /* lists may have taken their place */
    if (!code) c->settled = 1;
    return code;
}

int cuda_partials(void *state, const struct partial_row **rows, struct fault *f)
{
    struct cuda *c = state;
    int code = cuda_enter(c, f);
    if (code) return code;
    c->keep_guess = KEEP_CALLS;
    code = cuda_settle(c, f);
    *rows = c->rows;
    cuda_leave(c);
    return code;
}
