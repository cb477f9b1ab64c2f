/* softened.c - see softened.h. */
#include "cpu/softened.h"

#define SCALAR double
#define SCALAR_SQRT sqrt
#include "simd/scalar.h"
#include "shared/pair.h"

#include "cpu/exact.h"
#include "util/fpenv.h"

enum { LANES = SOFTENED_LANES };
/* Inside this range of r^2 + eps^2 and m no factor of a force leaves the range of a double. */
#define SMALL 1e-60
#define LARGE 1e60

/* A pair whose factors a double may not hold. Returns whether it has no distance. */
static int add_exactly(const struct softened *s, const struct softened_target *t, int64_t j,
                       long double rest[NSUM])
{
    const double m = s->of[SOFTENED_M][j], eps2[2] = {t->eps2, s->of[SOFTENED_EPS2][j]};
    double r[3], v[3] = {0};
    for (int c = 0; c < 3; c++) {
        r[c] = t->x[c] - s->of[SOFTENED_X + c][j];
        if (s->term & PAIR_JERK) v[c] = t->v[c] - s->of[SOFTENED_V + c][j];
    }
    if (m == 0.0 && s->has_gaps) return 0;
    if (r[0] == 0.0 && r[1] == 0.0 && r[2] == 0.0 && eps2[0] + eps2[1] == 0.0) return 1;
    if (m != 0.0) cpu_exact_softened(s->term, r, v, eps2, m, rest);
    return 0;
}

HOST_DEVICE int64_t sum_of(const int term, const struct softened *s,
                           const struct softened_target *t, double total[NSUM])
{
    const struct pair_i i = {t->x[0],       t->x[1],       t->x[2],        .vx = t->v[0],
                             .vy = t->v[1], .vz = t->v[2], .eps2 = t->eps2};
    const double *const *of = (const double *const *)s->of;
    const double *const *v = of + (term & PAIR_JERK ? SOFTENED_V : SOFTENED_X);
    double sum[NSUM][LANES] = {{0}};
    long double rest[NSUM] = {0};
    int64_t zero_distances = 0;
    for (int64_t first = 0; first < s->n; first += LANES) {
        int used[LANES], all = 1;
        for (int k = 0; k < LANES; k++) {
            const int64_t at = first + k;
            const struct pair_j j = {
                of[0][at],      of[1][at],      of[2][at],      of[SOFTENED_M][at],
                .vx = v[0][at], .vy = v[1][at], .vz = v[2][at], .eps2 = of[SOFTENED_EPS2][at]};
            const struct pair_sep r = pair_separation(0, &i, &j);
            const double eps2 = pair_softening(term, &i, &j), mass = j.m < 0.0 ? -j.m : j.m;
            const double all2 = pair_distance2(&r, eps2);
            used[k] = (all2 > SMALL) & (all2 < LARGE) & (mass > SMALL) & (mass < LARGE) &
                      (at < s->n) & (at != t->self);
            const double s2 = used[k] ? pair_softened2(term, &r, eps2) : 1.0;
            struct pair_sum one = {0};
            pair_add(term, &i, &j, used[k] ? j.m : 0.0, v_rsqrt(s2), &r, &one);
            sum[SUM_AX][k] += used[k] ? one.ax : 0.0;
            sum[SUM_AY][k] += used[k] ? one.ay : 0.0;
            sum[SUM_AZ][k] += used[k] ? one.az : 0.0;
            sum[SUM_POT][k] += used[k] ? one.pot : 0.0;
            if (term & PAIR_JERK) {
                sum[SUM_JX][k] += used[k] ? one.jx : 0.0;
                sum[SUM_JY][k] += used[k] ? one.jy : 0.0;
                sum[SUM_JZ][k] += used[k] ? one.jz : 0.0;
            }
            all &= used[k];
        }
        for (int k = 0; !all && k < LANES; k++)
            if (!used[k] && first + k < s->n && first + k != t->self)
                zero_distances += add_exactly(s, t, first + k, rest);
    }
    for (int q = 0; q < NSUM; q++) {
        for (int k = 0; k < LANES; k++) rest[q] += sum[q][k];
        total[q] = (double)rest[q];
    }
    return zero_distances;
}

int64_t cpu_softened_sum(const struct softened *s, const struct softened_target *t,
                         double sum[NSUM])
{
    FPENV_X87_HERE;
    switch (s->term) {
    case PAIR_OWN: return sum_of(PAIR_OWN, s, t, sum);
    case PAIR_OWN | PAIR_JERK: return sum_of(PAIR_OWN | PAIR_JERK, s, t, sum);
    case PAIR_SPLINE: return sum_of(PAIR_SPLINE, s, t, sum);
    default: return sum_of(PAIR_SPLINE | PAIR_JERK, s, t, sum);
    }
}
