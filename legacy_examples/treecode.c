/* treecode.c - a Barnes-Hut treecode of the GRAPE age, in C, in the manner of Makino's.
 *
 * The host grows an octree (Barnes & Hut 1986, Nature 324, 446) and walks it once for each
 * group of neighbouring bodies (Barnes 1990, J. Comp. Phys. 87, 161; Makino 1991, PASJ 43,
 * 621): what the walk meets, bodies nearby and cells farther away, is the group's list, and
 * the GRAPE sums that list on all bodies of the group. Leapfrog with a constant step.
 *
 *   treecode [FILE] [-e eps] [-o theta] [-d dt] [-t tend] [-f]
 *
 * FILE: see snapshot.h. Defaults: data/plummer1024.dat, eps = 4/N (also if negative),
 * theta = 0.5, dt = 1/512, tend = 1. theta = 0 opens every cell: the direct sum. Prints
 * the first five forces, or with -f all, and energies every quarter of a time unit.
 *
 * What it asks of the library: a fresh and shorter or longer list at addresses 0.. for each
 * group (g6_set_j_particle_mxonly), over what an earlier group left there; the time set once
 * for a pass, before its particles; indices beyond those of the bodies, for cells; one array
 * of zeros for all that hardware wanted to know; a board closed and opened on the way.
 *
 * Compiled with -DMANY_WALKS (treecode_walks) it keeps the lists of all groups, and has them summed
 * in one call (Hamada et al. 2009): bodies and cells lie in one array, the lists are numbers there,
 * and no index is needed, for what is at distance zero adds nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "g6lib.h"
#include "snapshot.h"

#define CLUSTER 0      /* the one board */
#define NHOST 16384    /* most bodies for sums over all pairs on the host */
#define NLEAF 8        /* a cell of more bodies is divided */
#define NGROUP 64      /* most bodies that share a list, unless they are in one place */
#define NREOPEN 100000 /* forces after which the board is given to others for a moment */
#define NSHOW 5        /* forces shown without being asked */
#define DTOUT 0.25

typedef double vec[3];

/* A cell is followed by its children, and they by cell `skip`: the next one outside. */
typedef struct {
    int first, count, skip; /* its bodies: order[first] and so on */
    double m, side, shift;  /* longest side; distance of com from the middle */
    vec lo, hi, com;        /* the bodies' box and centre of mass */
} cell;

static int n, npipes, ncells, show = NSHOW;
static double *m, *pot, eps2, theta = 0.5, dt = 1.0 / 512, tend = 1.0, now;
static vec *x, *v, *a;
static cell *cells;
static int *order, *work; /* bodies in the order of the tree */
static long nforce, nsince, nlists;
static double nterms;

static void stop(const char *what, const char *more)
{
    fprintf(stderr, "treecode: %s %s\n", what, more);
    exit(1);
}

static void *get(int number, size_t size)
{
    void *p = calloc((size_t)number, size);
    if (p == NULL) stop("too many bodies for the memory", "");
    return p;
}

/* ---- the tree -------------------------------------------------------------- */

/* Box, mass and centre of mass of a cell, and the middle of its box. */
static void measure(cell *c, vec middle)
{
    double shift2 = 0.0;

    c->m = c->side = 0.0;
    for (int k = 0; k < 3; k++) c->lo[k] = HUGE_VAL, c->hi[k] = -HUGE_VAL, c->com[k] = 0.0;
    for (int p = c->first; p < c->first + c->count; p++) {
        int i = order[p];
        c->m += m[i];
        for (int k = 0; k < 3; k++) {
            c->com[k] += m[i] * x[i][k];
            if (x[i][k] < c->lo[k]) c->lo[k] = x[i][k];
            if (x[i][k] > c->hi[k]) c->hi[k] = x[i][k];
        }
    }
    for (int k = 0; k < 3; k++) {
        middle[k] = 0.5 * c->lo[k] + 0.5 * c->hi[k];
        if (!(middle[k] < c->hi[k])) middle[k] = c->lo[k];
        c->side = fmax(c->side, c->hi[k] - c->lo[k]);
        c->com[k] = c->m > 0.0 ? c->com[k] / c->m : middle[k];
        shift2 += (c->com[k] - middle[k]) * (c->com[k] - middle[k]);
    }
    c->shift = sqrt(shift2);
}

