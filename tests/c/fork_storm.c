/* usage: fork_storm FORKS: forks while other threads write, sum, open and close clusters. Each
 * child uses all of these: a call gives 0, or G6X_E_FORK where a thread was in a call of that
 * cluster; closed and opened again, it works. Prints how many children met that. */
#include "g6lib.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 600, NI = 8, KINDS = 4, SHARED = 10 };

static double x[N][3], v[N][3], zero[3];
static int label[N];
static _Atomic int over;

static int put(int id)
{
    for (int i = 0; i < N; i++) {
        const int code =
            g6_set_j_particle(id, i, i, 0.0, 1.0, 1.0 / N, zero, zero, zero, v[i], x[i]);
        if (code) return code;
    }
    return 0;
}

static int list(int id) /* of particles at rest: written without the lock */
{
    for (int i = 0; i < N; i++) {
        const int code = g6_set_j_particle_mxonly(id, i, i, 1.0 / N, x[i]);
        if (code) return code;
    }
    return 0;
}

static int sum(int id, double *pot)
{
    double acc[NI][3], jerk[NI][3], p[NI], h2[NI] = {0};
    int code = g6calc_firsthalf(id, N, NI, label, x, v, acc, jerk, p, 0.01, h2);
    if (!code) code = g6calc_lasthalf(id, N, NI, label, x, v, 0.01, h2, acc, jerk, p);
    *pot = p[0];
    return code;
}

static void *work(void *argument)
{
    const int kind = *(int *)argument, id = SHARED + kind;
    double pot;
    while (!over) {
        if (kind == 0) (void)put(id);
        if (kind == 1) (void)list(id);
        if (kind == 2) (void)sum(id, &pot);
        if (kind == 3) {
            const int tree = g6x_tree_open(N, (const double (*)[3])x, NULL, x[0]);
            (void)g6x_tree_close(tree);
            (void)g6_open(id);
            (void)put(id);
            (void)g6_close(id);
        }
    }
    return NULL;
}

/* 0; 1 if some cluster was refused; else what is wrong. */
static int child(double right)
{
    int refused = 0;
    (void)alarm(30);
    for (int id = SHARED; id < SHARED + KINDS; id++) {
        double pot = 0.0;
        int code = put(id);
        if (code == G6X_E_NOT_OPEN) continue;
        refused |= code == G6X_E_FORK;
        if (code && code != G6X_E_FORK) return 2;
        if (code && sum(id, &pot) != G6X_E_FORK) return 3;
        if (code && (g6_close(id) || g6_open(id) || put(id))) return 4;
        if (sum(id, &pot) || pot != right) return 5;
    }
    double pot = 0.0;
    if (g6_open(99) || list(99) || put(99) || sum(99, &pot) || pot != right) return 6;
    const int tree = g6x_tree_open(N, (const double (*)[3])x, NULL, x[0]);
    if (tree < 1 || g6x_tree_close(tree)) return 7;
    return refused;
}

int main(int argc, char **argv)
{
    const int forks = argc > 1 ? atoi(argv[1]) : 100;
    int bad = 0, refused = 0, kind[KINDS];
    pthread_t thread[KINDS];
    double right;
    for (int i = 0; i < N; i++) {
        label[i] = i;
        for (int k = 0; k < 3; k++) x[i][k] = sin(1.0 + i + 7.0 * k), v[i][k] = cos(3.0 * i + k);
    }
    if (g6_open(1) || put(1) || sum(1, &right)) return 1;
    for (int k = 0; k < KINDS; k++) {
        kind[k] = k;
        if (g6_open(SHARED + k) || put(SHARED + k)) return 1;
        if (pthread_create(&thread[k], NULL, work, &kind[k])) return 1;
    }
    for (int f = 0; f < forks; f++) {
        int status = 0;
        const pid_t pid = fork();
        if (!pid) _exit(child(right));
        if (pid < 0 || waitpid(pid, &status, 0) < 0) return 1;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
        if (code > 1) bad++, fprintf(stderr, "child %d: %d\n", f, code);
        refused += code == 1;
    }
    over = 1;
    for (int k = 0; k < KINDS; k++) (void)pthread_join(thread[k], NULL);
    printf("%d\n", refused);
    return bad != 0;
}
