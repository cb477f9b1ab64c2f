/* treecode_lists.c - times a treecode's plain calls: for each group of particles a list of its own,
 * written one entry a call to addresses 0.., then the time, first half and last half. Several
 * builds of the library are timed in one run, each in a process of its own, by turns.
 *
 *   treecode_lists LIBRARY...   the backend is GRAPE6_BACKEND's; ROUNDS groups each (default 41)
 *
 * Compile without the library: cc -O2 benchmarks/treecode_lists.c -o treecode_lists -ldl -lm
 *
 * Prints a line of JSON per library, kind of labels and size: medians of nanoseconds per entry of
 * the writes and of the first half, of microseconds of the last half and of the whole group, and
 * the pairs per second of the latter. `same`: the forces have the bits of the first library's.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { LISTS = 16, MOST_ROUNDS = 1001, MOST_LIBRARIES = 8, BODIES = 4000000 };
enum { WRITE, FIRST, LAST, WHOLE, NTIME };
static const struct size {
    int nj, ni;
} SIZE[] = {{7000, 585}, {1500, 64}, {30000, 2048}, {0, 0}};
static const char *const LABEL[] = {"identity", "permuted", "bodies", NULL};

struct list {
    double (*x)[3], *m;
    int *label, first; /* the group's own entries: first.. */
};

/* What is timed of the library. */
static int (*set_j)(int *, int *, int *, double *, double *, double *, double *, double *, double *,
                    double *, double *);
static int (*set_ti)(int *, double *);
static int (*first_half)(int *, int *, int *, int *, double (*)[3], double (*)[3], double (*)[3],
                         double (*)[3], double *, double *, double *);
static int (*last_half)(int *, int *, int *, int *, double (*)[3], double (*)[3], double *,
                        double *, double (*)[3], double (*)[3], double *);

static void *need(void *place)
{
    if (place) return place;
    fprintf(stderr, "treecode_lists: %s\n", dlerror());
    exit(1);
}

/* A list like that of a group: most entries near it, masses of bodies and of ever larger cells. */
static void make_list(struct list *l, int nj, int ni, int labels)
{
    l->x = malloc((size_t)nj * 24), l->m = malloc((size_t)nj * 8),
    l->label = malloc((size_t)nj * 4);
    l->first = (int)(uniform() * (nj - ni));
    const int step = BODIES / nj;
    for (int k = 0; k < nj; k++) {
        const double far = exp(4.0 * uniform() - 3.0);
        for (int c = 0; c < 3; c++) l->x[k][c] = 0.3 + far * (2.0 * uniform() - 1.0);
        l->m[k] = exp2(floor(10.0 * uniform())) / BODIES;
        l->label[k] = labels < 2 ? k : k * step + (int)(uniform() * step);
    }
    if (labels == 1) shuffle(l->label, nj);
}

static void take_library(const char *path)
{
    void *library = need(dlopen(path, RTLD_NOW));
    int (*open)(int *) = (int (*)(int *))need(dlsym(library, "g6_open_"));
    *(void **)&set_j = need(dlsym(library, "g6_set_j_particle_"));
    *(void **)&set_ti = need(dlsym(library, "g6_set_ti_"));
    *(void **)&first_half = need(dlsym(library, "g6calc_firsthalf_"));
    *(void **)&last_half = need(dlsym(library, "g6calc_lasthalf_"));
    int cluster = 0;
    if (open(&cluster)) exit(1);
}

