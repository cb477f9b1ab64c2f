/* The n-th allocation fails, for every n, in the life of a tree: calls succeed, or return
 * G6X_E_MEMORY with NaN in their outputs, and the next life is as if nothing had been. Prints how
 * many of the failures a call reported. With "parts", the particles are such that no one box
 * resolves them. For a library built with GRAPE6_TEST_HOOKS; its
 * sanitizer looks for reads out of bounds, and for leaks when the process ends. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "g6lib.h"
#include "util/memory.h"

enum { N = 400, NI = 250, K = 5 };

static double x[N][3], v[N][3], mass[N], acc[N][3], jerk[N][3], pot[N], r2[N][K], last[N], h2[N];
static int count[N], found[N][K], self[NI];
static long long start[N + 1];
static int reported, wrong;

static int fits(int code, int ni)
{
    reported |= code == G6X_E_MEMORY;
    int finite = 0, nan = 0;
    for (int i = 0; i < ni; i++) {
        const double sum = acc[i][0] + acc[i][1] + acc[i][2] + jerk[i][0] + jerk[i][2] + pot[i];
        finite += isfinite(sum) != 0, nan += isnan(sum) != 0;
    }
    return code == 0 ? finite == ni : code == G6X_E_MEMORY && nan == ni;
}

static void life(int isa)
{
    const double (*cx)[3] = (const double (*)[3])x, (*cv)[3] = (const double (*)[3])v;
    const int tree = g6x_tree_open(N, cx, cv, mass);
    reported |= tree == G6X_E_MEMORY;
    wrong += tree <= 0 && tree != G6X_E_MEMORY;
    if (tree <= 0) return;
    wrong += g6x_tree_set_int(tree, G6X_THREADS, 2) != 0;
    (void)g6x_tree_set_int(tree, G6X_ISA, isa); /* refused where the machine lacks it */
    for (int method = 0; method < 2; method++) {
        wrong += !fits(g6x_tree_forces(tree, N, NULL, NULL, NULL, 1e-6, method + G6X_TREE_MOMENTUM,
                                       4, 0.7, last, 1e-4, acc, jerk, pot),
                       N);
        wrong += !fits(g6x_tree_forces(tree, NI, cx + 100, NULL, self, 0.0, method, 5, 0.5, NULL,
                                       0.0, acc, jerk, pot),
                       NI);
    }
    double bound;
    wrong += !fits(g6x_tree_bound(tree, 1e-6, 0, 5, 1e-3, NULL, &bound), 0);
    x[150][1] = NAN; /* the tree has its own copy */
    const int code =
        g6x_tree_forces(tree, NI, cx + 100, cv, NULL, 0.0, 0, 5, 0.5, NULL, 0.0, acc, jerk, pot);
    x[150][1] = 0.25;
    reported |= code == G6X_E_MEMORY;
    wrong += (code != G6X_E_I_NAN && code != G6X_E_MEMORY) || !isnan(pot[50]);
    wrong += g6x_tree_within(tree, N, NULL, NULL, h2, start, count, found[0]) < 0;
    wrong += g6x_tree_nearest(tree, N, NULL, NULL, K, found[0], r2[0]) != 0;
    wrong += g6x_tree_close(tree) != 0;
}

int main(int arguments, char **argument)
{
    const int parts = arguments > 1 && argument[1][0] == 'p';
    int told = 0, injected = 0;
    srand(3);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++)
            x[i][k] = rand() / (double)RAND_MAX, v[i][k] = rand() / (double)RAND_MAX;
        if (parts && i % 3 == 0) x[i][0] += 1e12;                        /* far apart, */
        if (parts && i > N * 8 / 9) x[i][0] = x[i][1] = x[i][2] = -1e18; /* and many at one place */
        mass[i] = 1.0 / N, last[i] = 1.0, h2[i] = i % 350 ? 1e-3 : INFINITY;
        start[i + 1] = (i + 1LL) * K;
        if (i < NI) self[i] = i % 3 ? 100 + i : -1;
    }
    for (int isa = G6X_ISA_BASE; isa <= G6X_ISA_NEON; isa++) life(isa);
    if (reported) wrong++;
    for (long left = 0; !left && injected < 1000; injected++) {
        reported = 0;
        memory_fail_at(injected + 1);
        life(G6X_ISA_BEST);
        left = memory_fail_at(0);
        if (!left) told += reported;
        reported = 0;
        if (injected % 32 == 0) life(G6X_ISA_BEST);
        if (reported) wrong++;
    }
    printf("%d %d\n", injected, told);
    return wrong ? 9 : 0;
}
