/* by_row.c - see by_row.h. */
#include "core/by_row.h"

#include <string.h>

#include "util/memory.h"
#include "util/threads.h"

#define OF_KIND(k, n) MEMORY_ARRAY((k)->row, n), ARRAYS_OF_ROWS(&(k)->of, n)
#define OF_ROWS(b, n)                                                                              \
    {OF_KIND(&(b)->kind[0], n),   OF_KIND(&(b)->kind[1], n),     MEMORY_ARRAY((b)->nearest, n),    \
     MEMORY_ARRAY((b)->index, n), MEMORY_ARRAY((b)->partial, n), {0}}

int by_row_open(const struct backend *inner, const struct options *o, int choice, void **state,
                struct error *err)
{
    struct by_row *b = memory_zeroed(sizeof *b);
    if (!b) return error_set(err, G6X_E_MEMORY, "out of memory at open");
    *b = (struct by_row){.inner = inner, .options = *o, .choice = choice, .end = ROWS_COARSE + 1};
    b->upload.options = &b->options;
    const int code = by_row_have(b, ROWS_COARSE, err);
    if (code)
        memory_free(b);
    else
        *state = b;
    return code;
}

void by_row_close(void *state)
{
    struct by_row *b = state;
    if (!b) return;
    const struct memory_array all[] = OF_ROWS(b, 0);
    for (int k = ROW_KINDS - 1; k >= 0; k--)
        if (b->state[k]) b->inner->close(b->state[k]);
    memory_free_all(all);
    for (int k = 0; k < NSUM; k++) memory_free(b->sum[k]);
    neighbour_lists_free(&b->lists);
    memory_free(b);
}

int by_row_set_j(void *state, const struct upload *upload, struct error *err)
{
    struct by_row *b = state;
    b->upload = *upload;
    b->first = ROWS_COARSE, b->end = ROWS_COARSE + 1;
    memset(b->sent, 0, sizeof b->sent);
    return upload->options->precision == MODE_AUTO ? 0 : by_row_ready(b, ROWS_COARSE, err);
}

/* The options of a kind. */
static struct options options_of(const struct by_row *b, int kind)
{
    struct options o = *b->upload.options;
    o.fine_of = kind == ROWS_FINE ? b->state[ROWS_COARSE] : NULL;
    if (o.precision == MODE_AUTO) o.precision = o.fine_of ? MODE_DOUBLE : MODE_GRAPE;
    return o;
}

int by_row_have(struct by_row *b, int kind, struct error *err)
{
    if (b->state[kind]) return 0;
    const struct options options = options_of(b, kind);
    return b->inner->open(&options, b->choice, &b->state[kind], err);
}

int by_row_ready(struct by_row *b, int kind, struct error *err)
{
    if (b->sent[kind]) return 0;
    struct upload upload = b->upload;
    const struct options options = options_of(b, kind);
    if (options.fine_of) upload.scale = upload.fine_scale;
    upload.options = &options;
    int code = by_row_have(b, kind, err);
    if (!code) code = b->inner->set_j(b->state[kind], &upload, err);
    b->sent[kind] = !code;
    return code;
}

/* ---- the rows of a call ----------------------------------------------------------------- */

static void copy(struct caller_arrays *from, int first, int count)
{
    const struct rows *to = from->to;
    const size_t n = (size_t)count;
    memcpy(to->index + first, from->index + first, n * sizeof *to->index);
    if (from->h2)
        memcpy(to->h2 + first, from->h2 + first, n * sizeof *to->h2);
    else
        for (int i = first; i < first + count; i++) to->h2[i] = -1.0;
    memcpy(to->x + first, from->x + first, n * sizeof *to->x);
    memcpy(to->v + first, from->v + first, n * sizeof *to->v);
    memset(to->invalid + first, 0, n);
    if (all_finite(to->x[first], 3 * n) && all_finite(to->v[first], 3 * n)) return;
    for (int i = first; i < first + count; i++) {
        to->invalid[i] = !all_finite(to->x[i], 3) || !all_finite(to->v[i], 3);
        if (!to->invalid[i]) continue;
        memset(to->x[i], 0, sizeof to->x[i]);
        memset(to->v[i], 0, sizeof to->v[i]);
        int bad = atomic_load(&from->first_bad);
        while (i < bad && !atomic_compare_exchange_weak(&from->first_bad, &bad, i)) continue;
    }
}

