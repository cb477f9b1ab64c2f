/* g6x_softened.c - g6x_softened_forces: direct sums of particles with softening of their own. */
#include <math.h>

#include "core/options.h"
#include "g6lib.h"
#include "session/output.h"
#include "session/registry.h"
#include "tree/tree.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"

/* Refuses numbers that are not finite or, of softening, negative. */
static int checked(const char *name, const double *a, int n, int columns, int negative)
{
    for (int64_t k = 0; a && k < (int64_t)n * columns; k++)
        if (!is_finite(a[k]) || (!negative && a[k] < 0.0))
            return session_registry_refuse(negative ? G6X_E_J_NAN : G6X_E_ARGUMENT,
                                           "%s[%d] of g6x_softened_forces is %g", name,
                                           (int)(k / columns), a[k]);
    return 0;
}

static int sum(int term, int threads, const struct tree_input *sources, const double epsj[],
               struct tree_targets *targets, const double eps[], const struct tree_forces *out,
               struct tree_counts *counts)
{
    const int64_t n = targets->n;
    double *eps2 = memory_zeroed((size_t)n * sizeof *eps2);
    if (!eps2) return session_registry_refuse(G6X_E_MEMORY, "out of memory for %d targets", (int)n);
    for (int64_t i = 0; i < n; i++) eps2[i] = eps[i] * eps[i];
    targets->eps2 = eps2;
    const int code =
        tree_softening_direct(sources, epsj, term, targets, out, options_threads(threads), counts);
    memory_free(eps2);
    if (code)
        return session_registry_refuse(code, "out of memory for %d particles", (int)sources->n);
    for (int64_t i = 0; i < n; i++)
        if (!all_finite(out->acc[i], 3) || !is_finite(out->pot[i]) ||
            (out->jerk && !all_finite(out->jerk[i], 3)))
            return session_registry_refuse(G6X_E_RANGE,
                                           "the force on target %d does not fit a double", (int)i);
    return 0;
}

int g6x_softened_forces(int spline, int threads, int ni, const double (*x)[3], const double (*v)[3],
                        const double eps[], const int self[], int nj, const double (*xj)[3],
                        const double (*vj)[3], const double mass[], const double epsj[],
                        double (*acc)[3], double (*jerk)[3], double pot[], long long *left_out)
{
    const struct tree_input sources = {nj, xj, vj, mass};
    const struct tree_forces out = {.acc = acc, .pot = pot, .jerk = jerk};
    const struct {
        const char *name;
        const double *numbers;
        int n, columns, negative;
    } given[] = {
        {"x", (const double *)x, ni, 3, 1},
        {"v", (const double *)v, ni, 3, 1},
        {"eps", eps, ni, 1, 0},
        {"xj", (const double *)xj, nj, 3, 1},
        {"vj", (const double *)vj, nj, 3, 1},
        {"mass", mass, nj, 1, 1},
        {"epsj", epsj, nj, 1, 0},
    };
    struct tree_targets targets = {.n = ni, .x = x, .v = v, .self = self};
    struct tree_counts counts = {0};
    int code = 0;
    FPENV_FLUSHED_HERE;
    if (ni < 0 || nj < 0 || threads < 0)
        return session_registry_refuse(
            G6X_E_ARGUMENT, "g6x_softened_forces: ni = %d, nj = %d, threads = %d", ni, nj, threads);
    if ((ni && !(x && eps && acc && pot)) || (nj && !(xj && mass)))
        code = session_registry_refuse(G6X_E_NULL, "g6x_softened_forces: null pointer");
    for (int k = 0; k < 7 && !code; k++)
        code = checked(given[k].name, given[k].numbers, given[k].n, given[k].columns,
                       given[k].negative);
    for (int i = 0; i < ni && self && !code; i++)
        if (self[i] < -1 || self[i] >= nj)
            code = session_registry_refuse(G6X_E_ADDRESS, "self[%d] = %d: there are %d particles",
                                           i, self[i], nj);
    if (!code && ni)
        code = sum(spline ? PAIR_SPLINE : PAIR_OWN, threads, &sources, epsj, &targets, eps, &out,
                   &counts);
    if (left_out) *left_out = counts.zero_distances;
    if (code) session_output_nan(ni, acc, jerk, pot, NULL, NULL);
    return code;
}
