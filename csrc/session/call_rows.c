/* call_rows.c - see call_rows.h. */
#include "session/call_rows.h"

#include <string.h>

#include "g6lib.h"
#include "session/force_scale.h"
#include "shared/fine.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"

#define ARRAYS(c, n)                                                                               \
    {ARRAYS_OF_ROWS(&(c)->all, n),                                                                 \
     MEMORY_ARRAY((c)->distance, n),                                                               \
     MEMORY_ARRAY((c)->is_fine, n),                                                                \
     {0}}

void session_call_rows_free(struct session *s)
{
    const struct memory_array all[] = ARRAYS(&s->call, 0);
    memory_free_all(all);
    memset(&s->call, 0, sizeof s->call);
}

int session_call_rows_reserve(struct session *s, int rows)
{
    struct force_call *c = &s->call;
    if (rows <= c->capacity) return 0;
    const struct memory_array all[] = ARRAYS(c, rows);
    const int code = memory_reserve(all, rows, &c->capacity);
    c->alike = 0;
    session_call_rows_window(s, 0); /* after an error, too, some arrays may have moved */
    return code;
}

void session_call_rows_window(struct session *s, int first)
{
    struct force_call *c = &s->call;
    c->first = first;
    c->lists.count = 0;
    c->distances = 0;
    if (!c->capacity) return;
    c->own = (struct rows){c->all.index + first, c->all.x + first,  c->all.v + first,
                           c->all.eps2 + first,  c->all.h2 + first, c->all.invalid + first};
}

int session_call_rows_collect(struct session *s, unsigned want, int count)
{
    struct force_call *c = &s->call;
    struct results *r = &c->results;
    const int first = c->first;
    const int code = s->backend->collect(s->state, want, first + count, r, &s->error);
    if (code || !first) return code;
    for (int k = 0; k < NSUM; k++) r->sum[k] += first;
    r->nearest += first;
    r->index += first;
    if (r->fine) r->fine += first;
    return 0;
}

/* ---- rows in advance --------------------------------------------------------------------- */

/* Most pairs of a sum in advance: a fraction of a second on a few cores. */
static const int64_t MOST_PAIRS = (int64_t)1 << 30;
/* No rows in advance once more than one row in 128 was summed for nothing. */
enum { WASTE_SHARE = 128 };

static int same(const void *a, const void *b, int rows, size_t bytes)
{
    return !memcmp(a, b, (size_t)rows * bytes);
}

int session_call_rows_take(struct session *s, int nj, int ni, const struct caller_arrays *from,
                           const double *eps2, int each)
{
    struct force_call *c = &s->call;
    const struct rows *all = &c->all;
    const int k = c->first + c->ni;
    if (!c->made || c->outdated || c->code || !ni || from->fine || ni > c->rows - k || nj != c->nj)
        return 0;
    if (bits_of(s->time) != bits_of(c->time) ||
        memcmp(&s->options, &s->ahead.options, sizeof s->options))
        return 0;
    if (!same(all->index + k, from->index, ni, sizeof *from->index) ||
        !same(all->x + k, from->x, ni, sizeof *from->x) ||
        !same(all->v + k, from->v, ni, sizeof *from->v))
        return 0;
    for (int i = 0; i < ni; i++)
        if (bits_of(eps2[each ? i : 0]) != bits_of(all->eps2[k])) return 0;
    for (int i = 0; i < ni; i++) all->h2[k + i] = from->h2 ? from->h2[i] : -1.0;
    session_call_rows_window(s, k);
    c->ni = ni;
    c->done = 0;
    c->invalid_rows = 0;
    s->calls_ahead++;
    s->ahead.next += ni;
    s->ahead.run += ni;
    s->ahead.matched += ni;
    return 1;
}

void session_call_rows_drop(struct session *s)
{
    struct force_call *c = &s->call;
    s->ahead.wasted += c->rows - (c->first + c->ni);
    c->rows = c->first + c->ni;
}

/* Whether the call's first and last rows equal the j particles at `address` and `address` + ni - 1
 * at their own time. A guess: session_call_rows_take compares all rows later. */
