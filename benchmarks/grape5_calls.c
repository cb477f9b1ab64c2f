/* grape5_calls.c - speed and accuracy of GRAPE-5 calls of one library, or of several beside each
 * other:
 *
 *     cc -O2 $(grape6 config --cflags) grape5_calls.c -o grape5_calls -ldl -lm
 *     GRAPE6_THREADS=1 GRAPE6_ISA=avx2 taskset -c 0 ./grape5_calls old.so new.so libpg5.so
 *
 * A line for each shape: writing nj particles, and the forces on ni; billions of pairs a second by
 * the median of many calls, the libraries taking turns. In the first half the i particles are
 * among the j particles, in the second they are elsewhere.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"

enum { SHAPES = 8, MOST = 30000, LIBRARIES = 4, TURNS = 15 };

static const int SHAPE[SHAPES][2] = {{8, 500},    {64, 500},   {64, 1500},   {128, 2000},
                                     {256, 3000}, {512, 5000}, {512, 20000}, {4096, 30000}};

/* By value; some libraries' return nothing. */
struct board {
    const char *name;
    int (*open)(void);
    int (*set_eps)(double);
    int (*set_n)(int);
    int (*set_xmj)(int, int, double (*)[3], double *);
    int (*force)(double (*)[3], double (*)[3], double *, int);
};

static double (*x)[3], *m, elsewhere[MOST][3], a[MOST][3], p[MOST];

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found) return found;
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static struct board load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    struct board b = {.name = name};
    *(void **)&b.open = symbol(library, "g5_open");
    *(void **)&b.set_eps = symbol(library, "g5_set_eps_to_all");
    *(void **)&b.set_n = symbol(library, "g5_set_n");
    *(void **)&b.set_xmj = symbol(library, "g5_set_xmj");
    *(void **)&b.force = symbol(library, "g5_calculate_force_on_x");
    b.open();
    return b;
}

/* The whole sum, as most callers make it: a list is sent and used once. */
static double one_turn(const struct board *b, int ni, int nj, double (*xi)[3], int calls)
{
    const double start = now();
    for (int k = 0; k < calls; k++) {
        b->set_xmj(0, nj, x, m);
        b->set_n(nj);
        b->force(xi, a, p, ni);
    }
    return (now() - start) / calls;
}

/* Largest and middle relative error of the accelerations of up to 64 particles. */
static void errors(int ni, int nj, double (*xi)[3], double eps, double *middle, double *largest)
{
    double error[64];
    const int rows = ni < 64 ? ni : 64;
    for (int i = 0; i < rows; i++) {
        long double f[3] = {0}, wrong = 0, size = 0;
        for (int j = 0; j < nj; j++) {
            long double r[3], s2 = (long double)eps * eps;
            for (int c = 0; c < 3; c++) {
                r[c] = (long double)x[j][c] - xi[i][c];
                s2 += r[c] * r[c];
            }
            for (int c = 0; c < 3 && s2 > 0; c++) f[c] += m[j] * r[c] / (s2 * sqrtl(s2));
        }
        for (int c = 0; c < 3; c++) {
            wrong += (a[i][c] - f[c]) * (a[i][c] - f[c]);
            size += f[c] * f[c];
        }
        error[i] = (double)sqrtl(wrong / size);
    }
    qsort(error, (size_t)rows, sizeof *error, ascending);
    *middle = error[rows / 2];
    *largest = error[rows - 1];
}

static void compare(struct board *board, int boards, int ni, int nj, double (*xi)[3], double eps)
{
    double seconds[LIBRARIES][TURNS];
    const int calls = (int)(2e7 / ((double)ni * nj)) + 1;
    for (int t = 0; t < TURNS; t++)
        for (int k = 0; k < boards; k++) seconds[k][t] = one_turn(&board[k], ni, nj, xi, calls);
    printf("%5d/%-6d", ni, nj);
    for (int k = 0; k < boards; k++) {
        double middle, largest;
        one_turn(&board[k], ni, nj, xi, 1);
        errors(ni, nj, xi, eps, &middle, &largest);
        printf("  %5.2f (%.0e %.0e)", 1e-9 * ni * nj / median(seconds[k], TURNS), middle, largest);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct board board[LIBRARIES];
    int boards = 0;
    for (; boards < argc - 1 && boards < LIBRARIES; boards++)
        board[boards] = load(argv[boards + 1]);
    const struct bodies b = plummer(MOST);
    x = b.x, m = b.mass;
    for (int i = 0; i < MOST; i++)
        for (int c = 0; c < 3; c++) elsewhere[i][c] = x[i][c] + 1e-3 * (c + 1);
    for (int k = 0; k < boards; k++) printf("%s%s", k ? ", " : "", board[k].name);
    printf(": billions of pairs a second (middle and largest error of the forces)\n");
    for (int part = 0; part < 2; part++) {
        const double eps = 0.01;
        printf("i particles %s\n", part ? "elsewhere" : "among the j particles");
        for (int k = 0; k < boards; k++) board[k].set_eps(eps);
        for (int s = 0; s < SHAPES; s++)
            compare(board, boards, SHAPE[s][0], SHAPE[s][1], part ? elsewhere : x, eps);
    }
    return 0;
}
