/* fuzz_rows.c - what force calls read and write, and whether it is what the model foretells. */
#include "fuzz_calls.h"

struct inputs in;
struct copy copy;
struct outputs out;

void make_inputs(int capacity)
{
    const size_t n = (size_t)(capacity > 0 ? capacity : 0);
    in.index = tail_of(0, n * sizeof(int));
    in.x = tail_of(1, n * 24);
    in.v = tail_of(2, n * 24);
    in.old = tail_of(3, n * 24);
    in.phi = tail_of(4, n * 8);
    in.eps2 = tail_of(5, n * 8);
    in.h2 = tail_of(6, n * 8);
}

void make_outputs(int ni)
{
    out.rows = (ni > 0 ? ni : 0) + 2 * below(2);
    const size_t n = (size_t)out.rows;
    out.acc = tail_of(8, n * 24);
    out.jerk = tail_of(9, n * 24);
    out.pot = tail_of(10, n * 8);
    out.near = tail_of(11, n * sizeof(int));
    out.distance = tail_of(12, n * sizeof(float));
    for (size_t k = 0; k < n; k++) {
        for (int q = 0; q < 3; q++) out.acc[k][q] = out.jerk[k][q] = BEFORE;
        out.pot[k] = BEFORE;
        out.near[k] = NEAR_BEFORE;
        out.distance[k] = 777.25f;
    }
}

int is_nan3(const double *d) { return isnan(d[0]) && isnan(d[1]) && isnan(d[2]); }
int is_bad(const double *d) { return !isfinite(d[0]) || !isfinite(d[1]) || !isfinite(d[2]); }
int is_tame(double a) { return a == 0 || (fabs(a) > 1e-12 && fabs(a) < 3); }

int are_tame(long long n, const double *a)
{
    for (long long k = 0; a && k < n; k++)
        if (isfinite(a[k]) && !is_tame(a[k])) return 0;
    return 1;
}

void check_nan(long long rows, int jerk)
{
    for (long long i = 0; i < rows; i++)
        REQUIRE(is_nan3(out.acc[i]) && isnan(out.pot[i]) && (!jerk || is_nan3(out.jerk[i])));
}

void without(const void *acc, const void *jerk, const void *pot, size_t rows)
{
    if (!acc) memset(out.acc, 0xff, rows * sizeof *out.acc);
    if (!jerk) memset(out.jerk, 0xff, rows * sizeof *out.jerk);
    if (!pot) memset(out.pot, 0xff, rows * sizeof *out.pot);
}

void check_numbers(const char *what, long long i, const double *found, const long double *right,
                   int n, long double error)
{
    for (int k = 0; k < n; k++)
        if (!(fabsl(found[k] - right[k]) <= error + 1e-30L))
            broken("%s[%d] of target %lld is %.17g, not %.17Lg (+- %.3Lg)", what, k, i, found[k],
                   right[k], error);
}

static int is_before3(const double *d)
{
    return d[0] == BEFORE && d[1] == BEFORE && d[2] == BEFORE;
}

void check_untouched(int from)
{
    for (int i = from < 0 ? 0 : from; i < out.rows; i++)
        if (!is_before3(out.acc[i]) || !is_before3(out.jerk[i]) || out.pot[i] != BEFORE ||
            out.near[i] != NEAR_BEFORE || out.distance[i] != 777.25f)
            broken("%s wrote to row %d, which was not its own", calling, i);
}

void check_failed(int rows, int near, int distance)
{
    for (int i = 0; i < rows; i++)
        if (!is_nan3(out.acc[i]) || !is_nan3(out.jerk[i]) || !isnan(out.pot[i]) ||
            (near && out.near[i] != -1) || (distance && !isnan(out.distance[i])))
            broken("%s failed, but row %d is not NaN", calling, i);
}

static void check_vector(int i, const char *what, const double *found, const double *right, int n,
                         double tolerance, int fits, int *unfit)
{
    int nan = 0;
    for (int k = 0; k < n; k++) nan += isnan(found[k]);
    if (nan == n && fits != 1) {
        *unfit = 1;
        return;
    }
    for (int k = 0; k < n; k++)
        if (nan || fits == 0 || !(fabs(found[k] - right[k]) <= tolerance))
            broken("%s: %s[%d] of row %d is %.17g, not %.17g (+- %.3g)", calling, what, k, i,
                   found[k], right[k], tolerance);
}

static int is_one_of(int index, const int *set, int n)
{
    for (int k = 0; k < n; k++)
        if (set[k] == index) return 1;
    return 0;
}

