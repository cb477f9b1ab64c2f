/* A host that traps floating-point exceptions and rounds upwards makes GRAPE-5 calls, NaN and
 * numbers too large among them: its state stays, and nothing traps. */
#define _GNU_SOURCE
#include <fenv.h>
#include <g5lib.h>
#include <math.h>
#include <stdio.h>

enum { N = 40, TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };

static double x[N][3], a[N][3], m[N], p[N], eps2[N];
static int bad;

/* `code` is what is expected. */
static void expect(const char *what, int found, int code)
{
    if (found != code || fegetexcept() != TRAPS || fegetround() != FE_UPWARD) {
        printf("%s: %d, traps %x, rounding %x\n", what, found, fegetexcept(), fegetround());
        bad = 1;
    }
}

static void everything(void)
{
    expect("range", g5_set_range(-1.0, 1.0, 1.0), 0);
    expect("n", g5_set_n(N), 0);
    expect("xmj", g5_set_xmj(0, N, x, m), 0);
    expect("xj", g5_set_xj(0, N, x), 0);
    expect("mj", g5_set_mj(0, N, m), 0);
    expect("eps", g5_set_eps_to_all(0.0), 0);
    expect("x", g5_calculate_force_on_x(x, a, p, N), 0);
    expect("eps", g5_set_eps_to_all(0.1), 0);
    expect("xi", g5_set_xi(N, x), 0);
    expect("run", g5_run(), 0);
    expect("force", g5_get_force(N, a, p), 0);
    expect("fewer", g5_get_force(N / 2, a, p), 0);
    expect("xe", g5_calculate_force_on_xe(x, eps2, a, p, N), 0);
    expect("eta", g5_set_eta(HUGE_VAL), 0);
    expect("xmj0", g5_set_xmj0(0, N, x, m, eps2), 0);
    expect("x0", g5_calculate_force_on_x0(x, a, p, N, eps2), 0);
}

static void wrong(void)
{
    double one[1][3] = {{NAN, 0, 0}}, none[1] = {-1};
    expect("eps", g5_set_eps_to_all(1e300), -11);
    expect("eps", g5_set_eps_to_all(NAN), -11);
    expect("x", g5_calculate_force_on_x(x, a, p, N), -11);
    expect("eps", g5_set_eps_to_all(0.1), 0);
    expect("xi", g5_set_xi(1, one), 0);
    expect("run", g5_run(), -7);
    expect("force", g5_get_force(1, a, p), -7);
    expect("xe", g5_calculate_force_on_xe(x, none, a, p, 1), -11);
    expect("eta", g5_set_eta(NAN), -11);
    expect("xmj0", g5_set_xmj0(0, 1, one, m, eps2), -6);
    expect("x0", g5_calculate_force_on_x0(x, a, p, N, eps2), -6);
    expect("xmj0", g5_set_xmj0(0, 1, x, m, none), -11);
    expect("xj", g5_set_xj(0, 1, one), -6);
    expect("x", g5_calculate_force_on_x(x, a, p, N), -6);
    expect("xmj", g5_set_xmj(0, N, x, m), 0);
}

int main(void)
{
    for (int i = 0; i < N; i++) {
        x[i][0] = sin(i), x[i][1] = cos(2 * i), x[i][2] = sin(3 * i);
        m[i] = 1.0 / N;
    }
    fesetround(FE_UPWARD);
    feenableexcept(TRAPS);
    expect("open", g5_open(), 0);
    everything();
    wrong();
    everything();
    expect("close", g5_close(), 0);
    return bad;
}
