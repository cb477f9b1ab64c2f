/* symmetric.c - see symmetric.h. */
#include "cpu/symmetric.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"
#include "util/numbers.h"
#include "util/threads.h"

enum { LANES = 8, LEAST = 1024, TARGETS = 16 };
/* Inside this range of r^2 + eps^2 and m no factor of a force leaves the range of a double. */
#define SMALL 1e-100
#define LARGE 1e100

#define ARRAYS(s, n)                                                                               \
    {MEMORY_ARRAY((s)->of[0], n), MEMORY_ARRAY((s)->of[1], n), MEMORY_ARRAY((s)->of[2], n),        \
     MEMORY_ARRAY((s)->of[3], n), MEMORY_ARRAY((s)->of[4], n), {0}}

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
        for (int q = 0; q < 3; q++) s->of[SYMMETRIC_X + q][address + k] = x[k][q];
        s->of[SYMMETRIC_M][address + k] = bad ? (double)NAN : m[k];
        s->of[SYMMETRIC_EPS2][address + k] = eps2[k];
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
        if (!is_finite(s->of[SYMMETRIC_M][k])) return k;
    return s->lost < s->lost_end && s->lost < n ? s->lost : -1;
}

/* Adds a pair whose factors a double may not hold. Returns whether it has no distance. */
static int add_exactly(const struct symmetric *s, int64_t j, const double x[3], double eps2,
                       long double sum[NACC])
{
    long double r[3], s2 = (long double)eps2 + s->of[SYMMETRIC_EPS2][j];
    const double m = s->of[SYMMETRIC_M][j];
    for (int q = 0; q < 3; q++) {
        r[q] = (long double)s->of[SYMMETRIC_X + q][j] - x[q];
        s2 += r[q] * r[q];
    }
    if (m == 0.0) return 0;
    if (s2 == 0.0L) return 1;
    const long double y = 1.0L / sqrtl(s2), my = m * y;
    for (int q = 0; q < 3; q++) sum[q] += my * y * y * r[q];
    sum[ACC_POT] += my;
    return 0;
}

/* Sums the force on one target. Returns the number of pairs without distance. */
static int64_t sum_one(const struct symmetric *s, int64_t n, const double x[3], double eps2,
                       double force[NACC])
{
    double sum[NACC][LANES] = {{0}};
    long double rest[NACC] = {0};
    int64_t zero_distances = 0;
    for (int64_t j = 0; j < n; j += LANES) { /* the capacity is a multiple of LANES */
        const double *const *of = (const double *const *)s->of;
        int used[LANES], all = 1;
        for (int k = 0; k < LANES; k++) {
            const double dx = of[0][j + k] - x[0], dy = of[1][j + k] - x[1];
            const double dz = of[2][j + k] - x[2], mass = fabs(of[SYMMETRIC_M][j + k]);
            const double s2 = dx * dx + dy * dy + dz * dz + (eps2 + of[SYMMETRIC_EPS2][j + k]);
            used[k] = (s2 > SMALL) & (s2 < LARGE) & (mass > SMALL) & (mass < LARGE) & (j + k < n);
            const double y = 1.0 / sqrt(used[k] ? s2 : 1.0);
            const double my = used[k] ? of[SYMMETRIC_M][j + k] * y : 0.0, my3 = my * y * y;
            sum[ACC_POT][k] += my;
            sum[0][k] += used[k] ? my3 * dx : 0.0;
            sum[1][k] += used[k] ? my3 * dy : 0.0;
            sum[2][k] += used[k] ? my3 * dz : 0.0;
            all &= used[k];
        }
        for (int k = 0; !all && k < LANES; k++)
            if (!used[k] && j + k < n) zero_distances += add_exactly(s, j + k, x, eps2, rest);
    }
    for (int q = 0; q < NACC; q++) {
        for (int k = 0; k < LANES; k++) rest[q] += sum[q][k];
        force[q] = (double)rest[q];
    }
    return zero_distances;
}

struct work {
    const struct symmetric *s;
    struct grape5_sum *sum;
    int64_t n;
    _Atomic int64_t zero_distances;
};

static void sum_some(void *context, int64_t first, int64_t end)
{
    struct work *w = context;
    struct grape5_sum *sum = w->sum;
    for (int64_t i = first; i < end; i++) {
        double force[NACC] = {NAN, NAN, NAN, NAN};
        if (all_finite(sum->x[i], 3))
            w->zero_distances +=
                sum_one(w->s, w->n, sum->x[i], sum->eps2[sum->each ? i : 0], force);
        memcpy(sum->acc[i], force, sizeof sum->acc[i]);
        sum->pot[i] = force[ACC_POT];
    }
}

void cpu_symmetric_run(const struct symmetric *s, int64_t n, int threads, struct grape5_sum *sum)
{
    struct work w = {.s = s, .sum = sum, .n = n < s->capacity ? n : s->capacity};
    threads_each(threads, sum->ni, TARGETS, sum_some, &w);
    sum->zero_distances = w.zero_distances;
}
