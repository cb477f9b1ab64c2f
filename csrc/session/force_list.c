/* force_list.c - neighbour lists of the last force call. The first request makes the backend find
 * the lists of all its i particles. See force.h. */
#include <string.h>

#include "session/force.h"
#include "util/fpenv.h"
#include "util/threads.h"

/* An i particle's list without the particle itself: two parts of the backend's list. */
struct list {
    const int32_t *low, *high;
    int64_t lows, highs;
};

/* How many of n ascending indices are below a value. */
static int64_t below(const int32_t *index, int64_t n, int64_t value)
{
    int64_t low = 0;
    while (low < n) {
        const int64_t middle = low + (n - low) / 2;
        if (index[middle] < value)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

static struct list list_of(const struct session *s, int pipe)
{
    const struct force_call *c = &s->call;
    const int64_t *start = &c->lists.start[pipe - c->lists_first], n = start[1] - start[0];
    const int32_t *index = c->lists.index + start[0], own = c->own.index[pipe];
    struct list l = {index, index + n, n, 0};
    if (c->own.invalid[pipe]) {
        l.lows = 0;
    } else if (!s->options.neighbour_self) {
        l.lows = below(index, n, own);
        for (l.high = index + l.lows; l.high < index + n && *l.high == own;) l.high++;
        l.highs = index + n - l.high;
    }
    return l;
}

static void copy(const struct list *l, int64_t capacity, int *list)
{
    const int64_t lows = l->lows < capacity ? l->lows : capacity;
    const int64_t highs = l->highs < capacity - lows ? l->highs : capacity - lows;
    if (lows > 0) memcpy(list, l->low, (size_t)lows * sizeof *list);
    if (highs > 0) memcpy(list + lows, l->high, (size_t)highs * sizeof *list);
}

/* Asks the backend for the lists of a pipe and those after it. */
static int find(struct session *s, int pipe)
{
    struct force_call *c = &s->call;
    c->lists_first = pipe;
    c->lists.count = 0;
    return s->backend->neighbours(s->state, c->first + pipe, c->ni - pipe, c->own.h2 + pipe,
                                  &c->lists, &s->error);
}

static int has(const struct force_call *c, int pipe)
{
    return pipe >= c->lists_first && pipe - c->lists_first < c->lists.count;
}

/* Gets the list of a pipe, together with all others or as many as fit in memory. */
static int fetch(struct session *s, int pipe)
{
    const struct force_call *c = &s->call;
    if (has(c, pipe)) return 0;
    const int first = c->lists.count ? pipe : 0;
    FPENV_HERE;
    int code = find(s, first);
    if (code && !session_force_resume(s, code)) code = find(s, first);
    if (!code && !has(c, pipe)) code = find(s, pipe);
    if (code) s->call.lists.count = 0;
    return code;
}

int session_force_list(struct session *s, int pipe, int maxlength, int *length, int *list)
{
    const struct force_call *c = &s->call;
    if (!length || (!list && maxlength > 0))
        return error_set(&s->error, G6X_E_NULL, "g6_get_neighbour_list: null pointer");
    *length = 0;
    if (!c->made)
        return error_set(&s->error, G6X_E_NO_FIRSTHALF, "neighbour list without a force call");
    if (pipe < 0 || pipe >= c->ni)
        return error_set(&s->error, G6X_E_PIPE, "neighbour list of pipe %d of %d", pipe, c->ni);
    if (c->code) return c->code;
    if (c->own.invalid[pipe]) return G6X_E_I_NAN;
    const int code = fetch(s, pipe);
    if (code) return code;
    const struct list l = list_of(s, pipe);
    *length = (int)(l.lows + l.highs);
    copy(&l, maxlength, list);
    return *length > maxlength;
}

/* ---- all at once ------------------------------------------------------------------------ */

struct all {
    const struct session *session;
    const long long *start; /* of all pipes */
    int first;              /* pipe of piece 0 */
    int *list;
};

static void copy_lists(void *all, int64_t first, int64_t end)
{
    const struct all *a = all;
    for (int pipe = a->first + (int)first; pipe < a->first + (int)end; pipe++) {
        const struct list l = list_of(a->session, pipe);
        copy(&l, INT64_MAX, a->list + a->start[pipe]);
    }
}

/* Copies the lists that the backend returns together from `pipe` on; *end is the pipe after
 * them. */
static int store_some(struct session *s, int pipe, long long capacity, long long start[],
                      int list[], int *end)
{
    enum { ROWS = 256, INDICES_PER_THREAD = 1 << 15 };
    const struct force_call *c = &s->call;
    const int code = fetch(s, pipe);
    if (code) return code;
    *end = c->lists_first + c->lists.count;
    for (int k = pipe; k < *end; k++) {
        const struct list l = list_of(s, k);
        start[k + 1] = start[k] + l.lows + l.highs;
    }
    if (start[*end] > capacity) return 0;
    struct all all = {s, start, pipe, list};
    const int64_t useful = (start[*end] - start[pipe]) / INDICES_PER_THREAD + 1;
    threads_each(options_threads_for(useful, s->options.threads), *end - pipe, ROWS, copy_lists,
                 &all);
    return 0;
}

void session_force_no_lists(int ni, long long start[])
{
    for (int64_t k = 0; start && k <= ni; k++) start[k] = 0;
}

int session_force_lists(struct session *s, int ni, long long capacity, long long start[],
                        int list[])
{
    const struct force_call *c = &s->call;
    int code = 0, pipe = 0, rows = ni; /* if ni is wrong, the smaller count */
    if (!start || (!list && capacity > 0)) {
        code = error_set(&s->error, G6X_E_NULL, "g6x_get_neighbour_lists: null pointer");
    } else if (!c->made) {
        code = error_set(&s->error, G6X_E_NO_FIRSTHALF, "neighbour lists without a force call");
    } else if (ni != c->ni) {
        rows = ni < c->ni ? ni : c->ni;
        code = error_set(&s->error, G6X_E_MISMATCH,
                         "neighbour lists of %d i particles after a force call with %d", ni, c->ni);
    } else {
        code = c->code;
    }
    session_force_no_lists(rows, start);
    while (!code && pipe < ni) code = store_some(s, pipe, capacity, start, list, &pipe);
    if (code) session_force_no_lists(rows, start);
    if (code) return code;
    return start[ni] > capacity ? 1 : c->invalid_rows ? G6X_E_I_NAN : 0;
}
