/* kira_style.c - the GRAPE calls of Starlab's kira in a small Hermite code, in C.
 *
 * Block time steps as in hermite.c, and what kira (hdyn_grape6.C) asks of a board:
 *   the calls by pointer, g6_open_ and so on, declared here and not from g6lib.h;
 *   g6_npipes_ before anything is open; pipes filled up with the last particle, h2 = 0;
 *   full acc, jerk and pot handed in, in the arrays that the new ones come back in; k18;
 *   pot > 0 or a nearest neighbour < 0 taken as a hardware error: five resets, then stop;
 *   the board released to others in mid-run, attached and filled again;
 *   times counted from an offset; energies with tj = ti = 0 and all derivatives;
 *   neighbour lists whose radius shrinks while they overflow, grows while they are short;
 *   two particles with the index of a third, which is thereby left out of their forces: the
 *   perturbation of a pair, whose centre of mass is among the nodes, fewer than are stored;
 *   a last node that is alone.
 *
 *   kira_style [FILE] [-e eps] [-a eta] [-t tend] [-n length] [-r blocks] [-f]
 *
 * FILE: see snapshot.h. Defaults: data/plummer1024.dat, eps = 4/N (also if negative), eta =
 * 0.02, tend = 1, room for length = 4096 neighbours, a release every 500 blocks (0: never).
 * Prints the first five forces, or with -f all, and all neighbour lists too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

#define NBUFFER 10000   /* room in the j particle buffer */
#define NHOST 16384     /* most bodies for sums over all pairs on the host */
#define NDENS 12        /* neighbours in a density estimate */
#define MAXRETRY 5      /* resets of the board before giving up */
#define MAXROUND 200    /* radius changes before a neighbour list is given up */
#define NSHOW 5         /* forces shown without being asked */
#define LDEEP 40        /* smallest step 2^-LDEEP */
#define ETASTART 0.0025 /* first step = ETASTART |a| / |da/dt| */
#define DTOUT 0.25
#define SPAN 0.5 /* longest time on the board's clock */

typedef double vec[3];

/* grape6.h, as kira has it */
int g6_npipes_(void);
int g6_open_(int *id);
int g6_close_(int *id);
int g6_reset_(int *id);
int g6_reset_fofpga_(int *id);
int g6_set_ti_(int *id, double *ti);
int g6_initialize_jp_buffer_(int *id, int *size);
int g6_flush_jp_buffer_(int *id);
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double *k18, double *j6, double *a2, double *v, double *x);
void g6calc_firsthalf_(int *id, int *nj, int *ni, int *index, vec *x, vec *v, vec *aold, vec *jold,
                       double *phiold, double *eps2, double *h2);
int g6calc_lasthalf2_(int *id, int *nj, int *ni, int *index, vec *x, vec *v, double *eps2,
                      double *h2, vec *acc, vec *jerk, double *pot, int *inn);
int g6_read_neighbour_list_(int *id);
int g6_get_neighbour_list_(int *id, int *ipipe, int *maxlength, int *n, int *list);

/* What is in the board's memory: to be sent once more when the board has lost it. */
typedef struct {
    int index;
    double tj, dtj, m;
    vec k18, j6, a2, v, x;
} jparticle;

static int n, npipes, lmax = 16 * 256, show = NSHOW; /* lmax: room for a neighbour list */
static int cluster_id, loaded;                       /* body in the pipe loaded last */
static int *block, *nn, *list;                       /* bodies of a block, nearest neighbours */
static double *m, *tj, *step, *pot, *rnb, now, offset, dtmax = 0.125;
static double eps2, eta = 0.02, tend = 1.0;
static vec *x, *v, *a, *j, *k18, *xp, *vp, *anew, *jnew;
static int *iidx, *inn; /* what goes to the pipes and comes back */
static double *ih2, *ipot;
static vec *ix, *iv, *ia, *ij;
static jparticle *sent; /* by address */
static long nsteps, nblocks, nrelease = 500, nreleased, nreset, nlong;

static void stop(const char *what, const char *more)
{
    fprintf(stderr, "kira_style: %s %s\n", what, more);
    exit(1);
}

static void *get(int number, size_t size)
{
    void *p = calloc((size_t)number, size);
    if (p == NULL) stop("too many bodies for the memory", "");
    return p;
}

/* ---- the board ------------------------------------------------------------- */

static void send(int address)
{
    jparticle *p = sent + address;
    g6_set_j_particle_(&cluster_id, &address, &p->index, &p->tj, &p->dtj, &p->m, p->k18, p->j6,
                       p->a2, p->v, p->x);
}

