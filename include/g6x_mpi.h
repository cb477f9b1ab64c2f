/* g6x_mpi.h - one sum over the j particles of the ranks of MPI, with the bits of one rank.
 *
 * Compiled by the caller, with his MPI. Every rank has whole blocks of 1024 of all j particles, one
 * behind the other; only the last rank that has any may have less. After each change of j particles
 * all ranks call the first, and for each force call the second before it, which mode auto needs
 * (without it the call is as in mode grape), and the third between g6x_get_partial and
 * g6x_from_partial:
 *
 *     g6x_mpi_share(cluster, nj, comm);
 *
 *     g6x_mpi_rows(cluster, nj, ni, index, comm);
 *     g6calc_firsthalf(cluster, nj, ni, ...);
 *     g6x_get_partial(cluster, ni, words);
 *     g6x_mpi_sum(ni, words, comm);
 *     g6x_from_partial(ni, words, acc, jerk, pot);
 *
 * All return 0, or on all ranks the error of one: a code of the library, G6X_E_ARGUMENT if the
 * ranks' sums do not fit each other, or G6X_E_MISMATCH if ni is not the same on all
 * (docs/errors.md). Then g6x_from_partial gives NaN, and after g6x_mpi_share all force calls of the
 * cluster, until it succeeds or g6x_end_share is called. With G6X_MPI_FORTRAN defined they are
 * functions for Fortran, with its handle of the communicator.
 */
#ifndef GRAPE6_G6X_MPI_H
#define GRAPE6_G6X_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "g6lib.h"

/* Combines words of all ranks in place. 0, or a code where the caller lets MPI return errors. */
static inline int g6x_mpi_combine(void *words, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return MPI_Allreduce(MPI_IN_PLACE, words, n, type, op, comm) == MPI_SUCCESS ? 0 : G6X_E_RUNTIME;
}

/* The worst code of all ranks; G6X_E_MISMATCH if n numbers (at most 3) are not the same on all. */
static inline int g6x_mpi_agree(int code, int n, const long long *numbers, MPI_Comm comm)
{
    long long most[7] = {0}; /* of them, of their opposites, and of that of the code */
    for (int k = 0; k < n; k++) most[k] = numbers[k], most[3 + k] = -numbers[k];
    most[6] = -(long long)code;
    const int failed = g6x_mpi_combine(most, 7, MPI_LONG_LONG, MPI_MAX, comm);
    if (failed || most[6]) return failed ? failed : -(int)most[6];
    for (int k = 0; k < n; k++)
        if (most[k] != -most[3 + k]) return G6X_E_MISMATCH;
    return 0;
}

/* Gives the cluster the scale and the origin of the j particles of all ranks, of which it has nj.
 */
static inline int g6x_mpi_share(int clusterid, int nj, MPI_Comm comm)
{
    const int most = G6X_COUNT_WORDS > G6X_SAMPLE_WORDS ? G6X_COUNT_WORDS : G6X_SAMPLE_WORDS;
    long long all = nj, end = nj, refused[G6X_SAMPLE_WORDS] = {0};
    long long *words = (long long *)calloc((size_t)most, sizeof *words);
    int code = words ? 0 : G6X_E_MEMORY;
    if (MPI_Scan(MPI_IN_PLACE, &end, 1, MPI_LONG_LONG, MPI_SUM, comm) != MPI_SUCCESS ||
        g6x_mpi_combine(&all, 1, MPI_LONG_LONG, MPI_SUM, comm))
        code = G6X_E_RUNTIME;
    /* A block that is not whole would be summed by two ranks. */
    if (!code && (nj < 0 || (nj % 1024 && end < all))) code = G6X_E_ARGUMENT;
    if (!code) code = g6x_get_sample(clusterid, nj, all, end - nj, words);
    code = g6x_mpi_agree(code, 0, NULL, comm);
    if (!code) code = g6x_mpi_combine(words, G6X_SAMPLE_WORDS, MPI_LONG_LONG, MPI_SUM, comm);
    if (!code) {
        code = g6x_set_sample(clusterid, words);
        if (!code) code = g6x_get_counts(clusterid, nj, words);
        code = g6x_mpi_agree(code, 0, NULL, comm);
    }
    if (!code) code = g6x_mpi_combine(words, G6X_COUNT_WORDS, MPI_LONG_LONG, MPI_SUM, comm);
    if (!code) code = g6x_mpi_agree(g6x_set_counts(clusterid, words), 0, NULL, comm);
    refused[0] = code; /* then no rank computes with a scale of its own */
    if (code) (void)g6x_set_sample(clusterid, refused);
    free(words);
    return code;
}

