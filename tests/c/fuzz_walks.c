/* fuzz_walks.c - random calls of many walks, by offsets and by pointers: codes, forces within what
 * single or double precision gives, NaN where nothing else is right. */
#include "fuzz_calls.h"

enum { WALKS = 6, MOST = 20, LONGEST = 30, BODIES = 25, TAGS = 8 };

/* A call as it was made. */
struct party {
    int count, ni[WALKS], nj[WALKS], number[WALKS * LONGEST], bodies;
    long long i_start[WALKS + 1], j_start[WALKS + 1];
    vector x[WALKS * MOST], xj[BODIES];
    double mj[BODIES], eps2;
    int exact; /* precision */
    codes fault;
};

static struct party party[TAGS];

static void make_party(struct party *p, const struct cluster *c)
{
    p->count = below(WALKS), p->bodies = 1 + below(BODIES), p->fault = 0;
    p->exact = c && c->settings[G6X_PRECISION] == G6X_DOUBLE;
    p->eps2 = any_square();
    if (!(isfinite(p->eps2) && p->eps2 >= 0)) p->fault |= CODE(G6X_E_ARGUMENT);
    for (int j = 0; j < p->bodies; j++) {
        for (int k = 0; k < 3; k++) p->xj[j][k] = any_coordinate();
        p->mj[j] = any_mass();
    }
    for (int w = 0; w < p->count; w++) {
        p->ni[w] = chance(6) ? 0 : below(MOST + 1), p->nj[w] = chance(6) ? 0 : below(LONGEST + 1);
        p->i_start[w + 1] = p->i_start[w] + p->ni[w];
        p->j_start[w + 1] = p->j_start[w] + p->nj[w];
        for (long long i = p->i_start[w]; i < p->i_start[w + 1]; i++) {
            for (int k = 0; k < 3; k++) p->x[i][k] = any_coordinate();
            if (chance(3)) memcpy(p->x[i], p->xj[below(p->bodies)], sizeof *p->x);
        }
        for (long long e = p->j_start[w]; e < p->j_start[w + 1]; e++) {
            const int j = p->number[e] = below(p->bodies);
            if (p->ni[w] && (is_bad(p->xj[j]) || !isfinite(p->mj[j])))
                p->fault |= CODE(G6X_E_J_NAN);
        }
    }
    say(" %d walks, %lld targets, %lld entries, eps2 %g", p->count, p->i_start[p->count],
        p->j_start[p->count], p->eps2);
}

/* ---- what must come out --------------------------------------------------------------------- */

static int is_tame_party(const struct party *p)
{
    return is_tame(p->eps2) && are_tame(p->bodies, p->mj) && are_tame(3 * p->bodies, p->xj[0]) &&
           are_tame(3 * p->i_start[p->count], p->x[0]);
}

/* g6lib.h: single precision makes 1.6e-5 of a pair at most; adding them up, less than as much. */
static void check_target(const struct party *p, int w, long long i)
{
    const long double share = p->exact ? 1e-13L : 2e-5L;
    long double acc[3] = {0}, pot = 0, error[2] = {0};
    for (long long e = p->j_start[w]; e < p->j_start[w + 1]; e++) {
        const int j = p->number[e];
        long double d[3], r2 = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = (long double)p->xj[j][k] - p->x[i][k];
            r2 += d[k] * d[k];
        }
        if (r2 == 0) continue;
        const long double y = 1 / sqrtl(r2 + p->eps2), my = p->mj[j] * y;
        for (int k = 0; k < 3; k++) acc[k] += my * y * y * d[k];
        pot -= my;
        error[0] += share * fabsl(my) * y * y * sqrtl(r2);
        error[1] += share * fabsl(my);
    }
    check_numbers("acc", i, out.acc[i], acc, 3, error[0]);
    check_numbers("pot", i, &out.pot[i], &pot, 1, error[1]);
}

