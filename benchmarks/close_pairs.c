/* close_pairs.c - times force calls whose i particles lie on or near j particles, or far from the
 * origin. MODE is grape, double or single.
 *
 *   close_pairs MODE list N NI CASE   a list written anew for each group, as a treecode does: first
 *                                     NI entries are the group's own particles, the others
 *                                     scattered. CASE: of CASES below
 *   close_pairs MODE step N NI SEPARATION PERCENT   block steps at scattered addresses; so many of
 *                                     a hundred particles are in pairs of that separation, eps = 0
 *   close_pairs MODE far N D [hole]   forces of all N on each other, the cluster's centre being at
 *                                     D; hole: particle 7 lies at the origin
 *   close_pairs MODE bare N           the same without indices: each particle lies on itself
 *
 * Prints a line of JSON: medians in microseconds, the processor time of the whole call, and
 * the sum of the absolute values of pot, which tells whether two libraries agree.
 */
#include "bodies.h"

enum { MOST_TAKES = 400, LEAST_TAKES = 5 };
static const double SECONDS = 1.5; /* for a figure */

static double (*xi)[3], (*vi)[3], eps2;
static int *index_of, ni, mode;
static const char *const CASES[][2] = {{"match", "list, indices match"},
                                       {"other", "list, each i on a j of another index"},
                                       {"some", "list, one entry in 20 on an i"},
                                       {"near", "list, i in pairs 1e-7 apart"}};

/* Calls until the time is up: each writes so many particles of the list, takes the time, and asks
 * for the forces; `prepare` brings what the next one needs. */
static void measure(const char *name, void (*prepare)(void), int writes, const int *list)
{
    static double part[4][MOST_TAKES];
    char backend[128];
    clock_t used = 0;
    double begin = 0.0, sum = 0.0;
    int takes = -3; /* the first ones do not count */
    for (; takes < LEAST_TAKES || (takes < MOST_TAKES && now() - begin < SECONDS); takes++) {
        if (takes == 0) begin = now(), used = clock();
        if (prepare) prepare();
        double first;
        const double start = now();
        for (int k = 0; k < writes; k++) write_particle(list[k], list[k]);
        g6_set_ti(0, t);
        const double written = now();
        call(ni, index_of, xi, vi, eps2, 0, &first);
        const double last = now();
        if (takes < 0) continue;
        part[0][takes] = written - start, part[1][takes] = first - written;
        part[2][takes] = last - first, part[3][takes] = last - start;
    }
    used = clock() - used;
    check(g6x_last_error(0, backend, sizeof backend));
    check(g6x_backend(0, backend, sizeof backend));
    for (int i = 0; i < ni; i++) sum += fabs(pot[i]);
    printf("{\"what\": \"%s\", \"mode\": \"%s\", \"backend\": \"%s\", \"nj\": %d, \"ni\": %d, "
           "\"write_us\": %.1f, \"first_us\": %.1f, \"last_us\": %.1f, \"all_us\": %.1f, "
           "\"processor_us\": %.0f, \"takes\": %d, \"sum_of_pot\": %.9e}\n",
           name, MODES[mode], backend, b.n, ni, 1e6 * median(part[0], takes),
           1e6 * median(part[1], takes), 1e6 * median(part[2], takes), 1e6 * median(part[3], takes),
           1e6 * (double)used / CLOCKS_PER_SEC / takes, takes, sum);
}

static void list(int n, const char *which)
{
    memset(b.v, 0, (size_t)n * 24); /* a treecode sends none */
    for (int i = 0; i < ni; i++) {  /* a group: a small ball */
        direction(0.05 * cbrt(uniform()), b.x[i]);
        b.x[i][0] += 1.0;
        if (!strcmp(which, "near") && i % 2)
            for (int k = 0; k < 3; k++) b.x[i][k] = b.x[i - 1][k] + (k == 1 ? 0.1e-7 : 0.0);
    }
    memcpy(xi, b.x, (size_t)ni * 24);
    for (int i = 0; i < ni; i++) index_of[i] = strcmp(which, "other") ? i : n + i;
    if (!strcmp(which, "some"))
        for (int k = ni; k < n; k += 20) memcpy(b.x[k], b.x[(k / 20) % ni], 24);
    eps2 = 1e-8;
    for (int k = 0; k < 4; k++)
        if (!strcmp(which, CASES[k][0])) measure(CASES[k][1], NULL, n, b.index);
}

static void next_block(void)
{
    static int at;
    for (int i = 0; i < ni; i++, at = (at + 1) % b.n) {
        const int a = b.index[at];
        index_of[i] = a;
        memcpy(xi[i], b.x[a], 24), memcpy(vi[i], b.v[a], 24);
    }
    t += 1e-9;
}

static void step(int n, double separation, double percent)
{
    char name[64];
    const int pairs = (int)(percent / 100.0 * n / 2);
    for (int i = 0; i < pairs; i++) {
        double apart[3];
        direction(separation, apart);
        for (int k = 0; k < 3; k++) b.x[n - 1 - i][k] = b.x[i][k] + apart[k];
    }
    shuffle(b.index, n);
    for (int i = 0; i < n; i++) write_particle(i, i);
    snprintf(name, sizeof name, "step %g %g %%", separation, percent);
    measure(name, next_block, ni, index_of);
}

static void far(int n, double distance, int hole, int bare)
{
    char name[64];
    for (int i = 0; i < n; i++) {
        if (!(hole && i == 7)) b.x[i][0] += distance;
        index_of[i] = bare ? n + i : i;
    }
    if (hole) memset(b.x[7], 0, 24);
    memcpy(xi, b.x, (size_t)n * 24), memcpy(vi, b.v, (size_t)n * 24);
    eps2 = bare ? 1e-4 : 0.0;
    for (int i = 0; i < n; i++) write_particle(i, i);
    snprintf(name, sizeof name, bare ? "bare" : "far %g%s", distance, hole ? " hole" : "");
    measure(name, NULL, 1, b.index);
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[2] : "";
    const int n = argc > 3 ? atoi(argv[3]) : 0;
    const int steps = !strcmp(what, "step") && argc == 7,
              lists = !strcmp(what, "list") && argc == 6;
    ni = steps || lists ? atoi(argv[4]) : n;
    if (n < 1 || ni < 1 || ni > n) {
        fprintf(stderr, "usage: see the head of close_pairs.c\n");
        return 2;
    }
    mode = place_of(argv[1], MODES);
    open_with(n, n, mode);
    xi = calloc((size_t)n, 24), vi = calloc((size_t)n, 24), index_of = calloc((size_t)n, 4);
    if (steps)
        step(n, atof(argv[5]), atof(argv[6]));
    else if (lists)
        list(n, argv[5]);
    else if (!strcmp(what, "bare"))
        far(n, 0.0, 0, 1);
    else
        far(n, argc > 4 ? atof(argv[4]) : 0.0, argc > 5, 0);
    return g6_close(0);
}
