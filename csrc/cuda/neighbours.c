/* neighbours.c - neighbour lists: all those of a force call at once, as far as memory goes. */
#include <math.h>
#include <string.h>

#include "cuda/force.h"
#include "cuda/jparticles.h"
#include "util/memory.h"

enum { LISTED_CAPACITY = 1 << 20, LISTED_MOST = 1 << 24 };

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Lists of `rows` targets from `first` on into c->listed; their total length. */
static int list_rows(struct cuda *c, int first, int rows, const double *h2, int64_t *total,
                     struct fault *f)
{
    unsigned long long count = 0;
    int code = cuda_device_fill(c, c->list_count.address, sizeof count, f);
    double *radii = cuda_pointer(&c->list_h2);
    struct cuda_target *targets = cuda_pointer(&c->pinned_targets);
    for (int i = 0; i < rows; i++) {
        radii[i] = h2[first + i];
        memcpy(targets[i].x, c->targets.x[first + i], sizeof targets[i].x);
        memset(targets[i].v, 0, sizeof targets[i].v);
        targets[i].eps2 = c->targets.eps2[first + i];
    }
    struct cuda_list_job job = {
        .sources = cuda_jparticles_sources(c),
        .frame = cuda_jparticles_frame(c),
        .nj = (int32_t)c->nj,
        .rows = rows,
        .capacity = (int32_t)(c->listed.bytes / sizeof(struct cuda_listed)),
        .targets = targets,
        .h2 = radii,
        .count = cuda_pointer(&c->list_count),
        .listed = cuda_pointer(&c->listed),
    };
    if (!code)
        code = cuda_device_launch(c, 0, KERNEL_NEIGHBOURS, (c->nj + 255) / 256, (rows + 15) / 16,
                                  &job, f);
    if (!code) code = cuda_device_copy_out(c, &count, c->list_count.address, sizeof count, f);
    *total = (int64_t)count;
    return code;
}

/* Sorts the pairs of row and index by rows. */
static int sort(struct cuda *c, int first, int rows, int64_t total, struct fault *f)
{
    const struct cuda_listed *listed = cuda_pointer(&c->listed);
    if (total > c->list_capacity) {
        memory_free(c->list);
        c->list = memory_zeroed((size_t)total * sizeof *c->list);
        c->list_capacity = c->list ? total : 0;
    }
    if (rows + 2 > c->list_start_capacity) {
        memory_free(c->list_start);
        c->list_start = memory_zeroed((size_t)(rows + 2) * sizeof *c->list_start);
        c->list_start_capacity = c->list_start ? rows + 2 : 0;
    }
    if ((total && !c->list) || !c->list_start)
        return error_set(f, G6X_E_MEMORY, "out of memory for lists of %lld neighbours",
                         (long long)total);
    int64_t *start = c->list_start; /* of row r at r + 1, until it is filled */
    memset(start, 0, (size_t)(rows + 2) * sizeof *start);
    for (int64_t k = 0; k < total; k++) start[listed[k].row + 2]++;
    for (int r = 2; r < rows + 2; r++) start[r] += start[r - 1];
    for (int64_t k = 0; k < total; k++) c->list[start[listed[k].row + 1]++] = listed[k].index;
    c->list_first = first;
    c->list_rows = rows;
    return 0;
}

/* Lists of as many targets from i on as memory goes. */
static int make_lists(struct cuda *c, int i, const double *h2, struct fault *f)
{
    int rows = c->targets.ni - i < MOST_ROWS ? c->targets.ni - i : MOST_ROWS;
    int64_t total = 0;
    int code = cuda_device_reserve(c, &c->listed, MEMORY_PINNED,
                                   LISTED_CAPACITY * sizeof(struct cuda_listed), f);
    if (!code) code = cuda_device_reserve(c, &c->list_count, MEMORY_DEVICE, 64, f);
    if (!code) code = cuda_device_reserve(c, &c->list_h2, MEMORY_PINNED, (uint64_t)rows * 8, f);
    while (!code) {
        const int64_t capacity = (int64_t)(c->listed.bytes / sizeof(struct cuda_listed));
        code = list_rows(c, i, rows, h2, &total, f);
        if (code || total <= capacity) break;
        if (rows > 1 && total > LISTED_MOST)
            rows = (int)most(1, (uint64_t)(rows * (LISTED_MOST / 2) / total));
        else
            code = cuda_device_reserve(c, &c->listed, MEMORY_PINNED,
                                       (uint64_t)total * sizeof(struct cuda_listed), f);
    }
    return code ? code : sort(c, i, rows, total, f);
}

int cuda_neighbours(struct cuda *c, int i, const double *h2, const int32_t **index, int64_t *count,
                    struct fault *f)
{
    int code = 0;
    *count = 0;
    *index = c->list;
    if (!c->nj) return 0;
    if (i < c->list_first || i >= c->list_first + c->list_rows) {
        const int64_t share[2] = {c->first_block, c->end_block};
        code = cuda_device_enter(c, f);
        if (code) return code;
        code = cuda_results_wait(c, c->targets.ni, f);
        cuda_jparticles_set_blocks(c, 0, cuda_all_blocks(c));
        if (!code && !c->predicted) code = cuda_jparticles_predict(c, f);
        if (!code) code = make_lists(c, i, h2, f);
        cuda_jparticles_set_blocks(c, share[0],
                                   share[1]); /* in case that the call's sums are asked for */
        cuda_device_leave(c);
    }
    if (code) return code;
    const int r = i - c->list_first;
    *index = c->list + c->list_start[r];
    *count = c->list_start[r + 1] - c->list_start[r];
    return 0;
}
