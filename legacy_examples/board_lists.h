/* board_lists.h - a list for each group by the plain calls of a GRAPE-6: see board.h.
 *
 * A fresh and shorter or longer list at addresses 0.. for each group (g6_set_j_particle_mxonly),
 * over what an earlier group left there; the time set once for a pass, before its particles;
 * indices beyond those of the bodies, for cells; one array of zeros for all that hardware wanted to
 * know; a board closed and opened on the way. */
#ifndef BOARD_LISTS_H
#define BOARD_LISTS_H

#include "g6lib.h"

#define CLUSTER 0      /* the one board */
#define PLACES 1       /* in x and m, for each body */
#define NREOPEN 100000 /* forces after which the board is given to others for a moment */

static int npipes, *iidx, nsince;
static vec *ix, *ia, *ijerk, *zeros3; /* what goes to the pipes and comes back */
static double *ipot, *zeros;

static void open_board(void)
{
    npipes = g6_npipes();
    if (npipes < 1) stop("no GRAPE here", "");
    if (g6_open(CLUSTER) != 0) stop("cannot open the GRAPE", "");
    iidx = get(npipes, sizeof *iidx), ix = get(npipes, sizeof *ix);
    ia = get(npipes, sizeof *ia), ijerk = get(npipes, sizeof *ijerk);
    ipot = get(npipes, sizeof *ipot);
    zeros = get(npipes, sizeof *zeros), zeros3 = get(npipes, sizeof *zeros3);
}

static void close_board(void) { g6_close(CLUSTER); }

/* Sends the list of group g; returns its length. Bodies go with their own index, which
 * keeps a body off itself; cells with indices that no body has. */
static int send_list(const cell *g)
{
    const extent group = extent_of(g);
    const cell *c;
    int nj = 0, far;

    for (int q = 0; (c = next_on_list(&q, &group, &far)) != NULL;)
        if (far)
            g6_set_j_particle_mxonly(CLUSTER, nj++, n + (int)(c - cells), c->m, (double *)c->com);
        else
            for (int p = c->first; p < c->first + c->count; p++)
                g6_set_j_particle_mxonly(CLUSTER, nj++, order[p], m[order[p]], x[order[p]]);
    return nj;
}

/* Forces of the nj particles of its list on group g. */
static void sum_list(const cell *g, int nj)
{
    for (int first = 0; first < g->count; first += npipes) {
        int place = g->first + first, *who = order + place;
        int ni = g->count - first < npipes ? g->count - first : npipes;
        for (int p = 0; p < ni; p++) {
            iidx[p] = who[p];
            memcpy(ix[p], x[who[p]], sizeof(vec));
        }
        g6calc_firsthalf(CLUSTER, nj, ni, iidx, ix, zeros3, zeros3, zeros3, zeros, eps2, zeros);
        if (g6calc_lasthalf(CLUSTER, nj, ni, iidx, ix, zeros3, eps2, zeros, ia, ijerk, ipot) != 0)
            stop("the GRAPE gives no forces", "");
        memcpy(a + place, ia, sizeof *a * (size_t)ni);
        /* Makino's adds m / eps here: GRAPE-4 had the body itself in its potential. */
        memcpy(pot + place, ipot, sizeof *pot * (size_t)ni);
    }
}

static void begin_groups(void)
{
    if (nsince >= NREOPEN) {
        nsince = 0;
        g6_close(CLUSTER);
        if (g6_open(CLUSTER) != 0) stop("cannot open the GRAPE again", "");
    }
    g6_set_ti(CLUSTER, now);
}

static void add_group(const cell *g)
{
    double t = seconds();
    int nj = send_list(g);

    t = book(WALKS, t);
    sum_list(g, nj);
    book(FORCES, t);
    nterms += (double)nj * g->count;
    nsince += g->count;
}

static void end_groups(void) {}

#endif
