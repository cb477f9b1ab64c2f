/* octree.h - the tree of treecode.c, and what it is made of, shared out over the ranks. */
#ifndef OCTREE_H
#define OCTREE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

#define NLEAF 8 /* a cell of more bodies is divided */

typedef double vec[3];

/* A cell is followed by its children, and they by cell `skip`: the next one outside. */
typedef struct {
    int first, count, skip; /* its bodies: order[first] and so on */
    double m, reach2;       /* square of the distance from which it may be taken as one body */
    vec com;                /* centre of mass */
} cell;

static int n, ncells;
static double *m, theta = 0.5;
static vec *x;
static cell *cells;
static int *order, *work; /* bodies in the order of the tree */
static int grown;         /* end of the last branch that this rank has grown */

static void *get(int number, size_t size)
{
    void *p = calloc((size_t)number, size);
    if (p == NULL) {
        fprintf(stderr, "treecode: too many bodies for the memory\n");
        quit();
    }
    return p;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* What the bodies of a cell make up: the mass, its moment, and their box. */
typedef struct {
    double m;
    vec sum, lo, hi;
} extent;

static extent extent_of(const cell *c)
{
    extent e = {0.0, {0.0}, {HUGE_VAL, HUGE_VAL, HUGE_VAL}, {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL}};

    for (int p = c->first; p < c->first + c->count; p++) {
        const double *r = x[order[p]], mass = m[order[p]];
        e.m += mass;
        for (int k = 0; k < 3; k++) {
            e.sum[k] += mass * r[k];
            e.lo[k] = r[k] < e.lo[k] ? r[k] : e.lo[k];
            e.hi[k] = r[k] > e.hi[k] ? r[k] : e.hi[k];
        }
    }
    return e;
}

/* Mass, centre of mass and reach of a cell, and the middle of its bodies' box; returns the longest
 * side of that. A centre of mass off the middle moves the reach out (Barnes 1994, in Computational
 * Astrophysics). */
static double measure(cell *c, vec middle)
{
    const extent e = extent_of(c);
    double side = 0.0, shift2 = 0.0, reach;

    c->m = e.m;
    for (int k = 0; k < 3; k++) {
        middle[k] = 0.5 * e.lo[k] + 0.5 * e.hi[k];
        if (!(middle[k] < e.hi[k])) middle[k] = e.lo[k];
        side = larger(side, e.hi[k] - e.lo[k]);
        c->com[k] = e.m > 0.0 ? e.sum[k] / e.m : middle[k];
        shift2 += (c->com[k] - middle[k]) * (c->com[k] - middle[k]);
    }
    reach = side / theta + sqrt(shift2);
    c->reach2 = reach * reach;
    return side;
}

static int octant(const vec r, const vec middle)
{
    return (r[0] > middle[0]) + 2 * (r[1] > middle[1]) + 4 * (r[2] > middle[2]);
}

/* Makes a cell of the bodies order[first ...] and divides it at the middle of their box,
 * which parts at least two of them: there are fewer than 2n cells, and no empty ones.
 *
 * Above the branches (whose = ranks) every rank divides a cell, and the one at whose places it
 * begins keeps it; a branch one rank grows alone. So what the ranks have kept lies in the order
 * of the tree, one after the other. */
static void grow(int first, int count, int whose)
{
    int me = ncells, end[8] = {0}, owner = (int)((long long)first * ranks / n);
    double side;
    vec middle;

    if (whose == ranks && count <= n / (8 * ranks)) {
        whose = owner;
        if (whose == rank) grown = first + count;
    }
    if (whose < ranks && whose != rank) return;
    if (whose == rank || owner == rank) ncells++; /* else the next cell takes its place */
    cells[me].first = first, cells[me].count = count;
    side = measure(cells + me, middle);
    if (count > NLEAF && side > 0.0) {
        int *mine = order + first;
        memcpy(work, mine, sizeof *work * (size_t)count);
        for (int p = 0; p < count; p++) end[octant(x[work[p]], middle)]++;
        for (int o = 1; o < 8; o++) end[o] += end[o - 1];
        for (int p = count - 1; p >= 0; p--) mine[--end[octant(x[work[p]], middle)]] = work[p];
        for (int o = 0; o < 8; o++) { /* end[o] has become the beginning */
            int next = o < 7 ? end[o + 1] : count;
            if (next > end[o]) grow(first + end[o], next - end[o], whose);
        }
    }
}

/* The tree of what the ranks have grown: cells of a rank follow those of the rank before. */
static void join_branches(void)
{
    int *cell = get(ranks + 1, sizeof *cell), *place = get(ranks + 1, sizeof *place);

    all_ranks(&ncells, sizeof ncells, cell + 1);
    all_ranks(&grown, sizeof grown, place + 1);
    for (int r = 0; r < ranks; r++) {
        cell[r + 1] += cell[r];
        if (place[r + 1] < place[r]) place[r + 1] = place[r];
    }
    place[ranks] = n; /* no branch is behind the last one */
    memmove(cells + cell[rank], cells, sizeof *cells * (size_t)ncells);
    ncells = cell[ranks];
    bring_together(cells, sizeof *cells, cell);
    bring_together(order, sizeof *order, place);
    free(cell), free(place);
}

static void make_tree(void)
{
    double t = seconds();

    ncells = grown = 0;
    grow(0, n, ranks);
    book(TREE, t);
    join_branches();
    t = seconds();
    for (int q = ncells - 1; q >= 0; q--) {
        int next = q + 1, end = cells[q].first + cells[q].count;
        while (next < ncells && cells[next].first < end) next = cells[next].skip;
        cells[q].skip = next;
    }
    book(TREE, t);
}

static int is_leaf(const cell *c) { return c->skip == (int)(c - cells) + 1; }

/* May the bodies of a group take cell c as one body? Its distance is that of its centre of mass
 * from their box, so that the answer is right for the nearest of them. As theta is at most 1, no
 * cell with a body of the group is ever taken. */
static int is_far(const cell *c, const extent *group)
{
    double d2 = 0.0;

    for (int k = 0; k < 3; k++) {
        double d = larger(group->lo[k] - c->com[k], c->com[k] - group->hi[k]);
        d2 += larger(d, 0.0) * larger(d, 0.0);
    }
    return d2 > c->reach2;
}

/* The walk for a group: what its list takes from cell *q on, a distant cell as one body or a leaf
 * with its bodies; NULL at the end. *q becomes the cell to go on with. */
static const cell *next_on_list(int *q, const extent *group, int *far)
{
    while (*q < ncells) {
        const cell *c = cells + *q;
        *far = is_far(c, group);
        *q = *far || is_leaf(c) ? c->skip : *q + 1;
        if (*far || is_leaf(c)) return c;
    }
    return NULL;
}

#endif
