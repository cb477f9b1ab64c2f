/* bodies.h - what the programs that time calls share. */
#ifndef BODIES_H
#define BODIES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "g6lib.h"

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the numbers. */
static inline double median(double *take, int count)
{
    qsort(take, (size_t)count, sizeof *take, ascending);
    return take[count / 2];
}

static unsigned long long random_state = 1;
static inline double uniform(void)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(random_state >> 11) * 0x1p-53;
}

static inline void shuffle(int *list, int count)
{
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)(uniform() * (i + 1)), kept = list[i];
        list[i] = list[other], list[other] = kept;
    }
}

static inline void direction(double length, double out[3])
{
    const double c = 2.0 * uniform() - 1.0, phi = 6.283185307179586 * uniform();
    const double s = sqrt(1.0 - c * c);
    out[0] = length * s * cos(phi), out[1] = length * s * sin(phi), out[2] = length * c;
}

struct bodies {
    int n;
    double *mass, (*x)[3], (*v)[3];
    int *index;
};

/* Plummer sphere in Henon units, cut at 0.999 of the mass. */
static inline struct bodies plummer(int n)
{
    const size_t size = (size_t)n;
    struct bodies b = {n, malloc(size * 8), malloc(size * 24), malloc(size * 24), malloc(size * 4)};
    const double scale = 3.0 * 3.141592653589793 / 16.0;
    for (int i = 0; i < n; i++) {
        const double m = 0.999 * uniform(), r = 1.0 / sqrt(pow(m, -2.0 / 3.0) - 1.0);
        double q, g;
        do {
            q = uniform(), g = 0.1 * uniform();
        } while (g > q * q * pow(1.0 - q * q, 3.5));
        b.mass[i] = 1.0 / n;
        b.index[i] = i;
        direction(r * scale, b.x[i]);
        direction(q * sqrt(2.0) * pow(1.0 + r * r, -0.25) / sqrt(scale), b.v[i]);
    }
    return b;
}

static inline void check(int code)
{
    char text[256];
    if (!code) return;
    g6x_last_error(0, text, sizeof text);
    fprintf(stderr, "benchmark: %d: %s\n", code, text);
    exit(1);
}

static const char *const MODES[] = {"grape", "double", "single", NULL};

/* The place of a word in a list that ends with NULL. */
static inline int place_of(const char *word, const char *const list[])
{
    for (int k = 0; list[k]; k++)
        if (!strcmp(word, list[k])) return k;
    fprintf(stderr, "benchmark: unknown word %s\n", word);
    exit(2);
}

/* What cluster 0 has: its particles, rows for forces, its time. */
static struct bodies b;
static double (*acc)[3], (*jerk)[3], *pot, *h2, t;
static int *nearest;

static inline void make_rows(int n)
{
    const size_t rows = (size_t)n;
    acc = calloc(rows, 24), jerk = calloc(rows, 24), pot = calloc(rows, 8), h2 = calloc(rows, 8);
    nearest = calloc(rows, 4);
}

/* Particle i at an address, which is its index. */
static inline void write_particle(int address, int i)
{
    static double zero[3];
    g6_set_j_particle(0, address, address, t, 0.0, b.mass[i], zero, zero, zero, b.v[i], b.x[i]);
}

/* Cluster 0, with all particles at its time; mode -1 is the default. */
static inline void open_with(int n, int rows, int mode)
{
    b = plummer(n);
    make_rows(rows);
    check(g6_open(0));
    if (mode >= 0) check(g6x_set_int(0, G6X_PRECISION, mode));
    for (int i = 0; i < n; i++) write_particle(i, i);
    g6_set_ti(0, t);
}

/* First half and last half, with the nearest neighbour if nn; *returned: when the first one did. */
static inline void call(int ni, int *index, double (*x)[3], double (*v)[3], double eps2, int nn,
                        double *returned)
{
    g6calc_firsthalf(0, b.n, ni, index, x, v, acc, jerk, pot, eps2, h2);
    if (returned) *returned = now();
    if (nn)
        check(g6calc_lasthalf2(0, b.n, ni, index, x, v, eps2, h2, acc, jerk, pot, nearest));
    else
        check(g6calc_lasthalf(0, b.n, ni, index, x, v, eps2, h2, acc, jerk, pot));
}

#endif
