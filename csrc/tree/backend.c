/* backend.c - cpu-tree and cuda-tree: an octree behind the force calls.
 *
 * Acc, jerk and pot are the tree's; nearest neighbours and lists are exact. Where no tree is worth
 * it, and for targets that it does not serve, the direct sum does the work: its backend stands
 * behind this one and is kept up to date, which costs little beside building a tree.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/by_row.h"
#include "core/device.h"
#include "util/memory.h"
#include "core/options.h"
#include "tree/state.h"
#include "shared/tree_few.h"
#include "shared/tree_hilbert.h"
#include "tree/pieces.h"
#include "util/threads.h"
#include "simd/dispatch.h"

/* What is summed directly, since it takes no longer: fewer j particles, calls of fewer pairs, and
 * after a change of the j particles the first targets or pairs, as long as which it takes to build
 * a tree (docs/environment.md). */
struct thresholds {
    int64_t particles, pairs, targets, pairs_so_far;
};
static const struct thresholds ON_CPU = {TREE_FEW, 1 << 22, 1024, 0};
static const struct thresholds ON_DEVICE = {TREE_FEW, 1 << 28, 0, (int64_t)1 << 33};
static const struct thresholds ALWAYS = {0}; /* for tests, which have small sets */

/* Targets that a tree in single precision serves: no farther from it and with no larger softening
 * than this, in its size, and a softening that does not vanish there. */
#define FAR_TARGET 0x1p20
#define LEAST_EPS2 0x1p-90

enum { NOT_SERVED = -2 };

/* Arrays of targets; those of all sums lie behind the first. */
#define ARRAYS(t, n)                                                                               \
    MEMORY_ARRAY((t)->row, n), MEMORY_ARRAY((t)->index, n), MEMORY_ARRAY((t)->self, n),            \
        MEMORY_ARRAY((t)->number, n), MEMORY_ARRAY((t)->x, n), MEMORY_ARRAY((t)->v, n),            \
        MEMORY_ARRAY((t)->eps2, n), MEMORY_ARRAY((t)->acc, n), MEMORY_ARRAY((t)->jerk, n),         \
        MEMORY_ARRAY((t)->pot, n), MEMORY_ARRAY((t)->nearest_address, n),                          \
        MEMORY_ARRAY((t)->nearest_index, n), MEMORY_ARRAY((t)->rows_of_i, n),                      \
        MEMORY_ARRAY((t)->sum[0], (size_t)(n) * NSUM)

static void octree_close(void *state)
{
    struct octree *t = state;
    if (!t) return;
    t->direct_backend->close(t->direct);
    tree_boxes_free(&t->tree);
    tree_state_free(&t->sources);
    const struct memory_array targets[] = {ARRAYS(t, 0), {0}};
    memory_free_all(targets);
    neighbour_lists_free(&t->lists);
    memory_free(t);
}

static int open_before(const struct backend *direct_backend, const struct options *o, int choice,
                       void **state, struct error *err)
{
    struct octree *t = memory_zeroed(sizeof *t);
    if (!t) return error_set(err, G6X_E_MEMORY, "out of memory at open");
    t->direct_backend = direct_backend;
    t->on_device = direct_backend == &cuda_backend;
    t->thresholds = TEST_VARIABLE(TREE) ? &ALWAYS : t->on_device ? &ON_DEVICE : &ON_CPU;
    const int code = t->direct_backend->open(o, choice, &t->direct, err);
    if (code)
        memory_free(t);
    else
        *state = t;
    return code;
}

static int octree_open(const struct options *o, int choice, void **state, struct error *err)
{
    return open_before(&cpu_direct_backend, o, choice, state, err);
}

static int octree_open_on_device(const struct options *o, int choice, void **state,
                                 struct error *err)
{
    return open_before(&cuda_backend, o, choice, state, err);
}

/* ---- j particles ---------------------------------------------------------------- */

/* Whether a slot below nj was written since the last upload. */
static int is_stale(const struct jmemory *j, int64_t nj)
{
    uint64_t stale = 0;
    for (int64_t b = 0; b < nj / BLOCK; b++) stale |= j->stale[0][b];
    const int64_t chunks = ceil_div(nj % BLOCK, CHUNK);
    if (chunks) stale |= j->stale[0][nj / BLOCK] << (BLOCK_CHUNKS - chunks);
    return stale != 0;
}

