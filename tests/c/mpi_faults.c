/* usage: mpi_faults FAULT...: sums over the ranks of MPI, of which the last one does something
 * wrong; then the same without. Each rank prints two lines for each: fault, whether it is over,
 * rank, the codes of g6x_mpi_share, firsthalf, g6x_mpi_sum and g6x_from_partial, and the potentials
 * of two i particles. */
#include <g6x_mpi.h>
#include <math.h>
#include <stdio.h>

enum { BLOCK = 1024, NI = 2, ID = 7 };

static int is(const char *fault, const char *name) { return strcmp(fault, name) == 0; }

static void put(int nj, int first)
{
    double zero[3] = {0.0};
    for (int a = 0; a < nj; a++) {
        const int k = first + a;
        double x[3] = {k % 13 - 6.0, k % 7 * 0.5, k % 11 * 0.25};
        g6_set_j_particle(ID, a, k, 0.0, 1.0, 1.0 / BLOCK, zero, zero, zero, zero, x);
    }
}

static void sum(const char *name, int over, int rank, int ranks)
{
    const char *const fault = over ? "" : name;
    const int wrong = rank == ranks - 1;
    const int shorter = is(fault, "short") && rank == 0; /* not the last one */
    double x[NI][3] = {{1.5, 2.25, 3.125}, {-20.5, 1.25, 0.125}}, v[NI][3] = {{0}};
    double acc[NI][3], jerk[NI][3], pot[NI] = {NAN, NAN}, h2[NI] = {0};
    int index[NI] = {-1, -2}, ni = NI, nj = shorter ? 5 : BLOCK;
    long long words[NI][G6X_PARTIAL_WORDS];

    g6_open(ID);
    put(nj, rank * BLOCK);
    if (wrong && is(fault, "precision")) g6x_set_int(ID, G6X_PRECISION, G6X_DOUBLE);
    if (wrong && is(fault, "closed")) g6_close(ID);
    if (wrong && is(fault, "negative")) nj = -1;
    const int share = g6x_mpi_share(ID, nj, MPI_COMM_WORLD);
    if (wrong && is(fault, "scale")) g6x_set_int(ID, G6X_SCALE_LENGTH, 40);
    const int first = g6calc_firsthalf(ID, nj, NI, index, x, v, acc, jerk, pot, 0.0, h2);
    g6x_get_partial(ID, NI, words[0]); /* else of this call, the last one's stay */
    if (wrong && is(fault, "stale")) {
        g6calc_firsthalf(ID, nj, NI, index, x, v, acc, jerk, pot, -1.0, h2);
        g6x_get_partial(ID, NI, words[0]);
    }
    if (wrong && is(fault, "row")) words[1][0]++;
    if (wrong && is(fault, "none")) ni = 0;
    if (wrong && is(fault, "fewer")) ni = 1;
    long long *given = wrong && is(fault, "null") ? NULL : words[0];
    const int total = g6x_mpi_sum(ni, given, MPI_COMM_WORLD);
    const int from = g6x_from_partial(ni, given, acc, jerk, pot);
    printf("%s %d %d %d %d %d %d %.9e %.9e\n", name, over, rank, share, first, total, from, pot[0],
           pot[1]);
    fflush(stdout);
    g6_close(ID);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int k = 2; k < 2 * argc; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        g6x_clear_error(ID);
        sum(argv[k / 2], k % 2, rank, ranks);
    }
    MPI_Finalize();
    return 0;
}
