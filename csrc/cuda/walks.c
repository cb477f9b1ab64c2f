/* walks.c - walks on a GPU. A call is split into pieces, each on its own stream. While the device
 * sums some of them, host threads pack the next and write the results of earlier ones. */
#include <string.h>

#include "cuda/arrays.h"
#include "util/memory.h"
#include "util/threads.h"

enum {
    PIECE_BYTES = 16 << 20, /* largest piece, unless one walk is larger */
    FIRST_BYTES = 4 << 20,  /* largest first piece: the device is idle before it */
    BODY_BYTES = 32,
    ALIGNED = 32,
    RUN = 4096 /* bodies that a thread packs at a time */
};

/* Targets, entries and tiles of all walks before one. */
struct before {
    int64_t targets, entries, tiles;
};

/* Walks first to end - 1, in a pending request. */
struct piece {
    struct cuda *c;
    struct walks *w;
    const struct before *before; /* [count + 1] */
    struct cuda_pending *pending;
    int stream;
    int64_t first, end;
};

static int64_t tiles_of(int64_t ni) { return ceil_div(ni, CUDA_WALK_ROWS); }

static int64_t entries_of(const struct walk_group *g)
{
    return g->ni ? g->list[0].n + g->list[1].n : 0;
}

/* [count + 1]: the numbers before each walk, then the totals. NULL: out of memory. */
static struct before *count_up(const struct walks *w)
{
    struct before *b = memory_zeroed(((size_t)w->count + 1) * sizeof *b);
    for (int64_t k = 0; b && k < w->count; k++) {
        const struct walk_group *g = &w->group[k];
        b[k + 1].targets = b[k].targets + g->ni;
        b[k + 1].entries = b[k].entries + entries_of(g);
        b[k + 1].tiles = b[k].tiles + tiles_of(g->ni);
    }
    return b;
}

static int no_memory(const struct walks *w, struct error *err)
{
    return error_set(err, G6X_E_MEMORY, "out of memory for %lld walks", (long long)w->count);
}

/* ---- the layout of a piece ------------------------------------------------------------------ */

static uint64_t aligned(int64_t bytes) { return (uint64_t)ceil_div(bytes, ALIGNED) * ALIGNED; }

struct layout {
    int64_t targets, tiles;
    uint64_t entry_at, tile_at, bytes;
};

static struct layout layout_of(const struct walks *w, const struct before *b, int64_t first,
                               int64_t end)
{
    struct layout l = {b[end].targets - b[first].targets, b[end].tiles - b[first].tiles, 0, 0, 0};
    l.entry_at = aligned(l.targets * (int64_t)sizeof(double[3]));
    const int64_t entry_bytes = w->common_x ? (int64_t)sizeof(int32_t) : BODY_BYTES;
    l.tile_at = l.entry_at + aligned((b[end].entries - b[first].entries) * entry_bytes);
    l.bytes = l.tile_at + (uint64_t)l.tiles * sizeof(struct cuda_walk_tile);
    return l;
}

static int64_t end_of_piece(const struct walks *w, const struct before *b, int64_t first)
{
    const uint64_t most = first ? PIECE_BYTES : FIRST_BYTES;
    int64_t end = first + 1;
    while (end < w->count && layout_of(w, b, first, end + 1).bytes <= most) end++;
    return end;
}

static int reserve(struct cuda *c, struct cuda_pending *pending, uint64_t in, uint64_t out,
                   struct error *err)
{
    int code = cuda_device_reserve(c, &pending->pinned_in, MEMORY_PINNED, in, err);
    if (!code) code = cuda_device_reserve(c, &pending->device_in, MEMORY_DEVICE, in, err);
    if (!code) code = cuda_device_reserve(c, &pending->pinned_out, MEMORY_PINNED, out, err);
    if (!code) code = cuda_device_reserve(c, &pending->device_out, MEMORY_DEVICE, out, err);
    return code;
}

/* ---- packing, and writing results ----------------------------------------------------------- */

static void *place(const struct piece *p, uint64_t at)
{
    return (char *)cuda_pointer(&p->pending->pinned_in) + at;
}

/* Distributes groups of 64 targets evenly among the smallest number of tiles. */
static void pack_tiles(const struct walk_group *g, int64_t target, int64_t entry,
                       struct cuda_walk_tile *tile)
{
    const int64_t units = ceil_div(g->ni, CUDA_WALK_THREADS), tiles = tiles_of(g->ni);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t first = units * t / tiles * CUDA_WALK_THREADS;
        const int64_t beyond = units * (t + 1) / tiles * CUDA_WALK_THREADS;
        const int64_t n = (beyond < g->ni ? beyond : g->ni) - first;
        tile[t] = (struct cuda_walk_tile){.entry = entry,
                                          .entries = entries_of(g),
                                          .target = (int32_t)(target + first),
                                          .targets = (int32_t)n};
        walks_box(g->x + first, n, tile[t].centre, &tile[t].radius);
    }
}

