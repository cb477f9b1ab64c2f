/* hermite.c - see hermite.h. */
#include "core/hermite.h"

#include <string.h>

#include "util/threads.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- the next block --------------------------------------------------------------------- */

enum { PIECES = 1024, PIECE = 4096 };
struct pieces {
    const struct hermite_state *s;
    double common, time, least[PIECES];
    int *address, n, length, count[PIECES];
};

/* The earliest end of a step. Several independent chains of comparisons run at once. */
static void find_earliest(void *context, int64_t first, int64_t end)
{
    enum { CHAINS = 8 };
    struct pieces *of = context;
    const double *t = of->s->t, *dt = of->s->dt, common = of->common;
    double least[CHAINS];
    for (int k = 0; k < CHAINS; k++) least[k] = INFINITY;
    int64_t p = first;
    for (; p + CHAINS <= end; p += CHAINS)
        for (int k = 0; k < CHAINS; k++) {
            const double its = hermite_step_end(t[p + k], dt[p + k], common);
            least[k] = its < least[k] ? its : least[k];
        }
    for (; p < end; p++) {
        const double its = hermite_step_end(t[p], dt[p], common);
        least[0] = its < least[0] ? its : least[0];
    }
    for (int k = 1; k < CHAINS; k++) least[0] = least[k] < least[0] ? least[k] : least[0];
    of->least[first / of->length] = least[0];
}

/* Lists those of a piece where it is in the array. */
static void list_piece(void *context, int64_t first, int64_t end)
{
    struct pieces *of = context;
    int ni = 0, *address = of->address + first;
    for (int p = (int)first; p < end && of->least[first / of->length] == of->time; p++) {
        address[ni] = p;
        ni += hermite_step_end(of->s->t[p], of->s->dt[p], of->common) == of->time;
    }
    of->count[first / of->length] = ni;
}

int hermite_next(int n, const struct hermite_state *s, double common, int threads, int *address,
                 double *time)
{
    const int length = n / PIECES < PIECE ? PIECE : n / PIECES + 1;
    struct pieces of; /* 12 kB, too many to be cleared for a few particles */
    int ni = 0;
    of.s = s, of.common = common, of.address = address, of.length = length;
    threads_each(threads, n, length, find_earliest, &of);
    *time = INFINITY;
    for (int k = 0; (int64_t)k * length < n; k++) *time = fmin(*time, of.least[k]);
    of.time = *time;
    if (of.time == INFINITY) return 0;
    threads_each(threads, n, length, list_piece, &of);
    for (int k = 0; (int64_t)k * length < n; ni += of.count[k++])
        memmove(address + ni, address + (int64_t)k * length, (size_t)of.count[k] * sizeof *address);
    return ni;
}

int hermite_endless(int n, const struct hermite_state *s, double common)
{
    int p = 0;
    while (p < n && hermite_step_end(s->t[p], s->dt[p], common) < INFINITY) p++;
    return p < n ? p : -1;
}

/* ---- its particles ---------------------------------------------------------------------- */

INLINE void predict(int ni, const int *address, double time, const struct hermite_state *s,
                    double (*xi)[3], double (*vi)[3])
{
    for (int i = 0; i < ni; i++) hermite_predict_one(s, address[i], time, xi[i], vi[i]);
}

void hermite_add_field_to(const struct hermite_correction *c, int ni, const struct field *f)
{
    double (*acc)[3] = c->acc, (*jerk)[3] = c->jerk;
    for (int i = 0; i < ni; i++) {
        double a[3], j[3]; /* without the field */
        for (int k = 0; k < 3; k++) a[k] = acc[i][k], j[k] = jerk[i][k];
        if (f)
            hermite_add_field(f, &c->state, c->address[i], c->time, c->xi[i], c->vi[i], acc[i],
                              jerk[i]);
        for (int k = 0; k < 3 && c->out.acc; k++) {
            if (!f) acc[i][k] += c->out.acc[i][k], jerk[i][k] += c->out.jerk[i][k];
            c->out.acc[i][k] = acc[i][k] - a[k];
            c->out.jerk[i][k] = jerk[i][k] - j[k];
        }
    }
}