static int octree_set_j(void *state, const struct upload *u, struct error *err)
{
    struct octree *t = state;
    const int64_t nj = u->nj < u->memory->capacity ? u->nj : u->memory->capacity;
    const int moved = u->time != t->time && !(t->current && !t->sources.moving);
    if (t->memory != u->memory || t->nj != nj || moved || t->options.snap != u->options->snap ||
        is_stale(u->memory, nj))
        t->current = 0, t->asked = 0;
    if (u->options->jerk && !t->sources.v) t->current = 0;
    t->memory = u->memory;
    t->options = *u->options;
    t->nj = nj;
    t->time = u->time;
    t->tree.threads = options_threads(u->options->threads);
    if (t->on_device) /* which notes by itself what has changed */
        memset(u->memory->stale[0], 0,
               (size_t)(u->memory->capacity / BLOCK) * sizeof *u->memory->stale[0]);
    return t->direct_backend->set_j(t->direct, u, err);
}

/* Whether a tree in one box may have leaves with very many particles, judged by the cells of some:
 * those of particles at one place, or next to each other beside some that are so far away that one
 * box does not resolve the rest. */
static int may_be_crowded(const struct tree_box *box, const struct sources *s)
{
    enum { SOME = 256 };
    const int64_t n = s->n < SOME ? s->n : SOME;
    uint32_t cell[SOME][3];
    int64_t pairs = 0;
    for (int64_t k = 0; k < n; k++) {
        const double *x = s->x[k * s->n / n];
        for (int c = 0; c < 3; c++)
            cell[k][c] = tree_place((tree_in_box(box, c, x[c]) - box->low[c]) * box->per_side);
        for (int64_t i = 0; i < k; i++) pairs += !memcmp(cell[i], cell[k], sizeof cell[k]);
    }
    return pairs > n / 8;
}

/* A tree on a device is built with its first sum; the device has none of several pieces. */
static int prepare_on_device(struct octree *t, struct error *err)
{
    struct tree_input in = tree_state_input(&t->sources);
    in.v = NULL; /* the frame is the device's */
    tree_pieces_free(t->tree.pieces);
    t->tree.pieces = NULL;
    tree_build_box(&t->tree.box, &in, options_threads(t->options.threads));
    const int code = may_be_crowded(&t->tree.box, &t->sources) ? tree_state_build_here(t, err) : 0;
    t->in_pieces = t->tree.pieces != NULL;
    return code;
}

static int build(struct octree *t, struct error *err)
{
    struct sources *s = &t->sources;
    const int threads = options_threads(t->options.threads);
    int code = 0;
    jmemory_commit(t->memory);
    if (tree_state_collect(s, t->memory, t->nj, t->time, t->options.snap, t->options.jerk, threads))
        return tree_state_no_memory(err, "j particles of a tree", t->nj);
    t->current = 1;
    t->useful = t->searchable = 0;
    if (s->n <= t->thresholds->particles || !s->finite) return 0;
    code = t->on_device ? prepare_on_device(t, err) : tree_state_build_here(t, err);
    t->current = t->fresh = t->useful = !code;
    return code;
}

/* ---- targets -------------------------------------------------------------------- */

static int reserve(struct octree *t, int ni, struct error *err)
{
    const struct memory_array all[] = {ARRAYS(t, ni), {0}};
    if (memory_reserve(all, ni, &t->capacity)) return tree_state_no_memory(err, "i particles", ni);
    for (int k = 1; k < NSUM; k++) t->sum[k] = t->sum[0] + (size_t)k * (size_t)t->capacity;
    return 0;
}

static int is_softening_kept(const struct tree_box *box, double eps2)
{
    return eps2 == 0.0 || ldexp(eps2, -2 * box->length) > LEAST_EPS2;
}

/* Pieces of a tree are summed in double where a target or a softening is too large. */
static int is_served(const struct octree *t, int i)
{
    const struct tree_box *box = &t->tree.box;
    const struct tree_pieces *pieces = t->tree.pieces;
    const double eps2 = t->targets.eps2[i];
    int served = 1;
    if (pieces) {
        for (int k = 0; k < pieces->count; k++)
            served &=
                !pieces->piece[k].tree.cells || is_softening_kept(&pieces->piece[k].tree.box, eps2);
        return served;
    }
    for (int k = 0; k < 3; k++)
        served &= fabs(ldexp(t->targets.x[i][k] - box->centre[k], -box->length)) < FAR_TARGET;
    return served && is_softening_kept(box, eps2) && ldexp(eps2, -2 * box->length) <= FAR_TARGET;
}

