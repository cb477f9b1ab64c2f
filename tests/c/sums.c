/* usage: sums FILE BACKEND: every kind of sum of particles on themselves; FILE has doubles
 * [n][7], mass, place and velocity; BACKEND is what g6x_backend has to say. Writes rows of doubles
 * acc[3] jerk[3] pot, nearest, number of neighbours, n of each kind: the direct sum in each mode,
 * trees by two methods, one walk of all in modes grape and double, GRAPE-5. Fails if bits depend on
 * threads or on how calls are cut. */
#include "g5lib.h"
#include "g6lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20000 };
static const double H2 = 0.01, G5_EPS = 0.01, THETA = 0.5;

static int n;
static double mass[MOST], x[MOST][3], v[MOST][3], h2[MOST], zero[MOST][3];
static int label[MOST];

struct sums {
    double acc[MOST][3], jerk[MOST][3], pot[MOST];
    int nearest[MOST], neighbours[MOST];
};
static struct sums whole, cut;

static int read_model(const char *path)
{
    double row[7];
    FILE *file = fopen(path, "rb");
    for (; file && n < MOST && fread(row, sizeof row, 1, file) == 1; n++) {
        mass[n] = row[0], label[n] = n, h2[n] = H2;
        memcpy(x[n], row + 1, sizeof x[n]);
        memcpy(v[n], row + 4, sizeof v[n]);
    }
    return file ? fclose(file) : 1;
}

static void print(const struct sums *s)
{
    for (int i = 0; i < n; i++) {
        const double row[9] = {s->acc[i][0],  s->acc[i][1],  s->acc[i][2],
                               s->jerk[i][0], s->jerk[i][1], s->jerk[i][2],
                               s->pot[i],     s->nearest[i], s->neighbours[i]};
        fwrite(row, sizeof row, 1, stdout);
    }
}

static int rows(struct sums *s, int i, int ni)
{
    static long long start[MOST + 1];
    int bad = g6calc_firsthalf(0, n, ni, label + i, x + i, v + i, zero, zero, zero[0], 0.0, h2);
    bad |= g6calc_lasthalf2(0, n, ni, label + i, x + i, v + i, 0.0, h2, s->acc + i, s->jerk + i,
                            s->pot + i, s->nearest + i);
    bad |= g6x_get_neighbour_lists(0, ni, 0, start, NULL) < 0;
    for (int k = 0; k < ni; k++) s->neighbours[i + k] = (int)(start[k + 1] - start[k]);
    return bad != 0;
}

static int maker_is_told(int mode)
{
    static long long words[MOST][G6X_PARTIAL_WORDS];
    int isa = 0;
    const int bad = g6x_get_int(0, G6X_ISA, &isa) != 0 || g6x_get_partial(0, n, words[0]) != 0;
    return !bad && words[0][27] == (1 << 16 | (isa - G6X_ISA_BASE) << 8 | mode);
}

static int direct(int mode)
{
    int bad = g6x_set_int(0, G6X_PRECISION, mode) != 0;
    bad += g6x_set_int(0, G6X_THREADS, 1) != 0 || rows(&whole, 0, n);
    bad += !maker_is_told(mode);
    bad += g6x_set_int(0, G6X_THREADS, 4) != 0;
    for (int i = 0, ni = 1; i < n; i += ni, ni += 1 + ni / 2)
        bad += rows(&cut, i, ni < n - i ? ni : n - i);
    print(&whole);
    return bad + (memcmp(&whole, &cut, sizeof whole) != 0);
}

static int by_tree(int method)
{
    int bad = 0;
    const int tree = g6x_tree_open(n, (const double (*)[3])x, (const double (*)[3])v, mass);
    for (int threads = 1; threads <= 4; threads += 3) {
        struct sums *s = threads == 1 ? &whole : &cut;
        bad += g6x_tree_set_int(tree, G6X_THREADS, threads) != 0;
        bad += g6x_tree_forces(tree, n, NULL, NULL, NULL, 0.0, method, 5, THETA, NULL, 0.0, s->acc,
                               s->jerk, s->pot) != 0;
    }
    print(&whole);
    return bad + (g6x_tree_close(tree) != 0) + (memcmp(&whole, &cut, sizeof whole) != 0);
}

static int one_walk(int mode)
{
    const long long start[2] = {0, n};
    int bad = g6x_set_int(0, G6X_PRECISION, mode) != 0;
    bad += g6x_walks(0, 1, start, (const double (*)[3])x, start, NULL, 0, (const double (*)[3])x,
                     mass, 0.0, whole.acc, whole.pot) != 0;
    print(&whole);
    return bad;
}

static int grape5(void)
{
    int bad = g5_openMC(1) != 0 || g5_set_xmjMC(1, 0, n, x, mass) != 0 || g5_set_nMC(1, n) != 0;
    bad += g5_set_eps_to_allMC(1, G5_EPS) != 0;
    bad += g5_calculate_force_on_xMC(1, x, whole.acc, whole.pot, n) != 0;
    print(&whole);
    return bad + (g5_closeMC(1) != 0);
}

int main(int argc, char **argv)
{
    char text[200];
    int bad = argc != 3 || read_model(argv[1]) != 0;
    if (g6_open(0) != 0) return (void)g6x_last_error(0, text, sizeof text), fputs(text, stderr), 1;
    bad += g6x_backend(0, text, sizeof text) != 0 || strcmp(text, argv[2]) != 0;
    for (int i = 0; i < n; i++)
        bad += g6_set_j_particle(0, i, i, 0.0, 0.125, mass[i], zero[0], zero[0], zero[0], v[i],
                                 x[i]) != 0;
    for (int mode = 0; mode < 3; mode++) bad += direct(mode);
    bad += by_tree(G6X_TREE_FMM) + by_tree(G6X_TREE_BARNES_HUT);
    bad += one_walk(G6X_GRAPE) + one_walk(G6X_DOUBLE) + grape5();
    if (bad) fprintf(stderr, "%d surprises\n", bad);
    return bad != 0;
}
