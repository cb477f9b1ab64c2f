/* grape5_style.c - a program of the GRAPE-5 age, in C: leapfrog with a constant step, forces by
 * direct sum.
 *
 *   grape5_style [FILE] [-e eps] [-d dt] [-t tend] [-j size] [-n] [-f]
 *
 * FILE: see snapshot.h. Defaults: data/plummer1024.dat, eps = 4/N (also if negative), dt = 1/512,
 * tend = 1. -j: j particles on the board at a time, if fewer than it takes. -n: the board's
 * potentials are negative, not positive as the hardware's were (GRAPE6_G5_POT_SIGN=-1). Prints the
 * first five forces, or with -f all, and energies every quarter of a time unit.
 *
 * What it asks of the library: j particles in pieces of the j memory and i particles in pieces of
 * the pipelines, each force being the sum over the pieces; the particle itself among those that
 * pull, so that m/eps is taken out of its potential here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "g5lib.h"
#include "snapshot.h"

#define NSHOW 5 /* forces shown without being asked */
#define DTOUT 0.25

typedef double vec[3];

static int n, njmax, npipes, show = NSHOW;
static double *m, *pot, *ppot, eps = -1.0, dt = 1.0 / 512, tend = 1.0, now, sign = -1.0;
static vec *x, *v, *a, *pa; /* pa, ppot: of a piece */

static void stop(const char *what, const char *more)
{
    fprintf(stderr, "grape5_style: %s %s\n", what, more);
    exit(1);
}

static void *get(int number, size_t size)
{
    void *p = calloc((size_t)number, size);
    if (p == NULL) stop("too many bodies for the memory", "");
    return p;
}

static int least(int p, int q) { return p < q ? p : q; }

static void forces(void)
{
    memset(a, 0, sizeof *a * (size_t)n);
    memset(pot, 0, sizeof *pot * (size_t)n);
    for (int j = 0; j < n; j += njmax) {
        int nj = least(njmax, n - j);
        g5_set_xmj(0, nj, x + j, m + j);
        g5_set_n(nj);
        for (int i = 0; i < n; i += npipes) {
            int ni = least(npipes, n - i);
            g5_set_xi(ni, x + i);
            g5_run();
            g5_get_force(ni, pa, ppot);
            for (int k = 0; k < ni; k++) {
                for (int c = 0; c < 3; c++) a[i + k][c] += pa[k][c];
                pot[i + k] += sign * ppot[k];
            }
        }
        if (n - j <= njmax) break; /* j + njmax may be more than an int holds */
    }
    for (int i = 0; i < n && eps > 0.0; i++) pot[i] += m[i] / eps;
}

static void step(double to)
{
    double h = to - now;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            v[i][c] += 0.5 * h * a[i][c];
            x[i][c] += h * v[i][c];
        }
    now = to;
    forces();
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) v[i][c] += 0.5 * h * a[i][c];
}

/* The energy by the host's own sum. */
static double output(void)
{
    double ekin = 0.0, epot = 0.0, sum = 0.0;
    for (int i = 0; i < n; i++) {
        ekin += 0.5 * m[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);
        epot += 0.5 * m[i] * pot[i];
        for (int b = 0; b < i; b++) {
            double dx = x[b][0] - x[i][0], dy = x[b][1] - x[i][1], dz = x[b][2] - x[i][2];
            sum -= m[i] * m[b] / sqrt(dx * dx + dy * dy + dz * dz + eps * eps);
        }
    }
    printf(" time %10.5f   energy (host) %18.10E   energy (pot) %18.10E\n", now, ekin + sum,
           ekin + epot);
    return ekin + sum;
}

static void options(int argc, char **argv)
{
    const char *usage = "[FILE] [-e eps] [-d dt] [-t tend] [-j size] [-n] [-f]";
    const char *name = "data/plummer1024.dat", *letters = "edtj";
    double size = njmax, *to[] = {&eps, &dt, &tend, &size};
    char fault[SNAPSHOT_FAULT];
    struct snapshot s;

    for (int i = 1; i < argc; i++) {
        char *end;
        if (argv[i][0] != '-')
            name = argv[i];
        else if (strcmp(argv[i], "-f") == 0)
            show = -1;
        else if (strcmp(argv[i], "-n") == 0)
            sign = 1.0;
        else if (strlen(argv[i]) != 2 || strchr(letters, argv[i][1]) == NULL || i + 1 == argc)
            stop("usage: grape5_style", usage);
        else {
            double *value = to[strchr(letters, argv[i][1]) - letters];
            *value = strtod(argv[++i], &end);
            if (end == argv[i] || *end != '\0') stop("usage: grape5_style", usage);
        }
    }
    if (!(dt > 0.0) || !(tend > 1e-9) || !(tend / dt < 1e9))
        stop("dt and tend must be above zero;", usage);
    if (!(size >= 1.0)) stop("size must be above zero;", usage);
    if (size < njmax) njmax = (int)size;
    if (snapshot_load(name, &s, fault) != 0) {
        fprintf(stderr, "grape5_style: %s: %s\n", name, fault);
        exit(1);
    }
    n = s.n, m = s.m, x = s.x, v = s.v;
    if (eps < 0.0) eps = 4.0 / n;
}

int main(int argc, char **argv)
{
    double e0, e1, far = 1.0;
    long nsteps;

    njmax = g5_get_jmemsize();
    npipes = g5_get_number_of_pipelines();
    if (njmax < 1 || npipes < 1) stop("no GRAPE here", "");
    options(argc, argv);
    nsteps = (long)ceil(tend / dt - 1e-6); /* whole steps, not above dt */
    if (nsteps < 1) nsteps = 1;
    if (show < 0 || show > n) show = n;
    a = get(n, sizeof *a), pot = get(n, sizeof *pot);
    pa = get(npipes, sizeof *pa), ppot = get(npipes, sizeof *ppot);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) far = fmax(far, 2.0 * fabs(x[i][c]));

    printf(" grape5_style   N = %d   eps = %.3E   dt = %.3E   t_end = %.5f\n", n, eps,
           tend / (double)nsteps, tend);
    if (g5_open() != 0) stop("cannot open the GRAPE", "");
    g5_set_range(-far, far, m[0]);
    g5_set_eps_to_all(eps);
    forces();
    for (int i = 0; i < show; i++)
        printf(" force %d %.16e %.16e %.16e %.16e\n", i + 1, a[i][0], a[i][1], a[i][2], pot[i]);
    e0 = e1 = output();
    for (long s = 1; s <= nsteps; s++) {
        double before = floor(now / DTOUT);
        step(tend * (double)s / (double)nsteps);
        if (floor(now / DTOUT) > before || s == nsteps) e1 = output();
    }
    g5_close();
    printf(" steps %ld   relative energy error %11.3E\n", nsteps, fabs((e1 - e0) / e0));
    if (!isfinite(e1)) stop("energy is lost", "");
    return 0;
}
