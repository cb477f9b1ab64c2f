/* walks_kernel.c - the lists of walks for one instruction set and one precision: compiled once for
 * each, like cpu/direct_kernel.c. Lanes hold targets. */
#include "cpu/walks_kernel.h"
#include "simd/dispatch.h"

#include <math.h>
#include <string.h>

#include OPS_HEADER
#include "shared/rsqrt.h"
#include "shared/pair.h"
#include "shared/pair_double.h"
#include "core/scale.h"
#include "shared/walk_close.h"

#define UNROLL _Pragma("GCC unroll 4")

/* Origin and units of a tile: positions relative to the origin are in units of 2^length, masses in
 * units of 2^mass. */
struct walk_units {
    double origin[3], radius;
    int length, mass;
    double unit; /* 2^-length */
    double eps2; /* in these units */
    real close;  /* s^2 below which a pair is computed in double */
};

static double larger(double a, double b) { return a > b ? a : b; }

static int64_t row_of(const struct walk_list *p, int64_t entry)
{
    return p->list ? p->list[entry] : entry;
}

/* Increases reach and mass to the largest distance and mass of a part. */
static enum walk_error reach_out(const struct walks *w, const struct walk_list *p,
                                 const struct walk_units *f, double *reach, double *mass)
{
    int fine = 1;
    for (int64_t e = 0; e < p->n; e++) {
        const int64_t row = row_of(p, e);
        if (p->list && (row < 0 || row >= w->common)) return WALK_BAD_NUMBER;
        for (int c = 0; c < 3; c++) {
            const double d = fabs(p->x[row][c] - f->origin[c]);
            *reach = larger(d, *reach);
            fine &= d < INFINITY;
        }
        const double m = fabs(p->m[row]);
        *mass = larger(m, *mass);
        fine &= m < INFINITY;
    }
    return fine ? WALK_FINE : WALK_BAD_ENTRY;
}

/* Limits an exponent so that its power of two and the inverse are normal numbers. */
static int moderate(int exponent)
{
    return exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
}

static enum walk_error find_units(const struct walks *w, const struct walk_group *g, int64_t first,
                                  int count, struct walk_units *f)
{
    double reach = 0.0, mass = 0.0;
    walks_box(g->x + first, count, f->origin, &f->radius);
    for (int p = 0; p < WALK_LISTS; p++) {
        const enum walk_error error = reach_out(w, &g->list[p], f, &reach, &mass);
        if (error) return error;
    }
    f->length = moderate(exponent_of(larger(larger(reach, f->radius), sqrt(w->eps2))));
    f->mass = moderate(exponent_of(mass));
    f->unit = ldexp(1.0, -f->length);
    f->eps2 = w->eps2 * f->unit * f->unit;
    f->close = walk_close((real)f->eps2, (real)(f->radius * f->unit));
    return WALK_FINE;
}

static void take_rows(const double (*x)[3], int count, const struct walk_units *f,
                      struct walk_work *work)
{
    for (int c = 0; c < 3; c++) {
        real *row = (real *)(void *)work->row[c];
        for (int i = 0; i < count; i++)
            row[i] = all_finite(x[i], 3) ? (real)((x[i][c] - f->origin[c]) * f->unit) : 0;
        for (int i = count; i < count + 2 * VL && i < WALK_ROWS; i++) row[i] = row[count - 1];
    }
}

static void take_chunk(const struct walk_list *p, int64_t first, int count,
                       const struct walk_units *f, struct walk_work *work)
{
    const double mass_unit = ldexp(1.0, -f->mass);
    real *source[4];
    for (int c = 0; c < 4; c++) source[c] = (real *)(void *)work->source[c];
    for (int k = 0; k < count; k++) {
        const int64_t row = row_of(p, first + k);
        for (int c = 0; c < 3; c++) {
            work->place[c][k] = p->x[row][c];
            source[c][k] = (real)((p->x[row][c] - f->origin[c]) * f->unit);
        }
        work->place[3][k] = p->m[row];
        source[3][k] = (real)(p->m[row] * mass_unit);
    }
}

HOST_DEVICE struct pair_i body_of(const struct walk_work *work, const struct walk_units *f, int row)
{
    const real *x = (const real *)(const void *)work->row[0];
    const real *y = (const real *)(const void *)work->row[1];
    const real *z = (const real *)(const void *)work->row[2];
    return (struct pair_i){.x = v_load(x + row),
                           .y = v_load(y + row),
                           .z = v_load(z + row),
                           .eps2 = v_set1((real)f->eps2)};
}

HOST_DEVICE struct pair_j source_of(const struct walk_work *work, int k)
{
    return (struct pair_j){.x = v_set1(((const real *)(const void *)work->source[0])[k]),
                           .y = v_set1(((const real *)(const void *)work->source[1])[k]),
                           .z = v_set1(((const real *)(const void *)work->source[2])[k]),
                           .m = v_set1(((const real *)(const void *)work->source[3])[k])};
}

static void add_up(struct walk_work *work, int row, const struct pair_sum *sum)
{
    v_accumulate(work->sum[0] + row, sum->ax);
    v_accumulate(work->sum[1] + row, sum->ay);
    v_accumulate(work->sum[2] + row, sum->az);
    v_accumulate(work->sum[3] + row, sum->pot);
}

