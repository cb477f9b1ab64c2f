/* A little cluster and one pass over all calls, for the host programs of the tests. */
#pragma once

#include "g6lib.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BOARD_N
#define BOARD_N 2200
#endif
enum { N = BOARD_N, NI = 300, WALKS = 6 };

typedef struct {
    double x[N][3], v[N][3], a2[N][3], mass[N];
    double old[NI][3], acc[NI][3], jerk[NI][3], phi[NI], pot[NI], h2[NI];
    int index[N], nn[NI], list[N];
} Board;

static inline double board_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / 9007199254740992.0 - 0.5;
}

static inline Board *board_new(void)
{
    Board *b = calloc(1, sizeof *b);
    uint64_t state = 17;
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < 3; k++) {
            b->x[j][k] = board_random(&state);
            b->v[j][k] = board_random(&state);
            b->a2[j][k] = board_random(&state);
        }
        b->mass[j] = 1.0 / N;
        b->index[j] = j;
    }
    for (int i = 0; i < NI; i++) {
        b->h2[i] = 0.01;
    }
    return b;
}

/* Writes all j particles; two of them at one place. 0, or the number of bad codes. */
static inline int board_fill(Board *b, int id)
{
    double zero[3] = {0, 0, 0};
    int bad = 0;
    memcpy(b->x[1], b->x[0], sizeof b->x[0]);
    for (int j = 0; j < N; j++) {
        bad += g6_set_j_particle(id, j, j, 0.0, 0.125, b->mass[j], zero, zero, b->a2[j], b->v[j],
                                 b->x[j]) != 0;
    }
    return bad;
}

static inline int board_first(Board *b, int id, int nj, int ni, double eps2)
{
    return g6calc_firsthalf(id, nj, ni, b->index, b->x, b->v, b->old, b->old, b->phi, eps2, b->h2);
}

static inline int board_last(Board *b, int id, int nj, int ni)
{
    return g6calc_lasthalf(id, nj, ni, b->index, b->x, b->v, 0, b->h2, b->acc, b->jerk, b->pot);
}

static inline int board_last2(Board *b, int id, int ni)
{
    return g6calc_lasthalf2(id, N, ni, b->index, b->x, b->v, 0, b->h2, b->acc, b->jerk, b->pot,
                            b->nn);
}

static inline int board_force(Board *b, int id, double eps2)
{
    int bad = g6_set_ti(id, 0.0078125) != 0;
    bad += board_first(b, id, N, NI, eps2) != 0;
    return bad + (board_last2(b, id, NI) != 0);
}

static inline int board_all_nan(const Board *b, int ni)
{
    for (int i = 0; i < ni; i++)
        for (int k = 0; k < 3; k++)
            if (!isnan(b->acc[i][k]) || !isnan(b->jerk[i][k]) || !isnan(b->pot[i])) return 0;
    return 1;
}

/* Walks of NI targets on N entries, by offsets; the code. */
static inline int board_walks(Board *b, int id)
{
    const double (*x)[3] = (const double (*)[3])b->x;
    long long i[WALKS + 1], j[WALKS + 1];
    for (int k = 0; k <= WALKS; k++) i[k] = k * (NI / WALKS), j[k] = k * (N / WALKS);
    return g6x_walks(id, WALKS, i, x, j, b->index, N, x, b->mass, 1e-4, b->acc, b->pot);
}

/* The same walks by pointers; the first code that is not 0. */
static inline int board_flight(Board *b, int id, int tag)
{
    const double (*x[WALKS])[3], (*xj[WALKS])[3], *mj[WALKS];
    double (*acc[WALKS])[3], *pot[WALKS];
    int ni[WALKS], nj[WALKS];
    for (int k = 0; k < WALKS; k++) {
        const int i = k * (NI / WALKS), j = k * (N / WALKS);
        ni[k] = NI / WALKS, nj[k] = N / WALKS;
        x[k] = (const double (*)[3])b->x + i, acc[k] = b->acc + i, pot[k] = b->pot + i;
        xj[k] = (const double (*)[3])b->x + j, mj[k] = b->mass + j;
    }
    const int code = g6x_walks_dispatch(id, tag, WALKS, ni, x, nj, xj, mj, NULL, NULL, NULL, 1e-4);
    const int last = g6x_walks_retrieve(id, tag, WALKS, ni, acc, pot);
    return code ? code : last;
}

static inline uint64_t board_hash(const Board *b)
{
    const unsigned char *parts[3] = {(const void *)b->acc, (const void *)b->jerk,
                                     (const void *)b->pot};
    size_t sizes[3] = {sizeof b->acc, sizeof b->jerk, sizeof b->pot};
    uint64_t hash = 14695981039346656037u;
    for (int p = 0; p < 3; p++) {
        for (size_t n = 0; n < sizes[p]; n++) {
            hash = (hash ^ parts[p][n]) * 1099511628211u;
        }
    }
    return hash;
}

/* Every call once, in all modes, with faults among them if asked. Number of surprises. */
static inline int board_everything(Board *b, int id, int faults)
{
    double zero[3] = {0, 0, 0}, bad_x[3] = {NAN, 0, 0}, x[1][3], v[1][3];
    char text[200];
    int n = -1, bad = g6_open(id) != 0 || g6_npipes() <= 0;
    bad += g6_set_tunit(51) != 0 || g6_set_xunit(51) != 0 || g6_reset(id) != 0;
    bad += board_fill(b, id);
    for (int mode = 0; mode < 3; mode++) {
        bad += g6x_set_int(id, G6X_PRECISION, mode) != 0;
        bad += board_force(b, id, 0.0) + board_force(b, id, 1e-4);
        bad += g6_read_neighbour_list(id) != 0;
        bad += g6_get_neighbour_list(id, NI - 1, N, &n, b->list) != 0 || n < 0;
        if (faults) {
            double h2 = b->h2[3], big = b->mass[9];
            bad += g6_set_j_particle(id, 7, 7, 0, 0, 1, zero, zero, zero, zero, bad_x) != -6;
            bad += board_force(b, id, 0.0) == 0;
            bad += g6_set_j_particle(id, 7, 7, 0, 0, 1, zero, zero, zero, zero, b->x[7]) != 0;
            bad += board_force(b, id, NAN) == 0 || board_force(b, id, -1.0) == 0;
            g6_set_ti(id, NAN);
            b->h2[3] = NAN;
            bad += board_force(b, id, 0.0) != 0;
            b->h2[3] = INFINITY;
            bad += board_force(b, id, 0.0) != 0;
            b->h2[3] = h2;
            b->mass[9] = 1e300;
            b->x[9][0] += 1e200;
            bad += board_fill(b, id) != 0 || board_force(b, id, 0.0) != 0;
            b->mass[9] = 1e-300;
            b->x[9][0] = b->x[8][0] + 1e-200;
            bad += board_fill(b, id) != 0 || board_force(b, id, 0.0) != 0;
            b->mass[9] = big;
        }
        bad += board_fill(b, id);
    }
    bad += g6x_set_int(id, G6X_PRECISION, G6X_GRAPE) != 0;
    bad += g6_get_predicted_j_particles(id, 1, x, v) != 0;
    bad += g6x_set_j_particles(id, N, NULL, NULL, NULL, NULL, b->mass, NULL, NULL,
                               (const double (*)[3])b->a2, (const double (*)[3])b->v,
                               (const double (*)[3])b->x) != 0;
    bad += board_force(b, id, 0.0);
    g6x_last_error(id, text, sizeof text);
    g6x_clear_error(id);
    return bad;
}
