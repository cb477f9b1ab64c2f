/* symmetric.c - see symmetric.h. */
#include "cpu/symmetric.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"
#include "util/numbers.h"
#include "util/threads.h"

enum { LEAST = 1024, TARGETS = 16 }; /* the first a multiple of SOFTENED_LANES */

#define ARRAY(s, k, n) MEMORY_ARRAY((s)->all.of[k], n)
#define ARRAYS(s, n)                                                                               \
    {ARRAY(s, 0, n), ARRAY(s, 1, n), ARRAY(s, 2, n), ARRAY(s, 3, n), ARRAY(s, 4, n), {0}}

void cpu_symmetric_free(struct symmetric *s)
{
    const struct memory_array all[] = ARRAYS(s, 0);
    memory_free_all(all);
    memset(s, 0, sizeof *s);
}

int cpu_symmetric_set(struct symmetric *s, int64_t address, int64_t n, const double (*x)[3],
                      const double *m, const double *eps2, int64_t *which)
{
    const int64_t end = address + n;
    const int none = s->lost == s->lost_end;
    int64_t capacity = s->capacity ? s->capacity : LEAST;
    int code = 0;
    *which = address;
    while (capacity < end) capacity *= 2;
    const struct memory_array all[] = ARRAYS(s, capacity);
    if (end > s->capacity && memory_grow_all(all)) {
        if (none || address < s->lost) s->lost = address;
        if (none || end > s->lost_end) s->lost_end = end;
        return G6X_E_MEMORY;
    }
    s->capacity = capacity;
    if (address <= s->lost && s->lost < end) s->lost = end < s->lost_end ? end : s->lost_end;
    for (int64_t k = 0; k < n; k++) {
        const int finite = all_finite(x[k], 3) && is_finite(m[k]) && is_finite(eps2[k]);
        const int bad = !finite ? G6X_E_J_NAN : is_negative(eps2[k]) ? G6X_E_ARGUMENT : 0;
        for (int q = 0; q < 3; q++) s->all.of[SOFTENED_X + q][address + k] = x[k][q];
        s->all.of[SOFTENED_M][address + k] = bad ? (double)NAN : m[k];
        s->all.of[SOFTENED_EPS2][address + k] = eps2[k];
        if (!bad || code) continue;
        code = bad;
        *which = address + k;
    }
    return code;
}

int64_t cpu_symmetric_first_bad(const struct symmetric *s, int64_t n)
{
    const int64_t end = n < s->capacity ? n : s->capacity;
    for (int64_t k = 0; k < end; k++)
        if (!is_finite(s->all.of[SOFTENED_M][k])) return k;
    return s->lost < s->lost_end && s->lost < n ? s->lost : -1;
}

struct work {
    struct softened set;
    struct grape5_sum *sum;
    _Atomic int64_t zero_distances;
};

static void sum_some(void *context, int64_t first, int64_t end)
{
    struct work *w = context;
    struct grape5_sum *sum = w->sum;
    for (int64_t i = first; i < end; i++) {
        struct softened_target t = {.eps2 = sum->eps2[sum->each ? i : 0], .self = -1};
        double force[NSUM];
        memcpy(t.x, sum->x[i], sizeof t.x);
        if (all_finite(t.x, 3))
            w->zero_distances += cpu_softened_sum(&w->set, &t, force);
        else
            for (int q = 0; q < NSUM; q++) force[q] = (double)NAN;
        for (int q = 0; q < 3; q++) sum->acc[i][q] = force[SUM_AX + q];
        sum->pot[i] = force[SUM_POT];
    }
}

void cpu_symmetric_run(const struct symmetric *s, int64_t n, int threads, struct grape5_sum *sum)
{
    struct work w = {.set = s->all, .sum = sum};
    w.set.n = n < s->capacity ? n : s->capacity;
    w.set.term = PAIR_OWN;
    w.set.has_gaps = 1; /* addresses that were never written */
    threads_each(threads, sum->ni, TARGETS, sum_some, &w);
    sum->zero_distances = w.zero_distances;
}
