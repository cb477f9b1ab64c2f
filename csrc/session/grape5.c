/* grape5.c - see grape5.h. */
#include "session/grape5.h"

#include <string.h>

#include "session/force.h"
#include "util/fpenv.h"
#include "cpu/grape5_sum.h"
#include "session/output.h"
#include "util/memory.h"

void session_grape5_free(struct grape5 *g)
{
    const struct memory_array all[] = {
        MEMORY_ARRAY(g->eps2_each, 0), MEMORY_ARRAY(g->acc, 0), MEMORY_ARRAY(g->pot, 0), {0}};
    memory_free_all(all);
    cpu_grape5_points_free(&g->points);
    cpu_symmetric_free(&g->symmetric);
    memset(g, 0, sizeof *g);
}

int session_grape5_bad_write(struct session *s, int code, int64_t address, int64_t slots)
{
    if (code == G6X_E_J_NAN)
        return error_set(&s->error, code, "g5_set_xmj: NaN or Inf in the particle at address %lld",
                         (long long)address);
    return error_set(&s->error, code,
                     "g5_set_xmj: out of memory for address %lld; %lld slots are in use",
                     (long long)address, (long long)slots);
}

int session_grape5_run(struct session *s, const double *eps2, int each)
{
    struct grape5 *g = &s->grape5;
    const struct pipes *p = &s->pipes;
    const int threads = options_threads(s->options.threads);
    struct grape5_sum sum = {p->nip, CONST3(p->rows.x), eps2, each, NULL, NULL, 0};
    int bad = 0;
    const struct memory_array results[] = {
        MEMORY_ARRAY(g->acc, p->nip), MEMORY_ARRAY(g->pot, p->nip), {0}};
    int code = memory_reserve(results, p->nip, &g->capacity_results);
    sum.acc = g->acc;
    sum.pot = g->pot;
    FPENV_HERE;
    if (!code && g->ran_symmetric) {
        cpu_symmetric_run(&g->symmetric, g->n, threads, &sum);
    } else if (!code) {
        cpu_grape5_points_pack(&g->points, g->n, s->options.scale);
        code = cpu_grape5_sum_run(&g->points, g->n, threads, &sum);
    }
    if (code)
        return error_set(&s->error, code, "out of memory for the forces on %d particles", p->nip);
    g->results = p->nip;
    while (bad < p->nip && all_finite(p->rows.x[bad], 3)) bad++;
    g->invalid = bad < p->nip;
    s->calls++;
    s->full_calls += p->nip == options_process()->npipes;
    session_force_warn(s, sum.zero_distances);
    return g->invalid ? session_output_invalid(s, bad, -1) : 0;
}

int session_grape5_output(struct session *s, int ni, double (*a)[3], double *p)
{
    const struct grape5 *g = &s->grape5;
    const struct pipes *pipes = &s->pipes;
    int out_of_range = -1;
    if (all_finite(g->acc[0], 3 * (size_t)ni) && all_finite(g->pot, (size_t)ni)) {
        memcpy(a, g->acc, (size_t)ni * sizeof *a);
        for (int i = 0; i < ni; i++) p[i] = 0.0 - g->pot[i];
        return g->invalid ? G6X_E_I_NAN : 0;
    }
    for (int i = ni - 1; i >= 0; i--) {
        double sum[NSUM] = {g->acc[i][0], g->acc[i][1], g->acc[i][2]};
        sum[SUM_POT] = g->pot[i];
        if (!session_output_fit(sum, 0) && all_finite(pipes->rows.x[i], 3)) out_of_range = i;
        memcpy(a[i], sum + SUM_AX, sizeof a[i]);
        p[i] = 0.0 - sum[SUM_POT];
    }
    if (out_of_range >= 0) return session_output_unfit(s, out_of_range, -1);
    return g->invalid ? G6X_E_I_NAN : 0;
}