static int octant(const vec r, const vec middle)
{
    return (r[0] > middle[0]) + 2 * (r[1] > middle[1]) + 4 * (r[2] > middle[2]);
}

/* Makes a cell of the bodies order[first ...] and divides it at the middle of their box,
 * which parts at least two of them: there are fewer than 2n cells, and no empty ones. */
static void grow(int first, int count)
{
    int me = ncells++, end[8] = {0};
    vec middle;

    cells[me].first = first, cells[me].count = count;
    measure(cells + me, middle);
    if (count > NLEAF && cells[me].side > 0.0) {
        int *mine = order + first;
        memcpy(work, mine, sizeof *work * (size_t)count);
        for (int p = 0; p < count; p++) end[octant(x[work[p]], middle)]++;
        for (int o = 1; o < 8; o++) end[o] += end[o - 1];
        for (int p = count - 1; p >= 0; p--) mine[--end[octant(x[work[p]], middle)]] = work[p];
        for (int o = 0; o < 8; o++) { /* end[o] has become the beginning */
            int next = o < 7 ? end[o + 1] : count;
            if (next > end[o]) grow(first + end[o], next - end[o]);
        }
    }
    cells[me].skip = ncells;
}

static int is_leaf(const cell *c) { return c->skip == (int)(c - cells) + 1; }

/* May the bodies of group g take cell c as one body? Its distance is that of its centre of
 * mass from their box, so that the answer is right for the nearest of them; and a centre of
 * mass off the middle makes it larger (Barnes 1994, in Computational Astrophysics). As theta
 * is at most 1, no cell with a body of the group is ever taken. */
static int is_far(const cell *c, const cell *g)
{
    double d2 = 0.0;

    for (int k = 0; k < 3; k++) {
        double d = fmax(fmax(g->lo[k] - c->com[k], c->com[k] - g->hi[k]), 0.0);
        d2 += d * d;
    }
    return theta * (sqrt(d2) - c->shift) > c->side;
}

/* ---- the board ------------------------------------------------------------- */

#ifdef MANY_WALKS

static vec *gx, *gacc; /* bodies in the order of the tree */
static double *gpot;
static vec *jx; /* bodies, then cells */
static double *jm;
static long long *i_start, *j_start; /* [walk]: its first body, and entry */
static int nwalks, *entries;         /* the lists, one behind the other */
static long long room;

static void prepare(void)
{
    gx = get(n, sizeof *gx), gacc = get(n, sizeof *gacc), gpot = get(n, sizeof *gpot);
    jx = get(3 * n, sizeof *jx), jm = get(3 * n, sizeof *jm);
    i_start = get(n + 1, sizeof *i_start), j_start = get(n + 1, sizeof *j_start);
}

static void enlist(int number)
{
    long long at = j_start[nwalks + 1]++;

    if (at == room) {
        room = 2 * room + 1024;
        entries = realloc(entries, (size_t)room * sizeof *entries);
        if (entries == NULL) stop("too many bodies for the memory", "");
    }
    entries[at] = number;
}

/* Takes down the list of group g. */
static void add_group(const cell *g)
{
    j_start[nwalks + 1] = j_start[nwalks];
    for (int q = 0; q < ncells;) {
        const cell *c = cells + q;
        if (is_far(c, g)) {
            enlist(n + q);
            q = c->skip;
        } else if (is_leaf(c)) {
            for (int p = c->first; p < c->first + c->count; p++) enlist(order[p]);
            q = c->skip;
        } else
            q++;
    }
    nterms += (double)(j_start[nwalks + 1] - j_start[nwalks]) * g->count;
    i_start[++nwalks] = g->first + g->count;
}

static void begin_groups(void) { nwalks = 0; }