/* Which of the i particles of the next force call, the same on all ranks, mode auto sums in double:
 * those that the rank with their j particles says. */
static inline int g6x_mpi_rows(int clusterid, int nj, int ni, const int *index, MPI_Comm comm)
{
    const long long number = ni;
    unsigned char *fine = (unsigned char *)calloc(ni > 0 ? (size_t)ni : 1, 1);
    int code = fine ? g6x_get_fine_rows(clusterid, nj, ni, index, fine) : G6X_E_MEMORY;
    code = g6x_mpi_agree(code, 1, &number, comm);
    if (!code) code = g6x_mpi_combine(fine, ni, MPI_UNSIGNED_CHAR, MPI_MAX, comm);
    if (!code) code = g6x_set_fine_rows(clusterid, ni, fine);
    free(fine);
    return code;
}

/* Adds the rows of all ranks, for the same i particles; all ranks get the sums. */
static inline int g6x_mpi_sum(int ni, long long *words, MPI_Comm comm)
{
    const size_t rows = ni > 0 && words ? (size_t)ni : 0;
    const size_t word[3] = {0, 1, 27}; /* kind, scale, origin of the sum: the same on all ranks */
    int (*top)[G6X_PARTIAL_TOPS] = (int (*)[G6X_PARTIAL_TOPS])malloc(rows * sizeof *top + 1);
    long long (*limb)[G6X_PARTIAL_LIMBS] =
        (long long (*)[G6X_PARTIAL_LIMBS])malloc(rows * sizeof *limb + 1);
    unsigned long long hash[3] = {0};
    long long number[3] = {ni, 0, 0}, refused[G6X_PARTIAL_WORDS] = {0};
    int none[1][G6X_PARTIAL_TOPS];
    int code = ni > INT_MAX / G6X_PARTIAL_LIMBS ? G6X_E_OVERFLOW : top && limb ? 0 : G6X_E_MEMORY;
    if (!code) code = g6x_get_tops(ni, words, top);
    for (size_t i = 0; i < rows; i++)
        for (int k = 0; k < 3; k++) {
            const long long made = words[G6X_PARTIAL_WORDS * i + word[k]];
            hash[k] = (hash[k] ^ (unsigned long long)made) * 0x9e3779b97f4a7c15ull + i;
        }
    code = g6x_mpi_agree(code, 1, number, comm);
    if (!code && ni > 0) {
        for (int k = 0; k < 3; k++) number[k] = (long long)(hash[k] >> 2);
        code = g6x_mpi_agree(0, 3, number, comm);
        if (code == G6X_E_MISMATCH) code = G6X_E_ARGUMENT;
    }
    if (!code && ni > 0) {
        code = g6x_mpi_combine(top, G6X_PARTIAL_TOPS * ni, MPI_INT, MPI_MAX, comm);
        if (!code) code = g6x_raise_partial(ni, words, (const int (*)[G6X_PARTIAL_TOPS])top);
        for (size_t i = 0; i < rows; i++)
            memcpy(limb[i], words + G6X_PARTIAL_WORDS * i + G6X_PARTIAL_LIMB, sizeof limb[i]);
        const int failed =
            g6x_mpi_combine(limb, G6X_PARTIAL_LIMBS * ni, MPI_LONG_LONG, MPI_SUM, comm);
        if (!code) code = failed;
        for (size_t i = 0; i < rows; i++)
            memcpy(words + G6X_PARTIAL_WORDS * i + G6X_PARTIAL_LIMB, limb[i], sizeof limb[i]);
    }
    for (size_t i = 0; i < rows && code; i++) words[G6X_PARTIAL_WORDS * i] = code;
    refused[0] = code;
    if (code) (void)g6x_get_tops(1, refused, none); /* which says why */
    free(top);
    free(limb);
    return code;
}

#ifdef G6X_MPI_FORTRAN
int g6x_mpi_share_f(int clusterid, int nj, MPI_Fint comm);
int g6x_mpi_rows_f(int clusterid, int nj, int ni, const int *index, MPI_Fint comm);
int g6x_mpi_sum_f(int ni, long long *words, MPI_Fint comm);
int g6x_mpi_share_f(int clusterid, int nj, MPI_Fint comm)
{
    return g6x_mpi_share(clusterid, nj, MPI_Comm_f2c(comm));
}
int g6x_mpi_rows_f(int clusterid, int nj, int ni, const int *index, MPI_Fint comm)
{
    return g6x_mpi_rows(clusterid, nj, ni, index, MPI_Comm_f2c(comm));
}
int g6x_mpi_sum_f(int ni, long long *words, MPI_Fint comm)
{
    return g6x_mpi_sum(ni, words, MPI_Comm_f2c(comm));
}
#endif
#endif
