/* ranks.h - the few things that a program asks of MPI (-DUSE_MPI), and the same for one rank alone.
 *
 *   begin_ranks(&argc, &argv);                 only rank 0 prints from here on
 *   all_ranks(&mine, sizeof mine, all);        all[r] is what rank r has
 *   bring_together(array, bytes, first);       rows first[r] to before first[r + 1] are rank r's
 *   end_ranks();                               or quit(), which ends all ranks with status 1 */
#ifndef RANKS_H
#define RANKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a rank's time goes to; that of the two calls in the middle is EXCHANGE. */
enum { TREE, WALKS, FORCES, EXCHANGE, STEPS, PARTS };

static double taken[PARTS];

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Puts the time since `began` down to a part; returns the present. */
static double book(int part, double began)
{
    double end = seconds();
    taken[part] += end - began;
    return end;
}

#ifdef USE_MPI

#include <mpi.h>

static int rank, ranks;

static void quit(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

static void begin_ranks(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank > 0 && freopen("/dev/null", "w", stdout) == NULL) quit();
}

static void end_ranks(void) { MPI_Finalize(); }

static void all_ranks(const void *mine, size_t bytes, void *all)
{
    double began = seconds();

    MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    book(EXCHANGE, began);
}

static void bring_together(void *array, size_t bytes, const int *first)
{
    int *count = malloc((size_t)ranks * sizeof *count);
    double began = seconds();
    MPI_Datatype row;

    if (count == NULL) quit();
    for (int r = 0; r < ranks; r++) count[r] = first[r + 1] - first[r];
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &row);
    MPI_Type_commit(&row);
    MPI_Allgatherv(MPI_IN_PLACE, 0, row, array, count, first, row, MPI_COMM_WORLD);
    MPI_Type_free(&row);
    free(count);
    book(EXCHANGE, began);
}

#else

enum { rank = 0, ranks = 1 };

static void quit(void) { exit(1); }
static void begin_ranks(int *argc, char ***argv) { (void)argc, (void)argv; }
static void end_ranks(void) {}
static void all_ranks(const void *mine, size_t bytes, void *all) { memcpy(all, mine, bytes); }

static void bring_together(void *array, size_t bytes, const int *first)
{
    (void)array, (void)bytes, (void)first;
}

#endif

#endif
