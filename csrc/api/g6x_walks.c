/* g6x_walks.c - the g6x_walks calls: forces from many lists in one call. */
#include "api/arguments.h"
#include "g6lib.h"
#include "session/output.h"
#include "util/memory.h"
#include "session/walks.h"

static int softening_checked(struct session *s, double eps2)
{
    if (all_finite(&eps2, 1) && eps2 >= 0.0) return 0; /* the host may trap comparisons with NaN */
    return error_set(&s->error, G6X_E_ARGUMENT, "walks: eps2 = %g is negative, NaN or Inf", eps2);
}

static int null_pointer(struct session *s, long long walk)
{
    return error_set(&s->error, G6X_E_NULL, "walks: null pointer for walk %lld", walk);
}

/* Allocates the groups of nwalks walks; the caller frees them. */
static int make_groups(struct session *s, int nwalks, struct walks *w)
{
    if (nwalks < 0) return error_set(&s->error, G6X_E_ARGUMENT, "walks: nwalks = %d", nwalks);
    w->group = memory_zeroed((size_t)nwalks * sizeof *w->group);
    if (!w->group) return error_set(&s->error, G6X_E_MEMORY, "out of memory for %d walks", nwalks);
    w->count = nwalks;
    return 0;
}

/* ---- offsets into arrays -------------------------------------------------------------------- */

struct arrays {
    int nwalks;
    const long long *i_start, *j_start;
    const double (*xi)[3], (*xj)[3], *mj;
    const int *list;
    int nj;
    double (*acc)[3], *pot;
};

/* How many walks, from the first on, have offsets that do not decrease. */
static int in_order(int nwalks, const long long start[])
{
    int k = 0;
    if (!start || start[0] < 0) return 0;
    while (k < nwalks && start[k] <= start[k + 1]) k++;
    return k;
}

static int arrays_checked(struct session *s, const struct arrays *a)
{
    const int n = a->nwalks;
    if (n < 0) return error_set(&s->error, G6X_E_ARGUMENT, "walks: nwalks = %d", n);
    if (!n) return 0;
    if (!a->i_start || !a->j_start)
        return error_set(&s->error, G6X_E_NULL, "walks: no offsets: null pointer");
    const int i = in_order(n, a->i_start), j = in_order(n, a->j_start);
    if (i < n || j < n)
        return error_set(&s->error, G6X_E_ARGUMENT,
                         "walks: the offsets of walk %d are negative or run backwards",
                         i < j ? i : j);
    if (a->list && a->nj < 0) return error_set(&s->error, G6X_E_ARGUMENT, "walks: nj = %d", a->nj);
    const int targets = a->i_start[n] > a->i_start[0], entries = a->j_start[n] > a->j_start[0];
    if ((targets && !(a->xi && a->acc && a->pot)) || (entries && !(a->xj && a->mj)))
        return error_set(&s->error, G6X_E_NULL, "walks: null pointer");
    return 0;
}

static void fill(const struct arrays *a, struct walks *w)
{
    const int n = a->nwalks;
    for (int k = 0; k < n; k++) {
        struct walk_group *g = &w->group[k];
        const long long i = a->i_start[k], j = a->j_start[k];
        g->ni = a->i_start[k + 1] - i;
        if (g->ni) g->x = a->xi + i, g->acc = a->acc + i, g->pot = a->pot + i;
        struct walk_list *p = &g->list[0];
        p->n = a->j_start[k + 1] - j;
        if (!p->n) continue;
        p->x = a->list ? a->xj : a->xj + j;
        p->m = a->list ? a->mj : a->mj + j;
        p->list = a->list ? a->list + j : NULL;
    }
    w->ni = n ? a->i_start[n] - a->i_start[0] : 0;
    if (!a->list || !n || a->j_start[n] == a->j_start[0]) return; /* no entry is selected */
    w->common = a->nj;
    w->common_x = a->xj;
    w->common_m = a->mj;
}

