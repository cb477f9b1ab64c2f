/* board_grape5.h - a list for each group by the calls of a GRAPE-5: see board.h.
 *
 * As FDPS's N-body sample makes them (Iwasawa et al. 2016, PASJ 68, 54): positions and masses of a
 * list are copied to arrays, bodies of the group among them, and sent whole; m / eps is taken out
 * of the potential, which is positive. With OpenMP (-fopenmp) each thread has its own groups, and a
 * board of its own, whose number is the thread's: GRAPE6_THREADS=1 then keeps the library from
 * using all cores for each. */
#ifndef BOARD_GRAPE5_H
#define BOARD_GRAPE5_H

#include "g5lib.h"

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
#endif

#define PLACES 1 /* in x and m, for each body */

typedef struct {
    int nj, room_j, room_i;
    vec *xj, *xi;
    double *mj;
} list;

static const cell **groups;
static int ngroups;

static void open_board(void)
{
    if (g5_open() != 0) stop("cannot open the GRAPE", "");
    g5_set_eps_to_all(sqrt(eps2));
    groups = get(n, sizeof *groups);
}

static void close_board(void) { g5_close(); }

static void begin_groups(void) { ngroups = 0; }
static void add_group(const cell *g) { groups[ngroups++] = g; }

static void enter(list *l, const vec place, double mass)
{
    if (l->nj == l->room_j) {
        l->room_j = 2 * l->room_j + 1024;
        l->xj = realloc(l->xj, (size_t)l->room_j * sizeof *l->xj);
        l->mj = realloc(l->mj, (size_t)l->room_j * sizeof *l->mj);
        if (l->xj == NULL || l->mj == NULL) stop("too many bodies for the memory", "");
    }
    memcpy(l->xj[l->nj], place, sizeof(vec));
    l->mj[l->nj++] = mass;
}

static void copy_list(list *l, const cell *g)
{
    const extent group = extent_of(g);
    const cell *c;
    int far;

    l->nj = 0;
    for (int q = 0; (c = next_on_list(&q, &group, &far)) != NULL;)
        if (far)
            enter(l, c->com, c->m);
        else
            for (int p = c->first; p < c->first + c->count; p++) enter(l, x[order[p]], m[order[p]]);
}

static void sum_list(list *l, const cell *g)
{
    const int board = omp_get_thread_num(), *who = order + g->first;

    if (g->count > l->room_i) {
        l->room_i = g->count;
        l->xi = realloc(l->xi, (size_t)l->room_i * sizeof *l->xi);
        if (l->xi == NULL) stop("too many bodies for the memory", "");
    }
    for (int p = 0; p < g->count; p++) memcpy(l->xi[p], x[who[p]], sizeof(vec));
    g5_set_xmjMC(board, 0, l->nj, l->xj, l->mj);
    g5_set_nMC(board, l->nj);
    if (g5_calculate_force_on_xMC(board, l->xi, a + g->first, pot + g->first, g->count) != 0)
        stop("the GRAPE gives no forces", "");
    for (int p = 0; p < g->count; p++)
        pot[g->first + p] = (eps2 > 0.0 ? m[who[p]] / sqrt(eps2) : 0.0) - pot[g->first + p];
}

static void end_groups(void)
{
    double walks = 0.0, sums = 0.0; /* mean over the threads */

#ifdef _OPENMP
#pragma omp parallel reduction(+ : walks, sums, nterms)
#endif
    {
        list l = {0};
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
        for (int k = 0; k < ngroups; k++) {
            double began = seconds(), copied;
            copy_list(&l, groups[k]);
            copied = seconds();
            sum_list(&l, groups[k]);
            walks += (copied - began) / omp_get_num_threads();
            sums += (seconds() - copied) / omp_get_num_threads();
            nterms += (double)l.nj * groups[k]->count;
        }
        free(l.xj), free(l.mj), free(l.xi);
    }
    taken[WALKS] += walks, taken[FORCES] += sums;
}

#endif