static void pack_bodies(const double (*x)[3], const double *m, int64_t n, double (*to)[4])
{
    for (int64_t k = 0; k < n; k++) {
        memcpy(to[k], x[k], sizeof x[k]);
        to[k][3] = m[k];
    }
}

/* Copies a list of entry numbers; returns whether all are below `common`. */
static int pack_numbers(const int32_t *list, int64_t n, int64_t common, int32_t *to)
{
    const uint32_t limit = (uint32_t)common;
    int bad = 0;
    for (int64_t k = 0; k < n; k++) {
        bad |= (uint32_t)list[k] >= limit;
        to[k] = list[k];
    }
    return !bad;
}

static void pack_walks(void *piece, int64_t first, int64_t end)
{
    const struct piece *p = piece;
    const struct before *b = p->before;
    const struct layout l = layout_of(p->w, b, p->first, p->end);
    for (int64_t walk = p->first + first; walk < p->first + end; walk++) {
        const struct walk_group *g = &p->w->group[walk];
        const int64_t target = b[walk].targets - b[p->first].targets;
        const int64_t tile = b[walk].tiles - b[p->first].tiles;
        int64_t entry = b[walk].entries - b[p->first].entries;
        if (!g->ni) continue;
        memcpy((double (*)[3])place(p, 0) + target, g->x, (size_t)g->ni * sizeof *g->x);
        pack_tiles(g, target, entry, (struct cuda_walk_tile *)place(p, l.tile_at) + tile);
        for (int q = 0; q < WALK_LISTS; entry += g->list[q++].n) {
            const struct walk_list *list = &g->list[q];
            if (!p->w->common_x)
                pack_bodies(list->x, list->m, list->n, (double (*)[4])place(p, l.entry_at) + entry);
            else if (!pack_numbers(list->list, list->n, p->w->common,
                                   (int32_t *)place(p, l.entry_at) + entry))
                walks_note(&p->w->bad_number, walk);
        }
    }
}

static void store_walks(void *piece, int64_t first, int64_t end)
{
    const struct piece *p = piece;
    const struct before *b = p->before;
    const int64_t n = b[p->end].targets - b[p->first].targets;
    for (int64_t walk = p->first + first; walk < p->first + end; walk++) {
        const double *out = (const double *)cuda_pointer(&p->pending->pinned_out) +
                            (b[walk].targets - b[p->first].targets);
        for (int64_t i = 0; i < p->w->group[walk].ni; i++) {
            const double acc[3] = {out[i], out[n + i], out[2 * n + i]}, pot = out[3 * n + i];
            if (bits_of(pot) == CUDA_WALK_BAD)
                walks_note(&p->w->bad_entry, walk);
            else
                walks_output(p->w, walk, i, acc, pot);
        }
    }
}

/* ---- a piece -------------------------------------------------------------------------------- */

/* Packs a piece and launches its sums, unless a list in it has an invalid entry number. */
static int send(struct piece *p, struct error *err)
{
    struct cuda *c = p->c;
    const struct driver *d = &c->device.driver;
    const struct layout l = layout_of(p->w, p->before, p->first, p->end);
    const uint64_t in = p->pending->device_in.address, out = p->pending->device_out.address;
    const size_t out_bytes = (size_t)l.targets * 4 * sizeof(double);
    void *stream = c->device.stream[p->stream];
    const int mode = c->mode;
    threads_each(p->w->threads, p->end - p->first, 1, pack_walks, p);
    if (!l.tiles || p->w->bad_number != NO_WALK) return 0;
    struct cuda_walks_job job = {.targets = cuda_pointer(&p->pending->device_in),
                                 .tiles = (void *)(uintptr_t)(in + l.tile_at),
                                 .eps2 = p->w->eps2,
                                 .out = cuda_pointer(&p->pending->device_out),
                                 .stride = l.targets};
    job.bodies =
        p->w->common_x ? cuda_pointer(&c->walk_bodies) : (void *)(uintptr_t)(in + l.entry_at);
    if (p->w->common_x) job.list = (void *)(uintptr_t)(in + l.entry_at);
    int code = cuda_device_check(c, d->copy_in(in, place(p, 0), l.bytes, stream), "walks", err);
    c->mode = p->w->precision;
    if (!code) code = cuda_device_launch(c, p->stream, KERNEL_WALKS, l.tiles, 1, &job, err);
    c->mode = mode; /* of a force call that may be in progress */
    if (code) return code;
    return cuda_device_check(
        c, d->copy_out(cuda_pointer(&p->pending->pinned_out), out, out_bytes, stream), "walks",
        err);
}

/* Waits for a piece that was sent, and writes its results. */
static int take_back(struct piece *p, struct error *err)
{
    const int code = cuda_device_wait(p->c, p->stream, "walks", err);
    if (!code && p->w->bad_number == NO_WALK)
        threads_each(p->w->threads, p->end - p->first, 1, store_walks, p);
    return code;
}

/* ---- common entries of all lists ------------------------------------------------------------ */

