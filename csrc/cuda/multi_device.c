/* multi_device.c - one force call on several cards. Each has all j particles, sums whole blocks of
 * their addresses, and gives rows of partial sums, which are merged as integers: so the bits do not
 * depend on how many cards there are. A call for which that does not pay is the first card's alone.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "python/gil.h"
#include "util/memory.h"
#include "core/mutants.h"
#include "core/options.h"
#include "util/threads.h"

/* A card more saves less than its launch and the merge cost below so many pairs, the prediction of
 * a j particle being counted as some. */
enum { WORTH_A_CARD = 3 << 24, PAIRS_OF_PREDICTION = 32 };

int cuda_multi_device_open(struct cuda *c, const struct options *o, int choice, struct fault *f)
{
    const char *worth = TEST_VARIABLE(WORTH_A_CARD);
    int code = 0;
    c->merges_early = TEST_VARIABLE(MERGES_EARLY) != NULL;
    if (!o->all_devices) return 0;
    c->worth_a_card = worth && atoll(worth) > 0 ? atoll(worth) : WORTH_A_CARD;
    for (int k = 1; k < c->device.usable && k < MOST_FOLLOWERS && !code; k++) {
        code = cuda_device_open(o, choice + k, k, &c->other[c->others], f);
        c->others += !code;
    }
    return code;
}

void cuda_multi_device_close(struct cuda *c)
{
    while (c->others) cuda_device_close(c->other[--c->others]);
}

int cuda_multi_device_count(const struct cuda *c, int ni, int64_t nj)
{
    if (!c->others || !ni) return 0;
    const int64_t worth = ((int64_t)ni + PAIRS_OF_PREDICTION) * nj / c->worth_a_card;
    const int64_t cards = worth < c->others + 1 ? worth : c->others + 1;
    const int64_t blocks = ceil_div(nj, CUDA_BLOCK);
    return (int)(cards < blocks ? cards : blocks);
}

int cuda_multi_device_takes(struct cuda *c, const struct targets *targets)
{
    const int cards =
        targets->on_device ? 0 : cuda_multi_device_count(c, targets->ni, cuda_jparticles_count(c));
    c->sharing = cards > 1 ? cards : 0;
    return c->sharing;
}

static struct cuda *card_of(struct cuda *c, int k) { return k ? c->other[k - 1] : c; }

/* A thread for each card. */
struct shares {
    struct cuda *c;
    struct targets targets;
    int (*work)(struct shares *s, int card, struct fault *f);
    void (*rows)(struct shares *s, int first, int count);
    unsigned want;
    int count; /* of rows that are to be there */
    _Atomic int next, next_row;
    int code[MOST_FOLLOWERS];
    struct fault fault[MOST_FOLLOWERS];
};

static void share_task(void *shares)
{
    struct shares *s = shares;
    for (int k; (k = atomic_fetch_add(&s->next, 1)) < s->c->sharing;)
        s->code[k] = s->work(s, k, &s->fault[k]);
}

/* A card that is lost is left out from now on, unless it is the first: then 1, to do it again. */
static int drop_lost(struct cuda *c)
{
    int dropped = 0;
    if (c->lost) return 0;
    for (int k = 0; k < c->others; k++) {
        if (!c->other[k]->lost) continue;
        cuda_device_close(c->other[k]);
        c->other[k--] = c->other[--c->others];
        dropped = 1;
    }
    return dropped;
}

static int on_all(struct shares *s, int (*work)(struct shares *, int, struct fault *),
                  struct fault *f)
{
    s->work = work;
    atomic_store(&s->next, 0);
    for (int k = 0; k < s->c->sharing; k++) s->fault[k].quiet = 1;
    void *lock = python_gil_release(); /* these threads may need Python, which this one may hold */
    threads_run(s->c->sharing, share_task, s);
    python_gil_acquire(lock);
    for (int k = 0; k < s->c->sharing; k++)
        if (s->code[k]) return error_set(f, s->code[k], "%.250s", s->fault[k].text);
    return 0;
}

/* ---- the beginning --------------------------------------------------------------------- */

/* Targets that several cards read are filled once: by the first that comes to a run of them. */
enum { ROWS_AT_ONCE = 256 }; /* divides what is asked for at a time, but for the last ones */
enum { UNFILLED, BEING_FILLED, FILLED };
struct fill_once {
    struct targets targets;
    _Atomic unsigned char *state; /* per run */
};