/* Which source each target is, if one, and whether the tree serves it. An index that several
 * sources have is left to the direct sum, too: the tree leaves out one. */
static void look_up(void *context, int64_t first, int64_t end)
{
    struct octree *t = context;
    for (int i = (int)first; i < end; i++) {
        int32_t address = -1;
        const int found = jmemory_find(t->memory, t->targets.index[i], t->nj, 1, &address);
        t->number[i] = found ? tree_state_number(&t->sources, address) : -1;
        if (found > 1 || !is_served(t, i)) t->number[i] = NOT_SERVED;
    }
}

static void take_targets(void *context, int64_t first, int64_t end)
{
    struct octree *t = context;
    const struct targets *from = &t->targets;
    for (int64_t k = first; k < end; k++) {
        const int i = t->row[k];
        t->index[k] = from->index[i];
        t->self[k] = t->number[i];
        t->eps2[k] = from->eps2[i];
        memcpy(t->x[k], from->x[i], sizeof t->x[k]);
        memcpy(t->v[k], from->v[i], sizeof t->v[k]);
    }
}

static int octree_submit(void *state, const struct targets *targets, struct error *err)
{
    struct octree *t = state;
    const int ni = targets->ni;
    int code = 0, last = ni;
    t->by_tree = 0;
    if (t->nj > t->thresholds->particles && t->nj * ni > t->thresholds->pairs &&
        t->options.theta > 0.0) {
        t->asked += ni;
        if (!t->current && t->asked > t->thresholds->targets &&
            t->nj * t->asked > t->thresholds->pairs_so_far)
            code = build(t, err);
        t->by_tree = t->current && t->useful;
    }
    if (code) return code;
    if (!t->by_tree) return t->direct_backend->submit(t->direct, targets, err);
    code = reserve(t, ni, err);
    if (code) return code;
    t->targets = *targets;
    by_row_copy(targets->from, 0, ni);
    t->targets.from = NULL;
    t->plain = 0;
    jmemory_map(t->memory);
    threads_each(t->tree.threads, ni, TARGETS_AT_ONCE, look_up, t);
    for (int i = 0; i < ni; i++) /* the tree's come to the front */
        t->row[t->number[i] == NOT_SERVED ? --last : t->plain++] = i;
    threads_each(t->tree.threads, ni, TARGETS_AT_ONCE, take_targets, t);
    t->done = 0;
    return 0;
}

static int64_t octree_zero_distances(void *state)
{
    struct octree *t = state;
    const int64_t n = t->zero_distances + t->direct_backend->zero_distances(t->direct);
    t->zero_distances = 0;
    return n;
}

static void octree_describe(void *state, const struct options *o, char *buffer, int length)
{
    const struct octree *t = state;
    char text[DEVICE_TEXT + 64], device[DEVICE_TEXT + 32];
    if (t->on_device) t->direct_backend->describe(t->direct, o, device, sizeof device);
    (void)snprintf(text, sizeof text, t->on_device ? "cuda-tree %s" : "cpu-tree %s",
                   t->on_device ? device + strlen("cuda ") : simd_dispatch_name(o->isa));
    error_copy(text, buffer, length);
}

#define OCTREE(name_of, open_of)                                                                   \
    {                                                                                              \
        .capabilities = CAN_APPROXIMATE,                                                           \
        .name = name_of,                                                                           \
        .open = open_of,                                                                           \
        .set_j = octree_set_j,                                                                     \
        .submit = octree_submit,                                                                   \
        .collect = tree_results_finish,                                                            \
        .partials = tree_results_partials,                                                         \
        .neighbours = tree_results_lists,                                                          \
        .zero_distances = octree_zero_distances,                                                   \
        .describe = octree_describe,                                                               \
        .close = octree_close,                                                                     \
    }

const struct backend tree_backend_cpu = OCTREE("cpu-tree", octree_open);
const struct backend tree_backend_cuda = OCTREE("cuda-tree", octree_open_on_device);
