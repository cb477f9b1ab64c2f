/* hermite.c - an N-body integrator of the GRAPE age, in C.
 *
 * Fourth-order Hermite scheme with power-of-two block time steps (Makino & Aarseth 1992,
 * PASJ 44, 141); forces, nearest neighbours and neighbour lists from the GRAPE-6. The
 * host predicts and corrects the particles of a block, O(block) work per step.
 *
 *   hermite [FILE] [-e eps] [-a eta] [-t tend] [-f] [-w] [-i]
 *
 * FILE: one line a body, m x y z vx vy vz, G = 1; # starts a comment. Defaults:
 * data/plummer1024.dat, eps = 4/N (also if negative), eta = 0.02, tend = 1. Energies are
 * printed every quarter of a time unit, from the library's potential and, up to NHOST
 * bodies, from a sum of the host's own. -f prints the forces at the start, -w the seconds that the
 * block steps have taken by the clock. -i: i particles have indices of their own, from N on, so
 * that each lies on a j particle of another index, whose m / eps is taken out of its potential. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "g6lib.h"
#include "snapshot.h"

#define CLUSTER 0       /* the one board */
#define NHOST 16384     /* most bodies for sums over all pairs on the host */
#define NNB 6           /* neighbours in a density estimate */
#define LMAX 64         /* room for a neighbour list */
#define MAXRETRY 5      /* resets of the board before giving up */
#define MAXROUND 100    /* radius changes before a density is given up */
#define LTOP 3          /* largest step 2^-LTOP */
#define LDEEP 40        /* smallest step 2^-LDEEP */
#define ETASTART 0.0025 /* first step = ETASTART |a| / |da/dt| */
#define DTOUT 0.25

typedef double vec[3];

static int n, npipes, ltop = LTOP; /* bodies, pipes, level of the largest step */
static int *level, *order, *nn;    /* step level, bodies by level, nearest neighbour */
static int count[LDEEP + 1];       /* bodies on each level */
static double *m, *tj, *pot, *rnb, eps2, eta = 0.02, tend = 1.0, now;
static vec *x, *v, *a, *j, *xp, *vp, *anew, *jnew, zero;
static int *iidx, *innb; /* what goes to the pipes and comes back */
static double *ih2, *ipot;
static vec *ix, *iv, *ia, *ij;
static long nstep, nblock;
static int show;     /* print the forces at the start */
static int wall;     /* print the time taken */
static int shift;    /* index of an i particle less that of the j particle */
static double taken; /* seconds in block steps */

static void stop(const char *what, const char *name)
{
    fprintf(stderr, "hermite: %s %s\n", what, name);
    exit(1);
}

static void *get(int number, size_t size)
{
    void *p = calloc((size_t)number, size);
    if (p == NULL) stop("too many bodies for the memory", "");
    return p;
}

static void read_snapshot(const char *name)
{
    struct snapshot s;
    char fault[SNAPSHOT_FAULT];

    if (snapshot_load(name, &s, fault) != 0) {
        fprintf(stderr, "hermite: %s: %s\n", name, fault);
        exit(1);
    }
    n = s.n, m = s.m, x = s.x, v = s.v;
}

/* ---- the board ------------------------------------------------------------- */

static void send(int i)
{
    vec a2, j6;
    for (int k = 0; k < 3; k++) {
        a2[k] = a[i][k] / 2.0;
        j6[k] = j[i][k] / 6.0;
    }
    /* The second derivative of a goes as zero: sent, it predicts the others better than
     * the i particles, and the energy error doubles. */
    g6_set_j_particle(CLUSTER, i, i, tj[i], ldexp(1.0, -level[i]), m[i], zero, j6, a2, v[i], x[i]);
}

static void open_board(void)
{
    if (g6_open(CLUSTER) != 0) stop("cannot open the GRAPE", "");
    g6_set_tunit(51);
    g6_set_xunit(51);
    for (int i = 0; i < n; i++) send(i);
    g6_set_ti(CLUSTER, now);
}

/* Forces on the ni bodies in the pipes; after an error all is sent once more. */
static void run_pipes(int ni)
{
    for (int retry = 0; retry < MAXRETRY; retry++) {
        g6calc_firsthalf(CLUSTER, n, ni, iidx, ix, iv, ia, ij, ipot, eps2, ih2);
        if (g6calc_lasthalf2(CLUSTER, n, ni, iidx, ix, iv, eps2, ih2, ia, ij, ipot, innb) == 0)
            return;
        fprintf(stderr, "hermite: GRAPE error at time %g, reset\n", now);
        g6_reset(CLUSTER);
        g6_reset_fofpga(CLUSTER);
        g6_close(CLUSTER);
        open_board();
    }
    stop("the GRAPE gives no forces", "");
}

