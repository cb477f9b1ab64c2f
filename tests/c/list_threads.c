/* One thread writes lists of particles at rest, another looks at them, writes elsewhere or takes
 * the session in other ways: each sees whole particles, in the order of their writes. Then forks in
 * the middle of a list: parent and child go on with it alike. */
#include <g6lib.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 400, ROUNDS = 3000, OTHERS = 5000 };
static int bad;
static volatile int ended;

static void check(int right, const char *what)
{
    if (right) return;
    fprintf(stderr, "%s\n", what);
    bad = 1;
}

static void write_one(int id, int address, double value)
{
    double zero[3] = {0}, x[3] = {value, 2 * value, 3 * value};
    if (g6_set_j_particle(id, address, address, 0.0, 0.0, value, zero, zero, zero, zero, x))
        check(0, "write");
}

static void *writer(void *id)
{
    for (int round = 1; round <= ROUNDS; round++)
        for (int a = 0; a < N; a++) write_one(*(int *)id, a, round);
    ended = 1;
    return NULL;
}

/* Looks at the list: a part of this round, the rest of the round before. */
static void look(int id)
{
    static __thread double x[N][3], v[N][3];
    check(g6_get_predicted_j_particles(id, N, x, v) == 0, "predicted");
    for (int a = 0; a < N; a++) {
        check(x[a][1] == 2 * x[a][0] && x[a][2] == 3 * x[a][0], "torn");
        check(v[a][0] == 0, "moves");
        if (a) check(x[a][0] == x[a - 1][0] || x[a][0] == x[a - 1][0] - 1, "order");
    }
    check(x[0][0] - x[N - 1][0] <= 1, "lost");
}

static void *looker(void *id)
{
    static double last;
    double x[1][3] = {{0}}, v[1][3];
    for (int k = 0; !ended; k++) {
        look(*(int *)id);
        (void)g6_get_predicted_j_particles(*(int *)id, 1, x, v);
        check(x[0][0] >= last, "backwards");
        last = x[0][0];
        if (k % 3 == 0) write_one(*(int *)id, OTHERS + k % 100, k);
        if (k % 50 == 0) usleep(2000);
    }
    return NULL;
}

static void two_threads(int id)
{
    pthread_t one, other;
    ended = 0;
    for (int a = 0; a < N; a++) write_one(id, a, 0);
    pthread_create(&one, NULL, writer, &id);
    pthread_create(&other, NULL, looker, &id);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    look(id);
}

static double force(int id)
{
    static double x[1][3] = {{-1, 0, 0}}, v[1][3], acc[1][3], jerk[1][3], pot[1], h2[1];
    int index[1] = {-1};
    check(g6calc_firsthalf(id, N, 1, index, x, v, acc, jerk, pot, 0.0, h2) == 0, "first half");
    check(g6calc_lasthalf(id, N, 1, index, x, v, 0.0, h2, acc, jerk, pot) == 0, "last half");
    return acc[0][0];
}

/* Writes the second half of a list in parent and child, of which the first half was written, by
 * the forking thread or by one that the child has not. */
static void *half(void *id)
{
    for (int a = 0; a < N / 2; a++) write_one(*(int *)id, a, 1 + a);
    return NULL;
}

static void forks(int id, int by_another)
{
    double expected, found = 0.0;
    int to[2], status;
    pthread_t thread;
    half(&id);
    for (int a = N / 2; a < N; a++) write_one(id, a, 1 + a);
    expected = force(id);
    for (int a = 0; a < N; a++) write_one(id, a, 7);
    check(force(id) != expected, "no difference");
    if (by_another) {
        pthread_create(&thread, NULL, half, &id);
        pthread_join(thread, NULL);
    } else {
        half(&id);
    }
    if (pipe(to)) exit(1);
    const pid_t child = fork();
    for (int a = N / 2; a < N; a++) write_one(id, a, 1 + a);
    if (!child) {
        found = force(id);
        if (write(to[1], &found, sizeof found) < 0) _exit(1);
        _exit(bad);
    }
    check(force(id) == expected, "parent");
    check(read(to[0], &found, sizeof found) == sizeof found && found == expected, "child");
    check(waitpid(child, &status, 0) == child && status == 0, "child's status");
}

int main(void)
{
    int id[3] = {0, 1, 2};
    for (int k = 0; k < 3; k++) check(g6_open(id[k]) == 0, "open");
    two_threads(id[0]);
    forks(id[1], 0);
    forks(id[2], 1);
    return bad;
}
