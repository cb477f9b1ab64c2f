/* multi_device.c - one force call on several devices. Each has all j particles, sums whole blocks
 * of their addresses, and returns rows of partial sums. These are merged as integers, so the bits
 * do not depend on the number of devices. */
#include "cuda/multi_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/by_row.h"
#include "core/options.h"
#include "cuda/force.h"
#include "python/gil.h"
#include "util/memory.h"
#include "util/threads.h"

/* Below SHARING_THRESHOLD pairs per device, one more device saves less than its launch and merge
 * cost. The prediction of a j particle counts as PAIRS_OF_PREDICTION pairs. Each row that is merged
 * takes 130 to 200 ns, and 400 to 600 if it comes from a device and goes back there (H200): with
 * fewer j particles than pairs of that time, sharing would not pay either. */
enum {
    SHARING_THRESHOLD = 1 << 28,
    PAIRS_OF_PREDICTION = 32,
    ROWS_OF_THRESHOLD = 1024, /* 2^18 j particles */
    FROM_DEVICE = 3           /* times as many */
};

static void close_all(void *state)
{
    struct cuda_multi_device *m = state;
    while (m && m->devices) cuda_device_close(m->device[--m->devices]);
    memory_free(m);
}

/* Opens the first device, and others if GRAPE6_DEVICES names them and this is not an MPI rank. */
static int open_all(const struct options *o, int choice, void **state, struct error *err)
{
    const char *threshold = TEST_VARIABLE(GPU_THRESHOLD);
    const struct cuda_multi_device *of = o->fine_of;
    struct cuda_multi_device *m = memory_zeroed(sizeof *m);
    int most = 1, code = 0;
    if (!m) return error_set(err, G6X_E_MEMORY, "out of memory at open");
    m->merges_early = TEST_VARIABLE(MERGES_EARLY) != NULL;
    m->sharing_threshold = threshold && atoll(threshold) > 0 ? atoll(threshold) : SHARING_THRESHOLD;
    for (int k = 0; k < most && k < MOST_DEVICES && !code; k++) {
        code = cuda_device_open(o, choice < 0 ? choice - (k << 16) : choice + k,
                                k + (o->fine_of ? MOST_DEVICES : 0), &m->device[k], err);
        if (!code && of && of->devices == 1 && most == 1) m->device[k]->owner = of->device[0];
        m->devices += !code;
        if (!code && o->all_devices) most = m->device[0]->device.usable;
    }
    if (code)
        close_all(m);
    else
        *state = m;
    return code;
}

int cuda_multi_device_count(const struct cuda_multi_device *m, int ni, int64_t nj, int on_device)
{
    const int64_t least = m->sharing_threshold / ROWS_OF_THRESHOLD * (on_device ? FROM_DEVICE : 1);
    if (m->devices == 1 || !ni || nj < least) return 1;
    const int64_t useful = ((int64_t)ni + PAIRS_OF_PREDICTION) * nj / m->sharing_threshold;
    const int64_t devices = useful < m->devices ? useful : m->devices;
    const int64_t blocks = ceil_div(nj, CUDA_BLOCK);
    return (int)(devices < blocks ? devices : blocks);
}

/* Sets and returns the number of devices that share a call; 0: the first device alone. */
static int share(struct cuda_multi_device *m, const struct targets *targets)
{
    const int64_t there = m->upload.memory->capacity,
                  nj = m->upload.nj < there ? m->upload.nj : there;
    const int devices = targets->on_device ? 1 : cuda_multi_device_count(m, targets->ni, nj, 0);
    m->sharing = devices > 1 ? devices : 0;
    return m->sharing;
}

/* A call on several devices, with a thread for each. */
struct shares {
    struct cuda_multi_device *m;
    struct targets targets;
    int (*work)(struct shares *s, int device, struct error *f);
    unsigned want;
    int count; /* rows whose results are requested */
    int code[MOST_DEVICES];
    struct error error[MOST_DEVICES];
};

static void share_task(void *shares, int64_t first, int64_t end)
{
    struct shares *s = shares;
    for (int k = (int)first; k < end; k++) s->code[k] = s->work(s, k, &s->error[k]);
}

/* Removes lost devices from the session. Returns 1 if the call is to be repeated; 0 if none was
 * removed or the first device is lost. */