/* Body i as a node at an address, at the time t on the board's clock. Its index is the
 * address: what comes back are places in the list of nodes. */
static void put(int address, int i, double t)
{
    jparticle *p = sent + address;
    p->index = address;
    p->tj = t, p->dtj = step[i], p->m = m[i];
    for (int k = 0; k < 3; k++) {
        p->k18[k] = k18[i][k];
        p->j6[k] = j[i][k] / 6.0;
        p->a2[k] = a[i][k] / 2.0;
        p->v[k] = v[i][k];
        p->x[k] = x[i][k];
    }
    send(address);
}

/* All bodies as the integration has them. */
static void put_all(void)
{
    for (int i = 0; i < n; i++) put(i, i, tj[i] - offset);
}

/* Opens the board and sends the first nj nodes, as they were. */
static void attach(int nj)
{
    int size = NBUFFER;
    if (g6_open_(&cluster_id) != 0) stop("cannot open the GRAPE", "");
    g6_initialize_jp_buffer_(&cluster_id, &size);
    for (int address = 0; address < nj; address++) send(address);
}

static void reset(int nj)
{
    g6_reset_(&cluster_id);
    g6_reset_fofpga_(&cluster_id);
    g6_close_(&cluster_id);
    attach(nj);
    nreset++;
}

static void load(int p, int i, int index, double h2)
{
    loaded = i;
    iidx[p] = index;
    ih2[p] = h2;
    ipot[p] = pot[i];
    memcpy(ix[p], xp[i], sizeof(vec));
    memcpy(iv[p], vp[i], sizeof(vec));
    memcpy(ia[p], a[i], sizeof(vec));
    memcpy(ij[p], j[i], sizeof(vec)); /* not j / 6 here */
}

/* Forces of the first nj nodes on the ni particles in the pipes, at the board's time t. */
static void run_pipes(double t, int nj, int ni)
{
    for (int p = ni; p < npipes; p++) load(p, loaded, iidx[ni - 1], 0.0); /* idle, without lists */
    for (int retry = 0; retry <= MAXRETRY; retry++) {
        int status, good = 1;
        g6_set_ti_(&cluster_id, &t);
        g6_flush_jp_buffer_(&cluster_id);
        g6calc_firsthalf_(&cluster_id, &nj, &ni, iidx, ix, iv, ia, ij, ipot, &eps2, ih2);
        status =
            g6calc_lasthalf2_(&cluster_id, &nj, &ni, iidx, ix, iv, &eps2, ih2, ia, ij, ipot, inn);
        for (int p = 0; p < ni; p++) good &= ipot[p] <= 0.0 && inn[p] >= 0 && inn[p] < nj;
        if (status == 0 && good) return;
        if (status == 0) status = 42;
        fprintf(stderr, "kira_style: hardware error %d at time %g\n", status, now);
        if (retry < MAXRETRY) reset(nj);
    }
    stop("the GRAPE gives no forces", "");
}

/* Forces of the first nj nodes on nb bodies, as predicted, at the board's time t. Their index
 * is their own, or one that is given for all. */
static void forces(double t, int nj, int nb, const int *who, int index)
{
    for (int first = 0; first < nb; first += npipes) {
        int ni = nb - first < npipes ? nb - first : npipes;
        for (int p = 0; p < ni; p++) {
            int i = who[first + p];
            load(p, i, index < 0 ? i : index, 0.0);
        }
        run_pipes(t, nj, ni);
        for (int p = 0; p < ni; p++) {
            int i = who[first + p];
            memcpy(anew[i], ia[p], sizeof(vec));
            memcpy(jnew[i], ij[p], sizeof(vec));
            pot[i] = ipot[p];
            nn[i] = inn[p];
        }
    }
}

/* ---- integration ----------------------------------------------------------- */

static double norm(const vec b) { return sqrt(b[0] * b[0] + b[1] * b[1] + b[2] * b[2]); }

static double distance(const vec b, const vec c)
{
    vec r = {b[0] - c[0], b[1] - c[1], b[2] - c[2]};
    return norm(r);
}

/* To third order: the board knows one more. */
static void predict(int i)
{
    double dt = now - tj[i];
    for (int k = 0; k < 3; k++) {
        xp[i][k] = x[i][k] + dt * (v[i][k] + dt * (a[i][k] / 2.0 + dt * j[i][k] / 6.0));
        vp[i][k] = v[i][k] + dt * (a[i][k] + dt * j[i][k] / 2.0);
    }
}