/* Groups follow one another in the order of the tree, so their bodies do. */
static void end_groups(void)
{
    memcpy(jx, x, sizeof *x * (size_t)n), memcpy(jm, m, sizeof *m * (size_t)n);
    for (int q = 0; q < ncells; q++) {
        memcpy(jx[n + q], cells[q].com, sizeof(vec));
        jm[n + q] = cells[q].m;
    }
    for (int p = 0; p < n; p++) memcpy(gx[p], x[order[p]], sizeof(vec));
    if (g6x_walks(CLUSTER, nwalks, i_start, (const double (*)[3])gx, j_start, entries, n + ncells,
                  (const double (*)[3])jx, jm, eps2, gacc, gpot) != 0)
        stop("the GRAPE gives no forces", "");
    for (int p = 0; p < n; p++) {
        memcpy(a[order[p]], gacc[p], sizeof(vec));
        pot[order[p]] = gpot[p];
    }
}

#else

static int *iidx;
static vec *ix, *ia, *ijerk, *zeros3; /* what goes to the pipes and comes back */
static double *ipot, *zeros;

static void prepare(void)
{
    iidx = get(npipes, sizeof *iidx), ix = get(npipes, sizeof *ix);
    ia = get(npipes, sizeof *ia), ijerk = get(npipes, sizeof *ijerk);
    ipot = get(npipes, sizeof *ipot);
    zeros = get(npipes, sizeof *zeros), zeros3 = get(npipes, sizeof *zeros3);
}

/* Sends the list of group g; returns its length. Bodies go with their own index, which
 * keeps a body off itself; cells with indices that no body has. */
static int send_list(const cell *g)
{
    int nj = 0;

    for (int q = 0; q < ncells;) {
        cell *c = cells + q;
        if (is_far(c, g)) {
            g6_set_j_particle_mxonly(CLUSTER, nj++, n + q, c->m, c->com);
            q = c->skip;
        } else if (is_leaf(c)) {
            for (int p = c->first; p < c->first + c->count; p++)
                g6_set_j_particle_mxonly(CLUSTER, nj++, order[p], m[order[p]], x[order[p]]);
            q = c->skip;
        } else
            q++;
    }
    return nj;
}

/* Forces of the nj particles of its list on group g. */
static void sum_list(const cell *g, int nj)
{
    for (int first = 0; first < g->count; first += npipes) {
        const int *who = order + g->first + first;
        int ni = g->count - first < npipes ? g->count - first : npipes;
        for (int p = 0; p < ni; p++) {
            iidx[p] = who[p];
            memcpy(ix[p], x[who[p]], sizeof(vec));
        }
        g6calc_firsthalf(CLUSTER, nj, ni, iidx, ix, zeros3, zeros3, zeros3, zeros, eps2, zeros);
        if (g6calc_lasthalf(CLUSTER, nj, ni, iidx, ix, zeros3, eps2, zeros, ia, ijerk, ipot) != 0)
            stop("the GRAPE gives no forces", "");
        for (int p = 0; p < ni; p++) {
            memcpy(a[who[p]], ia[p], sizeof(vec));
            /* Makino's adds m / eps here: GRAPE-4 had the body itself in its potential. */
            pot[who[p]] = ipot[p];
        }
    }
}

static void begin_groups(void) { g6_set_ti(CLUSTER, now); }

static void add_group(const cell *g)
{
    int nj = send_list(g);

    sum_list(g, nj);
    nterms += (double)nj * g->count;
}

static void end_groups(void) {}

#endif

/* Forces on all bodies at their present places. */
static void forces(void)
{
    ncells = 0;
    grow(0, n);
    if (nsince >= NREOPEN) {
        nsince = 0;
        g6_close(CLUSTER);
        if (g6_open(CLUSTER) != 0) stop("cannot open the GRAPE again", "");
    }
    begin_groups();
    for (int q = 0; q < ncells;) {
        const cell *g = cells + q;
        if (g->count <= NGROUP || is_leaf(g)) {
            add_group(g);
            nlists++;
            q = g->skip;
        } else
            q++;
    }
    end_groups();
    nforce += n;
    nsince += n;
}

/* ---- the system ------------------------------------------------------------ */

/* One step of the leapfrog: half a kick, drift, half a kick. */
static void step(double to)
{
    double h = to - now;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            v[i][k] += 0.5 * h * a[i][k];
            x[i][k] += h * v[i][k];
        }
    now = to;
    forces();
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) v[i][k] += 0.5 * h * a[i][k];
}