/* One group; bits: of its forces. */
static void group(const struct list *l, int nj, int ni, double time[NTIME], uint64_t *bits)
{
    static double zero[3], none[4096][3], acc[4096][3], jerk[4096][3], pot[4096], h2[4096];
    double t = 0.0, step = 0.0, eps2 = 1e-6;
    int cluster = 0, code = 0, *index = l->label + l->first;
    double (*x)[3] = l->x + l->first;
    const double start = now();
    for (int k = 0; k < nj; k++)
        code |=
            set_j(&cluster, &k, &l->label[k], &t, &step, &l->m[k], zero, zero, zero, zero, l->x[k]);
    const double written = now();
    code |= set_ti(&cluster, &t);
    code |= first_half(&cluster, &nj, &ni, index, x, none, none, none, pot, &eps2, h2);
    const double begun = now();
    code |= last_half(&cluster, &nj, &ni, index, x, none, &eps2, h2, acc, jerk, pot);
    const double end = now();
    if (code) {
        fprintf(stderr, "treecode_lists: code %d\n", code);
        exit(1);
    }
    time[WRITE] = (written - start) / nj, time[FIRST] = (begun - written) / nj;
    time[LAST] = end - begun, time[WHOLE] = end - start;
    for (int i = 0; i < ni; i++) {
        uint64_t word[4];
        memcpy(word, acc[i], 24), memcpy(word + 3, &pot[i], 8);
        for (int k = 0; k < 4; k++) *bits = *bits * 0x9e3779b97f4a7c15u + word[k];
    }
}

/* Answers with the times of a group for each byte that comes. */
static void serve(const char *path, int in, int out)
{
    static struct list list[LISTS];
    char word;
    take_library(path);
    for (int labels = 0; LABEL[labels]; labels++)
        for (const struct size *s = SIZE; s->nj; s++) {
            struct {
                double time[NTIME];
                uint64_t bits;
            } answer = {.bits = 0};
            random_state = 1;
            for (int k = 0; k < LISTS; k++) make_list(&list[k], s->nj, s->ni, labels);
            for (int k = 0; read(in, &word, 1) == 1 && word; k++) {
                group(&list[k % LISTS], s->nj, s->ni, answer.time, &answer.bits);
                if (write(out, &answer, sizeof answer) < 0) exit(1);
            }
            for (int k = 0; k < LISTS; k++) free(list[k].x), free(list[k].m), free(list[k].label);
        }
    exit(0);
}

int main(int count, char **path)
{
    static double take[MOST_LIBRARIES][NTIME][MOST_ROUNDS];
    int ask[MOST_LIBRARIES], answers[MOST_LIBRARIES], libraries = count - 1;
    const char *wanted = getenv("ROUNDS");
    int rounds = wanted ? atoi(wanted) : 41;
    if (rounds < 1 || rounds > MOST_ROUNDS || libraries < 1 || libraries > MOST_LIBRARIES) {
        fputs("usage: treecode_lists LIBRARY...\n", stderr);
        return 2;
    }
    for (int l = 0; l < libraries; l++) {
        int to[2], from[2];
        if (pipe(to) || pipe(from)) return 1;
        if (!fork()) serve(path[1 + l], to[0], from[1]);
        ask[l] = to[1], answers[l] = from[0];
        close(to[0]), close(from[1]);
    }
    for (int labels = 0; LABEL[labels]; labels++)
        for (const struct size *s = SIZE; s->nj; s++) {
            uint64_t bits[MOST_LIBRARIES];
            for (int k = -3; k < rounds; k++) /* the first find memory */
                for (int l = 0; l < libraries; l++) {
                    double time[NTIME];
                    if (write(ask[l], "1", 1) < 0 || read(answers[l], time, sizeof time) <= 0 ||
                        read(answers[l], &bits[l], sizeof *bits) <= 0)
                        return 1;
                    for (int q = 0; q < NTIME && k >= 0; q++) take[l][q][k] = time[q];
                }
            for (int l = 0; l < libraries; l++) {
                const double whole = median(take[l][WHOLE], rounds);
                printf("{\"what\": \"plain\", \"library\": %d, \"labels\": \"%s\", \"nj\": %d, "
                       "\"ni\": %d, \"write_ns\": %.2f, \"first_ns\": %.2f, \"last_us\": %.2f, "
                       "\"group_us\": %.2f, \"gpairs_per_s\": %.3f, \"same\": %d}\n",
                       l, LABEL[labels], s->nj, s->ni, 1e9 * median(take[l][WRITE], rounds),
                       1e9 * median(take[l][FIRST], rounds), 1e6 * median(take[l][LAST], rounds),
                       1e6 * whole, (double)s->nj * s->ni / whole * 1e-9, bits[l] == bits[0]);
                fflush(stdout);
                if (write(ask[l], "", 1) < 0) return 1;
            }
        }
    for (int l = 0; l < libraries; l++) (void)wait(NULL);
    return 0;
}