struct bodies {
    const struct walks *w;
    double (*to)[4];
    int64_t first;
};

static void pack_run(void *bodies, int64_t first, int64_t end)
{
    const struct bodies *b = bodies;
    const int64_t k = b->first + first;
    pack_bodies(b->w->common_x + k, b->w->common_m + k, end - first, b->to + first);
}

/* Copies the common entries on all streams, which then wait for each other. */
static int send_bodies(struct cuda *c, const struct walks *w, struct error *err)
{
    const struct driver *d = &c->device.driver;
    const int64_t step = PIECE_BYTES / BODY_BYTES;
    int code = cuda_device_reserve(c, &c->walk_bodies, MEMORY_DEVICE,
                                   (uint64_t)w->common * BODY_BYTES, err);
    int stream = 0;
    for (int64_t k = 0; k < w->common && !code; k += step, stream = (stream + 1) % WALK_PIECES) {
        struct bodies b = {w, cuda_pointer(&c->pending[stream].pinned_in), k};
        const int64_t n = w->common - k < step ? w->common - k : step;
        code = cuda_device_wait(c, stream, "walks", err);
        if (code) return code;
        threads_each(w->threads, n, RUN, pack_run, &b);
        code = cuda_device_check(c,
                                 d->copy_in(c->walk_bodies.address + (uint64_t)k * BODY_BYTES, b.to,
                                            (size_t)n * BODY_BYTES, c->device.stream[stream]),
                                 "walks", err);
    }
    for (int a = 0; a < WALK_PIECES; a++)
        for (int b = 0; b < WALK_PIECES && !code; b++)
            if (a != b) code = cuda_device_follow(c, b, c->device.stream[a], err);
    return code;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Reserves buffers that are large enough for every piece of a call. */
static int reserve_pieces(struct cuda *c, const struct walks *w, const struct before *b,
                          struct error *err)
{
    uint64_t in = 0, out = 0;
    int code = 0;
    for (int64_t first = 0, end; first < w->count; first = end) {
        end = end_of_piece(w, b, first);
        const struct layout l = layout_of(w, b, first, end);
        const uint64_t results = (uint64_t)l.targets * 4 * sizeof(double);
        in = l.bytes > in ? l.bytes : in;
        out = results > out ? results : out;
    }
    if (w->common_x && in < PIECE_BYTES) in = PIECE_BYTES;
    for (int k = 0; k < WALK_PIECES && !code; k++) code = reserve(c, &c->pending[k], in, out, err);
    return code;
}

int cuda_walks_sum(struct cuda *c, struct walks *w, struct error *err)
{
    struct piece piece[WALK_PIECES] = {{0}};
    struct before *b = count_up(w);
    int64_t number = 0;
    if (!b) return no_memory(w, err);
    c->busy = DEVICE_STREAMS;
    int code = reserve_pieces(c, w, b, err);
    if (!code && w->common_x) code = send_bodies(c, w, err);
    for (int64_t first = 0; first < w->count && !code && w->bad_number == NO_WALK; number++) {
        struct piece *p = &piece[number % WALK_PIECES];
        if (p->w) code = take_back(p, err);
        const int stream = (int)(number % WALK_PIECES);
        if (!code) code = cuda_device_wait(c, stream, "walks", err); /* its pinned memory is free */
        if (code) break;
        *p = (struct piece){.c = c, .w = w, .before = b, .stream = stream, .first = first};
        p->pending = &c->pending[stream];
        p->end = first = end_of_piece(w, b, first);
        code = send(p, err);
    }
    for (int64_t k = number - WALK_PIECES; k < number && !code; k++)
        if (k >= 0) code = take_back(&piece[k % WALK_PIECES], err);
    memory_free(b);
    return code;
}

/* All walks as one piece, in the pending request of a tag. */
static struct piece piece_of(struct cuda *c, int number, struct walks *w, const struct before *b)
{
    return (struct piece){.c = c,
                          .w = w,
                          .before = b,
                          .pending = &c->pending[WALK_PIECES + number],
                          .stream = number % DEVICE_STREAMS,
                          .end = w->count};
}

int cuda_walks_start(struct cuda *c, int number, struct walks *w, struct error *err)
{
    struct before *b = count_up(w);
    if (!b) return no_memory(w, err);
    struct piece p = piece_of(c, number, w, b);
    const struct layout l = layout_of(w, b, 0, w->count);
    c->busy = DEVICE_STREAMS;
    int code = cuda_device_wait(c, p.stream, "walks", err);
    if (!code) code = reserve(c, p.pending, l.bytes, (uint64_t)l.targets * 32, err);
    if (!code) code = send(&p, err);
    memory_free(b);
    return code;
}

int cuda_walks_finish(struct cuda *c, int number, struct walks *w, struct error *err)
{
    struct before *b = count_up(w);
    if (!b) return no_memory(w, err);
    struct piece p = piece_of(c, number, w, b);
    const int code = take_back(&p, err);
    memory_free(b);
    return code;
}