static void check_nearest(int i, const struct target *t, const struct row_model *row, int distance)
{
    if (!row->nnear && out.near[i] != t->index) broken("row %d has no nearest: %d", i, out.near[i]);
    if (row->nnear && !is_one_of(out.near[i], row->near, row->nnear))
        broken("%s: nearest of row %d is %d, not %d (of %d)", calling, i, out.near[i], row->near[0],
               row->nnear);
    if (!distance || row->distance > 1e30) return;
    if (!(fabs(out.distance[i] - row->distance) <= row->distance_error + 1e-37))
        broken("%s: distance of row %d (to %d) is %.9g, not %.9g (to %d or %d others)", calling, i,
               out.near[i], out.distance[i], row->distance, row->near[0], row->nnear - 1);
}

codes check_rows(struct cluster *c, int near, int distance, int plain)
{
    struct force_model *f = &c->call;
    int invalid = 0, unfit = 0, verify = 0;
    for (int i = 0; i < f->ni; i++) {
        struct row_model row;
        const struct target *t = &f->target[i];
        invalid |= t->invalid;
        if (t->invalid) {
            if ((plain && (!is_nan3(out.acc[i]) || !is_nan3(out.jerk[i]))) || !isnan(out.pot[i]))
                broken("%s: row %d has a NaN, but its force has none", calling, i);
            continue;
        }
        model_row(c, i, &row);
        verify |= row.verify_may_fail;
        if (row.anything) {
            unfit |= is_nan3(out.acc[i]) || isnan(out.pot[i]) || is_nan3(out.jerk[i]) ? 2 : 0;
            continue;
        }
        if (plain) {
            check_vector(i, "acc", out.acc[i], row.acc, 3, row.tolerance[0], row.fits[0], &unfit);
            if (f->settings[G6X_JERK])
                check_vector(i, "jerk", out.jerk[i], row.jerk, 3, row.tolerance[1], row.fits[1],
                             &unfit);
            else if (!is_nan3(out.jerk[i]))
                broken("%s: a jerk that was not wanted", calling);
        } else if (row.fits[0] != 1 || row.fits[1] != 1) {
            unfit |= 2;
        }
        check_vector(i, "pot", &out.pot[i], &row.pot, 1, row.tolerance[2], row.fits[2], &unfit);
        if (near) check_nearest(i, t, &row, distance);
    }
    codes all = CODE(unfit & 1 ? G6X_E_RANGE : invalid ? G6X_E_I_NAN : 0);
    if (unfit & 2) all |= CODE(G6X_E_RANGE);
    return all | (verify && c->verify > 0 ? CODE(G6X_E_VERIFY) : 0);
}

void note_coincidences(struct cluster *c)
{
    struct force_model *f = &c->call;
    int most = 0;
    if (f->zero_distances < 0) return;
    for (int i = 0; i < f->ni; i++) {
        struct row_model row;
        if (f->target[i].invalid)
            memset(&row, 0, sizeof row), row.zero_distances = 1;
        else
            model_row(c, i, &row);
        if (row.zero_distances > most) most = row.zero_distances;
    }
    c->warnings_least += most == 2;
    c->warnings_most += most > 0;
    f->zero_distances = -1;
}

void check_last(struct cluster *c, codes before, int code, int rows, int near, int distance,
                int plain)
{
    struct force_model *f = &c->call;
    codes all = before;
    int again = 0;
    if (!all && !f->made) all = CODE(G6X_E_NO_FIRSTHALF);
    if (!all && f->code != CODE(0)) {
        all = f->code;
        again = 1;
    }
    if (all) {
        if (again)
            model_returned_again(c, all, code);
        else
            model_returned(c, all, code);
        check_failed(rows, near, distance);
        return;
    }
    const int missing = (near && !f->nearest) || (distance && !f->distance);
    if (f->written && f->rows && missing && code == G6X_E_NO_FIRSTHALF) {
        model_returned(c, CODE(code), code);
        check_failed(rows, near, distance);
        return;
    }
    note_coincidences(c);
    if (code == G6X_E_VERIFY) {
        if (!f->unverified && !model_verify_may_fail(c))
            broken("%s: verification fails without a reason", calling);
        model_returned(c, CODE(code), code);
        check_failed(rows, near, distance);
        f->code = CODE(code);
        return;
    }
    all = check_rows(c, near, distance, plain);
    model_returned_again(c, all, code);
    if (code == G6X_E_RANGE) c->fault = CODE(code);
    f->rows = 1;
    f->nearest |= near;
    f->distance |= distance;
}
