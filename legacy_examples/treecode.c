/* treecode.c - a Barnes-Hut treecode of the GRAPE age, in C, in the manner of Makino's.
 *
 * The host grows an octree (Barnes & Hut 1986, Nature 324, 446) and walks it once for each
 * group of neighbouring bodies (Barnes 1990, J. Comp. Phys. 87, 161; Makino 1991, PASJ 43,
 * 621): what the walk meets, bodies nearby and cells farther away, is the group's list, and
 * the GRAPE sums that list on all bodies of the group. Leapfrog with a constant step.
 *
 *   treecode [FILE] [-e eps] [-o theta] [-d dt] [-t tend] [-g most] [-f] [-w]
 *
 * FILE: see snapshot.h. Defaults: data/plummer1024.dat, eps = 4/N (also if negative),
 * theta = 0.5, dt = 1/512, tend = 1, most bodies of a group = 64. theta = 0 opens every cell:
 * the direct sum. Prints the first five forces, or with -f all, and energies every quarter of a
 * time unit; with -w the seconds that the steps have taken by the clock, and on what.
 *
 * What it asks of the library: see board_lists.h; compiled with -DMANY_WALKS (treecode_walks) or
 * -DGRAPE5 (treecode_g5), board_walks.h or board_grape5.h.
 *
 * Compiled with -DUSE_MPI (treecode_mpi, of many walks) it runs on the ranks of MPI, each
 * with a GPU of its own. All have all bodies and cells; each grows its share of the branches of the
 * tree and finds the forces on its share of the groups, and both are brought together. A cell or a
 * force does not depend on the rank that found it: a run has the same bits on any number of ranks.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "octree.h"
#include "ranks.h"
#include "snapshot.h"

#define NHOST 4096 /* most bodies for sums over all pairs on the host */
#define NSHOW 5    /* forces shown without being asked */
#define DTOUT 0.25

static int show = NSHOW, wall;
static double *new_m, dt = 1.0 / 512, tend = 1.0;
static double most = 64; /* bodies that share a list, unless they are in one place */
static vec *v, *new_x, *new_v;
static long nforce, nlists;

/* ---- the ranks' shares ---------------------------------------------------- */

/* Is group g this rank's? A share that ends within it is made to end behind it. */
static int is_mine(const cell *g)
{
    for (int r = 1; r < ranks; r++)
        if (share[r] > g->first && share[r] < g->first + g->count) share[r] = g->first + g->count;
    return g->first >= share[rank] && g->first < share[rank + 1];
}

/* Makes shares for which all ranks would have needed equal times, where each took `mine`. */
static void balance(double mine)
{
    double *till = get(ranks + 1, sizeof *till); /* time of the ranks before */
    int *old = get(ranks + 1, sizeof *old);

    memcpy(old, share, sizeof *old * (size_t)(ranks + 1));
    all_ranks(&mine, sizeof mine, till + 1);
    for (int r = 0; r < ranks; r++) till[r + 1] += till[r];
    for (int r = 1, s = 0; r < ranks && till[ranks] > 0.0; r++) {
        double want = till[ranks] * r / ranks;
        while (till[s + 1] < want) s++;
        share[r] =
            old[s] + (int)((old[s + 1] - old[s]) * (want - till[s]) / (till[s + 1] - till[s]));
    }
    free(till), free(old);
}

/* Forces at the present places, each rank's on the bodies of its share. */
static void forces(void)
{
    static double last; /* seconds that this rank has taken the last time */
    double before = taken[WALKS] + taken[FORCES];

    balance(last);
    make_tree();
    begin_groups();
    for (int q = 0; q < ncells;) {
        const cell *g = cells + q;
        if (g->count <= most || is_leaf(g)) {
            if (is_mine(g)) add_group(g);
            nlists++;
            q = g->skip;
        } else
            q++;
    }
    end_groups();
    nforce += n;
    last = taken[WALKS] + taken[FORCES] - before;
}

/* ---- the system ------------------------------------------------------------ */

/* Puts all bodies in the order of the tree, each rank those of its share. */
static void put_in_order(void)
{
    double *old_m = m;
    vec *old_x = x, *old_v = v;

    for (int p = share[rank]; p < share[rank + 1]; p++) {
        int i = order[p];
        memcpy(new_x[p], x[i], sizeof(vec)), memcpy(new_v[p], v[i], sizeof(vec));
        new_m[p] = m[i];
    }
    bring_together(new_m, sizeof *m, share);
    bring_together(new_x, sizeof *x, share);
    bring_together(new_v, sizeof *v, share);
    m = new_m, x = new_x, v = new_v;
    new_m = old_m, new_x = old_x, new_v = old_v;
    for (int p = 0; p < n; p++) order[p] = p;
}