static void fill_run(struct fill_once *o, int run)
{
    const int first = run * ROWS_AT_ONCE, left = o->targets.ni - first;
    unsigned char seen = UNFILLED;
    if (atomic_compare_exchange_strong(&o->state[run], &seen, BEING_FILLED)) {
        o->targets.fill(o->targets.context, first, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        atomic_store(&o->state[run], FILLED);
    }
    while (atomic_load(&o->state[run]) != FILLED) threads_pause();
}

static void fill_once(void *once, int first, int count)
{
    for (int row = first; row < first + count; row += ROWS_AT_ONCE)
        fill_run(once, row / ROWS_AT_ONCE);
}

static int start_share(struct shares *s, int k, struct fault *f)
{
    struct cuda *card = card_of(s->c, k);
    const int64_t blocks = ceil_div(cuda_jparticles_count(s->c), CUDA_BLOCK), n = s->c->sharing;
    const int code = cuda_jparticles_update(card, &s->c->upload, f);
    return code ? code
                : cuda_sum_start_blocks(card, &s->targets, blocks * k / n, blocks * (k + 1) / n, 1,
                                        f);
}

int cuda_multi_device_start(struct cuda *c, const struct targets *targets, struct fault *f)
{
    struct shares s = {.c = c, .targets = *targets};
    struct fill_once once = {.targets = *targets};
    c->merged_rows = c->rows_merged = 0;
    jmemory_commit(c->upload.memory); /* which all cards read at once */
    if (targets->fill) {
        once.state = memory_zeroed((size_t)ceil_div(targets->ni, ROWS_AT_ONCE));
        if (!once.state) return error_set(f, G6X_E_MEMORY, "out of memory for a force call");
        s.targets.fill = fill_once;
        s.targets.context = &once;
    }
    int code = on_all(&s, start_share, f);
    while (code && drop_lost(c)) {
        code = cuda_multi_device_takes(c, &s.targets)
                   ? on_all(&s, start_share, f)
                   : cuda_sum_start_blocks(c, &s.targets, 0, cuda_all_blocks(c), 0, f);
    }
    memory_free((void *)once.state);
    return code;
}

/* ---- the end --------------------------------------------------------------------------- */

enum { MERGED_AT_ONCE = 64 };

static int finish_share(struct shares *s, int k, struct fault *f)
{
    return cuda_sum_finish_here(card_of(s->c, k), s->want, s->count, f);
}

static void merge_rows(const struct shares *s, int first, int count, struct partial_row *rows)
{
    struct partial_row other[MERGED_AT_ONCE];
    cuda_partials_read(s->c, first, count, rows);
    for (int k = 1; k < s->c->sharing; k++) {
        cuda_partials_read(card_of(s->c, k), first, count, other);
        for (int i = 0; i < count; i++) partial_merge(&rows[i], &other[i], limbs_of(s->c->mode));
    }
}

/* Results of rows into those of the first card. */
static void merge_results(struct shares *s, int first, int count)
{
    struct partial_row rows[MERGED_AT_ONCE];
    double sum[NSUM];
    const struct results r = cuda_sum_results(s->c);
    merge_rows(s, first, count, rows);
    for (int i = 0; i < count; i++) {
        partial_value(&rows[i], sum);
        for (int q = 0; q < NSUM; q++) ((double *)(uintptr_t)r.sum[q])[first + i] = sum[q];
    }
    for (int k = 1; k < s->c->sharing; k++) {
        const struct cuda *card = card_of(s->c, k);
        const struct results other = cuda_sum_results(card);
        for (int i = first; i < first + count; i++)
            cuda_partials_take_nearer(s->c, i, (other.sum[0] + NSUM * card->stride)[i],
                                      other.nearest[i]);
    }
}

/* Rows of partial sums into the first card's, which may be settled and then are its own share. */
static void keep_rows(struct shares *s, int first, int count)
{
    struct partial_row rows[MERGED_AT_ONCE];
    merge_rows(s, first, count, rows);
    memcpy(s->c->rows + first, rows, (size_t)count * sizeof *rows);
}

static void rows_task(void *shares)
{
    struct shares *s = shares;
    for (int first; (first = atomic_fetch_add(&s->next_row, MERGED_AT_ONCE)) < s->count;)
        s->rows(s, first, s->count - first < MERGED_AT_ONCE ? s->count - first : MERGED_AT_ONCE);
}

/* Rows from `first` to s->count. */
static void on_rows(struct shares *s, int first,
                    void (*work)(struct shares *s, int first, int count))
{
    const int cores = options_threads(s->c->threads);
    const int worth = (s->count - first) / MERGED_AT_ONCE + 1;
    s->rows = work;
    atomic_store(&s->next_row, first);
    threads_run(worth < cores ? worth : cores, rows_task, s);
}

int cuda_multi_device_merge_rows(struct cuda *c, struct fault *f)
{
    struct shares s = {.c = c, .count = c->targets.ni};
    if (c->rows_merged) return 0;
    const int code = cuda_partials_reserve(c, f);
    if (code) return code;
    on_rows(&s, 0, keep_rows);
    c->settled = c->rows_merged = 1;
    return 0;
}

/* The first rows while some card is still at work: 1 if that cannot be had, or if none is, since
 * the rest is done faster by many threads at the end. */
static int finish_some(struct shares *s)
{
    struct fault quiet = {.quiet = 1};
    int at_work = s->c->merges_early;
    for (int k = 0; k < s->c->sharing; k++) at_work |= !cuda_sum_is_done(card_of(s->c, k));
    if (!at_work) return 1;
    for (int k = 0; k < s->c->sharing; k++)
        if (finish_share(s, k, &quiet)) return 1; /* which will be told when all are waited for */
    s->rows = merge_results;
    atomic_store(&s->next_row, s->c->merged_rows);
    rows_task(s);
    s->c->merged_rows = s->count;
    return 0;
}

/* Whether a card has summed its share again, and so overwritten what was merged. */
static int any_settled(const struct cuda *c)
{
    int any = c->settled;
    for (int k = 1; k < c->sharing; k++) any |= c->other[k - 1]->settled;
    return any;
}

int cuda_multi_device_finish(struct cuda *c, unsigned want, int count, struct fault *f)
{
    struct shares s = {.c = c, .targets = c->targets, .want = want, .count = count};
    const int ni = c->targets.ni;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST)) c->merged_rows = 0;
    if (count <= c->merged_rows) return 0;
    if (count < ni) return finish_some(&s);
    int code = on_all(&s, finish_share, f);
    if (code || any_settled(c)) c->merged_rows = 0;
    while (code && drop_lost(c)) {
        if (!cuda_multi_device_takes(c, &s.targets)) {
            code = cuda_sum_start_blocks(c, &s.targets, 0, cuda_all_blocks(c), 0, f);
            return code ? code : cuda_sum_finish_here(c, want, count, f);
        }
        code = on_all(&s, start_share, f);
        if (!code) code = on_all(&s, finish_share, f);
    }
    if (code) return code;
    on_rows(&s, c->merged_rows, merge_results);
    c->merged_rows = ni;
    return 0;
}