INLINE void correct_pairs(const struct hermite_rows *rows, const struct hermite_state *s,
                          double (*acc)[3], double (*jerk)[3])
{
    double force[2][HERMITE_PAIR_ROWS][3];
    struct hermite_rows r = *rows;
    memcpy(force[0], acc, (size_t)r.count * sizeof *acc);
    memcpy(force[1], jerk, (size_t)r.count * sizeof *jerk);
    r.acc = CONST3(force[0]), r.jerk = CONST3(force[1]);
    for (int i = 0; i < r.count; i++) hermite_add_second(&r, s, i, acc[i], jerk[i]);
}

/* Of a row, with the field in acc. */
INLINE double error_of(const struct hermite_correction *c, int row)
{
    const struct hermite_errors *e = &c->errors;
    const int p = c->address[row];
    double a[3]; /* without the field */
    if (!e->rounding) return e->roundoff ? e->roundoff[row] : -1.0;
    for (int k = 0; k < 3; k++) a[k] = c->acc[row][k] - (e->outside ? e->outside[row][k] : 0.0);
    const double error = hermite_roundoff(&e->row, e->rounding[p], e->pot[row], a, c->jerk[row],
                                          c->xi[row], c->vi[row]);
    return (hermite_is_fine(&e->row, &c->state, p, c->time) ? HERMITE_FINE * error : error) +
           e->field;
}

INLINE int correct(const struct hermite_correction *of, int first, int end, int *unfit)
{
    const struct hermite_correction c = *of;
    int clamped = 0;
    *unfit = -1;
    for (int i = first; i < end; i++) {
        double x[3], v[3]; /* separate copies, since acc and xi may be the same array */
        const int p = c.address[i];
        const double dt = c.time - c.state.t[p];
        const double error = error_of(&c, i);
        const int found =
            hermite_correct_one(&c.rule, &c.state, p, c.time, c.acc[i], c.jerk[i], error, x, v);
        clamped += found > 0;
        if (found < 0 && *unfit < 0) *unfit = i;
        if (found >= 0 && c.state.dt && c.out.work.work)
            hermite_add_work(&c.out.work, p, dt, c.out.acc[i], c.out.jerk[i], v, c.acc[i]);
        for (int k = 0; k < 3; k++) c.xi[i][k] = x[k], c.vi[i][k] = v[k];
    }
    return clamped;
}

#ifdef __x86_64__
/* The same functions for processors where fma is an instruction instead of a call. */
#define BY_FMA __attribute__((target("fma"))) static
BY_FMA void predict_by_fma(int ni, const int *address, double time, const struct hermite_state *s,
                           double (*xi)[3], double (*vi)[3])
{
    predict(ni, address, time, s, xi, vi);
}
BY_FMA void correct_pairs_by_fma(const struct hermite_rows *rows, const struct hermite_state *s,
                                 double (*acc)[3], double (*jerk)[3])
{
    correct_pairs(rows, s, acc, jerk);
}
BY_FMA int correct_by_fma(const struct hermite_correction *c, int first, int end, int *unfit)
{
    return correct(c, first, end, unfit);
}
#define IF_FMA(call)                                                                               \
    if (__builtin_cpu_supports("fma")) return call
#else
#define IF_FMA(call)
#endif

void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double (*xi)[3], double (*vi)[3])
{
    IF_FMA(predict_by_fma(ni, address, time, s, xi, vi));
    predict(ni, address, time, s, xi, vi);
}

void hermite_correct_pairs(const struct hermite_rows *rows, const struct hermite_state *s,
                           double (*acc)[3], double (*jerk)[3])
{
    if (!hermite_has_pairs(rows)) return;
    IF_FMA(correct_pairs_by_fma(rows, s, acc, jerk));
    correct_pairs(rows, s, acc, jerk);
}

int hermite_correct(const struct hermite_correction *c, int first, int end, int *unfit)
{
    IF_FMA(correct_by_fma(c, first, end, unfit));
    return correct(c, first, end, unfit);
}
