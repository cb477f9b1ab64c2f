/* ahead.c - see ahead.h. */
#include "session/ahead.h"

#include <string.h>
/* Most pairs of a sum in advance: a fraction of a second on a few cores. */
static const int64_t MOST_PAIRS = (int64_t)1 << 30;
/* No rows in advance once more than one row in 128 was summed for nothing. */
enum { WASTE_SHARE = 128 };

/* ---- rows of the last submission --------------------------------------------------------- */

static int same(const void *a, const void *b, int rows, size_t bytes)
{
    return !memcmp(a, b, (size_t)rows * bytes);
}

int session_ahead_take(struct session *s, int nj, int ni, const struct i_arrays *from,
                       const double *eps2, int each)
{
    struct force_call *c = &s->call;
    const struct call_rows *all = &c->all;
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
    c->lists.count = 0;
    c->distances = 0;
    s->calls_ahead++;
    s->ahead.next += ni;
    s->ahead.run += ni;
    s->ahead.matched += ni;
    return 1;
}

void session_ahead_drop(struct session *s)
{
    struct force_call *c = &s->call;
    s->ahead.wasted += c->rows - (c->first + c->ni);
    c->rows = c->first + c->ni;
}

/* ---- rows of the next one ---------------------------------------------------------------- */

/* Whether the call's first and last rows equal the j particles at `address` and `address` + ni - 1
 * at their own time. A guess: session_ahead_take compares all rows later. */
static int is_in_order(const struct session *s, const struct i_arrays *from, int address)
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

/* How many j particles from the next address on, up to `most`, have the call's time as their
 * own. */
static int count_more(const struct session *s, int64_t most)
{
    struct jmemory_seen j;
    int count = 0;
    while (count < most && jmemory_look(&s->j, s->ahead.next + count, &j) && j.time == s->call.time)
        count++;
    return count;
}

/* Rows still expected. A run is assumed to be as long as the last one; if it is already longer, its
 * length is assumed to double. */
static int64_t expected(const struct ahead *a, int goes_on)
{
    if (a->run <= a->last_run) return a->last_run - a->run;
    return goes_on ? a->run : 0;
}

int session_ahead_plan(struct session *s, const struct i_arrays *from, int each)
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
    int64_t more = expected(a, goes_on);
    if (more > most) more = most;
    if (more > left) more = left;
    const int rows = c->ni + count_more(s, more);
    const double eps2 = c->eps2[0];
    if (rows == c->ni || session_call_rows_reserve(s, rows)) return c->ni;
    for (int i = 0; i < rows; i++) c->eps2[i] = eps2;
    a->options = s->options;
    return rows;
}

void session_ahead_fill(struct session *s, int first, int count)
{
    const struct force_call *c = &s->call;
    const struct call_rows *all = &c->all;
    for (int row = first; row < first + count; row++) {
        struct jmemory_seen j;
        if (!jmemory_look(&s->j, s->ahead.next + row - c->ni, &j)) continue; /* never: count_more */
        all->index[row] = j.index;
        memcpy(all->x[row], j.x, sizeof all->x[row]);
        memcpy(all->v[row], j.v, sizeof all->v[row]);
        all->h2[row] = -1.0;
        all->invalid[row] = 0;
    }
}