static void shorten(int i, double dt)
{
    while (step[i] > dt && step[i] > ldexp(1.0, -LDEEP)) step[i] *= 0.5;
}

/* Hermite corrector for body i, and its next step by Aarseth's criterion. */
static void correct(int i)
{
    vec s, c; /* second and third derivative of the acceleration */
    double dt = now - tj[i], dtnew = dtmax, an, jn, sn, cn;

    for (int k = 0; k < 3; k++) {
        double a0 = a[i][k], a1 = anew[i][k], j0 = j[i][k], j1 = jnew[i][k];
        double s0 = (6.0 * (a1 - a0) - dt * (4.0 * j0 + 2.0 * j1)) / (dt * dt);
        c[k] = (12.0 * (a0 - a1) + 6.0 * dt * (j0 + j1)) / (dt * dt * dt);
        s[k] = s0 + dt * c[k];
        k18[i][k] = s0 / 18.0; /* as kira: of the beginning of the step */
        x[i][k] = xp[i][k] + dt * dt * dt * dt * (s0 / 24.0 + dt * c[k] / 120.0);
        v[i][k] = vp[i][k] + dt * dt * dt * (s0 / 6.0 + dt * c[k] / 24.0);
        a[i][k] = a1;
        j[i][k] = j1;
    }
    tj[i] = now;
    an = norm(a[i]), jn = norm(j[i]), sn = norm(s), cn = norm(c);
    if (jn * cn + sn * sn > 0.0) dtnew = sqrt(eta * (an * sn + jn * jn) / (jn * cn + sn * sn));
    if (dtnew < dt)
        shorten(i, dtnew);
    else if (dtnew >= 2.0 * dt && dt < dtmax && fmod(now, 2.0 * dt) == 0.0)
        step[i] = 2.0 * dt; /* where the grid of that step allows it */
}

static void block_step(void)
{
    int nb = 0;

    now = tj[0] + step[0];
    for (int i = 1; i < n; i++) now = fmin(now, tj[i] + step[i]);
    for (int i = 0; i < n; i++)
        if (tj[i] + step[i] <= now) {
            predict(i);
            block[nb++] = i;
        }
    forces(now - offset, n, nb, block, -1);
    for (int b = 0; b < nb; b++) correct(block[b]);
    for (int b = 0; b < nb; b++) put(block[b], block[b], now - offset);
    nsteps += nb;
    nblocks++;
    if (nrelease > 0 && nblocks % nrelease == 0) {
        g6_close_(&cluster_id);
        attach(n);
        nreleased++;
    }
    if (now - offset >= SPAN) {
        offset = now;
        put_all();
    }
}

static void start(void)
{
    put_all();
    for (int i = 0; i < n; i++) {
        predict(i);
        block[i] = i;
    }
    forces(0.0, n, n, block, -1);
    for (int i = 0; i < n; i++) {
        memcpy(a[i], anew[i], sizeof(vec));
        memcpy(j[i], jnew[i], sizeof(vec));
        if (norm(j[i]) > 0.0) shorten(i, ETASTART * norm(a[i]) / norm(j[i]));
    }
    put_all();
    for (int i = 0; i < show; i++)
        printf(" force %d %.16e %.16e %.16e %.16e\n", i + 1, a[i][0], a[i][1], a[i][2], pot[i]);
}

/* ---- output: all bodies are at the time now -------------------------------- */

/* The force on each body of a pair by all but the two: the pair's centre of mass is a node,
 * its index that of both. Fewer nodes are used than the board holds. */
static void perturbation(int b, int c)
{
    int who[2] = {b, c}, nodes = 0;
    jparticle *p;

    for (int i = 0; i < n; i++)
        if (i != b && i != c) put(nodes++, i, 0.0);
    p = sent + nodes;
    memset(p, 0, sizeof *p);
    p->index = nodes;
    p->m = m[b] + m[c];
    for (int k = 0; k < 3 && p->m > 0.0; k++) {
        p->x[k] = (m[b] * x[b][k] + m[c] * x[c][k]) / p->m;
        p->v[k] = (m[b] * v[b][k] + m[c] * v[c][k]) / p->m;
    }
    send(nodes++);
    forces(0.0, nodes, 2, who, nodes - 1);
    for (int q = 0; q < 2; q++) {
        const double *f = anew[who[q]];
        printf(" perturbation %d %.16e %.16e %.16e\n", who[q] + 1, f[0], f[1], f[2]);
    }
}

/* The neighbours of pipe p; their number, or -1 if there are more than fit. A board of more
 * than 48 pipes is, to kira, one that puts a particle into its own list. */