static int drop_lost(struct cuda_multi_device *m)
{
    int dropped = 0;
    if (m->device[0]->lost) return 0;
    for (int k = 1; k < m->devices; k++) {
        if (!m->device[k]->lost) continue;
        cuda_device_close(m->device[k]);
        m->device[k--] = m->device[--m->devices];
        dropped = 1;
    }
    return dropped;
}

static int on_all(struct shares *s, int (*work)(struct shares *, int, struct error *),
                  struct error *err)
{
    const int sharing = s->m->sharing;
    s->work = work;
    for (int k = 0; k < sharing; k++) s->error[k].quiet = 1;
    void *lock = python_gil_release(); /* these threads may need the GIL, which this one may hold */
    threads_each(sharing, sharing, 1, share_task, s);
    python_gil_acquire(lock);
    for (int k = 0; k < sharing; k++)
        if (s->code[k]) return error_set(err, s->code[k], "%.250s", s->error[k].text);
    return 0;
}

/* ---- submit ---------------------------------------------------------------------------- */

static int start_share(struct shares *s, int k, struct error *err)
{
    return cuda_force_start(s->m->device[k], &s->m->upload, &s->targets, k, s->m->sharing, err);
}

static int start_alone(struct cuda_multi_device *m, const struct targets *targets,
                       struct error *err)
{
    const int shares = targets->shares > 1 ? targets->shares : 1;
    return cuda_force_start(m->device[0], &m->upload, targets, targets->share, shares, err);
}

static int set_j(void *state, const struct upload *u, struct error *err)
{
    struct cuda_multi_device *m = state;
    (void)err;
    m->options = *u->options;
    m->upload = *u;
    m->upload.options = &m->options;
    return 0;
}

static int submit(void *state, const struct targets *targets, struct error *err)
{
    struct cuda_multi_device *m = state;
    if (!share(m, targets)) return start_alone(m, targets, err);
    struct shares s = {.m = m, .targets = *targets};
    struct caller_arrays *from = targets->from;
    m->merged = m->rows_merged = 0;
    jmemory_commit(m->upload.memory); /* all devices read it at the same time */
    if (from) from->copied = memory_zeroed((size_t)ceil_div(targets->ni, ROWS_AT_ONCE));
    if (from && !from->copied)
        return error_set(err, G6X_E_MEMORY, "out of memory for a force call");
    int code = on_all(&s, start_share, err);
    while (code && drop_lost(m))
        code =
            share(m, &s.targets) ? on_all(&s, start_share, err) : start_alone(m, &s.targets, err);
    if (from) memory_free((void *)from->copied);
    if (from) from->copied = NULL;
    return code;
}

/* ---- collect --------------------------------------------------------------------------- */

enum { MERGED_AT_ONCE = 64 };

static int finish_share(struct shares *s, int k, struct error *err)
{
    return cuda_force_finish(s->m->device[k], s->want, s->count, err);
}

static void merge_rows(const struct cuda_multi_device *m, int first, int count,
                       struct partial_row *rows)
{
    struct partial_row other[MERGED_AT_ONCE];
    struct cuda *const *device = m->device;
    cuda_force_read_rows(device[0], first, count, rows);
    for (int k = 1; k < m->sharing; k++) {
        cuda_force_read_rows(device[k], first, count, other);
        for (int i = 0; i < count; i++)
            partial_merge(&rows[i], &other[i], limbs_of(device[0]->mode));
    }
}

/* Merges at most MERGED_AT_ONCE more rows into the first device's results. */
static void merge_results(void *device, int64_t from, int64_t end)
{
    const struct cuda_multi_device *m = device;
    struct partial_row rows[MERGED_AT_ONCE];
    const int first = m->merged + (int)from, count = (int)(end - from);
    const struct cuda *to = m->device[0];
    merge_rows(m, first, count, rows);
    for (int i = 0; i < count; i++) cuda_results_round(to, first + i, &rows[i]);
    for (int k = 1; k < m->sharing; k++) {
        const struct cuda *from = m->device[k];
        const struct cuda_results other = cuda_results_in(from, &from->results);
        for (int i = first; i < first + count; i++)
            cuda_results_take_nearer(to, i, other.r2[i], other.address[i]);
    }
}

/* Merges the first `count` rows while a device is still busy. Returns 1 if the rows
 * are not available, or if none is busy: then many threads merge them faster at the end. */
