/* exact.c - see exact.h. */
#include "cpu/exact.h"

#include "simd/scalar.h"
#include "shared/pair.h"
#include "shared/neighbour.h"
#include "util/fpenv.h"

struct exact_body {
    struct pair_i i;
    struct pair_sum sum;
};

static void begin(const struct direct_job *job, int i, struct exact_body *e)
{
    const double *x = job->x[i], *v = job->v[i];
    memset(e, 0, sizeof *e);
    e->i.x = x[0], e->i.y = x[1], e->i.z = x[2];
    e->i.vx = v[0], e->i.vy = v[1], e->i.vz = v[2];
    e->i.eps2 = job->eps2[i];
}

/* Adds the particle at an address, if there is one and it is not i itself. Returns r^2, or -1. */
static long double add(const struct direct_job *job, int i, int64_t address, struct exact_body *e)
{
    if (address >= job->nj || address >= job->memory->capacity) return -1.0L;
    const struct jparticle *p = &job->memory->body[address];
    if (p->state != SLOT_SET || p->index == job->index[i]) return -1.0L;
    double x[3], v[3];
    struct pair_j j = {0};
    jmemory_predict(job->memory, address, job->time, job->snap, x, v);
    j.x = x[0], j.y = x[1], j.z = x[2];
    j.vx = v[0], j.vy = v[1], j.vz = v[2];
    const struct pair_sep r = pair_separation(0, &e->i, &j);
    const long double s2 = pair_distance2(&r, e->i.eps2);
    if (s2 == 0.0L)
        atomic_fetch_add_explicit(job->zero_distances, 1, memory_order_relaxed);
    else if (p->mass != 0.0)
        pair_add(PAIR_JERK, &e->i, &j, p->mass, v_rsqrt(s2), &r, &e->sum);
    return pair_distance2(&r, 0.0L);
}

void cpu_exact_pairs(const struct direct_job *job, int i, int64_t block, const int16_t *place,
                     int n, double sum[NSUM], struct nearest *nearest)
{
    FPENV_X87_HERE;
    const long double unit = ldexpl(1.0L, length_shift(&job->scale, job->mode));
    struct exact_body e;
    begin(job, i, &e);
    *nearest = (struct nearest){.address = -1};
    for (int k = 0; k < n; k++) {
        const int64_t a = block * BLOCK + (place ? place[k] : k);
        const long double r2 = add(job, i, a, &e) * unit * unit;
        if (r2 >= 0.0L && neighbour_is_nearer((double)r2, a, nearest->r2, nearest->address))
            *nearest = (struct nearest){(double)r2, a};
    }
    const long double s[NSUM] = {e.sum.ax, e.sum.ay, e.sum.az, e.sum.jx,
                                 e.sum.jy, e.sum.jz, e.sum.pot};
    for (int k = 0; k < NSUM; k++) sum[k] += (double)s[k];
}

void cpu_exact_row(const struct direct_job *job, int i, double sum[NSUM], double size[NWINDOW])
{
    FPENV_X87_HERE;
    long double total[NSUM] = {0}, magnitude[NWINDOW] = {0};
    for (int64_t a = 0; a < job->nj; a++) {
        struct exact_body e;
        begin(job, i, &e);
        if (add(job, i, a, &e) < 0.0L) continue;
        const long double s[NSUM] = {e.sum.ax, e.sum.ay, e.sum.az, e.sum.jx,
                                     e.sum.jy, e.sum.jz, e.sum.pot};
        for (int k = 0; k < NSUM; k++) {
            total[k] += s[k];
            magnitude[window_of(k)] += fabsl(s[k]);
        }
    }
    for (int k = 0; k < NSUM; k++) sum[k] = (double)total[k];
    for (int w = 0; w < NWINDOW; w++) size[w] = (double)magnitude[w];
}

double cpu_exact_distance(const struct direct_job *job, int i, int64_t address)
{
    double x[3], v[3];
    long double r2 = 0.0L;
    jmemory_predict(job->memory, address, job->time, job->snap, x, v);
    for (int k = 0; k < 3; k++) {
        const long double d = (long double)x[k] - (long double)job->x[i][k];
        r2 += d * d;
    }
    return (double)sqrtl(r2);
}

void cpu_exact_softened(int term, const double x[3], const double v[3], const double eps2[2],
                        double m, long double sum[NSUM])
{
    const struct pair_i i = {
        .x = x[0], .y = x[1], .z = x[2], .vx = v[0], .vy = v[1], .vz = v[2], .eps2 = eps2[0]};
    const struct pair_j j = {.eps2 = eps2[1]};
    const struct pair_sep r = {x[0], x[1], x[2]};
    struct pair_sum s = {0};
    const vec y = v_rsqrt(pair_softened2(term, &r, pair_softening(term, &i, &j)));
    pair_add(term, &i, &j, m, y, &r, &s);
    const long double added[NSUM] = {s.ax, s.ay, s.az, s.jx, s.jy, s.jz, s.pot};
    for (int k = 0; k < NSUM; k++) sum[k] += added[k];
}
