/* board_walks.h - many walks a call: see board.h.
 *
 * The lists of all groups are kept, and summed in one call (Hamada et al. 2009): bodies and cells
 * lie in one array, the lists are numbers there, and no index is needed, for what is at distance
 * zero adds nothing. */
#ifndef BOARD_WALKS_H
#define BOARD_WALKS_H

#include "g6lib.h"

#define CLUSTER 0 /* the one board */
#define PLACES 3  /* in x and m, for each body: cells follow the bodies there */

static vec *gx;                      /* bodies in the order of the tree */
static long long *i_start, *j_start; /* [walk]: its first body, and entry */
static int nwalks, *entries;         /* the lists, one behind the other */
static long long room;
static double began;

static void open_board(void)
{
    if (g6_open(CLUSTER) != 0) stop("cannot open the GRAPE", "");
    gx = get(n, sizeof *gx);
    i_start = get(n + 1, sizeof *i_start), j_start = get(n + 1, sizeof *j_start);
}

static void close_board(void) { g6_close(CLUSTER); }

static void begin_groups(void) { nwalks = 0, began = seconds(); }

/* Takes down the list of group g. */
static void add_group(const cell *g)
{
    const extent group = extent_of(g);
    const cell *c;
    long long at = j_start[nwalks];
    int far;

    for (int q = 0; (c = next_on_list(&q, &group, &far)) != NULL;) {
        if (at + c->count > room) {
            room = 2 * room + 1024 + c->count;
            entries = realloc(entries, (size_t)room * sizeof *entries);
            if (entries == NULL) stop("too many bodies for the memory", "");
        }
        if (far)
            entries[at++] = n + (int)(c - cells);
        else
            for (int p = c->first; p < c->first + c->count; p++) entries[at++] = order[p];
    }
    nterms += (double)(at - j_start[nwalks]) * g->count;
    i_start[nwalks + 1] = i_start[nwalks] + g->count;
    j_start[++nwalks] = at;
}

/* Groups follow one another in the order of the tree, so their bodies do. */
static void end_groups(void)
{
    int first = share[rank];

    began = book(WALKS, began);
    for (int q = 0; q < ncells; q++) {
        memcpy(x[n + q], cells[q].com, sizeof(vec));
        m[n + q] = cells[q].m;
    }
    for (int p = 0; p < i_start[nwalks]; p++) memcpy(gx[p], x[order[first + p]], sizeof(vec));
    if (nwalks > 0 &&
        g6x_walks(CLUSTER, nwalks, i_start, (const double (*)[3])gx, j_start, entries, n + ncells,
                  (const double (*)[3])x, m, eps2, a + first, pot + first) != 0)
        stop("the GRAPE gives no forces", "");
    book(FORCES, began);
}

#endif
