/* shared_gpu.c - times block steps on ranks of MPI, each with a cluster of its own.
 *
 *   mpirun -n RANKS shared_gpu N NI SECONDS
 *
 * All clusters have the same N j particles, a Plummer sphere. A step writes NI of them, moves the
 * time, and asks for the forces on them; all ranks begin it at the same time, as after a reduction.
 * Prints a line of JSON: each rank's backend and median microseconds a step, and those until the
 * last rank has ended its step.
 */
#include <mpi.h>

#include "bodies.h"

enum { MOST_TAKES = 4001, FEWEST_TAKES = 11, NAME = 128 };

/* A step of the ni particles from `first` on; its seconds. */
static double step(int first, int ni)
{
    const double start = now();
    for (int i = 0; i < ni; i++) write_particle(first + i, first + i);
    t += 0x1p-24;
    check(g6_set_ti(0, t));
    call(ni, b.index + first, b.x + first, b.v + first, 0.0, 0, NULL);
    return now() - start;
}

/* Steps of all ranks: medians of this rank's seconds, and of those until the last one's end. */
static void steps(int ni, int takes, double *own, double *all)
{
    static double mine[MOST_TAKES], last[MOST_TAKES];
    int first = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < takes; k++) {
        const double start = now();
        mine[k] = step(first, ni);
        MPI_Barrier(MPI_COMM_WORLD);
        last[k] = now() - start;
        first = first + 2 * ni <= b.n ? first + ni : 0;
    }
    *own = median(mine, takes), *all = median(last, takes);
}

int main(int count, char **word)
{
    char name[NAME];
    int rank, ranks;
    double own, all;
    MPI_Init(&count, &word);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int n = count == 4 ? atoi(word[1]) : 0, ni = count == 4 ? atoi(word[2]) : 0;
    if (ni < 1 || n < ni) {
        fputs("usage: shared_gpu N NI SECONDS\n", stderr);
        return 2;
    }
    open_with(n, ni, -1);
    steps(ni, FEWEST_TAKES, &own, &all); /* kernels are loaded, buffers grow */
    steps(ni, FEWEST_TAKES, &own, &all);
    int takes = (int)fmin(fmax(atof(word[3]) / all, FEWEST_TAKES), MOST_TAKES);
    MPI_Bcast(&takes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    steps(ni, takes, &own, &all);
    check(g6x_backend(0, name, sizeof name));
    double *us = calloc((size_t)ranks, sizeof *us);
    char *names = calloc((size_t)ranks, sizeof name);
    MPI_Gather(&own, 1, MPI_DOUBLE, us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(name, NAME, MPI_CHAR, names, NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{\"ranks\": %d, \"n\": %d, \"ni\": %d, \"takes\": %d, \"backends\": [", ranks, n,
               ni, takes);
        for (int r = 0; r < ranks; r++) printf("%s\"%s\"", r ? ", " : "", names + r * NAME);
        printf("], \"us\": [");
        for (int r = 0; r < ranks; r++) printf("%s%.2f", r ? ", " : "", 1e6 * us[r]);
        printf("], \"all_us\": %.2f}\n", 1e6 * all);
    }
    check(g6_close(0));
    MPI_Finalize();
    return 0;
}
