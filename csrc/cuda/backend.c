/* backend.c - the tables of functions that a session calls. Several devices may share a force call;
 * all other calls use the first device, in its context. */
#include <string.h>

#include "core/by_row.h"
#include "cuda/arrays.h"
#include "cuda/jparticles.h"
#include "cuda/multi_device.h"
#include "g6lib.h"

/* The first device, whose context is now current; NULL and an error if it cannot be used. */
static struct cuda *enter(void *state, struct error *err)
{
    const struct cuda_multi_device *m = state;
    return cuda_device_enter(m->device[0], err) ? NULL : m->device[0];
}

static int leave(struct cuda *c, int code)
{
    cuda_device_leave(c);
    return code;
}

/* The code of a call with the first device of a state, which is `c` in it. */
#define ON_DEVICE(state, call)                                                                     \
    __extension__({                                                                                \
        struct cuda *c = enter(state, err);                                                        \
        c ? leave(c, call) : err->code;                                                            \
    })

/* ---- callers' arrays on the device ------------------------------------------------------ */

/* The devices that sum the rows of other modes than double. */
static struct cuda_multi_device *first(void *state)
{
    return ((struct by_row *)state)->state[ROWS_COARSE];
}

/* A function of the tables: `call` with the first of these, `c`, and further arguments. */
#define OF_FIRST(name, call, ...)                                                                  \
    static int name(void *state, __VA_ARGS__, struct error *err)                                   \
    {                                                                                              \
        return ON_DEVICE(first(state), call);                                                      \
    }

static int number(void *state) { return first(state)->device[0]->device.number; }

OF_FIRST(receive, cuda_arrays_j_receive(c, memory, from, err), struct jmemory *memory,
         const struct device_particles *from)

static int predicted(void *state, int n, double (*x)[3], double (*v)[3], void *stream,
                     struct error *err)
{
    const struct cuda_multi_device *m = first(state);
    int code = by_row_ready(state, ROWS_COARSE, err);
    struct cuda *c = code ? NULL : enter(first(state), err);
    if (!c) return err->code;
    code = cuda_jparticles_update(c, &m->upload, err);
    return leave(c, code ? code : cuda_arrays_j_predicted(c, n, x, v, stream, err));
}

static void take_lower(struct device_row *lowest, struct device_row other)
{
    if (other.row >= 0 && (lowest->row < 0 || other.row < lowest->row)) *lowest = other;
}

static int write_outputs(void *state, const struct device_forces *to, struct device_found *found,
                         struct error *err)
{
    const struct by_row *b = state;
    int code = 0;
    *found = (struct device_found){{-1, -1}, {-1, -1}, 0};
    for (int kind = b->first; kind < b->end && !code; kind++) {
        struct device_found some = *found;
        code = ON_DEVICE(b->state[kind], cuda_arrays_write_outputs(c, to, &some, err));
        take_lower(&found->invalid, some.invalid);
        take_lower(&found->out_of_range, some.out_of_range);
        found->left |= some.left;
    }
    return code;
}

/* A part has the rows of one kind behind those of the other. */
static int64_t bytes_before(const struct by_row *b, int kind)
{
    int64_t bytes = 0;
    for (int k = b->first; k < kind; k++) {
        const struct cuda *c = ((const struct cuda_multi_device *)b->state[k])->device[0];
        bytes += part_bytes(c->mode, c->targets.ni);
    }
    return bytes;
}

static int store_part(void *state, void *part, void *stream, int *left, struct error *err)
{
    const struct by_row *b = state;
    int code = 0;
    *left = 0;
    for (int kind = b->first; kind < b->end && !code; kind++) {
        int some = 0;
        char *at = (char *)part + bytes_before(b, kind);
        code = ON_DEVICE(b->state[kind], cuda_parts_store(c, at, stream, &some, err));
        *left |= some;
    }
    return code;
}

static int merge_parts(void *state, void *parts, int count, void *stream, struct error *err)
{
    const struct by_row *b = state;
    const int64_t bytes = bytes_before(b, b->end);
    int code = 0;
    for (int kind = b->first; kind < b->end && !code; kind++) {
        char *at = (char *)parts + bytes_before(b, kind);
        code = ON_DEVICE(b->state[kind], cuda_parts_merge(c, at, bytes, count, stream, err));
    }
    return code;
}

static void fill_nan(void *state, const struct device_forces *to, void *stream)
{
    struct error quiet = {.quiet = 1};
    struct cuda *c = enter(first(state), &quiet);
    if (c) (void)leave(c, cuda_arrays_fill_nan(c, to, stream, &quiet));
}

/* Copies the rows of one kind, and puts them where they belong. */
static int fetch_kind(const struct by_row *b, int kind, const struct rows *to, struct error *err)
{
    const struct rows_of_kind *k = &b->kind[kind];
    const struct rows *some = &k->of;
    const int code = ON_DEVICE(b->state[kind], cuda_arrays_fetch(c, some, err));
    for (int n = 0; n < k->n && !code; n++) {
        const int i = k->row[n];
        to->index[i] = some->index[n];
        to->eps2[i] = some->eps2[n];
        to->h2[i] = -1.0;
        to->invalid[i] = some->invalid[n];
        memcpy(to->x[i], some->x[n], sizeof to->x[i]);
        memcpy(to->v[i], some->v[n], sizeof to->v[i]);
    }
    return code;
}