/* The thread that comes first to a run copies it; others wait. */
static void copy_once(struct caller_arrays *from, int first, int count)
{
    enum { MISSING, BEGUN, COPIED };
    _Atomic unsigned char *state = &from->copied[first / ROWS_AT_ONCE];
    unsigned char seen = MISSING;
    if (atomic_compare_exchange_strong(state, &seen, BEGUN)) {
        copy(from, first, count);
        atomic_store(state, COPIED);
    }
    while (atomic_load(state) != COPIED) threads_pause();
}

void by_row_copy(struct caller_arrays *from, int first, int count)
{
    if (!from || first >= from->ni) return;
    const int end = count < from->ni - first ? first + count : from->ni;
    if (!from->copied) copy(from, first, end - first);
    for (; from->copied && first < end; first += ROWS_AT_ONCE)
        copy_once(from, first, end - first < ROWS_AT_ONCE ? end - first : ROWS_AT_ONCE);
}

/* Reserves the arrays of a call with rows of both kinds, and sets `row` and `n` of each. */
static int divide(struct by_row *b, int ni, const unsigned char *fine, struct error *err)
{
    const struct memory_array all[] = OF_ROWS(b, ni);
    const int grows = ni > b->capacity;
    int missing = grows && memory_grow_all(all);
    for (int k = 0; k < NSUM && grows && !missing; k++)
        missing = memory_grow_all((struct memory_array[]){MEMORY_ARRAY(b->sum[k], ni), {0}});
    if (missing) return error_set(err, G6X_E_MEMORY, "out of memory for %d i particles", ni);
    if (grows) b->capacity = ni;
    for (int k = 0; k < ROW_KINDS; k++) b->kind[k].n = 0;
    for (int i = 0; i < ni; i++) {
        struct rows_of_kind *k = &b->kind[fine[i] ? ROWS_FINE : ROWS_COARSE];
        k->row[k->n++] = i;
    }
    return 0;
}

/* Copies the rows of a kind; or names them, if the caller's arrays are on a device. */
static struct targets targets_of(const struct targets *t, struct rows_of_kind *k)
{
    struct targets some = *t;
    some.ni = k->n;
    some.rows = k->row;
    some.h2 = NULL;
    if (t->on_device) return some;
    for (int n = 0; n < k->n; n++) {
        const int i = k->row[n];
        k->of.index[n] = t->index[i];
        k->of.eps2[n] = t->eps2[i];
        memcpy(k->of.x[n], t->x[i], sizeof k->of.x[n]);
        memcpy(k->of.v[n], t->v[i], sizeof k->of.v[n]);
    }
    return (struct targets){.ni = k->n,
                            .index = k->of.index,
                            .x = CONST3(k->of.x),
                            .v = CONST3(k->of.v),
                            .eps2 = k->of.eps2};
}

int by_row_submit(void *state, const struct targets *targets, struct error *err)
{
    struct by_row *b = state;
    int fine = 0;
    b->targets = *targets;
    for (int i = 0; i < targets->ni && targets->fine; i++) fine += targets->fine[i] != 0;
    b->first = fine && fine == targets->ni ? ROWS_FINE : ROWS_COARSE;
    b->end = fine ? ROWS_FINE + 1 : ROWS_COARSE + 1;
    if (!by_row_has_both(b)) {
        const int code = by_row_ready(b, b->first, err);
        return code ? code : b->inner->submit(b->state[b->first], targets, err);
    }
    by_row_copy(targets->from, 0, targets->ni);
    int code = divide(b, targets->ni, targets->fine, err);
    for (int k = 0; k < ROW_KINDS && !code; k++) {
        const struct targets some = targets_of(&b->targets, &b->kind[k]);
        code = by_row_ready(b, k, err);
        if (!code) code = b->inner->submit(b->state[k], &some, err);
    }
    return code;
}

/* ---- results ---------------------------------------------------------------------------- */

