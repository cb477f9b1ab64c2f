/* launch_config.c - the kernel for a force call, and how CUDA blocks share i and j particles. */
#include "cuda/force.h"

/* Number of i particles that a CUDA block of a kernel sums at once. */
static int abreast(const struct cuda *c, int kernel)
{
    if (kernel == KERNEL_WIDE) return WIDE_ROWS;
    if (kernel == KERNEL_MIDDLE) return MIDDLE_ROWS;
    if (c->mode == MODE_DOUBLE) return 32;
    return kernel == KERNEL_SOME ? 16 : 8;
}

int64_t cuda_launch_config_places(const struct cuda *c)
{
    return (int64_t)c->device.multiprocessors * (c->mode == MODE_DOUBLE ? 3 : 4);
}

/* CUDA blocks of a kernel if each sums one block of addresses. */
static int64_t most_blocks(const struct cuda *c, int kernel, int ni)
{
    return cuda_blocks(c) * ceil_div(ni, abreast(c, kernel));
}

/* Selects the kernel that fills the device. In the order few, some, middle, wide each sums more i
 * particles at once, and is faster if there are enough of them. All give the same bits. */
int cuda_launch_config_kernel(const struct cuda *c, int ni)
{
    const int64_t places = c->device.multiprocessors;
    if (ni > MOST_ROWS || (ni >= WIDE_ROWS && most_blocks(c, KERNEL_WIDE, ni) >= 3 * places))
        return KERNEL_WIDE;
    if (ni > MIDDLE_ROWS / 2 && 2 * most_blocks(c, KERNEL_MIDDLE, ni) >= 3 * places)
        return KERNEL_MIDDLE;
    return ni <= 8 || most_blocks(c, KERNEL_FEW, ni) <= places ? KERNEL_FEW : KERNEL_SOME;
}

/* Address blocks per CUDA block for the shortest run, if `at_once` CUDA blocks run at a time. */
static int64_t even_step(int64_t blocks, int64_t tiles, int64_t at_once)
{
    int64_t best = 1, least = INT64_MAX;
    for (int64_t step = 1; step <= 8 && step <= blocks; step++) {
        const int64_t rounds = ceil_div(ceil_div(blocks, step) * tiles, at_once) * step;
        if (rounds > least) continue;
        least = rounds;
        best = step;
    }
    return best;
}

/* A launch that also predicts is worth so many rounds of i particles in each tile. */
enum { MOST_ROUNDS = 2 };

/* A tile of several rounds of i particles loads its j particles once. */
void cuda_launch_config_blocks(const struct cuda *c, int rows, struct cuda_sum_job *job)
{
    const int rows_at_once = abreast(c, c->kernel);
    const int64_t blocks = cuda_blocks(c), tiles = ceil_div(rows, rows_at_once);
    const int64_t places = c->device.multiprocessors;
    job->tile_rows = rows_at_once;
    job->step_blocks = 1;
    if (c->kernel == KERNEL_WIDE) {
        const int64_t requested = ceil_div(32 * places, tiles);
        job->step_blocks = (int32_t)(requested >= blocks ? 1 : blocks / requested);
    } else if (c->kernel == KERNEL_MIDDLE) {
        job->step_blocks = (int32_t)even_step(blocks, tiles, cuda_launch_config_places(c));
    } else {
        const int64_t at_once = places / blocks; /* tiles that may also predict (sum.c) */
        const int predicts = !c->predicted && c->mode != MODE_DOUBLE && at_once &&
                             tiles > at_once && tiles <= MOST_ROUNDS * at_once;
        const int64_t requested = predicts ? at_once : ceil_div(8 * places, blocks);
        job->tile_rows =
            (int32_t)(ceil_div(tiles, requested < tiles ? requested : tiles) * rows_at_once);
    }
}

_Static_assert(sizeof(struct cuda_small_job) <= 4096, "what CUDA lets a kernel have");
