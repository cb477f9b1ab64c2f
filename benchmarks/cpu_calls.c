/* cpu_calls.c - times the library through its C API, as an old program calls it.
 *
 *   cpu_calls force N NI NN THREADS MODE ISA   force calls, j unchanged
 *   cpu_calls step  N NI NN THREADS MODE ISA   with the block rewritten and the time moved before
 *   cpu_calls write N                          g6_set_j_particle, in order and at random addresses
 *   cpu_calls open                             g6_open, the first time and again
 *   cpu_calls tiny                             firsthalf + lasthalf with ni = nj = 1
 *
 * MODE: grape, double, single. ISA: best, base, avx2, avx512, neon. Prints one line of JSON. One
 * thread is timed by CPU time, several by wall time; each figure is the median of 15.
 */
#include "bodies.h"

enum { TAKES = 15 };

static double clock_of(int threads)
{
    return threads > 1 ? now() : (double)clock() / CLOCKS_PER_SEC;
}

static void force(int step, char **a)
{
    static const char *const isas[] = {"best", "base", "avx2", "avx512", "neon", NULL};
    const int n = atoi(a[0]), ni = atoi(a[1]), nn = atoi(a[2]), threads = atoi(a[3]);
    const int mode = place_of(a[4], MODES), isa = place_of(a[5], isas);
    double take[TAKES];
    int first = 0;
    char name[64];
    open_with(n, ni, mode);
    check(g6x_set_int(0, G6X_ISA, isa));
    check(g6x_set_int(0, G6X_THREADS, threads));
    const double pairs = (double)n * ni;
    const int calls = 1 + (int)(pairs < 600.0 ? 1e5 : 6e7 / pairs); /* about 0.05 s a take */
    for (int k = -1; k < TAKES; k++) {
        const double start = clock_of(threads);
        for (int c = 0; c < calls; c++) {
            if (step) {
                for (int i = 0; i < ni; i++) write_particle(first + i, first + i);
                g6_set_ti(0, t += 0x1p-24);
            }
            call(ni, b.index + first, b.x + first, b.v + first, 0.0, nn, NULL);
            /* every second block: a walk through all of them would be summed ahead */
            first = first + 3 * ni <= n ? first + 2 * ni : 0;
        }
        if (k >= 0) take[k] = (clock_of(threads) - start) / calls;
    }
    const double seconds = median(take, TAKES), rate = pairs / seconds;
    const int slots[] = {nn ? 43 : 40, 74, 34};
    g6x_backend(0, name, sizeof name);
    int used = (int)(sizeof isas / sizeof *isas) - 2;
    while (!strstr(name, isas[used])) used--;
    const double vectors = used == 3 ? 1.0 : used == 2 ? 2.0 : 4.0;
    double g6x_fma_rate(int, int);
    const double issue = g6x_fma_rate(used, mode) * threads;
    printf("{\"what\": \"%s\", \"backend\": \"%s\", \"mode\": \"%s\", \"n\": %d, \"ni\": %d, "
           "\"nn\": %d, \"threads\": %d, \"pairs_per_s\": %.4g, \"seconds_per_call\": %.4g, "
           "\"slot_share\": %.3f}\n",
           step ? "step" : "force", name, MODES[mode], n, ni, nn, threads, rate, seconds,
           rate * slots[mode] * vectors / 16.0 / issue);
}

static void writes(int n)
{
    double in_order[TAKES], at_random[TAKES], first = 0.0;
    b = plummer(n);
    check(g6_open(0));
    shuffle(b.index, n);
    for (int k = -1; k < TAKES; k++) {
        double start = clock_of(1);
        for (int i = 0; i < n; i++) write_particle(i, i);
        if (k < 0)
            first = (clock_of(1) - start) / n;
        else
            in_order[k] = (clock_of(1) - start) / n;
        start = clock_of(1);
        for (int i = 0; i < n; i++) write_particle(b.index[i], i);
        if (k >= 0) at_random[k] = (clock_of(1) - start) / n;
    }
    printf("{\"what\": \"write\", \"n\": %d, \"first_ns\": %.1f, \"in_order_ns\": %.1f, "
           "\"at_random_ns\": %.1f}\n",
           n, 1e9 * first, 1e9 * median(in_order, TAKES), 1e9 * median(at_random, TAKES));
}

static void opening(void)
{
    enum { AGAIN = 1000 };
    double take[TAKES], start = now();
    check(g6_open(0));
    const double first = now() - start;
    for (int k = 0; k < TAKES; k++) {
        start = now();
        for (int c = 0; c < AGAIN; c++) {
            g6_close(0);
            g6_open(0);
        }
        take[k] = (now() - start) / AGAIN;
    }
    printf("{\"what\": \"open\", \"first_us\": %.1f, \"again_us\": %.2f}\n", 1e6 * first,
           1e6 * median(take, TAKES));
}

static void tiny(void)
{
    enum { CALLS = 20000 };
    double take[TAKES];
    b = plummer(2);
    b.n = 1; /* of which the other is no j particle */
    make_rows(1);
    check(g6_open(0));
    write_particle(0, 0);
    g6_set_ti(0, 0.0);
    for (int k = 0; k < TAKES; k++) {
        const double start = now();
        for (int c = 0; c < CALLS; c++) call(1, b.index + 1, b.x + 1, b.v + 1, 0.0, 0, NULL);
        take[k] = (now() - start) / CALLS;
    }
    printf("{\"what\": \"tiny\", \"us\": %.2f}\n", 1e6 * median(take, TAKES));
}

int main(int count, char **argument)
{
    static const char *const calls[] = {"force", "step", NULL};
    if (count == 8)
        force(place_of(argument[1], calls), argument + 2);
    else if (count == 3 && !strcmp(argument[1], "write"))
        writes(atoi(argument[2]));
    else if (count == 2 && !strcmp(argument[1], "open"))
        opening();
    else if (count == 2 && !strcmp(argument[1], "tiny"))
        tiny();
    else {
        fputs("usage: cpu_calls force|step N NI NN THREADS MODE ISA | write N | open | tiny\n",
              stderr);
        return 2;
    }
    return 0;
}