int g6x_walks(int clusterid, int nwalks, const long long i_start[], const double (*xi)[3],
              const long long j_start[], const int j_list[], int nj, const double (*xj)[3],
              const double mj[], double eps2, double (*acc)[3], double pot[])
{
    const struct arrays a = {nwalks, i_start, j_start, xi, xj, mj, j_list, nj, acc, pot};
    struct walks w = {.eps2 = eps2};
    SESSION_HERE(s, clusterid, code);
    if (s) code = arrays_checked(s, &a);
    if (!code) code = softening_checked(s, eps2);
    if (!code) code = make_groups(s, nwalks, &w);
    if (code) {
        const int good = in_order(nwalks, i_start);
        for (long long i = good > 0 ? i_start[0] : 0; good > 0 && i < i_start[good]; i++)
            session_output_nan(1, acc ? &acc[i] : NULL, NULL, pot ? &pot[i] : NULL, NULL, NULL);
    } else {
        fill(&a, &w);
        code = session_walks_sum(s, &w);
    }
    memory_free(w.group);
    return code;
}

/* ---- arrays of pointers and counts ----------------------------------------------------------- */

static int part_of(struct session *s, long long walk, int n, const double (*const x[])[3],
                   const double *const m[], struct walk_list *p)
{
    if (n < 0)
        return error_set(&s->error, G6X_E_ARGUMENT, "walks: walk %lld has a list of %d", walk, n);
    if (n && !(x && m && x[walk] && m[walk])) return null_pointer(s, walk);
    if (n) *p = (struct walk_list){n, x[walk], m[walk], NULL};
    return 0;
}

/* Sets the targets of the walks, and the outputs unless acc or pot is NULL. */
static int targets_of(struct session *s, const int ni[], double (*const acc[])[3],
                      double *const pot[], struct walks *w)
{
    if (w->count && !ni) return error_set(&s->error, G6X_E_NULL, "walks: ni is a null pointer");
    for (int64_t k = 0; k < w->count; k++) {
        if (ni[k] < 0)
            return error_set(&s->error, G6X_E_ARGUMENT, "walks: walk %lld has %d targets",
                             (long long)k, ni[k]);
        w->group[k].ni = ni[k];
        w->group[k].acc = acc ? acc[k] : NULL;
        w->group[k].pot = pot ? pot[k] : NULL;
        w->ni += ni[k];
    }
    return 0;
}

int g6x_walks_dispatch(int clusterid, int tag, int nwalks, const int ni[],
                       const double (*const xi[])[3], const int nj[], const double (*const xj[])[3],
                       const double *const mj[], const int nc[], const double (*const xc[])[3],
                       const double *const mc[], double eps2)
{
    struct walks w = {.eps2 = eps2};
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    code = softening_checked(s, eps2);
    if (!code) code = make_groups(s, nwalks, &w);
    if (!code) code = targets_of(s, ni, NULL, NULL, &w);
    for (int k = 0; k < nwalks && !code; k++) {
        struct walk_group *g = &w.group[k];
        g->x = xi ? xi[k] : NULL;
        if ((g->ni && !g->x) || !nj) code = null_pointer(s, k);
        if (!code) code = part_of(s, k, nj[k], xj, mj, &g->list[0]);
        if (!code && nc) code = part_of(s, k, nc[k], xc, mc, &g->list[1]);
    }
    code = session_walks_dispatch(s, tag, &w, code);
    memory_free(w.group);
    return code;
}

int g6x_walks_retrieve(int clusterid, int tag, int nwalks, const int ni[], double (*const acc[])[3],
                       double *const pot[])
{
    struct walks w = {0};
    SESSION_HERE(s, clusterid, code);
    if (s) code = make_groups(s, nwalks, &w);
    if (!code) code = targets_of(s, ni, acc, pot, &w);
    for (int64_t k = 0; k < w.count && !code; k++)
        if (w.group[k].ni && !(w.group[k].acc && w.group[k].pot)) code = null_pointer(s, k);
    if (code)
        for (int k = 0; ni && k < nwalks; k++)
            session_output_nan(ni[k], acc ? acc[k] : NULL, NULL, pot ? pot[k] : NULL, NULL, NULL);
    else
        code = session_walks_retrieve(s, tag, &w);
    memory_free(w.group);
    return code;
}
