/* lists.c - neighbour lists of the backends cpu-tree and cuda-tree: counted, found, and moved
 * together where the softening has left some out. */
#include <string.h>

#include "core/device.h"
#include "tree/state.h"
#include "util/memory.h"
#include "util/threads.h"

enum { ROWS_AT_ONCE = 64 };

struct seeking {
    struct octree *octree;
    int first; /* target */
    const double *h2;
    int64_t *start;
    int64_t *length; /* of what is found */
    int32_t *index;
    int by_device; /* `index` has them */
};

/* Radius to search: a little more than h2 - eps2 might round to. */
static double reach2(double h2, double eps2)
{
    return eps2 > 0.0 ? h2 - eps2 + (h2 + eps2) * 0x1p-50 : h2;
}

/* Numbers of sources around target k, of which the first `capacity` are written. */
static int64_t search(const struct seeking *s, int64_t k, int32_t *number, int64_t capacity)
{
    const struct octree *t = s->octree;
    const int64_t i = s->first + k;
    if (!(s->h2[k] >= 0.0)) return 0;
    return tree_search_within(&t->tree, CONST3(t->sources.x), t->targets.x[i],
                              reach2(s->h2[k], t->targets.eps2[i]), -1, number, capacity);
}

static void count_lists(void *seeking, int64_t first, int64_t end)
{
    const struct seeking *s = seeking;
    for (int64_t k = first; k < end; k++) s->start[k + 1] = search(s, k, NULL, 0);
}

static void find_lists(void *seeking, int64_t first, int64_t end)
{
    const struct seeking *s = seeking;
    const struct sources *from = &s->octree->sources;
    for (int64_t k = first; k < end; k++) {
        const double *at = s->octree->targets.x[s->first + k];
        const double eps2 = s->octree->targets.eps2[s->first + k];
        int32_t *list = s->index + s->start[k];
        const int64_t most = s->start[k + 1] - s->start[k];
        const int64_t found = s->by_device ? most : search(s, k, list, most);
        int64_t n = 0;
        for (int64_t q = 0; q < found; q++) {
            const double *x = from->x[list[q]];
            const double dx = x[0] - at[0], dy = x[1] - at[1], dz = x[2] - at[2];
            if (eps2 == 0.0 || (dx * dx + dy * dy) + dz * dz + eps2 <= s->h2[k])
                list[n++] = from->index[list[q]];
        }
        s->length[k] = n;
        neighbour_lists_sort(list, n);
    }
}

/* Lists of the first `count` targets, one behind the other. */
static void move_together(const struct seeking *s, int count)
{
    int64_t end = 0;
    for (int k = 0; k < count; k++) {
        const int64_t from = s->start[k], n = s->length[k];
        if (n && from != end)
            memmove(s->index + end, s->index + from, (size_t)n * sizeof *s->index);
        s->start[k] = end;
        end += n;
    }
    s->start[count] = end;
}

/* Has the device count the neighbours of some targets, or find them. */
static int ask_device(struct seeking *s, int count, int64_t *length, int32_t *list,
                      struct error *err)
{
    struct octree *t = s->octree;
    double *const h2 = memory_zeroed((size_t)count * sizeof *h2);
    if (!h2) return tree_state_no_memory(err, "radii", count);
    for (int k = 0; k < count; k++)
        h2[k] = s->h2[k] >= 0.0 ? reach2(s->h2[k], t->targets.eps2[s->first + k]) : -1.0;
    struct tree_request request = {.targets = count,
                                   .at = &t->targets.x[s->first][0],
                                   .h2 = h2,
                                   .length = length,
                                   .list = list};
    const int code = tree_state_by_device(t, &request, &s->by_device, err);
    memory_free(h2);
    return code;
}

/* Lengths of lists come in place of the ends. */
static int count_all(struct seeking *s, int count, struct error *err)
{
    struct octree *t = s->octree;
    s->start[0] = 0;
    int code = t->on_device ? ask_device(s, count, s->start + 1, NULL, err) : 0;
    if (!code && !s->by_device) code = tree_state_build_here(t, err);
    if (code || s->by_device) return code;
    threads_each(t->tree.threads, count, ROWS_AT_ONCE, count_lists, s);
    return 0;
}

int tree_lists_find(void *state, int first, int count, const double *h2,
                    struct neighbour_lists *lists, struct error *err)
{
    struct octree *t = state;
    struct neighbour_memory *m = &t->lists;
    if (!t->by_tree) return t->direct_backend->neighbours(t->direct, first, count, h2, lists, err);
    if (neighbour_lists_reserve_starts(m, 2 * (int64_t)count + 1))
        return tree_state_no_memory(err, "neighbour lists", count);
    struct seeking s = {t, first, h2, m->start, m->start + count + 1, NULL, 0};
    int code = count ? count_all(&s, count, err) : 0;
    if (code) return code;
    const int fit = neighbour_lists_place(s.start, count);
    if (neighbour_lists_reserve(m, s.start[fit]))
        return tree_state_no_memory(err, "neighbours", s.start[fit]);
    s.index = m->index;
    if (s.by_device) code = ask_device(&s, fit, NULL, s.index, err);
    if (code) return code;
    threads_each(t->tree.threads, fit, ROWS_AT_ONCE, find_lists, &s);
    move_together(&s, fit);
    *lists = (struct neighbour_lists){fit, m->start, m->index};
    return 0;
}