/* The rows of a call that had no fault; the code it must have. */
static codes check_party(const struct party *p)
{
    const int tame = is_tame_party(p);
    int bad = 0, unfit = 0;
    for (int w = 0; w < p->count; w++)
        for (long long i = p->i_start[w]; i < p->i_start[w + 1]; i++) {
            const int nan = is_nan3(out.acc[i]) || isnan(out.pot[i]);
            if (is_bad(p->x[i])) {
                REQUIRE(is_nan3(out.acc[i]) && isnan(out.pot[i]));
                bad = 1;
                continue;
            }
            for (int k = 0; k < 3; k++) REQUIRE(!isinf(out.acc[i][k]) && !isinf(out.pot[i]));
            unfit |= nan;
            if (tame) check_target(p, w, i);
        }
    return CODE(bad ? G6X_E_I_NAN : unfit ? G6X_E_RANGE : 0);
}

/* Code and rows of a call that gives results. */
static void finish(const struct party *p, struct cluster *c, codes fault, int code)
{
    const int rows = (int)p->i_start[p->count];
    if (fault) check_nan(rows, 0);
    check_untouched(rows);
    model_returned_again(c, fault ? fault : check_party(p), code);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Copies at the ends of allocations. */
static void *copy_of(int slot, const void *from, size_t bytes)
{
    return bytes ? memcpy(tail_of(slot, bytes), from, bytes) : tail_of(slot, 0);
}

/* The entries themselves, one behind the other. */
static void copy_entries(const struct party *p, vector **x, double **m)
{
    const long long n = p->j_start[p->count];
    *x = tail_of(17, (size_t)n * sizeof **x);
    *m = tail_of(18, (size_t)n * sizeof **m);
    for (long long e = 0; e < n; e++) {
        memcpy((*x)[e], p->xj[p->number[e]], sizeof **x);
        (*m)[e] = p->mj[p->number[e]];
    }
}

static void try_offsets(int id)
{
    codes fault;
    struct party *p = &party[0];
    struct cluster *c = model_take(id, &fault);
    calling = "g6x_walks";
    say(" %s", calling);
    make_party(p, c);
    const size_t n = (size_t)p->count, ni = (size_t)p->i_start[n], nj = (size_t)p->j_start[n];
    const int listed = chance(2), wrong = chance(6) ? below(9) : -1;
    long long *i_start = copy_of(14, p->i_start, (n + 1) * sizeof *i_start);
    long long *j_start = copy_of(15, p->j_start, (n + 1) * sizeof *j_start);
    vector *x = copy_of(16, p->x, ni * sizeof *x), *xj;
    double *mj;
    int *list = listed ? copy_of(19, p->number, nj * sizeof *list) : NULL;
    copy_entries(p, &xj, &mj);
    if (listed) xj = copy_of(17, p->xj, (size_t)p->bodies * sizeof *xj);
    if (listed) mj = copy_of(18, p->mj, (size_t)p->bodies * sizeof *mj);
    make_outputs((int)ni);
    vector *acc = out.acc;
    double *pot = out.pot;
    fault |= p->fault;
    if (wrong == 0 && n) j_start[n / 2] = (long long)nj + 1, fault |= CODE(G6X_E_ARGUMENT);
    if (wrong == 1 && n) j_start = NULL, fault |= CODE(G6X_E_NULL);
    if (wrong == 2 && nj) xj = NULL, fault |= CODE(G6X_E_NULL);
    if (wrong == 3 && nj) mj = NULL, fault |= CODE(G6X_E_NULL);
    if (wrong == 4 && ni) x = NULL, fault |= CODE(G6X_E_NULL);
    if (wrong == 5 && ni) acc = NULL, fault |= CODE(G6X_E_NULL);
    if (wrong == 6 && ni) pot = NULL, fault |= CODE(G6X_E_NULL);
    if (wrong == 7 && listed && nj && p->ni[0] && p->nj[0])
        list[0] = chance(2) ? -1 - below(9) : p->bodies, fault |= CODE(G6X_E_ADDRESS);
    const int bodies = wrong == 8 && listed && n ? -1 : p->bodies;
    if (bodies < 0) fault |= CODE(G6X_E_ARGUMENT);
    const int code = g6x_walks(id, p->count, i_start, (const double (*)[3])x, j_start, list, bodies,
                               (const double (*)[3])xj, mj, p->eps2, acc, pot);
    without(acc, out.jerk, pot, ni);
    finish(p, c, fault, code);
}

/* Pointers to what walks have in arrays that lie behind each other. */
static void **pointers(int slot, const struct party *p, void *array, size_t size,
                       const long long *start, const int *skip)
{
    void **to = tail_of(slot, (size_t)p->count * sizeof *to);
    for (int w = 0; w < p->count; w++)
        to[w] = (char *)array + (size_t)(start[w] + (skip ? skip[w] : 0)) * size;
    return to;
}

static codes dispatch(int id, int tag, struct party *p)
{
    codes fault;
    struct cluster *c = model_take(id, &fault);
    calling = "g6x_walks_dispatch";
    say(" %s tag %d", calling, tag);
    make_party(p, c);
    const size_t n = (size_t)p->count, ni = (size_t)p->i_start[n];
    vector *x = copy_of(16, p->x, ni * sizeof *x), *xj;
    double *mj;
    int *counts = copy_of(19, p->ni, n * sizeof *counts), *nj = tail_of(20, n * sizeof *nj);
    int *nc = chance(2) ? NULL : tail_of(21, n * sizeof *nc);
    copy_entries(p, &xj, &mj);
    for (size_t w = 0; w < n; w++) {
        nj[w] = nc ? below(p->nj[w] + 1) : p->nj[w];
        if (nc) nc[w] = p->nj[w] - nj[w];
    }
    void **xi = pointers(22, p, x, sizeof *x, p->i_start, NULL);
    void **xs = pointers(23, p, xj, sizeof *xj, p->j_start, NULL);
    void **ms = pointers(24, p, mj, sizeof *mj, p->j_start, NULL);
    void **xc = pointers(25, p, xj, sizeof *xj, p->j_start, nj);
    void **mc = pointers(26, p, mj, sizeof *mj, p->j_start, nj);
    if (n && chance(12)) counts[n - 1] = -1, p->fault |= CODE(G6X_E_ARGUMENT);
    if (ni && chance(12)) xi = NULL, p->fault |= CODE(G6X_E_NULL);
    if (p->j_start[n] && !nc && chance(12)) ms = NULL, p->fault |= CODE(G6X_E_NULL);
    const int code =
        g6x_walks_dispatch(id, tag, p->count, counts, (const double (*const *)[3])xi, nj,
                           (const double (*const *)[3])xs, (const double *const *)ms, nc,
                           (const double (*const *)[3])xc, (const double *const *)mc, p->eps2);
    memset(x, 0xff, ni * sizeof *x); /* the inputs are free again */
    memset(xj, 0xff, (size_t)p->j_start[n] * sizeof *xj);
    p->fault |= fault;
    /* what is found out on the way may be said at once, or by the retrieval */
    model_returned_again(c, (p->fault ? p->fault : CODE(0)) | CODE(0), code);
    REQUIRE(code || !(p->fault & ~CODE(G6X_E_J_NAN)));
    return code ? CODE(code) : p->fault;
}

static void retrieve(int id, int tag, const struct party *p, codes expected)
{
    codes refusal;
    struct cluster *c = model_take(id, &refusal);
    const size_t n = (size_t)p->count;
    int *ni = copy_of(19, p->ni, n * sizeof *ni);
    calling = "g6x_walks_retrieve";
    say(" %s tag %d", calling, tag);
    make_outputs((int)p->i_start[n]);
    void **acc = pointers(22, p, out.acc, sizeof *out.acc, p->i_start, NULL);
    void **pot = pointers(23, p, out.pot, sizeof *out.pot, p->i_start, NULL);
    const int code =
        g6x_walks_retrieve(id, tag, p->count, ni, (double (*const *)[3])acc, (double *const *)pot);
    finish(p, c, refusal ? refusal : expected, code);
}

static void try_tags(int id)
{
    const int first = any_index() / 2, n = chance(6) ? TAGS : 1 + below(3);
    const int turn = below(n);
    codes expected[TAGS];
    for (int k = 0; k < n; k++) expected[k] = dispatch(id, first + k, &party[k]);
    if (chance(3)) expected[turn] = dispatch(id, first + turn, &party[turn]); /* the old is lost */
    for (int q = 0; q < n; q++) {
        const int k = (q + turn) % n;
        retrieve(id, first + k, &party[k], expected[k]);
        if (chance(8)) retrieve(id, first + k, &party[k], CODE(G6X_E_NO_FIRSTHALF));
    }
}

void try_walks(void)
{
    (void)begin_call();
    if (chance(2))
        try_offsets(a.id);
    else
        try_tags(a.id);
}
