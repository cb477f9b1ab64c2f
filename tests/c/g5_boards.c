/* A program of the GRAPE-5 age, like vtc: i particles go to all boards in turn, each taking as many
 * as a board has pipelines. The board is opened without being initialized, twice, and again after
 * it was closed. Forces are compared with sums in long double. */
#include <g5lib.h>
#include <math.h>

enum { N = 333 };

static double x[N][3], a[N][3], m[N], p[N];

static void forces(void)
{
    int np = g5_get_number_of_pipelines_per_board(), sent = 0, got = 0;
    int c0 = g5_get_firstcluster(), end = c0 + g5_get_number_of_boards();
    g5_set_mj(0, N, m);
    g5_set_xj(0, N, x);
    g5_set_n(N);
    g5_set_eps_to_all(0.1);
    while (got < N) {
        for (int c = c0; c < end && sent < N; c++, sent += np) {
            g5_set_xiMC(c, N - sent < np ? N - sent : np, x + sent);
            g5_runMC(c);
        }
        for (int c = c0; c < end && got < N; c++, got += np)
            g5_get_forceMC(c, N - got < np ? N - got : np, a + got, p + got);
    }
}

static int wrong(void)
{
    for (int i = 0; i < N; i++) {
        long double sum[4] = {0};
        for (int j = 0; j < N; j++) {
            long double s2 = 0.01L, r[3];
            for (int k = 0; k < 3; k++) r[k] = (long double)x[j][k] - x[i][k], s2 += r[k] * r[k];
            for (int k = 0; k < 3; k++) sum[k] += m[j] * r[k] / (s2 * sqrtl(s2));
            sum[3] += m[j] / sqrtl(s2);
        }
        for (int k = 0; k < 3; k++)
            if (!(fabsl(a[i][k] - sum[k]) < 1e-5L)) return 1;
        if (!(fabsl(p[i] - sum[3]) < 1e-5L)) return 2; /* positive, as the hardware's */
    }
    return 0;
}

int main(void)
{
    for (int i = 0; i < N; i++) {
        x[i][0] = sin(i), x[i][1] = cos(2 * i), x[i][2] = sin(3 * i);
        m[i] = 1.0 / N;
    }
    for (int k = 0; k < 2; k++) {
        if (g5_open_noinit() || g5_open()) return 10;
        g5_set_range(-4.0, 4.0, m[0]);
        forces();
        if (wrong()) return wrong();
        if (g5_close()) return 11;
    }
    return g5_open_noinit() || g5_close();
}