static int fetch(void *state, const struct rows *to, struct error *err)
{
    struct by_row *b = state;
    const struct targets *t = &b->targets;
    struct cuda *c = enter(b->state[b->first], err);
    if (!c) return err->code;
    if (!by_row_has_both(b)) return leave(c, cuda_arrays_fetch(c, to, err));
    int code = 0;
    for (int kind = 0; kind < ROW_KINDS && !code; kind++) code = fetch_kind(b, kind, to, err);
    if (!code && t->h2)
        code = cuda_device_copy_out(c, to->h2, t->h2, (size_t)t->ni * sizeof *t->h2, err);
    return leave(c, code);
}

static int shares(void *state, int ni, int nj)
{
    return cuda_multi_device_count(first(state), ni, nj, 1) > 1;
}

static int to_host(void *state, void *to, const void *from, size_t bytes, void *stream,
                   struct error *err)
{
    struct cuda *c = enter(first(state), err);
    if (!c) return err->code;
    const int code = cuda_device_wait_for_caller(c, stream, err);
    return leave(c, code ? code : cuda_device_copy_out(c, to, from, bytes, err));
}

OF_FIRST(wait_for, cuda_device_wait_for_caller(c, stream, err), void *stream)
OF_FIRST(from_host, cuda_device_copy_in(c, to, from, bytes, err), void *to, const void *from,
         size_t bytes)

static int can_fuse_step(void *state, struct jmemory *memory, const struct g6x_hermite *h,
                         void *stream)
{
    struct by_row *b = state;
    struct error quiet = {.quiet = 1};
    struct cuda *c = enter(first(b), &quiet);
    if (!c || !leave(c, cuda_fused_step_can(c, memory, h, stream))) return 0;
    if (b->upload.options->precision != MODE_AUTO) return 1;
    if (by_row_have(b, ROWS_FINE, &quiet)) return 0;
    c = enter(b->state[ROWS_FINE], &quiet);
    return c && !leave(c, cuda_fused_step_prepare(c, h->n, &quiet));
}

/* The device of the fine rows, or NULL. */
static struct cuda *fine_device(const struct by_row *b)
{
    const struct cuda_multi_device *m = b->state[ROWS_FINE];
    return m && b->upload.options->precision == MODE_AUTO ? m->device[0] : NULL;
}

OF_FIRST(fused_step, cuda_fused_step_run(c, fine_device(state), memory, h, t, err),
         struct jmemory *memory, const struct g6x_hermite *h, struct device_fused_step *t)

static int sum_fused_step(void *state, int ni, int fine, double eps2, struct error *err)
{
    struct by_row *b = state;
    const int rows[ROW_KINDS] = {ni, fine};
    int code = 0;
    if (fine_device(b)) fine_device(b)->launched = 0;
    for (int kind = 0; kind < ROW_KINDS && rows[kind] && !code; kind++) {
        code = by_row_ready(b, kind, err);
        struct cuda_multi_device *m = b->state[kind];
        if (code) break;
        m->sharing = 0;
        code = cuda_fused_step_sum(m->device[0], &m->upload, rows[kind], eps2, err);
    }
    return code;
}

OF_FIRST(next, cuda_hermite_next(c, h, b, err), const struct g6x_hermite *h, struct device_block *b)
OF_FIRST(predict, cuda_hermite_predict(c, h, b, err), const struct g6x_hermite *h,
         struct device_block *b)
OF_FIRST(correct, cuda_hermite_correct(c, h, b, err), const struct g6x_hermite *h,
         struct device_block *b)
OF_FIRST(watch, cuda_hermite_watch(c, h, e, stream, found, err), const struct g6x_hermite *h,
         const struct g6x_evolution *e, void *stream, int *found)

static const struct device_arrays ARRAYS = {
    .number = number,
    .receive = receive,
    .predicted = predicted,
    .write_outputs = write_outputs,
    .store_part = store_part,
    .merge_parts = merge_parts,
    .fill_nan = fill_nan,
    .fetch = fetch,
    .shares = shares,
    .wait = wait_for,
    .to_host = to_host,
    .from_host = from_host,
    .can_fuse_step = can_fuse_step,
    .fused_step = fused_step,
    .sum_fused_step = sum_fused_step,
    .next = next,
    .predict = predict,
    .correct = correct,
    .watch = watch,
};

/* ---- walks, trees ----------------------------------------------------------------------- */

OF_FIRST(walks_sum, cuda_walks_sum(c, w, err), struct walks *w)
OF_FIRST(walks_start, cuda_walks_start(c, number, w, err), int number, struct walks *w)
OF_FIRST(walks_finish, cuda_walks_finish(c, number, w, err), int number, struct walks *w)

static const struct walk_engine WALKS = {walks_sum, walks_start, walks_finish};

int cuda_backend_tree(void *state, struct tree_request *request, struct error *err)
{
    return ON_DEVICE(first(state),
                     cuda_device_answer(c, c->bridge->tree(&c->device, request), err));
}

static int open_by_row(const struct options *o, int choice, void **state, struct error *err)
{
    return by_row_open(&cuda_multi_device_backend, o, choice, state, err);
}

const struct backend cuda_backend = {
    .capabilities = CAN_OVERLAP | CAN_DEVICE_POINTERS,
    .most_rows = 16384,
    .name = "cuda",
    .open = open_by_row,
    BY_ROW_FUNCTIONS,
    .arrays = &ARRAYS,
    .walks = &WALKS,
};
