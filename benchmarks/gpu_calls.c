/* gpu_calls.c - times a GPU through the C API, as an old program calls it, by the clock.
 *
 *   gpu_calls force MODE JERK NN N     force calls with ni = N, j unchanged, copies included
 *   gpu_calls scatter MODE N NI        block steps: the block's particles, at addresses drawn at
 *                                      random, written, the time moved, first half, last half with
 *                                      nearest neighbour
 *   gpu_calls cut MODE N NI PIPES      one step of NI particles in calls of PIPES at one time, in
 *                                      the order of the addresses
 *   gpu_calls walk MODE N PIPES        a shared step: all particles written at the time that it
 *                                      is, then the forces on all, in calls of PIPES
 *   gpu_calls during MODE N SECONDS    as force, for so long; rate of the middle half of that time
 *   gpu_calls open                     g6_open, the first time and again
 *
 * Prints a line of JSON: medians; for steps also with the writes, and how soon firsthalf returns.
 */
#include "bodies.h"

enum { MOST_TAKES = 2001 };

static int *block; /* addresses of all particles, in the order of the blocks */
static double (*block_x)[3], (*block_v)[3];
static int mode;

/* A block is a run of the particles in this order. */
static void fill_blocks(void)
{
    for (int i = 0; i < b.n; i++) {
        memcpy(block_x[i], b.x[block[i]], 24);
        memcpy(block_v[i], b.v[block[i]], 24);
    }
}

static void set_up(int n, int shuffled)
{
    open_with(n, n, mode);
    block = b.index, block_x = calloc((size_t)n, 24), block_v = calloc((size_t)n, 24);
    if (shuffled) shuffle(block, n);
    fill_blocks();
}

/* Forces on ni particles of the blocks from `first` on; *returned: when firsthalf did. */
static void some(int first, int ni, int nn, double *returned)
{
    call(ni, block + first, block_x + first, block_v + first, 0.0, nn, returned);
}

static int takes_of(double seconds)
{
    return (int)fmin(fmax(1.5 / seconds, 3), MOST_TAKES - 2) | 1;
}

static void head(const char *what)
{
    char name[256];
    g6x_backend(0, name, sizeof name);
    printf("{\"what\": \"%s\", \"backend\": \"%s\", \"mode\": \"%s\"", what, name, MODES[mode]);
}

static void force(int wants_jerk, int nn, int n)
{
    double take[MOST_TAKES], seconds = 0.0;
    set_up(n, 0);
    check(g6x_set_int(0, G6X_JERK, wants_jerk));
    int takes = 0;
    for (int k = -3; k < takes; k++) { /* the last of those that do not count says how many do */
        const double start = now();
        some(0, n, nn, NULL);
        seconds = now() - start;
        if (k == -1) takes = takes_of(seconds);
        if (k >= 0) take[k] = seconds;
    }
    seconds = median(take, takes);
    head("force");
    printf(", \"jerk\": %d, \"nn\": %d, \"n\": %d, \"seconds\": %.6g, \"gpairs_per_s\": %.1f}\n",
           wants_jerk, nn, n, seconds, (double)n * n / seconds * 1e-9);
}

/* For programs that run at once: what the first and the last of them do alone is not counted. */
static void during(int n, double seconds)
{
    double first = 0.0, last = 0.0;
    int calls = 0;
    set_up(n, 0);
    some(0, n, 1, NULL);
    for (double start = now(), t = start; t < start + seconds; t = now()) {
        const int counts = t > start + seconds / 4 && t < start + 3 * seconds / 4;
        if (counts && !first) first = t;
        some(0, n, 1, NULL);
        if (counts) calls++, last = now();
    }
    head("during");
    printf(", \"n\": %d, \"gpairs_per_s\": %.1f}\n", n,
           calls * (double)n * n / (last - first) * 1e-9);
}