static int is_in_order(const struct session *s, const struct caller_arrays *from, int address)
{
    const struct force_call *c = &s->call;
    struct jmemory_seen j;
    if (c->ni > c->nj - address) return 0;
    for (int i = 0; i < c->ni; i += i < c->ni - 1 ? c->ni - 1 : 1)
        if (!jmemory_look(&s->j, address + i, &j) || j.time != c->time ||
            j.index != from->index[i] || memcmp(j.x, from->x[i], sizeof from->x[i]) != 0 ||
            memcmp(j.v, from->v[i], sizeof from->v[i]) != 0)
            return 0;
    return c->ni > 0;
}

struct appending {
    struct session *session;
    _Atomic int end; /* the first row that cannot be appended so far */
};

static void append_some(void *appending, int64_t first, int64_t end)
{
    struct appending *a = appending;
    const struct session *s = a->session;
    const struct force_call *c = &s->call;
    const struct rows *all = &c->all;
    struct jmemory_seen j;
    for (int row = c->ni + (int)first; row < c->ni + (int)end; row++) {
        if (!jmemory_look(&s->j, s->ahead.next + row - c->ni, &j) || j.time != c->time) {
            int last = atomic_load(&a->end);
            while (row < last && !atomic_compare_exchange_weak(&a->end, &last, row)) continue;
            return;
        }
        all->index[row] = j.index;
        memcpy(all->x[row], j.x, sizeof all->x[row]);
        memcpy(all->v[row], j.v, sizeof all->v[row]);
        all->eps2[row] = all->eps2[0];
        all->h2[row] = -1.0;
        all->invalid[row] = 0;
    }
}

/* Appends j particles from the next address on, up to `most`, that have the call's time as their
 * own. Returns the number of rows then. */
static int append(struct session *s, int64_t most)
{
    enum { ROWS = 256, ROWS_PER_THREAD = 1024 };
    struct force_call *c = &s->call;
    struct jmemory_seen j;
    if (most < 1 || !jmemory_look(&s->j, s->ahead.next, &j) || j.time != c->time ||
        session_call_rows_reserve(s, c->ni + (int)most))
        return c->ni;
    struct appending a = {s, c->ni + (int)most};
    threads_each(options_threads_for(most / ROWS_PER_THREAD + 1, s->options.threads), most, ROWS,
                 append_some, &a);
    if (c->alike >= c->ni && c->alike < a.end) c->alike = a.end;
    return a.end;
}

/* How many rows a submission that begins with this call's rows should have; appends the others. */
static int plan(struct session *s, const struct caller_arrays *from, int each)
{
    struct force_call *c = &s->call;
    struct ahead *a = &s->ahead;
    const int goes_on = a->run && is_in_order(s, from, a->next);
    if (!goes_on && a->run) a->last_run = a->run;
    if (!goes_on) a->run = a->next = 0;
    if (!goes_on && !is_in_order(s, from, 0)) return c->ni;
    a->run += c->ni;
    a->next += c->ni;
    a->matched += c->ni;
    if (each || a->wasted * WASTE_SHARE > a->matched) return c->ni;
    const int64_t pairs = MOST_PAIRS / c->nj, device = s->backend->most_rows;
    const int64_t most = (pairs < device ? pairs : device) - c->ni, left = c->nj - a->next;
    /* A run is taken to be as long as the last one; if it is longer already, to double. */
    int64_t more = a->run <= a->last_run ? a->last_run - a->run : goes_on ? a->run : 0;
    if (more > most) more = most;
    if (more > left) more = left;
    const int rows = append(s, more);
    if (rows > c->ni) a->options = s->options;
    return rows;
}

/* ---- rows in double ------------------------------------------------------------------------ */

struct search {
    struct jmemory *memory;
    double time, step;
    const double *drift;
    int64_t nj;
    const int32_t *index;
    unsigned char *fine;
};

static void look_at(void *search, int64_t first, int64_t end)
{
    enum { AT_ONCE = 16 }; /* slots that are on their way from memory together */
    const struct search *f = search;
    for (; first < end; first += AT_ONCE) {
        const int count = end - first < AT_ONCE ? (int)(end - first) : AT_ONCE;
        const struct jparticle *own[AT_ONCE];
        for (int i = 0; i < count; i++) {
            int32_t at[1];
            /* of two slots with one index none is the particle's own */
            const int found = jmemory_find(f->memory, f->index[first + i], f->nj, 1, at);
            own[i] = found == 1 ? &f->memory->body[at[0]] : NULL;
            if (!own[i]) continue;
            __builtin_prefetch(own[i]);
            __builtin_prefetch(own[i]->a2);
        }
        for (int i = 0; i < count; i++) {
            const struct jparticle *p = own[i];
            double v[3];
            for (int k = 0; p && k < 3; k++) v[k] = p->v[k] - f->drift[k];
            f->fine[first + i] = p && fine_is(f->step, f->time - p->time, p->a2, p->j6, v) ? 1 : 0;
        }
    }
}