static void load_pipe(int p, int i, double h2)
{
    iidx[p] = i + shift;
    ih2[p] = h2;
    memcpy(ix[p], xp[i], sizeof(vec));
    memcpy(iv[p], vp[i], sizeof(vec));
    memcpy(ia[p], a[i], sizeof(vec));
    memcpy(ij[p], j[i], sizeof(vec));
    ipot[p] = pot[i];
}

/* Forces at the time now on the nb bodies of block, from their predicted state. */
static void forces(int nb, const int *block)
{
    g6_set_ti(CLUSTER, now);
    for (int b = 0; b < nb; b++) {
        int i = block[b];
        double dt = now - tj[i];
        for (int k = 0; k < 3; k++) {
            xp[i][k] = x[i][k] + dt * (v[i][k] + dt * (a[i][k] / 2.0 + dt * j[i][k] / 6.0));
            vp[i][k] = v[i][k] + dt * (a[i][k] + dt * j[i][k] / 2.0);
        }
    }
    for (int first = 0; first < nb; first += npipes) {
        int ni = nb - first < npipes ? nb - first : npipes;
        for (int p = 0; p < ni; p++) load_pipe(p, block[first + p], 0.0);
        run_pipes(ni);
        for (int p = 0; p < ni; p++) {
            int i = block[first + p];
            memcpy(anew[i], ia[p], sizeof(vec));
            memcpy(jnew[i], ij[p], sizeof(vec));
            pot[i] = shift ? ipot[p] + m[i] / sqrt(eps2) : ipot[p];
            nn[i] = innb[p];
        }
    }
}

/* ---- steps ----------------------------------------------------------------- */

static double norm(const vec a) { return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]); }

/* Deepest level whose step does not exceed dt, from level l on. */
static int deepen(int l, double dt)
{
    while (l < LDEEP && ldexp(1.0, -l) > dt) l++;
    return l;
}

/* Hermite corrector for body i, and its next step by Aarseth's criterion. */
static void correct(int i)
{
    vec s, c; /* second and third derivative of the acceleration */
    double dt = now - tj[i], dtnew, an, jn, sn, cn;

    for (int k = 0; k < 3; k++) {
        double a0 = a[i][k], a1 = anew[i][k], j0 = j[i][k], j1 = jnew[i][k];
        double s0 = (6.0 * (a1 - a0) - dt * (4.0 * j0 + 2.0 * j1)) / (dt * dt);
        c[k] = (12.0 * (a0 - a1) + 6.0 * dt * (j0 + j1)) / (dt * dt * dt);
        s[k] = s0 + dt * c[k];
        x[i][k] = xp[i][k] + dt * dt * dt * dt * (s0 / 24.0 + dt * c[k] / 120.0);
        v[i][k] = vp[i][k] + dt * dt * dt * (s0 / 6.0 + dt * c[k] / 24.0);
        a[i][k] = a1;
        j[i][k] = j1;
    }
    tj[i] = now;
    an = norm(a[i]), jn = norm(j[i]), sn = norm(s), cn = norm(c);
    dtnew = jn * cn + sn * sn > 0.0 ? sqrt(eta * (an * sn + jn * jn) / (jn * cn + sn * sn)) : 1.0;
    if (dtnew < dt)
        level[i] = deepen(level[i], dtnew);
    else if (level[i] > ltop && dtnew >= 2.0 * dt && fmod(now, 2.0 * dt) == 0.0)
        level[i]--; /* twice the step, where the grid of that step allows it */
}

/* order[] holds the bodies, the deepest level first. All bodies of a level move at the
 * same times, so a block is the first entries of order[], and after the step it still
 * is: these alone are sorted again, by counting. */
static void sort_block(int nb, int l0, int *work)
{
    int start[LDEEP + 1], sum = 0;

    memcpy(work, order, sizeof *work * (size_t)nb);
    memset(count + l0, 0, sizeof *count * (size_t)(LDEEP + 1 - l0));
    for (int b = 0; b < nb; b++) count[level[work[b]]]++;
    for (int l = LDEEP; l >= l0; l--) {
        start[l] = sum;
        sum += count[l];
    }
    for (int b = 0; b < nb; b++) order[start[level[work[b]]]++] = work[b];
}

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void block_step(int *work)
{
    int l = LDEEP, l0, nb = 0;
    double began = seconds();

    while (count[l] == 0) l--;
    now += ldexp(1.0, -l);
    for (l0 = l; l0 > ltop && fmod(now, ldexp(1.0, 1 - l0)) == 0.0;) l0--;
    for (; l >= l0; l--) nb += count[l];
    forces(nb, order);
    for (int b = 0; b < nb; b++) correct(order[b]);
    for (int b = 0; b < nb; b++) send(order[b]);
    sort_block(nb, l0, work);
    nstep += nb;
    nblock++;
    taken += seconds() - began;
}