/* One step of `ni` particles, in calls of `pipes`; the time of the calls, and with the writes. */
static double step(int ni, int pipes, int first, double *returned, double *with_writes)
{
    const double written = now();
    for (int i = 0; i < ni; i++) write_particle(block[first + i], block[first + i]);
    t += 0x1p-24;
    g6_set_ti(0, t);
    const double start = now();
    *returned = 0.0;
    for (int i = 0; i < ni; i += pipes) {
        const double begun = now();
        double back;
        some(first + i, ni - i < pipes ? ni - i : pipes, 1, &back);
        if (back - begun > *returned) *returned = back - begun;
    }
    *with_writes = now() - written;
    return now() - start;
}

static void steps(int n, int ni, int pipes, int scattered)
{
    double take[MOST_TAKES], half[MOST_TAKES], whole[MOST_TAKES];
    int first = 0;
    set_up(n, scattered);
    for (int k = 0; k < 5; k++) step(ni, pipes, 0, half, whole);
    const int takes = takes_of(step(ni, pipes, 0, half, whole));
    for (int k = 0; k < takes; k++) {
        take[k] = step(ni, pipes, first, &half[k], &whole[k]);
        first = first + 2 * ni <= n ? first + ni : 0;
    }
    head(scattered ? "scatter" : "cut");
    printf(", \"n\": %d, \"ni\": %d, \"pipes\": %d, \"us\": %.2f, \"with_writes_us\": %.2f, "
           "\"firsthalf_us\": %.2f, \"takes\": %d}\n",
           n, ni, pipes, 1e6 * median(take, takes), 1e6 * median(whole, takes),
           1e6 * median(half, takes), takes);
}

/* The particles move, are written, and are asked for in the order of their addresses. */
static double shared_step(int n, int pipes)
{
    t += 0x1p-10;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) b.x[i][k] += 0x1p-10 * b.v[i][k];
    fill_blocks();
    const double start = now();
    for (int i = 0; i < n; i++) write_particle(i, i);
    g6_set_ti(0, t);
    for (int i = 0; i < n; i += pipes) some(i, n - i < pipes ? n - i : pipes, 0, NULL);
    return now() - start;
}

static void walk(int n, int pipes)
{
    double take[MOST_TAKES];
    set_up(n, 0);
    for (int k = 0; k < 2; k++) shared_step(n, pipes);
    const int takes = takes_of(shared_step(n, pipes));
    for (int k = 0; k < takes; k++) take[k] = shared_step(n, pipes);
    const double seconds = median(take, takes);
    head("walk");
    printf(", \"n\": %d, \"pipes\": %d, \"ms\": %.3f, \"gpairs_per_s\": %.1f}\n", n, pipes,
           1e3 * seconds, (double)n * n / seconds * 1e-9);
}

static void opening(void)
{
    double take[101], start = now();
    check(g6_open(0));
    const double first = now() - start;
    for (int k = 0; k < 101; k++) {
        start = now();
        check(g6_open(1 + k % 2));
        take[k] = now() - start;
        check(g6_close(1 + k % 2));
    }
    head("open");
    printf(", \"first_s\": %.4f, \"again_us\": %.1f}\n", first, 1e6 * median(take, 101));
}

int main(int count, char **word)
{
    static const char *const calls[] = {"open", "force", "cut", "scatter", "walk", "during", NULL};
    static const int counts[] = {2, 6, 6, 5, 5, 5};
    const int what = count > 1 ? place_of(word[1], calls) : 0;
    if (count != counts[what]) {
        fputs("usage: see the head of gpu_calls.c\n", stderr);
        return 2;
    }
    if (what == 0) {
        opening();
        return g6_close(0);
    }
    mode = place_of(word[2], MODES);
    const int one = atoi(word[3]), two = atoi(word[4]), three = count > 5 ? atoi(word[5]) : two;
    if (what == 1)
        force(one, two, three);
    else if (what == 4)
        walk(one, two);
    else if (what == 5)
        during(one, atof(word[4]));
    else
        steps(one, two, three, what == 3);
    return g6_close(0);
}
