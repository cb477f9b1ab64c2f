/* The derivatives that jerks of a tree are made of, in double precision, against differences of
 * what they are the derivatives of. Prints the worst error of each. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/host_device.h"
#define TREE_UNROLL
typedef double vec;
#define v_set1(a) ((double)(a))
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_fma(a, b, c) fma(a, b, c)
#define v_fnma(a, b, c) fma(-(a), b, c)
#define v_rsqrt(a) (1.0 / sqrt(a))
#include "shared/tree_moments.h"
#include "shared/tree_expansion.h"

enum { N = 20, ORDER = 6 };
static const double step = 1e-4;

static double even(void) { return 2.0 * rand() / RAND_MAX - 1.0; }

static double worse(double worst, double wrong, double of)
{
    const double error = fabs(wrong) / of;
    return error > worst || error != error ? error : worst;
}

/* Derivatives at 0 of a function from its values at -2, -1, 1, 2 steps. */
static double slope(const double f[5]) { return (8 * (f[3] - f[1]) - (f[4] - f[0])) / (12 * step); }

static struct tree_multipole any_cell(void)
{
    struct tree_multipole c;
    double *number = &c.m;
    for (size_t k = 0; k < (sizeof c - offsetof(struct tree_multipole, m)) / sizeof(double); k++)
        number[k] = even();
    return c;
}

static double jerk_of_a_cell(int octupole, double eps2)
{
    const struct tree_multipole c = any_cell();
    double x[3], v[3], acc[5][3], jerk[3] = {0, 0, 0}, phi = 0, worst = 0;
    for (int k = 0; k < 3; k++) x[k] = 1.5 + 0.5 * even(), v[k] = even();
    for (int n = 0; n < 5; n++) {
        const double t = (n - 2) * step;
        memset(acc[n], 0, sizeof acc[n]);
        tree_cell_to_point(octupole, x[0] + t * v[0], x[1] + t * v[1], x[2] + t * v[2], eps2, &c,
                           &phi, acc[n]);
    }
    tree_cell_to_jerk(octupole, x[0], x[1], x[2], v[0], v[1], v[2], eps2, &c, jerk);
    for (int k = 0; k < 3; k++) {
        const double f[5] = {acc[0][k], acc[1][k], acc[2][k], acc[3][k], acc[4][k]};
        worst = worse(worst, jerk[k] - slope(f), 1.0);
    }
    return worst;
}

/* An expansion about a moving centre, seen at the same distance, changes by its derivative along
 * the velocity; of all orders but the last. */
static double derivative_of_an_expansion(void)
{
    double local[TREE_TERMS], moved[5][TREE_TERMS], along[TREE_TERMS] = {0}, v[3], worst = 0;
    for (int k = 0; k < TREE_TERMS; k++) local[k] = even();
    for (int k = 0; k < 3; k++) v[k] = even();
    for (int n = 0; n < 5; n++) {
        const double t = (n - 2) * step;
        memset(moved[n], 0, sizeof moved[n]);
        tree_local_to_local(ORDER, local, t * v[0], t * v[1], t * v[2], moved[n]);
    }
    tree_local_along(ORDER, local, v[0], v[1], v[2], along);
    for (int k = 0; k < ORDER * ORDER; k++) {
        const double f[5] = {moved[0][k], moved[1][k], moved[2][k], moved[3][k], moved[4][k]};
        worst = worse(worst, along[k] - slope(f), 1.0);
    }
    return worst;
}

struct bodies {
    double m[N], x[N][3], v[N][3];
};

/* Moments and rates, at some time, of a cell of `parts` children, or of a leaf (1). */
static void cell_of(const struct bodies *b, double t, int parts, int first, int end,
                    struct tree_moments *c, struct tree_rates *r)
{
    static const double origin[3] = {0, 0, 0};
    struct tree_moments child[4];
    struct tree_rates rates[4];
    double x[N][3], v[N][3], m[N];
    const int n = parts > 1 ? parts : end - first;
    for (int k = 0; k < n; k++) {
        if (parts > 1) cell_of(b, t, 1, k * N / parts, (k + 1) * N / parts, &child[k], &rates[k]);
        m[k] = parts > 1 ? child[k].m : b->m[first + k];
        for (int a = 0; a < 3; a++) {
            x[k][a] = parts > 1 ? child[k].x[a] : b->x[first + k][a] + t * b->v[first + k][a];
            v[k][a] = parts > 1 ? rates[k].v[a] : b->v[first + k][a];
        }
    }
    memset(r, 0, sizeof *r);
    tree_begin(c);
    for (int k = 0; k < n; k++) {
        tree_add_mass(c, m[k], fabs(m[k]), x[k], origin, x[k], x[k]);
        for (int a = 0; a < 3; a++) r->v[a] += m[k] * v[k][a];
    }
    tree_centre(c, origin);
    tree_motion_centre(c, r);
    for (int k = 0; k < n; k++) {
        double d[3], w[3];
        for (int a = 0; a < 3; a++) d[a] = x[k][a] - c->x[a], w[a] = v[k][a] - r->v[a];
        if (parts > 1)
            tree_add_cell(c, &child[k], d);
        else
            tree_add_particle(c, m[k], d);
        tree_add_rates(r, m[k], parts > 1 ? &child[k] : NULL, &rates[parts > 1 ? k : 0], d, w);
    }
}

static double rates_of_moments(int parts)
{
    struct bodies b;
    struct tree_moments c[5];
    struct tree_rates r[5];
    double worst = 0;
    for (int k = 0; k < N; k++) {
        b.m[k] = 1.0 + 0.5 * even();
        for (int a = 0; a < 3; a++) b.x[k][a] = even(), b.v[k][a] = even();
    }
    for (int n = 0; n < 5; n++) cell_of(&b, (n - 2) * step, parts, 0, N, &c[n], &r[n]);
    for (int k = 0; k < 19; k++) {
        double f[5];
        for (int n = 0; n < 5; n++)
            f[n] = k < 3 ? c[n].x[k] : k < 9 ? c[n].second[k - 3] : c[n].third[k - 9];
        const double rate = k < 3 ? r[2].v[k] : k < 9 ? r[2].second[k - 3] : r[2].third[k - 9];
        worst = worse(worst, rate - slope(f), 1.0);
    }
    return worst;
}

int main(void)
{
    double worst[6] = {0};
    for (int n = 0; n < 50; n++) {
        const double now[6] = {jerk_of_a_cell(0, 0.0), jerk_of_a_cell(0, 0.3),
                               jerk_of_a_cell(1, 0.3), derivative_of_an_expansion(),
                               rates_of_moments(1),    rates_of_moments(4)};
        for (int k = 0; k < 6; k++) worst[k] = worse(worst[k], now[k], 1.0);
    }
    for (int k = 0; k < 6; k++) printf("%.2e\n", worst[k]);
    return 0;
}
