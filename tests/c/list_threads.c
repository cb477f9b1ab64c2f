/* One thread writes lists of particles at rest, another looks at them, writes elsewhere or takes
 * the session in other ways: each sees whole particles, in the order of their writes. */
#include <g6lib.h>

#include <pthread.h>
#include <stdio.h>
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

int main(void)
{
    check(g6_open(0) == 0, "open");
    two_threads(0);
    return bad;
}
