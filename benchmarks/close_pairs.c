/* close_pairs.c - times force calls whose i particles lie on or near j particles, or far from the
 * origin. MODE is grape, double or single.
 *
 *   close_pairs MODE list N NI CASE   a list written anew for each group, as a treecode does: first
 *                                     NI entries are the group's own particles, the others
 *                                     scattered. CASE: match (indices match), other (each i
 *                                     particle lies on an entry of another index), some (one entry
 *                                     in twenty lies on an i particle), near (i particles in pairs
 *                                     1e-7 apart)
 *   close_pairs MODE step N NI SEPARATION PERCENT   block steps at scattered addresses; so many of
 *                                     a hundred particles are in pairs of that separation, eps = 0
 *   close_pairs MODE far N D [hole]   forces of all N on each other, the cluster's centre being at
 *                                     D; hole: particle 7 lies at the origin
 *   close_pairs MODE bare N           the same without indices: each particle lies on itself
 *
 * Prints a line of JSON: medians in microseconds, the processor time of the whole call, and
 * the sum of the absolute values of pot, which tells whether two libraries agree.
 */
#include <string.h>
#include <sys/resource.h>

#include "bodies.h"

enum { MOST_TAKES = 400, LEAST_TAKES = 5 };
static const double SECONDS = 1.5; /* for a figure */