static void start(int *work)
{
    open_board();
    for (int i = 0; i < n; i++) order[i] = i;
    forces(n, order);
    for (int i = 0; i < n; i++) {
        memcpy(a[i], anew[i], sizeof(vec));
        memcpy(j[i], jnew[i], sizeof(vec));
        level[i] = norm(j[i]) > 0.0 ? deepen(ltop, ETASTART * norm(a[i]) / norm(j[i])) : ltop;
        send(i);
    }
    sort_block(n, 0, work);
}

/* ---- output ---------------------------------------------------------------- */

/* Densities from the NNB nearest neighbours (Casertano & Hut 1985, ApJ 298, 80), found in
 * lists whose radius is changed until they are neither too short nor too long. */
static void density(int *todo)
{
    double sum = 0.0, rc = 0.0, *rho = get(n, sizeof *rho);
    vec xd = {0.0, 0.0, 0.0};
    int left = n, list[LMAX], len;

    for (int i = 0; i < n; i++) todo[i] = i;
    for (int round = 0; round < MAXROUND && left > 0; round++) {
        int again = 0;
        for (int first = 0; first < left; first += npipes) {
            int full, ni = left - first < npipes ? left - first : npipes;
            for (int p = 0; p < ni; p++) {
                int i = todo[first + p];
                load_pipe(p, i, rnb[i] * rnb[i] + eps2);
            }
            run_pipes(ni);
            full = g6_read_neighbour_list(CLUSTER);
            if (full < 0) stop("the GRAPE gives no neighbours", "");
            for (int p = 0; p < ni; p++) {
                int i = iidx[p] - shift, near = 0;
                double d[LMAX], mass = 0.0;
                if (full || g6_get_neighbour_list(CLUSTER, p, LMAX, &len, list)) {
                    rnb[i] *= 0.8;
                    todo[again++] = i;
                    continue;
                }
                for (int q = 0; q < len; q++) {
                    int at = near, b = list[q];
                    vec r = {x[b][0] - x[i][0], x[b][1] - x[i][1], x[b][2] - x[i][2]};
                    if (b == i) continue; /* some boards list the body itself */
                    for (; at > 0 && d[at - 1] > norm(r); at--) {
                        d[at] = d[at - 1];
                        list[at] = list[at - 1];
                    }
                    d[at] = norm(r);
                    list[at] = b;
                    near++;
                }
                if (near < NNB) {
                    rnb[i] *= near > 0 ? cbrt(2.0 * NNB / near) : 2.0;
                    todo[again++] = i;
                    continue;
                }
                for (int q = 0; q < NNB - 1; q++) mass += m[list[q]];
                rho[i] = mass / pow(d[NNB - 1], 3.0);
            }
        }
        left = again;
    }
    for (int i = 0; i < n; i++) {
        sum += rho[i];
        for (int k = 0; k < 3; k++) xd[k] += rho[i] * x[i][k];
    }
    for (int k = 0; k < 3; k++) xd[k] /= sum;
    for (int i = 0; i < n; i++) {
        vec r = {x[i][0] - xd[0], x[i][1] - xd[1], x[i][2] - xd[2]};
        rc += rho[i] * norm(r);
    }
    printf(" density centre %10.5f%10.5f%10.5f   density radius %10.5f\n", xd[0], xd[1], xd[2],
           rc / sum);
    if (left > 0) printf(" no density found for %d bodies\n", left);
    free(rho);
}

/* Energies by the library's potential and by the host; all bodies are at the time now. */
static void output(double *egrape, double *ehost, int *work)
{
    double ekin = 0.0, epot = 0.0, sum = 0.0, rmin = HUGE_VAL;
    int ibest = 0;

    forces(n, order);
    for (int i = 0; i < n; i++) {
        double v2 = v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2];
        vec r = {x[nn[i]][0] - x[i][0], x[nn[i]][1] - x[i][1], x[nn[i]][2] - x[i][2]};
        ekin += 0.5 * m[i] * v2;
        epot += 0.5 * m[i] * pot[i];
        if (nn[i] != i && norm(r) < rmin) rmin = norm(r), ibest = i;
    }
    for (int i = 0; n <= NHOST && i < n; i++)
        for (int b = 0; b < i; b++) {
            double dx = x[b][0] - x[i][0], dy = x[b][1] - x[i][1], dz = x[b][2] - x[i][2];
            sum -= m[i] * m[b] / sqrt(dx * dx + dy * dy + dz * dz + eps2);
        }
    *egrape = ekin + epot;
    *ehost = n <= NHOST ? ekin + sum : *egrape;
    printf(" time %10.5f", now);
    if (n <= NHOST) printf("   energy (host) %18.10E", *ehost);
    printf("   energy (pot) %18.10E\n", *egrape);
    if (n > 1 && !shift) /* else each is its own neighbour */
        printf(" closest pair %7d%7d   distance %12.4E\n", ibest + 1, nn[ibest] + 1, rmin);
    if (n > NNB && n <= NHOST) density(work);
    if (wall) printf(" seconds %12.4f\n", taken);
    fflush(stdout);
}