/* Adds a pair in double, unless it is a zero-distance pair. r^2 of other pairs may underflow to
 * zero: without softening the force is then infinite. */
static void close_pair(const struct walk_group *g, int64_t i, int row, int k,
                       const struct walk_units *f, struct walk_work *work)
{
    double r[3], acc[3];
    for (int c = 0; c < 3; c++) {
        r[c] = (g->x[i][c] - work->place[c][k]) * f->unit;
        acc[c] = work->sum[c][row];
    }
    if ((r[0] == 0.0 && r[1] == 0.0 && r[2] == 0.0) || work->place[3][k] == 0.0) return;
    const double m = ldexp(work->place[3][k], -f->mass);
    (void)pair_add_double(r, f->eps2, m, acc, &work->sum[3][row]);
    for (int c = 0; c < 3; c++) work->sum[c][row] = acc[c];
}

/* Sums a chunk on one vector of targets, some of which are close to an entry. */
static void careful_chunk(const struct walk_group *g, int64_t first, int row, int rows, int count,
                          const struct walk_units *f, struct walk_work *work)
{
    const struct pair_i i = body_of(work, f, row);
    const vec zero = v_set1(0);
    struct pair_sum sum = {.ax = zero, .ay = zero, .az = zero, .pot = zero};
    for (int k = 0; k < count; k++) {
        const struct pair_j j = source_of(work, k);
        const struct pair_sep r = pair_separation(0, &i, &j);
        const vec s2 = pair_distance2(&r, i.eps2);
        const vmask close = v_lt(s2, v_set1(f->close));
        pair_add(PAIR_FORCE, &i, &j, v_select(close, v_set1(0), j.m),
                 v_rsqrt(v_select(close, v_set1(1), s2)), &r, &sum);
        const unsigned lanes = vmask_bits(close);
        for (int l = 0; lanes >> l && l < rows; l++)
            if (lanes >> l & 1) close_pair(g, first + row + l, row + l, k, f, work);
    }
    add_up(work, row, &sum);
}

/* Sums a chunk on one or two vectors of targets. */
HOST_DEVICE void chunk_on(const int vectors, const struct walk_group *g, int64_t first, int row,
                          int rows, int count, const struct walk_units *f, struct walk_work *work)
{
    struct pair_i i[2];
    const vec zero = v_set1(0);
    struct pair_sum sum[2];
    vec near[2];
    for (int v = 0; v < vectors; v++) {
        i[v] = body_of(work, f, row + v * VL);
        sum[v] = (struct pair_sum){.ax = zero, .ay = zero, .az = zero, .pot = zero};
        near[v] = v_set1(64); /* farther than anything */
    }
    for (int k = 0; k < count; k++) {
        const struct pair_j j = source_of(work, k);
        UNROLL
        for (int v = 0; v < vectors; v++) {
            const struct pair_sep r = pair_separation(0, &i[v], &j);
            const vec s2 = pair_distance2(&r, i[v].eps2);
            near[v] = v_min(near[v], s2);
            pair_add(PAIR_FORCE, &i[v], &j, j.m, v_rsqrt(s2), &r, &sum[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        if (vmask_bits(v_lt(near[v], v_set1(f->close))))
            careful_chunk(g, first, row + v * VL, rows - v * VL, count, f, work);
        else
            add_up(work, row + v * VL, &sum[v]);
    }
}

static void finish(const struct walk_group *g, int64_t first, int count, const struct walk_units *f,
                   struct walk_work *work)
{
    for (int i = 0; i < count; i++) {
        const int good = all_finite(g->x[first + i], 3);
        for (int c = 0; c < 4; c++) {
            const int exponent = f->mass - (c < 3 ? 2 : 1) * f->length;
            const double sum = work->sum[c][i];
            work->sum[c][i] = !good            ? (double)NAN
                              : is_finite(sum) ? ldexp(sum, exponent)
                                               : (double)INFINITY;
        }
        work->sum[3][i] = 0.0 - work->sum[3][i];
    }
}

static enum walk_error tile(const struct walks *w, const struct walk_group *g, int64_t first,
                            int count, struct walk_work *work)
{
    struct walk_units f;
    const enum walk_error error = find_units(w, g, first, count, &f);
    if (error) return error;
    take_rows(g->x + first, count, &f, work);
    memset(work->sum, 0, sizeof work->sum);
    for (int p = 0; p < WALK_LISTS; p++) {
        const struct walk_list *list = &g->list[p];
        for (int64_t e = 0; e < list->n; e += WALK_CHUNK) {
            const int n = list->n - e < WALK_CHUNK ? (int)(list->n - e) : WALK_CHUNK;
            take_chunk(list, e, n, &f, work);
            for (int row = 0; row < count; row += 2 * VL) {
                if (count - row > VL)
                    chunk_on(2, g, first, row, count - row, n, &f, work);
                else
                    chunk_on(1, g, first, row, count - row, n, &f, work);
            }
        }
    }
    finish(g, first, count, &f, work);
    return WALK_FINE;
}

extern const struct walks_kernel SIMD_NAME(cpu_walks_kernel);
const struct walks_kernel SIMD_NAME(cpu_walks_kernel) = {tile};