static void kick(double h)
{
    for (int p = share[rank]; p < share[rank + 1]; p++)
        for (int k = 0, i = order[p]; k < 3; k++) v[i][k] += h * a[p][k];
}

/* One step of the leapfrog: half a kick, drift, half a kick. */
static void step(double to)
{
    double h = to - now;

    kick(0.5 * h);
    for (int p = share[rank]; p < share[rank + 1]; p++)
        for (int k = 0, i = order[p]; k < 3; k++) x[i][k] += h * v[i][k];
    put_in_order();
    now = to;
    forces();
    kick(0.5 * h);
}

/* Tells all ranks the bodies and forces of all. */
static void meet(void)
{
    put_in_order();
    bring_together(a, sizeof *a, share);
    bring_together(pot, sizeof *pot, share);
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
    const char *usage = "[FILE] [-e eps] [-o theta] [-d dt] [-t tend] [-g most] [-f] [-w]";
    const char *name = "data/plummer1024.dat", *letters = "eodtg";
    double *to[] = {eps, &theta, &dt, &tend, &most};
    char fault[SNAPSHOT_FAULT];
    struct snapshot s;

    for (int i = 1; i < argc; i++) {
        char *end;
        if (argv[i][0] != '-')
            name = argv[i];
        else if (strcmp(argv[i], "-f") == 0)
            show = -1;
        else if (strcmp(argv[i], "-w") == 0)
            wall = 1;
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
    if (!(most >= 1.0)) stop("a group has at least one body;", usage);
    if (snapshot_load(name, &s, fault) != 0) {
        fprintf(stderr, "treecode: %s: %s\n", name, fault);
        quit();
    }
    if (s.n > (1 << 29)) stop("too many bodies in", name);
    n = s.n, m = s.m, x = s.x, v = s.v;
}

int main(int argc, char **argv)
{
    double eps = -1.0, e0, e1, *terms;
    long nsteps;

    begin_ranks(&argc, &argv);
    options(argc, argv, &eps);
    if (eps < 0.0) eps = 4.0 / n;
    eps2 = eps * eps;
    nsteps = (long)ceil(tend / dt - 1e-6); /* whole steps, not above dt */
    if (nsteps < 1) nsteps = 1;
    if (show < 0 || show > n) show = n;
    x = realloc(x, PLACES * sizeof *x * (size_t)n), m = realloc(m, PLACES * sizeof *m * (size_t)n);
    if (x == NULL || m == NULL) stop("too many bodies for the memory", "");
    new_x = get(PLACES * n, sizeof *new_x), new_m = get(PLACES * n, sizeof *new_m);
    pot = get(n, sizeof *pot), a = get(n, sizeof *a), cells = get(2 * n, sizeof *cells);
    order = get(n, sizeof *order), work = get(n, sizeof *work), new_v = get(n, sizeof *new_v);
    share = get(ranks + 1, sizeof *share);
    for (int i = 0; i < n; i++) order[i] = i;
    for (int r = 0; r <= ranks; r++) share[r] = (int)((long long)n * r / ranks);

    printf(" treecode   N = %d   eps = %.3E   theta = %.3f   dt = %.3E   t_end = %.5f\n", n, eps,
           theta, tend / (double)nsteps, tend);
    open_board();
    forces();
    for (int p = 0; p < n; p++) work[order[p]] = p;
    meet();
    for (int i = 0; i < show; i++) {
        const double *f = a[work[i]];
        printf(" force %d %.16e %.16e %.16e %.16e\n", i + 1, f[0], f[1], f[2], pot[work[i]]);
    }
    e0 = e1 = output();
    memset(taken, 0, sizeof taken); /* the first forces are slower */
    for (long s = 1; s <= nsteps; s++) {
        double before = floor(now / DTOUT), t = seconds();
        step(tend * (double)s / (double)nsteps);
        book(STEPS, t);
        if (floor(now / DTOUT) <= before && s < nsteps) continue;
        double exchange = taken[EXCHANGE];
        meet();
        taken[EXCHANGE] = exchange; /* of steps alone */
        e1 = output();
    }
    close_board();
    terms = get(ranks, sizeof *terms);
    all_ranks(&nterms, sizeof nterms, terms);
    for (int r = 1; r < ranks; r++) terms[0] += terms[r];
    if (wall)
        printf(" seconds %.4f   tree %.4f   walks %.4f   forces %.4f   exchange %.4f\n",
               taken[STEPS], taken[TREE], taken[WALKS], taken[FORCES], taken[EXCHANGE]);
    printf(" steps %ld   lists %ld   mean length %.1f\n", nsteps, nlists, *terms / (double)nforce);
    printf(" relative energy error %11.3E\n", fabs((e1 - e0) / e0));
    if (!isfinite(e1)) stop("energy is lost", "");
    end_ranks();
    return 0;
}
