/* g6x_softened.c - g6x_softened_forces: direct sums of particles with softening of their own. */
#include "core/options.h"
#include "g6lib.h"
#include "session/output.h"
#include "session/registry.h"
#include "shared/package.h"
#include "tree/tree.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"

int g6x_softened_forces(int spline, int threads, int ni, const double (*x)[3], const double (*v)[3],
                        const double eps[], const int self[], int nj, const double (*xj)[3],
                        const double (*vj)[3], const double mass[], const double epsj[],
                        double (*acc)[3], double (*jerk)[3], double pot[], long long *left_out)
{
    const struct tree_input sources = {nj, xj, vj, mass};
    const struct tree_forces out = {.acc = acc, .pot = pot, .jerk = jerk};
    struct tree_counts counts = {0};
    double *eps2 = memory_zeroed((size_t)ni * sizeof *eps2);
    const struct tree_targets targets = {.n = ni, .x = x, .v = v, .self = self, .eps2 = eps2};
    int code = eps2 ? 0 : G6X_E_MEMORY;
    FPENV_FLUSHED_HERE;
    for (int i = 0; i < ni && !code; i++) eps2[i] = eps[i] * eps[i];
    if (!code)
        code = tree_softening_direct(&sources, epsj, spline ? PAIR_SPLINE : PAIR_OWN, &targets,
                                     &out, options_threads(threads), &counts);
    memory_free(eps2);
    *left_out = counts.zero_distances;
    if (code) {
        session_output_nan(ni, acc, jerk, pot, NULL, NULL);
        return session_registry_refuse(code, "out of memory for %d targets", ni);
    }
    for (int i = 0; i < ni; i++)
        if (!all_finite(acc[i], 3) || !all_finite(jerk[i], 3) || !is_finite(pot[i]))
            return session_registry_refuse(G6X_E_RANGE,
                                           "the force on target %d does not fit a double", i);
    return 0;
}