static int neighbours(int p)
{
    static int warned;
    int len, others = 0, status = g6_get_neighbour_list_(&cluster_id, &p, &lmax, &len, list);

    if (status < 0) stop("the GRAPE gives no neighbours", "");
    if (status > 0 && len < lmax) stop("neighbour list too long, but no longer than its room", "");
    if (status > 0) return -1;
    for (int q = 0; q < len; q++)
        if (list[q] != iidx[p]) list[others++] = list[q];
    if ((len > others) != (npipes > 48) && warned++ == 0)
        fprintf(stderr, "kira_style: for kira, GRAPE6_CLIENT=kira goes with %d pipes\n", npipes);
    return others;
}

/* Density centre (Casertano & Hut 1985, ApJ 298, 80), the density at a body that of its
 * neighbour sphere, whose radius changes until the list is neither too short nor too long;
 * at the start the lists themselves, if all is to be shown. */
static void densities(int *todo)
{
    double sum = 0.0, *rho = get(n, sizeof *rho);
    vec xd = {0.0, 0.0, 0.0};
    int left = n;

    for (int i = 0; i < n; i++) todo[i] = i;
    for (int round = 0; round < MAXROUND && left > 0; round++) {
        int again = 0;
        for (int first = 0; first < left; first += npipes) {
            int ni = left - first < npipes ? left - first : npipes, full;
            for (int p = 0; p < ni; p++) {
                int i = todo[first + p];
                load(p, i, i, rnb[i] * rnb[i] + eps2);
            }
            run_pipes(0.0, n, ni);
            full = g6_read_neighbour_list_(&cluster_id);
            if (full < 0) stop("the GRAPE has no neighbours", "");
            for (int p = 0; p < ni; p++) {
                int i = iidx[p], len = full ? -1 : neighbours(p);
                if (len < NDENS) todo[again++] = i;
                if (len < 0) {
                    rnb[i] *= 0.95;
                    nlong++;
                } else if (len < NDENS)
                    rnb[i] *= len > 0 ? cbrt(1.1 * NDENS / len) : 2.0;
                else {
                    int told = show == n && now == 0.0;
                    if (told) printf(" neighbours %d %.16e %d", i + 1, rnb[i], len);
                    for (int q = 0; q < len; q++) {
                        rho[i] += m[list[q]] / (rnb[i] * rnb[i] * rnb[i]);
                        if (told) printf(" %d", list[q] + 1);
                    }
                    if (told) printf("\n");
                }
            }
        }
        left = again;
    }
    for (int i = 0; i < n; i++) {
        sum += rho[i];
        for (int k = 0; k < 3; k++) xd[k] += rho[i] * x[i][k];
    }
    printf(" density centre %10.5f%10.5f%10.5f\n", xd[0] / sum, xd[1] / sum, xd[2] / sum);
    if (left > 0) printf(" no density found for %d bodies\n", left);
    free(rho);
}

/* Energies by the library's potential and, of not too many bodies, by the host. */
static void output(double *egrape, double *ehost)
{
    double ekin = 0.0, epot = 0.0, sum = 0.0, rmin = HUGE_VAL;
    int best = 0;

    for (int i = 0; i < n; i++) {
        put(i, i, 0.0);
        predict(i);
        block[i] = i;
    }
    forces(0.0, n, n, block, -1);
    for (int i = 0; i < n; i++) {
        double r = distance(x[nn[i]], x[i]);
        ekin += 0.5 * m[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);
        epot += 0.5 * m[i] * pot[i];
        for (int b = 0; n <= NHOST && b < i; b++) {
            double s = distance(x[b], x[i]);
            sum -= m[i] * m[b] / sqrt(s * s + eps2);
        }
        if (nn[i] != i && r < rmin) rmin = r, best = i;
    }
    *egrape = ekin + epot;
    *ehost = n <= NHOST ? ekin + sum : *egrape;
    printf(" time %10.5f   energy (host) %18.10E   energy (pot) %18.10E\n", now, *ehost, *egrape);
    if (n > NDENS) densities(block);
    if (nn[best] != best) {
        printf(" closest pair %7d%7d   distance %12.4E\n", best + 1, nn[best] + 1, rmin);
        perturbation(best, nn[best]);
    }
    put_all();
    fflush(stdout);
}

/* What is left in the end: a node, and nobody else. */
static void last_node(void)
{
    put(0, 0, 0.0);
    load(0, 0, 0, 1.0);
    run_pipes(0.0, 1, 1);
    printf(" last node   nearest %d   neighbours %d   pot %g   acc %g\n", inn[0] + 1,
           g6_read_neighbour_list_(&cluster_id) == 0 ? neighbours(0) : -1, ipot[0], norm(ia[0]));
}