static void options(int argc, char **argv, double *eps)
{
    const char *name = "data/plummer1024.dat",
               *usage = "[FILE] [-e eps] [-a eta] [-t tend] [-f] [-w] [-i]";
    for (int i = 1; i < argc; i++) {
        char *end = "", *value = i + 1 < argc ? argv[i + 1] : "";
        if (argv[i][0] != '-') {
            name = argv[i];
            continue;
        }
        if (strlen(argv[i]) == 2 && strchr("fwi", argv[i][1]) != NULL) {
            *(argv[i][1] == 'f' ? &show : argv[i][1] == 'w' ? &wall : &shift) = 1;
            continue;
        }
        if (strcmp(argv[i], "-e") == 0)
            *eps = strtod(value, &end);
        else if (strcmp(argv[i], "-a") == 0)
            eta = strtod(value, &end);
        else if (strcmp(argv[i], "-t") == 0)
            tend = strtod(value, &end);
        else
            stop("usage: hermite", usage);
        if (end == value || *end != '\0') stop("usage: hermite", usage);
        i++;
    }
    if (!(eta > 0.0) || !(tend > 1e-9)) stop("eta and tend must be above zero;", usage);
    read_snapshot(name);
}

int main(int argc, char **argv)
{
    double eps = -1.0, e0, e1, h0, h1, scale = 0.0;
    int *work;

    options(argc, argv, &eps);
    if (eps < 0.0) eps = 4.0 / n;
    eps2 = eps * eps;
    if (shift && !(eps2 > 0.0)) stop("particles on each other need softening:", "-i and -e 0");
    shift *= n;
    npipes = g6_npipes();
    if (npipes < 1) stop("no GRAPE here", "");
    tj = get(n, sizeof *tj), pot = get(n, sizeof *pot), rnb = get(n, sizeof *rnb);
    a = get(n, sizeof *a), j = get(n, sizeof *j);
    xp = get(n, sizeof *xp), vp = get(n, sizeof *vp);
    anew = get(n, sizeof *anew), jnew = get(n, sizeof *jnew);
    level = get(n, sizeof *level), order = get(n, sizeof *order);
    nn = get(n, sizeof *nn), work = get(n, sizeof *work);
    iidx = get(npipes, sizeof *iidx), innb = get(npipes, sizeof *innb);
    ih2 = get(npipes, sizeof *ih2), ipot = get(npipes, sizeof *ipot);
    ix = get(npipes, sizeof *ix), iv = get(npipes, sizeof *iv);
    ia = get(npipes, sizeof *ia), ij = get(npipes, sizeof *ij);
    for (int i = 0; i < n; i++) scale += norm(x[i]) / n;
    for (int i = 0; i < n; i++) rnb[i] = scale > 0.0 ? scale * cbrt(2.0 * NNB / n) : 1.0;

    /* The largest step divides tend, so that all bodies meet there; if need be, tend moves. */
    while (fmod(tend, ldexp(1.0, -ltop)) != 0.0 && ldexp(1.0, -ltop) > tend / 16.0) ltop++;
    tend = ldexp(rint(ldexp(tend, ltop)), -ltop);
    printf(" hermite   N = %d   eps = %.3E   eta = %.3E   t_end = %.5f\n", n, eps, eta, tend);
    start(work);
    for (int i = 0; show && i < n; i++)
        printf(" force %d %.16e %.16e %.16e %.16e\n", i + 1, a[i][0], a[i][1], a[i][2], pot[i]);
    output(&e0, &h0, work);
    while (now < tend) {
        block_step(work);
        if (fmod(now, DTOUT) == 0.0 || now >= tend) output(&e1, &h1, work);
    }
    g6_close(CLUSTER);
    free(work);
    printf(" steps %ld   blocks %ld\n", nstep, nblock);
    printf(" relative energy error by pot %11.3E\n", fabs((e1 - e0) / e0));
    printf(" relative energy error %11.3E\n", fabs((h1 - h0) / h0));
    if (!isfinite(h1) || !isfinite(e1)) stop("energy is lost", "");
    return 0;
}
