/* gpu_calls.c - times a GPU through the C API, as an old program calls it, by the clock.
 *
 *   gpu_calls force MODE JERK NN N...   force calls with ni = N, j unchanged, copies included
 *   gpu_calls step MODE N NI...         block steps: the block's particles written, the time moved,
 *                                       first half, last half with nearest neighbour
 *   gpu_calls scatter MODE N NI...      the same with addresses drawn at random
 *   gpu_calls cut MODE N NI PIPES       one step of NI particles in calls of PIPES at one time
 *   gpu_calls walk MODE N PIPES...      a shared step: all particles written at the time that it
 *                                       is, then the forces on all, in calls of PIPES
 *   gpu_calls during MODE N SECONDS     as force, for so long; rate of the middle half of that time
 *   gpu_calls open                      g6_open, the first time and again
 *
 * Prints a line of JSON per figure: medians; for steps also with the writes, and how soon
 * firsthalf returns.
 */
#include <string.h>

#include "bodies.h"

enum { MOST_TAKES = 2001 };

static int *block; /* addresses of all particles, in the order of the blocks */
static double (*block_x)[3], (*block_v)[3];
static int mode;
static const char *const MODES[] = {"grape", "double", "single"};

/* A block is a run of the particles in this order: as they are, or shuffled. */
static void order_blocks(int n, int shuffled)
{
    for (int i = 0; i < n; i++) block[i] = i;
    if (shuffled) shuffle(block, n);
    for (int i = 0; i < n; i++) {
        memcpy(block_x[i], b.x[block[i]], 24);
        memcpy(block_v[i], b.v[block[i]], 24);
    }
}

static void set_up(int n)
{
    const size_t room = (size_t)n;
    b = plummer(n);
    make_rows(n);
    block = calloc(room, 4);
    block_x = calloc(room, 24), block_v = calloc(room, 24);
    t = 0.0;
    order_blocks(n, 0);
    check(g6_open(0));
    check(g6x_set_int(0, G6X_PRECISION, mode));
    for (int i = 0; i < n; i++) write_particle(i, i);
    g6_set_ti(0, t);
}

static void take_down(void)
{
    check(g6_close(0));
    free(b.mass), free(b.x), free(b.v), free(b.index);
    free(acc), free(jerk), free(pot), free(h2), free(nearest);
    free(block), free(block_x), free(block_v);
}

/* Forces on ni particles of the blocks from `first` on; *returned: when firsthalf did. */
static void some(int first, int ni, int nn, double *returned)
{
    call(ni, block + first, block_x + first, block_v + first, 0.0, nn, returned);
}

static int takes_of(double seconds)
{
    const double takes = 1.5 / seconds;
    return takes < 3 ? 3 : takes > MOST_TAKES - 2 ? MOST_TAKES - 2 : (int)takes | 1;
}

static void head(const char *what)
{
    char name[256];
    g6x_backend(0, name, sizeof name);
    printf("{\"what\": \"%s\", \"backend\": \"%s\", \"mode\": \"%s\"", what, name, MODES[mode]);
}

static void force(int wants_jerk, int nn, int n)
{
    double take[MOST_TAKES], returned;
    set_up(n);
    check(g6x_set_int(0, G6X_JERK, wants_jerk));
    for (int k = 0; k < 2; k++) some(0, n, nn, &returned);
    double start = now();
    some(0, n, nn, &returned);
    const int takes = takes_of(now() - start);
    for (int k = 0; k < takes; k++) {
        start = now();
        some(0, n, nn, &returned);
        take[k] = now() - start;
    }
    const double seconds = median(take, takes);
    head("force");
    printf(", \"jerk\": %d, \"nn\": %d, \"n\": %d, \"seconds\": %.6g, \"gpairs_per_s\": %.1f}\n",
           wants_jerk, nn, n, seconds, (double)n * n / seconds * 1e-9);
    fflush(stdout);
    take_down();
}

/* For programs that run at once: what the first and the last of them do alone is not counted. */
static void during(int n, double seconds)
{
    double returned, first = 0.0, last = 0.0;
    int calls = 0;
    set_up(n);
    some(0, n, 1, &returned);
    for (double start = now(), t = start; t < start + seconds; t = now()) {
        const int counts = t > start + seconds / 4 && t < start + 3 * seconds / 4;
        if (counts && !first) first = t;
        some(0, n, 1, &returned);
        if (counts) calls++, last = now();
    }
    head("during");
    printf(", \"n\": %d, \"gpairs_per_s\": %.1f}\n", n,
           calls * (double)n * n / (last - first) * 1e-9);
    take_down();
}