/* ---- the program ----------------------------------------------------------- */

static void options(int argc, char **argv, double *eps)
{
    const char *usage = "[FILE] [-e eps] [-a eta] [-t tend] [-n length] [-r blocks] [-f]";
    const char *name = "data/plummer1024.dat", *letters = "eatnr";
    double length = lmax, release = (double)nrelease;
    double *to[] = {eps, &eta, &tend, &length, &release};
    char fault[SNAPSHOT_FAULT];
    struct snapshot s;

    for (int i = 1; i < argc; i++) {
        char *end;
        if (argv[i][0] != '-')
            name = argv[i];
        else if (strcmp(argv[i], "-f") == 0)
            show = -1;
        else if (strlen(argv[i]) != 2 || strchr(letters, argv[i][1]) == NULL || i + 1 == argc)
            stop("usage: kira_style", usage);
        else {
            double *value = to[strchr(letters, argv[i][1]) - letters];
            *value = strtod(argv[++i], &end);
            if (end == argv[i] || *end != '\0') stop("usage: kira_style", usage);
        }
    }
    if (!(eta > 0.0) || !(tend > 1e-9)) stop("eta and tend must be above zero;", usage);
    if (!(length > NDENS && length <= 1e6)) stop("room for 13 neighbours or more, please;", usage);
    if (!(release >= 0.0 && release <= 1e9)) stop("releases after 0 or more blocks;", usage);
    lmax = (int)length, nrelease = (long)release;
    if (snapshot_load(name, &s, fault) != 0) {
        fprintf(stderr, "kira_style: %s: %s\n", name, fault);
        exit(1);
    }
    n = s.n, m = s.m, x = s.x, v = s.v;
}

int main(int argc, char **argv)
{
    double eps = -1.0, e0, e1, h0, h1, scale = 0.0;

    npipes = g6_npipes_(); /* kira's question whether there is a GRAPE at all */
    if (npipes < 1) stop("no GRAPE here", "");
    options(argc, argv, &eps);
    if (eps < 0.0) eps = 4.0 / n;
    eps2 = eps * eps;
    if (show < 0 || show > n) show = n;
    tj = get(n, sizeof *tj), step = get(n, sizeof *step), pot = get(n, sizeof *pot);
    rnb = get(n, sizeof *rnb), nn = get(n, sizeof *nn), block = get(n, sizeof *block);
    a = get(n, sizeof *a), j = get(n, sizeof *j), k18 = get(n, sizeof *k18);
    xp = get(n, sizeof *xp), vp = get(n, sizeof *vp);
    anew = get(n, sizeof *anew), jnew = get(n, sizeof *jnew);
    sent = get(n, sizeof *sent), list = get(lmax, sizeof *list);
    iidx = get(npipes, sizeof *iidx), inn = get(npipes, sizeof *inn);
    ih2 = get(npipes, sizeof *ih2), ipot = get(npipes, sizeof *ipot);
    ix = get(npipes, sizeof *ix), iv = get(npipes, sizeof *iv);
    ia = get(npipes, sizeof *ia), ij = get(npipes, sizeof *ij);

    /* The largest step divides tend, so that all bodies meet there; if need be, tend moves. */
    while (fmod(tend, dtmax) != 0.0 && dtmax > tend / 16.0) dtmax *= 0.5;
    tend = rint(tend / dtmax) * dtmax;
    for (int i = 0; i < n; i++) scale += norm(x[i]) / n, step[i] = dtmax;
    for (int i = 0; i < n; i++) rnb[i] = scale > 0.0 ? scale * cbrt(2.0 * NDENS / n) : 1.0;

    printf(" kira_style   N = %d   eps = %.3E   eta = %.3E   t_end = %.5f\n", n, eps, eta, tend);
    attach(0);
    start();
    output(&e0, &h0);
    while (now < tend) {
        block_step();
        if (fmod(now, DTOUT) == 0.0 || now >= tend) output(&e1, &h1);
    }
    last_node();
    g6_close_(&cluster_id);
    printf(" steps %ld   blocks %ld\n", nsteps, nblocks);
    printf(" board released %ld, reset %ld, lists too long %ld\n", nreleased, nreset, nlong);
    printf(" relative energy error by pot %11.3E\n", fabs((e1 - e0) / e0));
    printf(" relative energy error %11.3E\n", fabs((h1 - h0) / h0));
    if (!isfinite(h1) || !isfinite(e1)) stop("energy is lost", "");
    return 0;
}
