/* net_force.c - forces of a tree on its own particles that add up to zero. */
#include "shared/tree_net_force.h"

#include "tree/tree.h"
#include "util/numbers.h"

/* The power of two below which the sizes of some numbers are. */
static int exponent_of(const double *a, int64_t n)
{
    double most = 0.0;
    int exponent = 0;
    for (int64_t k = 0; k < n; k++) most = fabs(a[k]) > most ? fabs(a[k]) : most;
    (void)frexp(most, &exponent);
    return exponent;
}

void tree_net_force_close(int64_t n, const double mass[], double (*a)[3])
{
    if (!all_finite(a[0], 3 * (size_t)n)) return; /* an error, which is the caller's to tell */
    struct tree_net_force net = {{0.0, 0.0, 0.0}, 0.0};
    const int exponent = exponent_of(a[0], 3 * n);
    double of_mass[2], unit[2], back[2], scaled[3]; /* powers of two, as factors that fit */
    tree_halves(of_mass, -exponent_of(mass, n));
    tree_halves(unit, -exponent);
    tree_halves(back, exponent);
    for (int64_t k = 0; k < n; k++) {
        for (int c = 0; c < 3; c++) scaled[c] = a[k][c] * unit[0] * unit[1];
        tree_net_force_add(&net, mass[k] * of_mass[0] * of_mass[1], scaled);
    }
    for (int64_t k = 0; k < n; k++) {
        for (int c = 0; c < 3; c++) scaled[c] = a[k][c] * unit[0] * unit[1];
        tree_net_force_remove(&net, mass[k], scaled);
        for (int c = 0; c < 3; c++) a[k][c] = scaled[c] * back[0] * back[1];
    }
}
