/* board.h - what treecode.c asks of a board, and what it shares with one.
 *
 *   open_board();
 *   begin_groups();      before the groups of a pass
 *   add_group(group);    groups follow one another in the order of the tree
 *   end_groups();        a and pot of all these groups' bodies are there now
 *   close_board();
 */
#ifndef BOARD_H
#define BOARD_H

#include "octree.h"
#include "ranks.h"

static double eps2, now;
static vec *a; /* forces, in the order of the tree */
static double *pot;
static int *share;    /* [ranks + 1]: first bodies of each rank's groups there */
static double nterms; /* pairs summed so far */

static void stop(const char *what, const char *more)
{
    fprintf(stderr, "treecode: %s %s\n", what, more);
    quit();
}

#if defined MANY_WALKS
#include "board_walks.h"
#elif defined GRAPE5
#include "board_grape5.h"
#else
#include "board_lists.h"
#endif

#endif