/* The energy by the host's own sum or, of many bodies, by the library's potential. */
static double output(void)
{
    double ekin = 0.0, epot = 0.0, sum = 0.0;

    for (int i = 0; i < n; i++) {
        ekin += 0.5 * m[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);
        epot += 0.5 * m[i] * pot[i];
    }
    for (int i = 0; n <= NHOST && i < n; i++)
        for (int b = 0; b < i; b++) {
            double dx = x[b][0] - x[i][0], dy = x[b][1] - x[i][1], dz = x[b][2] - x[i][2];
            sum -= m[i] * m[b] / sqrt(dx * dx + dy * dy + dz * dz + eps2);
        }
    printf(" time %10.5f", now);
    if (n <= NHOST) printf("   energy (host) %18.10E", ekin + sum);
    printf("   energy (pot) %18.10E\n", ekin + epot);
    fflush(stdout);
    return ekin + (n <= NHOST ? sum : epot);
}

static void options(int argc, char **argv, double *eps)
{
    const char *usage = "[FILE] [-e eps] [-o theta] [-d dt] [-t tend] [-f]";
    const char *name = "data/plummer1024.dat", *letters = "eodt";
    double *to[] = {eps, &theta, &dt, &tend};
    char fault[SNAPSHOT_FAULT];
    struct snapshot s;

    for (int i = 1; i < argc; i++) {
        char *end;
        if (argv[i][0] != '-')
            name = argv[i];
        else if (strcmp(argv[i], "-f") == 0)
            show = -1;
        else if (strlen(argv[i]) != 2 || strchr(letters, argv[i][1]) == NULL || i + 1 == argc)
            stop("usage: treecode", usage);
        else {
            double *value = to[strchr(letters, argv[i][1]) - letters];
            *value = strtod(argv[++i], &end);
            if (end == argv[i] || *end != '\0') stop("usage: treecode", usage);
        }
    }
    if (!(theta >= 0.0 && theta <= 1.0)) stop("theta must be from 0 to 1;", usage);
    if (!(dt > 0.0) || !(tend > 1e-9) || !(tend / dt < 1e9))
        stop("dt and tend must be above zero;", usage);
    if (snapshot_load(name, &s, fault) != 0) {
        fprintf(stderr, "treecode: %s: %s\n", name, fault);
        exit(1);
    }
    if (s.n > (1 << 29)) stop("too many bodies in", name);
    n = s.n, m = s.m, x = s.x, v = s.v;
}

int main(int argc, char **argv)
{
    double eps = -1.0, e0, e1;
    long nsteps;

    options(argc, argv, &eps);
    if (eps < 0.0) eps = 4.0 / n;
    eps2 = eps * eps;
    nsteps = (long)ceil(tend / dt - 1e-6); /* whole steps, not above dt */
    if (nsteps < 1) nsteps = 1;
    if (show < 0 || show > n) show = n;
    npipes = g6_npipes();
    if (npipes < 1) stop("no GRAPE here", "");
    pot = get(n, sizeof *pot), a = get(n, sizeof *a), cells = get(2 * n, sizeof *cells);
    order = get(n, sizeof *order), work = get(n, sizeof *work);
    prepare();
    for (int i = 0; i < n; i++) order[i] = i;

    printf(" treecode   N = %d   eps = %.3E   theta = %.3f   dt = %.3E   t_end = %.5f\n", n, eps,
           theta, tend / (double)nsteps, tend);
    if (g6_open(CLUSTER) != 0) stop("cannot open the GRAPE", "");
    forces();
    for (int i = 0; i < show; i++)
        printf(" force %d %.16e %.16e %.16e %.16e\n", i + 1, a[i][0], a[i][1], a[i][2], pot[i]);
    e0 = e1 = output();
    for (long s = 1; s <= nsteps; s++) {
        double before = floor(now / DTOUT);
        step(tend * (double)s / (double)nsteps);
        if (floor(now / DTOUT) > before || s == nsteps) e1 = output();
    }
    g6_close(CLUSTER);
    printf(" steps %ld   lists %ld   mean length %.1f\n", nsteps, nlists, nterms / (double)nforce);
    printf(" relative energy error %11.3E\n", fabs((e1 - e0) / e0));
    if (!isfinite(e1)) stop("energy is lost", "");
    return 0;
}
