/* groups_state.c - subsystems as numbers, to go on from: see groups.h. */
#include <string.h>

#include "g6lib.h"
#include "steps/groups.h"
#include "util/memory.h"

/* Of a group: the number of its bodies, these, their order in the chain, 1 / kappa, the state, what
 * rounding has left, the next step, and the depth of the potential. */
static int64_t size_of(int n) { return 1 + 3 * (int64_t)n + 2 * chain_state_size(n) + 2; }

int64_t groups_state_size(const struct groups *g)
{
    int64_t size = 0;
    for (int k = 0; k < g->count; k++) size += size_of(g->group[k]->n);
    return size;
}

void groups_save(const struct groups *g, double to[])
{
    for (int k = 0; k < g->count; k++) {
        const struct group *q = g->group[k];
        const int n = q->n, size = chain_state_size(n);
        *to++ = n;
        for (int i = 0; i < n; i++) {
            to[i] = q->who[i];
            to[n + i] = q->now.who[i];
            to[2 * n + i] = q->now.chain.slow[i];
        }
        memcpy(to + 3 * n, q->now.at, (size_t)size * sizeof *to);
        memcpy(to + 3 * n + size, q->now.rest, (size_t)size * sizeof *to);
        to[3 * n + 2 * size] = q->now.step, to[3 * n + 2 * size + 1] = q->depth;
        to += size_of(n) - 1;
    }
}

/* Whether n bodies, ascending, are in no group, and their order in the chain names each. */
static int are_bodies(const struct groups *g, int n, const double from[])
{
    unsigned char seen[CHAIN_MOST] = {0};
    double last = -1.0;
    for (int i = 0; i < n; last = from[i++]) {
        const double p = from[i], k = from[n + i];
        if (!(p > last && p < g->n && p == floor(p)) || g->of[(int)p] >= 0) return 0;
        if (!(k >= 0.0 && k < n && k == floor(k)) || seen[(int)k]++) return 0;
    }
    return 1;
}

static int restore_one(struct groups *g, int n, const double from[])
{
    const int size = chain_state_size(n);
    if (!are_bodies(g, n, from)) return G6X_E_ARGUMENT;
    struct group *q = memory_zeroed(sizeof *q);
    if (!q) return G6X_E_MEMORY;
    double m[CHAIN_MOST];
    q->n = n, q->seen_at = q->end = NAN, q->near_until = -INFINITY, q->then.met = INFINITY;
    for (int i = 0; i < n; i++) {
        q->who[i] = (int)from[i], q->now.who[i] = (int)from[n + i];
        m[i] = g->own[q->who[i]];
        q->mass += m[i];
        g->of[q->who[i]] = g->count, g->mass[q->who[i]] = 0.0;
    }
    few_body_set_chain(&q->now, 0.0, n, m);
    for (int i = 0; i < n; i++) q->now.chain.slow[i] = from[2 * n + i];
    memcpy(q->now.at, from + 3 * n, (size_t)size * sizeof *from);
    memcpy(q->now.rest, from + 3 * n + size, (size_t)size * sizeof *from);
    q->now.step = from[3 * n + 2 * size], q->depth = from[3 * n + 2 * size + 1];
    g->group[g->count++] = q;
    g->mass[q->who[0]] = q->mass;
    g->heaviest = fmax(g->heaviest, q->mass);
    return 0;
}

int groups_restore(struct groups *g, int64_t size, const double from[])
{
    int code = 0;
    for (int64_t k = 0; k < size && !code;) {
        const int n = from[k] >= 2.0 && from[k] <= CHAIN_MOST ? (int)from[k] : 0;
        if (!n || size_of(n) > size - k) return G6X_E_ARGUMENT;
        code = restore_one(g, n, from + k + 1);
        k += size_of(n);
    }
    for (int k = 0; k < g->count; k++) {
        groups_find_parts(g->group[k]);
        groups_note(g, k);
    }
    return code ? code : groups_reserve(g, g->count);
}