/* One step of `ni` particles, in calls of `pipes`; the time of the calls, and with the writes. */
static double step(int ni, int pipes, int first, double *returned, double *with_writes)
{
    const double written = now();
    for (int i = 0; i < ni; i++) write_particle(block[first + i], block[first + i]);
    t += 0x1p-24;
    g6_set_ti(0, t);
    const double start = now();
    double back, soonest = 0.0;
    for (int i = 0; i < ni; i += pipes) {
        const double begun = now();
        some(first + i, ni - i < pipes ? ni - i : pipes, 1, &back);
        if (back - begun > soonest) soonest = back - begun;
    }
    *returned = soonest;
    *with_writes = now() - written;
    return now() - start;
}

static void steps(const char *what, int n, int ni, int pipes)
{
    double take[MOST_TAKES], half[MOST_TAKES], whole[MOST_TAKES], returned;
    int first = 0;
    set_up(n);
    order_blocks(n, !strcmp(what, "scatter"));
    for (int k = 0; k < 5; k++) step(ni, pipes, 0, &returned, whole);
    const int takes = takes_of(step(ni, pipes, 0, &returned, whole));
    for (int k = 0; k < takes; k++) {
        take[k] = step(ni, pipes, first, &half[k], &whole[k]);
        first = first + 2 * ni <= n ? first + ni : 0;
    }
    head(what);
    printf(", \"n\": %d, \"ni\": %d, \"pipes\": %d, \"us\": %.2f, \"with_writes_us\": %.2f, "
           "\"firsthalf_us\": %.2f, \"takes\": %d}\n",
           n, ni, pipes, 1e6 * median(take, takes), 1e6 * median(whole, takes),
           1e6 * median(half, takes), takes);
    fflush(stdout);
    take_down();
}

/* The particles move, are written, and are asked for in the order of their addresses. */
static double shared_step(int n, int pipes)
{
    double returned;
    t += 0x1p-10;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) b.x[i][k] += 0x1p-10 * b.v[i][k];
    order_blocks(n, 0);
    const double start = now();
    for (int i = 0; i < n; i++) write_particle(i, i);
    g6_set_ti(0, t);
    for (int i = 0; i < n; i += pipes) some(i, n - i < pipes ? n - i : pipes, 0, &returned);
    return now() - start;
}

static void walk(int n, int pipes)
{
    double take[MOST_TAKES];
    set_up(n);
    for (int k = 0; k < 2; k++) shared_step(n, pipes);
    const int takes = takes_of(shared_step(n, pipes));
    for (int k = 0; k < takes; k++) take[k] = shared_step(n, pipes);
    const double seconds = median(take, takes);
    head("walk");
    printf(", \"n\": %d, \"pipes\": %d, \"ms\": %.3f, \"gpairs_per_s\": %.1f}\n", n, pipes,
           1e3 * seconds, (double)n * n / seconds * 1e-9);
    fflush(stdout);
    take_down();
}

static void opening(void)
{
    double take[101];
    double start = now();
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

static int mode_of(const char *word)
{
    for (int k = 0; k < 3; k++)
        if (!strcmp(word, MODES[k])) return k;
    fprintf(stderr, "gpu_calls: unknown mode %s\n", word);
    exit(2);
}

int main(int count, char **word)
{
    if (count > 2) mode = mode_of(word[2]);
    if (count > 5 && !strcmp(word[1], "force"))
        for (int k = 5; k < count; k++) force(atoi(word[3]), atoi(word[4]), atoi(word[k]));
    else if (count > 4 && !strcmp(word[1], "step"))
        for (int k = 4; k < count; k++) steps("step", atoi(word[3]), atoi(word[k]), atoi(word[k]));
    else if (count > 4 && !strcmp(word[1], "scatter"))
        for (int k = 4; k < count; k++)
            steps("scatter", atoi(word[3]), atoi(word[k]), atoi(word[k]));
    else if (count == 6 && !strcmp(word[1], "cut"))
        steps("cut", atoi(word[3]), atoi(word[4]), atoi(word[5]));
    else if (count > 4 && !strcmp(word[1], "walk"))
        for (int k = 4; k < count; k++) walk(atoi(word[3]), atoi(word[k]));
    else if (count == 5 && !strcmp(word[1], "during"))
        during(atoi(word[3]), atof(word[4]));
    else if (count == 2 && !strcmp(word[1], "open"))
        opening();
    else {
        fputs("usage: gpu_calls force MODE JERK NN N... | step MODE N NI... | scatter MODE N "
              "NI... | cut MODE N NI PIPES | walk MODE N PIPES... | during MODE N SECONDS | "
              "open\n",
              stderr);
        return 2;
    }
    return 0;
}
