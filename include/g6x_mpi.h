/* g6x_mpi.h - one sum over the j particles of the ranks of MPI, with the bits of one rank.
 *
 * Compiled by the caller, with his MPI. Every rank has whole blocks of 1024 of all j particles, one
 * behind the other; only the last rank that has any may have less. After each change of j particles
 * all ranks call the first, and for each force call the second between g6x_get_partial and
 * g6x_from_partial:
 *
 *     g6x_mpi_share(cluster, nj, comm);
 *
 *     g6calc_firsthalf(cluster, nj, ni, ...);
 *     g6x_get_partial(cluster, ni, words);
 *     g6x_mpi_sum(ni, words, comm);
 *     g6x_from_partial(ni, words, acc, jerk, pot);
 *
 * Both return 0, or on all ranks the error of one: a code of the library, or G6X_E_ARGUMENT if the
 * ranks' sums do not fit each other (docs/errors.md). With G6X_MPI_FORTRAN defined they are
 * functions for Fortran, with its handle of the communicator.
 */
#ifndef GRAPE6_G6X_MPI_H
#define GRAPE6_G6X_MPI_H

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "g6lib.h"

/* The worst code of all ranks. */
static inline int g6x_mpi_worst(int code, MPI_Comm comm)
{
    int worst = code;
    MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, comm);
    return worst;
}

/* Gives the cluster the scale and the origin of the j particles of all ranks, of which it has nj.
 */
static inline int g6x_mpi_share(int clusterid, int nj, MPI_Comm comm)
{
    const int most = G6X_COUNT_WORDS > G6X_SAMPLE_WORDS ? G6X_COUNT_WORDS : G6X_SAMPLE_WORDS;
    long long own = nj, all = 0, end = 0, *words = (long long *)calloc((size_t)most, sizeof *words);
    MPI_Allreduce(&own, &all, 1, MPI_LONG_LONG, MPI_SUM, comm);
    MPI_Scan(&own, &end, 1, MPI_LONG_LONG, MPI_SUM, comm);
    /* A block that is not whole would be summed by two ranks. */
    int code = !words ? G6X_E_MEMORY : nj % 1024 && end < all ? G6X_E_ARGUMENT : 0;
    if (!code) code = g6x_get_sample(clusterid, nj, all, end - own, words);
    code = g6x_mpi_worst(code, comm);
    if (!code) {
        MPI_Allreduce(MPI_IN_PLACE, words, G6X_SAMPLE_WORDS, MPI_LONG_LONG, MPI_SUM, comm);
        code = g6x_set_sample(clusterid, words);
        if (!code) code = g6x_get_counts(clusterid, nj, words);
        code = g6x_mpi_worst(code, comm);
    }
    if (!code) {
        MPI_Allreduce(MPI_IN_PLACE, words, G6X_COUNT_WORDS, MPI_LONG_LONG, MPI_SUM, comm);
        code = g6x_mpi_worst(g6x_set_counts(clusterid, words), comm);
    }
    free(words);
    return code;
}

/* Adds the rows of all ranks, for the same i particles; all ranks get the sums. */
static inline int g6x_mpi_sum(int ni, long long *words, MPI_Comm comm)
{
    const size_t rows = ni > 0 ? (size_t)ni : 0;
    int (*top)[G6X_PARTIAL_TOPS] = (int (*)[G6X_PARTIAL_TOPS])malloc(rows * sizeof *top + 1);
    long long (*limb)[G6X_PARTIAL_LIMBS] =
        (long long (*)[G6X_PARTIAL_LIMBS])malloc(rows * sizeof *limb + 1);
    long long made[6] = {0}; /* what must be equal in all rows, and its opposite */
    int code = top && limb ? g6x_get_tops(ni, words, top) : G6X_E_MEMORY;
    if (!code && ni > 0) {
        const int word[3] = {0, 1, 27}; /* kind, scale, origin of the sum */
        for (int k = 0; k < 3; k++) made[3 + k] = -(made[k] = words[word[k]]);
    }
    code = g6x_mpi_worst(code, comm);
    if (!code) {
        MPI_Allreduce(MPI_IN_PLACE, made, 6, MPI_LONG_LONG, MPI_MAX, comm);
        for (int k = 0; k < 3; k++)
            if (made[k] != -made[3 + k]) code = G6X_E_ARGUMENT;
    }
    if (!code) {
        MPI_Allreduce(MPI_IN_PLACE, top, G6X_PARTIAL_TOPS * ni, MPI_INT, MPI_MAX, comm);
        code = g6x_raise_partial(ni, words, (const int (*)[G6X_PARTIAL_TOPS])top);
        for (size_t i = 0; i < rows; i++)
            memcpy(limb[i], words + G6X_PARTIAL_WORDS * i + G6X_PARTIAL_LIMB, sizeof limb[i]);
        MPI_Allreduce(MPI_IN_PLACE, limb, G6X_PARTIAL_LIMBS * ni, MPI_LONG_LONG, MPI_SUM, comm);
        for (size_t i = 0; i < rows; i++)
            memcpy(words + G6X_PARTIAL_WORDS * i + G6X_PARTIAL_LIMB, limb[i], sizeof limb[i]);
    }
    free(top);
    free(limb);
    return code;
}

#ifdef G6X_MPI_FORTRAN
int g6x_mpi_share_f(int clusterid, int nj, MPI_Fint comm);
int g6x_mpi_sum_f(int ni, long long *words, MPI_Fint comm);
int g6x_mpi_share_f(int clusterid, int nj, MPI_Fint comm)
{
    return g6x_mpi_share(clusterid, nj, MPI_Comm_f2c(comm));
}
int g6x_mpi_sum_f(int ni, long long *words, MPI_Fint comm)
{
    return g6x_mpi_sum(ni, words, MPI_Comm_f2c(comm));
}
#endif
#endif