int by_row_collect(void *state, unsigned want, int count, struct results *results,
                   struct error *err)
{
    struct by_row *b = state;
    int code = 0;
    if (!by_row_has_both(b)) {
        code = b->inner->collect(b->state[b->first], want, count, results, err);
        results->fine = b->first == ROWS_FINE ? b->targets.fine : NULL;
        return code;
    }
    if (count < b->targets.ni) return 1;
    for (int kind = 0; kind < ROW_KINDS && !code; kind++) {
        const struct rows_of_kind *k = &b->kind[kind];
        struct results r = {{0}, NULL, NULL, NULL};
        code = b->inner->collect(b->state[kind], want, k->n, &r, err);
        for (int n = 0; n < k->n && !code; n++) {
            for (int c = 0; c < NSUM; c++) b->sum[c][k->row[n]] = r.sum[c][n];
            b->nearest[k->row[n]] = r.nearest[n];
            b->index[k->row[n]] = r.index[n];
        }
    }
    *results = (struct results){.nearest = b->nearest, .index = b->index, .fine = b->targets.fine};
    for (int c = 0; c < NSUM; c++) results->sum[c] = b->sum[c];
    return code;
}

int by_row_partials(void *state, const struct partial_row **rows, struct error *err)
{
    struct by_row *b = state;
    int code = 0;
    if (!by_row_has_both(b)) return b->inner->partials(b->state[b->first], rows, err);
    for (int kind = 0; kind < ROW_KINDS && !code; kind++) {
        const struct partial_row *some = NULL;
        code = b->inner->partials(b->state[kind], &some, err);
        for (int n = 0; n < b->kind[kind].n && !code; n++)
            b->partial[b->kind[kind].row[n]] = some[n];
    }
    *rows = b->partial;
    return code;
}

/* How many rows of a kind are before row i. */
static int rows_before(const struct rows_of_kind *k, int i)
{
    int n = 0;
    while (n < k->n && k->row[n] < i) n++;
    return n;
}

/* The lists of both kinds of rows one behind the other, as far as both have them. */
static int merge_lists(struct by_row *b, int first, int count, const int at[ROW_KINDS],
                       const struct neighbour_lists some[ROW_KINDS], struct neighbour_lists *lists)
{
    int next[ROW_KINDS] = {0}, rows = 0;
    if (neighbour_lists_reserve_starts(&b->lists, count)) return G6X_E_MEMORY;
    int64_t *start = b->lists.start;
    for (start[0] = 0; rows < count; rows++) {
        const struct rows_of_kind *fine = &b->kind[ROWS_FINE];
        const int place = at[ROWS_FINE] + next[ROWS_FINE];
        const int kind = place < fine->n && fine->row[place] == first + rows;
        if (next[kind] >= some[kind].count) break;
        const int64_t *from = some[kind].start + next[kind]++, n = from[1] - from[0];
        start[rows + 1] = start[rows] + n;
        if (neighbour_lists_reserve(&b->lists, start[rows + 1])) return G6X_E_MEMORY;
        if (n) memcpy(b->lists.index + start[rows], some[kind].index + from[0], (size_t)n * 4);
    }
    *lists = (struct neighbour_lists){rows, start, b->lists.index};
    return 0;
}

int by_row_neighbours(void *state, int first, int count, const double *h2,
                      struct neighbour_lists *lists, struct error *err)
{
    struct by_row *b = state;
    struct neighbour_lists some[ROW_KINDS] = {{0}};
    int at[ROW_KINDS], code = 0;
    if (!by_row_has_both(b))
        return b->inner->neighbours(b->state[b->first], first, count, h2, lists, err);
    for (int kind = 0; kind < ROW_KINDS && !code; kind++) {
        struct rows_of_kind *k = &b->kind[kind];
        at[kind] = rows_before(k, first);
        const int n = rows_before(k, first + count) - at[kind];
        for (int r = 0; r < n; r++) k->of.h2[r] = h2[k->row[at[kind] + r] - first];
        if (n) code = b->inner->neighbours(b->state[kind], at[kind], n, k->of.h2, &some[kind], err);
    }
    if (!code && merge_lists(b, first, count, at, some, lists))
        code = error_set(err, G6X_E_MEMORY, "out of memory for neighbour lists");
    return code;
}

int64_t by_row_zero_distances(void *state)
{
    struct by_row *b = state;
    int64_t pairs = 0;
    for (int k = 0; k < ROW_KINDS; k++)
        if (b->state[k]) pairs += b->inner->zero_distances(b->state[k]);
    return pairs;
}

void by_row_describe(void *state, const struct options *o, char *buffer, int length)
{
    struct by_row *b = state;
    b->inner->describe(b->state[ROWS_COARSE], o, buffer, length);
}