static double processor(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double (*xi)[3], (*vi)[3], eps2;
static int *index_of, ni, mode;
static const char *const MODES[] = {"grape", "double", "single"};
static const char *const CASES[][2] = {{"match", "list, indices match"},
                                       {"other", "list, each i on a j of another index"},
                                       {"some", "list, one entry in 20 on an i"},
                                       {"near", "list, i in pairs 1e-7 apart"}};
static void make_arrays(int n)
{
    const size_t size = (size_t)n;
    make_rows(n);
    xi = calloc(size, 24), vi = calloc(size, 24), index_of = calloc(size, 4);
}

static void write_entry(int address, int index)
{
    static double zero[3];
    g6_set_j_particle(0, address, index, t, 0.0, b.mass[address], zero, zero, zero, b.v[address],
                      b.x[address]);
}

/* One call; the seconds of its three parts are added to take[0..2]. */
static void force(double part[3], int writes, const int *address, const int *index)
{
    const double begin = now();
    for (int k = 0; k < writes; k++) write_entry(address ? address[k] : k, index[k]);
    g6_set_ti(0, t);
    const double written = now();
    double first;
    call(ni, index_of, xi, vi, eps2, 0, &first);
    part[0] = written - begin, part[1] = first - written, part[2] = now() - first;
}

static double size_of_results(void)
{
    double sum = 0.0;
    for (int i = 0; i < ni; i++) sum += fabs(pot[i]);
    return sum;
}

/* Calls until the time is up: `prepare` brings what the next one needs. */
static void measure(const char *name, void (*prepare)(int), int writes, const int *address,
                    const int *index)
{
    static double part[4][MOST_TAKES];
    char backend[128];
    double used = 0.0, begin = 0.0;
    int takes = -3; /* the first ones do not count */
    for (; takes < LEAST_TAKES || (takes < MOST_TAKES && now() - begin < SECONDS); takes++) {
        double p[3];
        if (takes == 0) begin = now(), used = processor();
        if (prepare) prepare(takes);
        force(p, writes, address, index);
        for (int k = 0; k < 3 && takes >= 0; k++) part[k][takes] = p[k];
        if (takes >= 0) part[3][takes] = p[0] + p[1] + p[2];
    }
    used = (processor() - used) / takes;
    check(g6x_last_error(0, backend, sizeof backend));
    check(g6x_backend(0, backend, sizeof backend));
    printf("{\"what\": \"%s\", \"mode\": \"%s\", \"backend\": \"%s\", \"nj\": %d, \"ni\": %d, "
           "\"write_us\": %.1f, \"first_us\": %.1f, \"last_us\": %.1f, \"all_us\": %.1f, "
           "\"processor_us\": %.0f, \"takes\": %d, \"sum_of_pot\": %.9e}\n",
           name, MODES[mode], backend, b.n, ni, 1e6 * median(part[0], takes),
           1e6 * median(part[1], takes), 1e6 * median(part[2], takes), 1e6 * median(part[3], takes),
           1e6 * used, takes, size_of_results());
}

static int *in_order(int n, int from)
{
    int *list = malloc((size_t)n * sizeof *list);
    for (int k = 0; k < n; k++) list[k] = from + k;
    return list;
}

static void list(int n, const char *which)
{
    int *index = in_order(n, 0);
    b = plummer(n);
    memset(b.v, 0, (size_t)n * sizeof *b.v); /* a treecode sends none */
    for (int i = 0; i < ni; i++) {           /* a group: a small ball */
        direction(0.05 * cbrt(uniform()), b.x[i]);
        b.x[i][0] += 1.0;
        if (!strcmp(which, "near") && i % 2)
            for (int k = 0; k < 3; k++) b.x[i][k] = b.x[i - 1][k] + (k == 1 ? 0.1e-7 : 0.0);
    }
    memcpy(xi, b.x, (size_t)ni * 24);
    for (int i = 0; i < ni; i++) index_of[i] = strcmp(which, "other") ? i : n + i;
    for (int k = 0; !strcmp(which, "some") && k < n; k += 20) memcpy(b.x[k], b.x[k % ni], 24);
    if (!strcmp(which, "some"))
        for (int k = ni; k < n; k += 20) memcpy(b.x[k], b.x[(k / 20) % ni], 24);
    eps2 = 1e-8;
    for (int k = 0; k < 4; k++)
        if (!strcmp(which, CASES[k][0])) measure(CASES[k][1], NULL, n, NULL, index);
}

static int *order;
static void next_block(int take)
{
    static int at;
    (void)take;
    for (int i = 0; i < ni; i++, at = (at + 1) % b.n) {
        const int a = order[at];
        index_of[i] = a;
        memcpy(xi[i], b.x[a], 24), memcpy(vi[i], b.v[a], 24);
    }
    t += 1e-9;
}

static void step(int n, double separation, double percent)
{
    char name[64];
    b = plummer(n);
    order = in_order(n, 0);
    const int pairs = (int)(percent / 100.0 * n / 2);
    for (int i = 0; i < pairs; i++) {
        memcpy(b.x[n - 1 - i], b.x[i], 24);
        double apart[3];
        direction(separation, apart);
        for (int k = 0; k < 3; k++) b.x[n - 1 - i][k] += apart[k];
    }
    shuffle(order, n);
    for (int i = 0; i < n; i++) write_particle(i, i);
    snprintf(name, sizeof name, "step %g %g %%", separation, percent);
    measure(name, next_block, ni, index_of, index_of);
}

static void far(int n, double distance, int hole, int bare)
{
    char name[64];
    int *index = in_order(n, 0);
    b = plummer(n);
    for (int i = 0; i < n; i++) {
        if (!(hole && i == 7)) b.x[i][0] += distance;
        index_of[i] = bare ? n + i : i;
    }
    if (hole) memset(b.x[7], 0, 24);
    memcpy(xi, b.x, (size_t)n * 24), memcpy(vi, b.v, (size_t)n * 24);
    eps2 = bare ? 1e-4 : 0.0;
    for (int i = 0; i < n; i++) write_particle(i, i);
    snprintf(name, sizeof name, bare ? "bare" : "far %g%s", distance, hole ? " hole" : "");
    measure(name, NULL, 1, NULL, index);
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[2] : "";
    const int n = argc > 3 ? atoi(argv[3]) : 0;
    const int steps = !strcmp(what, "step") && argc == 7,
              lists = !strcmp(what, "list") && argc == 6;
    ni = steps || lists ? atoi(argv[4]) : n;
    while (argc > 1 && mode < 3 && strcmp(argv[1], MODES[mode])) mode++;
    if (n < 1 || ni < 1 || ni > n || mode == 3) {
        fprintf(stderr, "usage: see the head of close_pairs.c\n");
        return 2;
    }
    make_arrays(n);
    check(g6_open(0));
    check(g6x_set_int(0, G6X_PRECISION, mode));
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
