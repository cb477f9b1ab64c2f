/* bodies.h - a Plummer sphere for the benchmarks, and a check of return codes. */
#ifndef BODIES_H
#define BODIES_H

#include <stdio.h>

#include "g6lib.h"
#include "measure.h"

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

#endif
