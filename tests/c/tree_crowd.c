/* Eight threads on one tree, each opening and closing others and setting options; run under a
 * thread sanitizer. Who has a tree gets the same bits each time, until somebody has closed it. */
#include "g6lib.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N = 300, K = 3, THREADS = 8, ROUNDS = 6 };

struct results {
    double acc[N][3], jerk[N][3], pot[N], r2[N][K];
    int number[N][K], count[N], found[N][K];
};

static double x[N][3], v[N][3], mass[N], h2[N];
static long long start[N + 1];
static struct results expected;
static pthread_barrier_t gate;
static int shared, passing; /* passing: closed while it is used */

static int opened(void)
{
    return g6x_tree_open(N, (const double (*)[3])x, (const double (*)[3])v, mass);
}

/* 0, or the code of a call that found no tree. */
static int use(int tree, struct results *r)
{
    const int code = g6x_tree_forces(tree, N, NULL, NULL, NULL, 1e-4, G6X_TREE_FMM, 4, 0.6, NULL,
                                     0.0, r->acc, r->jerk, r->pot);
    const int within = g6x_tree_within(tree, N, NULL, NULL, h2, start, r->count, r->found[0]);
    const int nearest = g6x_tree_nearest(tree, N, NULL, NULL, K, r->number[0], r->r2[0]);
    return code ? code : within < 0 ? within : nearest;
}

static int is_wrong(int tree, struct results *r)
{
    memset(r, 0, sizeof *r);
    return use(tree, r) != 0 || memcmp(r, &expected, sizeof *r) != 0;
}

static void *work(void *argument)
{
    const int k = (int)(intptr_t)argument;
    struct results *r = malloc(sizeof *r);
    intptr_t wrong = 0;
    char text[100];
    pthread_barrier_wait(&gate);
    for (int round = 0; round < ROUNDS; round++) {
        const int own = opened();
        wrong += own <= 0 || g6x_tree_set_int(own, G6X_THREADS, 1 + k % 3) != 0;
        wrong += g6x_tree_set_int(shared, G6X_THREADS, 1 + (k + round) % 3) != 0;
        wrong += g6x_tree_set_int(shared, G6X_ISA, G6X_ISA_BASE) != 0;
        wrong += is_wrong(shared, r) + is_wrong(own, r);
        wrong += g6x_tree_close(own) != 0 || use(own, r) != G6X_E_NOT_OPEN;
        (void)g6x_last_error(-7, text, sizeof text);
        (void)g6x_last_warning(-7, text, sizeof text);
        if (round == k) wrong += g6x_tree_close(passing) != 0;
        const int code = use(passing, r);
        wrong += code != 0 && code != G6X_E_NOT_OPEN;
    }
    free(r);
    return (void *)wrong;
}

int main(void)
{
    pthread_t thread[THREADS];
    intptr_t total = 0;
    srand(5);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++)
            x[i][k] = rand() / (double)RAND_MAX, v[i][k] = rand() / (double)RAND_MAX;
        mass[i] = 1.0 / N, h2[i] = 0.01, start[i + 1] = K * (i + 1LL);
    }
    shared = opened(), passing = opened();
    total += g6x_tree_set_int(shared, G6X_ISA, G6X_ISA_BASE);
    total += g6x_set_int(-7, G6X_ISA, G6X_ISA_BASE); /* of trees to come */
    total += use(shared, &expected);
    pthread_barrier_init(&gate, NULL, THREADS);
    for (intptr_t k = 0; k < THREADS; k++) pthread_create(&thread[k], NULL, work, (void *)k);
    for (int k = 0; k < THREADS; k++) {
        void *wrong;
        pthread_join(thread[k], &wrong);
        total += (intptr_t)wrong;
    }
    return total || g6x_tree_close(shared) != 0;
}
