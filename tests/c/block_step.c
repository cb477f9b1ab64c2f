/* The block calls in a host that traps floating-point exceptions or rounds its own way: same
 * bits, and the host finds its settings as it left them. */
#define _GNU_SOURCE
#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "g6lib.h"

enum { N = 6 };
static const int TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW;

typedef struct {
    int address[N];
    double t[N], dt[N], x[N][3], v[N][3], a[N][3], j[N][3], acc[N][3], jerk[N][3];
    double xi[N][3], vi[N][3];
} Bodies;

/* Ordinary bodies, one without any force, one of huge values, one of tiny ones, one on time. */
static void fill(Bodies *b)
{
    const double sizes[N] = {1, 0.3, 0, 1e200, 1e-300, 1};
    memset(b, 0, sizeof *b);
    for (int i = 0; i < N; i++) {
        b->address[i] = i;
        b->dt[i] = 0.125;
        for (int k = 0; k < 3; k++) {
            b->x[i][k] = sizes[i] * (i + 0.1 * k);
            b->v[i][k] = sizes[i] * (0.7 - k / 3.0);
            b->a[i][k] = sizes[i] * (0.2 + k * 0.37);
            b->j[i][k] = sizes[i] * (k - 0.9);
            b->acc[i][k] = b->a[i][k] + 0.01 * sizes[i] * (k + 1) / 3;
            b->jerk[i][k] = b->j[i][k] - 0.02 * sizes[i] * k;
        }
    }
    b->t[5] = 0.125;
}

static int advance(Bodies *b)
{
    int code =
        g6x_hermite_predict(N, b->address, 0.125, b->t, b->x, b->v, b->a, b->j, b->xi, b->vi);
    if (code) return code;
    for (int pass = 0; pass < 2; pass++) {
        code = g6x_hermite_correct(N, b->address, 0.125, 0.02, 1e-9, 0.25, b->acc, b->jerk, NULL,
                                   b->t, pass ? b->dt : NULL, b->x, b->v, b->a, b->j, b->xi, b->vi);
        if (code < 0) return code;
    }
    return 0;
}

int main(void)
{
    const int modes[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    Bodies expected, found;
    int bad;
    fill(&expected);
    bad = advance(&expected) != 0;
    for (int m = 0; m < 4; m++) {
        fill(&found);
        fesetround(modes[m]);
        bad += advance(&found) != 0 || memcmp(&expected, &found, sizeof found) != 0;
        bad += fegetround() != modes[m];
        fesetround(FE_TONEAREST);
        if (bad) fprintf(stderr, "rounding mode %d\n", m);
    }
    fill(&found);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(TRAPS);
    bad += advance(&found) != 0 || memcmp(&expected, &found, sizeof found) != 0;
    bad += fegetexcept() != TRAPS;
    return bad;
}