/* Looks up rows in the slots of j particles; returns how many are fine. */
static int look_up(const struct session *s, struct search *search, int rows)
{
    enum { ROWS = 256, ROWS_PER_THREAD = 1024 };
    int found = 0;
    jmemory_commit(search->memory);
    jmemory_map(search->memory);
    threads_each(options_threads_for(rows / ROWS_PER_THREAD + 1, s->options.threads), rows, ROWS,
                 look_at, search);
    for (int i = 0; i < rows; i++) found += search->fine[i];
    return found;
}

int session_call_rows_fine(struct session *s, int nj, int rows, const int32_t *index,
                           unsigned char *fine)
{
    struct jmemory *memory = s->whole ? s->whole : &s->j;
    const int64_t all = s->whole ? s->whole_nj : nj;
    /* Sums of shares cannot be merged if only one of them knows a row's slot. */
    const int shared = !s->whole && (s->options.scale[0] != G6X_AUTO || s->j.is_share);
    memset(fine, 0, (size_t)rows);
    if (shared || jmemory_all_rest(memory, all)) return 0;
    const struct force_call *c = &s->call;
    const double step = fine_step((double)all);
    struct search search = {memory, c->time, step, c->scale.drift, all, index, fine};
    return look_up(s, &search, rows);
}

int session_call_rows_get_fine(struct session *s, int nj, int ni, const int *index,
                               unsigned char *fine)
{
    static const char call[] = "g6x_get_fine_rows";
    if (ni > 0 && (!index || !fine))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    if (nj < 0 || ni < 0 || s->time_bad)
        return error_set(&s->error, G6X_E_ARGUMENT,
                         "%s: nj = %d or ni = %d is negative, or the time NaN", call, nj, ni);
    if (!ni) return 0;
    FPENV_HERE;
    memset(fine, 0, (size_t)ni);
    if (session_force_scale_precision(s, nj) == MODE_AUTO && !jmemory_all_rest(&s->j, nj)) {
        const struct scale scale = session_force_scale_in(s, MODE_GRAPE);
        const int64_t all = s->j.is_share ? s->j.share_all : nj;
        const double step = fine_step((double)all);
        struct search search = {&s->j, s->time, step, scale.drift, nj, index, fine};
        (void)look_up(s, &search, ni);
    }
    return 0;
}

int session_call_rows_set_fine(struct session *s, int ni, const unsigned char *fine)
{
    const struct memory_array all[] = {MEMORY_ARRAY(s->given, ni > 0 ? ni : 1), {0}};
    const int code = ni < 0 ? G6X_E_ARGUMENT : ni && !fine ? G6X_E_NULL : memory_grow_all(all);
    if (code)
        return error_set(&s->error, code,
                         "g6x_set_fine_rows: ni = %d is negative, a null pointer, or no memory",
                         ni);
    for (int i = 0; i < ni; i++) s->given[i] = fine[i] != 0;
    s->given_rows = ni + 1;
    return 0;
}

/* Finds the fine rows of a submission that begins with the caller's; returns how many there are. */
static int find_fine(struct session *s, const struct caller_arrays *from)
{
    struct force_call *c = &s->call;
    int found = 0;
    if (c->precision != MODE_AUTO || !c->rows) return 0;
    if (from->fine) memcpy(c->is_fine, from->fine, (size_t)c->rows);
    for (int i = 0; i < c->rows && from->fine; i++) found += from->fine[i];
    if (from->fine) return found;
    if (c->ni) memcpy(c->all.index, from->index, (size_t)c->ni * sizeof *c->all.index);
    return session_call_rows_fine(s, c->nj, c->rows, c->all.index, c->is_fine);
}

void session_call_rows_plan(struct session *s, const struct caller_arrays *from, int each)
{
    s->call.first = 0;
    s->call.rows = plan(s, from, each || from->fine);
    s->call.fine = find_fine(s, from);
}