static int finish_some(struct shares *s)
{
    struct cuda_multi_device *m = s->m;
    struct error quiet = {.quiet = 1};
    int at_work = m->merges_early;
    for (int k = 0; k < m->sharing; k++) at_work |= !cuda_results_are_there(m->device[k]);
    if (!at_work) return 1;
    for (int k = 0; k < m->sharing; k++)
        if (finish_share(s, k, &quiet)) return 1; /* the final wait reports the error */
    const int rows = s->count - m->merged, useful = rows / MERGED_AT_ONCE;
    threads_each(options_threads_for(useful, m->device[0]->threads), rows, MERGED_AT_ONCE,
                 merge_results, m);
    m->merged = s->count;
    return 0;
}

static int finish_shares(struct cuda_multi_device *m, unsigned want, int count, struct error *err)
{
    struct cuda *c = m->device[0];
    struct shares s = {.m = m, .targets = c->targets, .want = want, .count = count};
    const int ni = c->targets.ni;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST)) m->merged = 0;
    if (count <= m->merged) return 0;
    if (count < ni) return finish_some(&s);
    int code = on_all(&s, finish_share, err);
    int again = code; /* or a device has summed its share again, and so overwritten merged rows */
    for (int k = 0; k < m->sharing; k++) again |= m->device[k]->sums == SUMS_SETTLED;
    if (again) m->merged = 0;
    while (code && drop_lost(m)) {
        if (!share(m, &s.targets)) {
            code = start_alone(m, &s.targets, err);
            return code ? code : cuda_force_finish(c, want, count, err);
        }
        code = on_all(&s, start_share, err);
        if (!code) code = on_all(&s, finish_share, err);
    }
    if (code) return code;
    threads_each(options_threads(c->threads), ni - m->merged, MERGED_AT_ONCE, merge_results, m);
    m->merged = ni;
    return 0;
}

static int collect(void *state, unsigned want, int count, struct results *results,
                   struct error *err)
{
    struct cuda_multi_device *m = state;
    const int code = m->sharing ? finish_shares(m, want, count, err)
                                : cuda_force_finish(m->device[0], want, count, err);
    *results = cuda_results(m->device[0]);
    return code;
}

/* Merges partial sums into the first device's rows, which have its own share if settled. */
static void keep_rows(void *device, int64_t first, int64_t end)
{
    const struct cuda_multi_device *m = device;
    struct partial_row rows[MERGED_AT_ONCE];
    merge_rows(m, (int)first, (int)(end - first), rows);
    memcpy(m->device[0]->rows + first, rows, (size_t)(end - first) * sizeof *rows);
}

static int partials(void *state, const struct partial_row **rows, struct error *err)
{
    struct cuda_multi_device *m = state;
    struct cuda *c = m->device[0];
    int code = cuda_device_enter(c, err);
    if (code) return code;
    c->rows_calls = ROWS_CALLS;
    const int merges = m->sharing && !m->rows_merged;
    if (!m->sharing) code = cuda_force_settle(c, err);
    if (merges) code = cuda_force_reserve_rows(c, err);
    if (merges && !code) {
        threads_each(options_threads(c->threads), c->targets.ni, MERGED_AT_ONCE, keep_rows, m);
        c->sums = SUMS_SETTLED;
        m->rows_merged = 1;
    }
    *rows = c->rows;
    cuda_device_leave(c);
    return code;
}

static int neighbours(void *state, int first, int count, const double *h2,
                      struct neighbour_lists *lists, struct error *err)
{
    const struct cuda_multi_device *m = state;
    return cuda_neighbours(m->device[0], first, count, h2, lists, err);
}

/* Zero-distance pairs found by the host and by the devices. */
static int64_t zero_distances(void *state)
{
    const struct cuda_multi_device *m = state;
    int64_t all = 0;
    for (int k = 0; k < m->devices; k++) {
        struct cuda *c = m->device[k];
        all += c->met_zero_distances + atomic_exchange(&c->zero_distances, 0);
        c->met_zero_distances = 0;
    }
    return all;
}

static void describe(void *state, const struct options *o, char *buffer, int length)
{
    const struct cuda_multi_device *m = state;
    char text[DEVICE_TEXT + 32];
    (void)o;
    (void)snprintf(text, sizeof text, m->devices > 1 ? "cuda %s, %d of them" : "cuda %s",
                   m->device[0]->device.name, m->devices);
    error_copy(text, buffer, length);
}

const struct backend cuda_multi_device_backend = {
    .open = open_all,
    .set_j = set_j,
    .submit = submit,
    .collect = collect,
    .partials = partials,
    .neighbours = neighbours,
    .zero_distances = zero_distances,
    .describe = describe,
    .close = close_all,
};
