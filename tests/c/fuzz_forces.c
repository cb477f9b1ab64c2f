/* fuzz_forces.c - random force calls, lists, pipes and partial sums, and whether what they give is
 * what the model foretells. */
#include "fuzz.h"

#define NAMES(name) int name##_(), name##__()
NAMES(g6calc_firsthalf);
NAMES(g6calc_firsthalf0);
NAMES(g6calc_firsthalf_all);
NAMES(g6calc_firsthalf0_all);
NAMES(g6calc_lasthalf);
NAMES(g6calc_lasthalf0);
NAMES(g6calc_lasthalf2);
NAMES(g6calc_lasthalf2p);
NAMES(g6calc_lasthalfn);
NAMES(g6calc_lasthalf2n);
NAMES(g6calc_lasthalf2np);
NAMES(g6calc_lasthalf_all);
NAMES(g6calc_lasthalf0_all);
NAMES(g6calc_lasthalf2_all);
NAMES(g6_read_neighbour_list);
NAMES(g6_read_neighbour_list_old);
NAMES(g6_get_neighbour_list);
NAMES(g6_read_neighbour_list_all);
NAMES(g6_get_neighbour_list_all);
NAMES(g6_set_nip);
NAMES(g6_set_njp);
NAMES(g6_set_i_particle);
NAMES(g6_set_i_particle_scales_from_real_value);
NAMES(g6_get_force);
NAMES(g6_get_force_etc);

typedef double vector[3];
typedef long long words[G6X_PARTIAL_WORDS];

/* What a force call reads, and its copy; `room` rows end where their allocations end. */
static struct {
    int *index;
    vector *x, *v, *old;
    double *phi, *eps2, *h2;
} in;
static struct {
    int index[MAX_NI];
    vector x[MAX_NI], v[MAX_NI];
    double eps2[MAX_NI], h2[MAX_NI];
} copy;
/* What it writes. */
static struct {
    vector *acc, *jerk;
    double *pot;
    int *near;
    float *distance;
    int rows; /* there are this many, and the last may be none of the call's */
} out;

static const double BEFORE = 777.25; /* what outputs hold before a call */
enum { NEAR_BEFORE = -777 };

static void make_inputs(int room)
{
    const size_t n = (size_t)(room > 0 ? room : 0);
    in.index = tail_of(0, n * sizeof(int));
    in.x = tail_of(1, n * 24);
    in.v = tail_of(2, n * 24);
    in.old = tail_of(3, n * 24);
    in.phi = tail_of(4, n * 8);
    in.eps2 = tail_of(5, n * 8);
    in.h2 = tail_of(6, n * 8);
}

static void make_outputs(int ni)
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

/* ---- what must have come out ------------------------------------------------------------ */

static int is_nan3(const double *d) { return isnan(d[0]) && isnan(d[1]) && isnan(d[2]); }
static int is_before3(const double *d)
{
    return d[0] == BEFORE && d[1] == BEFORE && d[2] == BEFORE;
}

static void check_untouched(int from)
{
    for (int i = from < 0 ? 0 : from; i < out.rows; i++)
        if (!is_before3(out.acc[i]) || !is_before3(out.jerk[i]) || out.pot[i] != BEFORE ||
            out.near[i] != NEAR_BEFORE || out.distance[i] != 777.25f)
            broken("%s wrote to row %d, which was not its own", calling, i);
}

static void check_failed(int rows, int near, int distance)
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

/* The rows of a last half that found its first half; `plain`: acc and jerk are their own. The code
 * it must have, given its code. */
static codes check_rows(struct cluster *c, int near, int distance, int plain)
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

/* Warnings of the sum that has just been done, if it has. */
static void note_coincidences(struct cluster *c)
{
    struct force_model *f = &c->call;
    int most = 0;
    if (f->coincidences < 0) return;
    for (int i = 0; i < f->ni; i++) {
        struct row_model row;
        if (f->target[i].invalid)
            memset(&row, 0, sizeof row), row.coincidences = 1;
        else
            model_row(c, i, &row);
        if (row.coincidences > most) most = row.coincidences;
    }
    c->warnings_least += most == 2;
    c->warnings_most += most > 0;
    f->coincidences = -1;
}

/* A last half, or what is one: code and rows of `rows` it was asked for. */
static void check_last(struct cluster *c, codes before, int code, int rows, int near, int distance,
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
        for (int i = 0, may = 0; i <= f->ni; i++) {
            struct row_model row;
            if (i == f->ni && !may) broken("%s: verification fails without a reason", calling);
            if (i < f->ni) model_row(c, i, &row), may |= row.verify_may_fail;
        }
        if (!(c->verify > 0)) broken("%s verified unasked", calling);
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

/* ---- first half -------------------------------------------------------------------------- */

static struct {
    int64_t id;
    int id32, nj, ni;
} started; /* the latest first half */

void forget_first(void) { memset(&started, 0, sizeof started); }
int id_of_first(void) { return started.id32; }

static void make_targets(struct cluster *c, int ni, int each, double eps2)
{
    for (int i = 0; i < ni; i++) {
        const int as_j = c && c->nbody && chance(2) ? below(c->nbody) : -1;
        in.index[i] = as_j >= 0 ? c->body[as_j].index : any_index();
        for (int k = 0; k < 3; k++) {
            in.x[i][k] = as_j >= 0 && !c->body[as_j].bad ? c->body[as_j].x[k] : any_coordinate();
            in.v[i][k] = as_j >= 0 && !c->body[as_j].bad ? c->body[as_j].v[k] : any_coordinate();
            in.old[i][k] = wild ? NAN : 0;
        }
        in.phi[i] = wild ? INFINITY : 0;
        in.h2[i] = chance(4) ? (wild && chance(4) ? NAN
                                : chance(2)       ? INFINITY
                                                  : -1.0)
                             : any_square();
        in.eps2[i] = each ? any_square() : eps2;
        memcpy(copy.x[i], in.x[i], 24), memcpy(copy.v[i], in.v[i], 24);
        copy.index[i] = in.index[i], copy.eps2[i] = in.eps2[i], copy.h2[i] = in.h2[i];
        say("\n  i %d: index %d x (%a %a %a) v (%a %a %a) eps2 %a h2 %a", i, in.index[i],
            in.x[i][0], in.x[i][1], in.x[i][2], in.v[i][0], in.v[i][1], in.v[i][2], in.eps2[i],
            in.h2[i]);
    }
}

static int is_bad_eps2(double e) { return !isfinite(e) || e < 0; }

/* The targets, as they came; whether any has a NaN, and whether an eps2 is wrong. */
static int take_targets(struct force_model *f, int ni, int *bad_eps2)
{
    int invalid = 0;
    for (int i = 0; i < ni; i++) {
        struct target *t = &f->target[i];
        t->index = copy.index[i];
        t->eps2 = copy.eps2[i];
        t->h2 = copy.h2[i];
        memcpy(t->x, copy.x[i], 24), memcpy(t->v, copy.v[i], 24);
        t->invalid = 0;
        for (int k = 0; k < 3; k++) t->invalid |= !isfinite(t->x[k]) || !isfinite(t->v[k]);
        invalid |= t->invalid;
        *bad_eps2 |= is_bad_eps2(t->eps2);
    }
    return invalid;
}

static codes faults_of_first(const struct cluster *c, int nj, int ni, int bad_eps2)
{
    codes all = 0;
    if (nj < 0 || ni < 0 || bad_eps2 || !isfinite(c->time)) all |= CODE(G6X_E_ARGUMENT);
    for (int k = 0; k < c->nbody && c->body[k].address < nj; k++)
        if (c->body[k].bad) all |= CODE(G6X_E_J_NAN);
    return all;
}

static int any_nj(const struct cluster *c)
{
    if (chance(20)) return wild ? -1 - below(3) : 0;
    if (chance(20)) return wild ? 2147483647 : 45;
    if (chance(4) || !c || !c->nbody) return below(14);
    const int highest = c->body[c->nbody - 1].address;
    return highest + 1 > 100 && !chance(4) ? 40 : highest + 1 + below(3) * below(4);
}

static int any_ni(void)
{
    if (chance(40)) return -1;
    if (chance(12)) return 48 + below(5);
    return chance(8) ? below(24) : below(6);
}

void try_first(void)
{
    int64_t id = begin_call();
    const struct cluster *known = model_find(id == ID_NULL ? 0 : id);
    const int each = chance(4), null = wild && chance(25), huge = null && chance(2);
    codes refusal;
    int code, bad_eps2 = 0;
    a.nj = any_nj(known->state < IMPLICIT ? NULL : known);
    a.ni = huge ? 2147483647 : any_ni();
    a.eps2 = any_square();
    make_inputs(null ? 0 : a.ni);
    struct arguments before = a;
    say("first half of %lld: nj %d ni %d", (long long)id, a.nj, a.ni);
    make_targets(model_find(id == ID_NULL ? 0 : id), null ? 0 : a.ni, each, a.eps2);
    int *const index = null ? NULL : in.index;
    if (id == ID_ALL && each)
        code = CALL(g6calc_firsthalf0_all,
                    (a.nj, a.ni, index, in.x, in.v, in.old, in.old, in.phi, in.eps2, in.h2, a.mode),
                    (P(2, a.nj), P(3, a.ni), index, in.x, in.v, in.old, in.old, in.phi, in.eps2,
                     in.h2, P(8, a.mode)));
    else if (id == ID_ALL)
        code = CALL(g6calc_firsthalf_all,
                    (a.nj, a.ni, index, in.x, in.v, in.old, in.old, in.phi, a.eps2, in.h2),
                    (P(2, a.nj), P(3, a.ni), index, in.x, in.v, in.old, in.old, in.phi,
                     P(4, a.eps2), in.h2));
    else if (each)
        code = CALL(
            g6calc_firsthalf0,
            (a.id, a.nj, a.ni, index, in.x, in.v, in.old, in.old, in.phi, in.eps2, in.h2, a.mode),
            (P(1, a.id), P(2, a.nj), P(3, a.ni), index, in.x, in.v, in.old, in.old, in.phi, in.eps2,
             in.h2, P(8, a.mode)));
    else
        code = CALL(g6calc_firsthalf,
                    (a.id, a.nj, a.ni, index, in.x, in.v, in.old, in.old, in.phi, a.eps2, in.h2),
                    (P(1, a.id), P(2, a.nj), P(3, a.ni), index, in.x, in.v, in.old, in.old, in.phi,
                     P(4, a.eps2), in.h2));
    REQUIRE(memcmp(&a, &before, sizeof a) == 0);
    for (int i = 0; !null && i < a.ni; i++)
        REQUIRE(!memcmp(in.x[i], copy.x[i], 24) && !memcmp(in.v[i], copy.v[i], 24) &&
                in.index[i] == copy.index[i] && !memcmp(&in.h2[i], &copy.h2[i], 8));
    struct cluster *c = model_take(id, &refusal);
    if (!c) {
        model_returned(NULL, refusal | (form && lacking > 1 && lacking < 5 ? CODE(G6X_E_NULL) : 0),
                       code);
        return;
    }
    struct force_model *f = &c->call;
    started.id = id, started.id32 = a.id, started.nj = a.nj, started.ni = a.ni;
    if (form && lacking > 1 && lacking < (each ? 4 : 5)) {
        model_returned(c, CODE(G6X_E_NULL), code);
        f->made = 0;
        return;
    }
    const int taken = a.ni > 0 && !null ? a.ni : 0;
    const int invalid = take_targets(f, taken, &bad_eps2);
    if (!each && !taken) bad_eps2 = -1; /* need not be looked at */
    codes all = faults_of_first(c, a.nj, a.ni, bad_eps2 > 0);
    if (null && a.ni > 0) all |= CODE(G6X_E_NULL);
    f->made = 1;
    f->code = CODE(0);
    model_first(c, a.nj, a.ni < 0 ? 0 : a.ni);
    if (all) {
        model_returned(c, all, code);
        f->code = CODE(code);
    } else {
        model_returned(c, CODE(invalid ? G6X_E_I_NAN : 0), code);
    }
}

/* ---- last half --------------------------------------------------------------------------- */

static int last_of(int which, int64_t id, vector *acc, vector *jerk, double *pot, int *near,
                   float *distance)
{
#define LAST(name, eps2v, eps2p, ...)                                                              \
    CALL(name,                                                                                     \
         (a.id, a.nj, a.ni, in.index, in.x, in.v, eps2v, in.h2, acc, jerk,                         \
          pot __VA_OPT__(, ) __VA_ARGS__),                                                         \
         (P(1, a.id), P(2, a.nj), P(3, a.ni), in.index, in.x, in.v, eps2p, in.h2, acc, jerk,       \
          pot __VA_OPT__(, ) __VA_ARGS__))
#define LAST_ALL(name, eps2v, eps2p, ...)                                                          \
    CALL(name,                                                                                     \
         (a.nj, a.ni, in.index, in.x, in.v, eps2v, in.h2, acc, jerk,                               \
          pot __VA_OPT__(, ) __VA_ARGS__),                                                         \
         (P(2, a.nj), P(3, a.ni), in.index, in.x, in.v, eps2p, in.h2, acc, jerk,                   \
          pot __VA_OPT__(, ) __VA_ARGS__))
    if (id == ID_ALL) switch (which) {
        case 0: return LAST_ALL(g6calc_lasthalf_all, a.eps2, &a.eps2);
        case 1:
            return CALL(g6calc_lasthalf0_all,
                        (a.nj, a.ni, in.index, in.x, in.v, in.eps2, in.h2, acc, jerk, pot, a.mode),
                        (P(2, a.nj), P(3, a.ni), in.index, in.x, in.v, in.eps2, in.h2, acc, jerk,
                         pot, &a.mode));
        default: return LAST_ALL(g6calc_lasthalf2_all, a.eps2, &a.eps2, near);
        }
    switch (which) {
    case 0: return LAST(g6calc_lasthalf, a.eps2, &a.eps2);
    case 1:
        return CALL(
            g6calc_lasthalf0,
            (a.id, a.nj, a.ni, in.index, in.x, in.v, in.eps2, in.h2, acc, jerk, pot, a.mode),
            (P(1, a.id), P(2, a.nj), P(3, a.ni), in.index, in.x, in.v, in.eps2, in.h2, acc, jerk,
             pot, &a.mode));
    case 2: return LAST(g6calc_lasthalfn, a.eps2, &a.eps2);
    case 3: return LAST(g6calc_lasthalf2, a.eps2, &a.eps2, near);
    case 4: return LAST(g6calc_lasthalf2n, a.eps2, &a.eps2, near);
    case 5: return LAST(g6calc_lasthalf2p, a.eps2, &a.eps2, near, distance);
    default: return LAST(g6calc_lasthalf2np, a.eps2, &a.eps2, near, distance);
    }
}

void try_last(void)
{
    int64_t id = begin_call();
    codes refusal, before = 0;
    if (!chance(8)) id = started.id, a.id = started.id32;
    if (id == ID_NULL && !(form && lacking == 1)) form = 1, lacking = 1;
    if (form && lacking == 1 && id != ID_ALL) id = ID_NULL;
    a.nj = chance(12) ? below(12) : started.nj;
    a.ni = chance(12) ? below(8) - 1 : started.ni;
    a.eps2 = wild && chance(4) ? NAN : 0;
    const int which = below(id == ID_ALL ? 3 : 7);
    const int near = id == ID_ALL ? which == 2 : which > 2, distance = id != ID_ALL && which > 4;
    const int huge = a.ni > MAX_NI, null = huge || (wild && chance(20));
    const int missing = null ? below(near ? 4 : 3) : -1;
    const int shape = null ? 0 : below(12); /* 1: acc is jerk; 2: on top of inputs */
    make_inputs(huge ? 0 : a.ni);
    for (int i = 0; i < (huge ? 0 : a.ni); i++) memset(in.x[i], 0, 24), memset(in.v[i], 0, 24);
    make_outputs(huge ? 0 : a.ni);
    if (shape == 1) out.jerk = out.acc;
    if (shape == 2) {
        in.x = out.acc, in.v = out.jerk, in.h2 = out.pot, in.index = out.near;
        in.eps2 = out.pot, in.old = out.acc;
    }
    struct arguments kept = a;
    say("last half %d of %lld: nj %d ni %d shape %d missing %d", which, (long long)id, a.nj, a.ni,
        shape, missing);
    const int code =
        last_of(which, id, huge || missing == 0 ? NULL : out.acc,
                huge || missing == 1 ? NULL : out.jerk, huge || missing == 2 ? NULL : out.pot,
                huge || missing == 3 ? NULL : out.near, huge ? NULL : out.distance);
    REQUIRE(memcmp(&a, &kept, sizeof a) == 0);
    struct cluster *c = model.opened ? model_find(id == ID_NULL ? 0 : id) : NULL;
    if (c && c->state < IMPLICIT) c = NULL;
    if (form &&
        (lacking == 2 || lacking == 3)) { /* ni may be what is missing: nothing is written */
        model_returned_again(c, CODE(G6X_E_NULL), code);
        if (lacking == 2 && !null) check_failed(a.ni, near, distance);
        return;
    }
    if (null && a.ni > 0) before |= CODE(G6X_E_NULL);
    c = model_take(id, &refusal);
    if (!c && null && missing == 3 && model_find(id)) refusal |= CODE(G6X_E_NULL);
    if (!c) {
        model_returned_again(NULL, refusal | before, code);
        if (!null) check_failed(a.ni, near, distance);
        check_untouched(null ? out.rows : a.ni);
        return;
    }
    struct force_model *f = &c->call;
    const int other = f->made && (a.nj != f->nj || a.ni != f->ni);
    if (other && a.ni < 0) before |= CODE(G6X_E_ARGUMENT);
    if (!f->made) before |= CODE(G6X_E_NO_FIRSTHALF);
    if (other) before |= CODE(G6X_E_MISMATCH);
    if (null || before) {
        if (!before) { /* nothing is written, so nothing is missing */
            check_last(c, 0, code, 0, near && missing != 3, distance, 1);
            return;
        }
        model_returned_again(c, before, code);
        if (null) return;
        const int rows = other && f->ni < a.ni ? f->ni : a.ni;
        check_failed(rows, near, distance);
        if (shape != 1) check_untouched(rows);
        return;
    }
    check_last(c, 0, code, a.ni, near, distance, shape != 1);
    if (shape != 1) check_untouched(a.ni);
}

/* ---- lists --------------------------------------------------------------------------------- */

static void check_list(struct cluster *c, int pipe, int most, int code, int length, const int *list)
{
    struct list_model m;
    const int n = length < most ? length : most > 0 ? most : 0;
    model_list(c, pipe, c->settings[G6X_NEIGHBOUR_SELF], &m);
    if (length < m.nmust || length > m.nmay)
        broken("list of %d: %d long, not %d to %d", pipe, length, m.nmust, m.nmay);
    REQUIRE((code == 1) == (length > most));
    int must = 0, may = 0;
    for (int k = 0; k < n; k++) {
        if (k && list[k] < list[k - 1]) broken("the list of %d is not ascending", pipe);
        while (may < m.nmay && m.may[may] < list[k]) may++;
        if (may == m.nmay || m.may[may++] != list[k]) broken("%d is in no such list", list[k]);
        if (must < m.nmust && m.must[must] < list[k]) broken("%d is not in the list", m.must[must]);
        if (must < m.nmust && m.must[must] == list[k]) must++;
    }
    if (code == 0 && must < m.nmust) broken("%d is not in the list of %d", m.must[must], pipe);
}

void try_lists(void)
{
    int64_t id = begin_call();
    codes refusal;
    if (!chance(8)) id = started.id, a.id = started.id32;
    if (id == ID_NULL && !(form && lacking == 1)) form = lacking = 1;
    if (form && lacking == 1 && id != ID_ALL) id = ID_NULL;
    int code, length = -777;
    say("lists of %lld", (long long)id);
    if (chance(4)) {
        code = id == ID_ALL ? CALL(g6_read_neighbour_list_all, (), ())
               : chance(2)  ? CALL(g6_read_neighbour_list, (a.id), (P(1, a.id)))
                            : CALL(g6_read_neighbour_list_old, (a.id), (P(1, a.id)));
        struct cluster *c = model_take(id, &refusal);
        if (!c)
            model_returned(NULL, refusal, code);
        else if (!c->call.made)
            model_returned(c, CODE(G6X_E_NO_FIRSTHALF), code);
        else
            model_returned_again(c, c->call.code, code);
        return;
    }
    static const int MOST[] = {100, 100, 1, 3, 0, -1};
    a.pipe = chance(12)                           ? (chance(2) ? -1 : 2147483647)
             : started.ni > 0 && started.ni < 100 ? below(started.ni + 1)
                                                  : 0;
    a.most = MOST[below(6)];
    const int null = wild && chance(20), no_list = null && chance(2);
    const size_t room = (size_t)(a.most > 0 ? a.most : 0);
    int *list = tail_of(0, room * sizeof(int)), *const to = null && !no_list ? NULL : &length;
    for (size_t k = 0; k < room; k++) list[k] = NEAR_BEFORE;
    if (no_list) list = NULL;
    say(" pipe %d most %d", a.pipe, a.most);
    code = id == ID_ALL ? CALL(g6_get_neighbour_list_all, (a.pipe, a.most, to, list),
                               (P(2, a.pipe), P(3, a.most), to, list))
                        : CALL(g6_get_neighbour_list, (a.id, a.pipe, a.most, to, list),
                               (P(1, a.id), P(2, a.pipe), P(3, a.most), to, list));
    if (form && (lacking == 2 || lacking == 3)) {
        struct cluster *c = model.opened && id != ID_NULL ? model_find(id) : NULL;
        model_returned_again(c && c->state >= IMPLICIT ? c : NULL, CODE(G6X_E_NULL), code);
        return;
    }
    struct cluster *c = model_take(id, &refusal);
    codes all = c ? 0 : refusal;
    if (c && !to) all |= CODE(G6X_E_NULL);
    if (c && !list && a.most > 0) all |= CODE(G6X_E_NULL);
    if (c && !c->call.made) all |= CODE(G6X_E_NO_FIRSTHALF);
    if (c && c->call.made && (a.pipe < 0 || a.pipe >= c->call.ni)) all |= CODE(G6X_E_PIPE);
    if (all) {
        model_returned(c, all | (c && c->call.made ? c->call.code & ~CODE(0) : 0), code);
    } else if (c->call.code != CODE(0)) {
        model_returned_again(c, c->call.code, code);
    } else if (c->call.target[a.pipe].invalid) {
        model_returned_again(c, CODE(G6X_E_I_NAN), code);
    } else {
        model_returned(c, CODE(0) | CODE(1), code);
        check_list(c, a.pipe, a.most, code, length, list);
    }
    if (code < 0 && to && !null) REQUIRE(length == 0);
    for (size_t k = (size_t)(length > 0 ? length : 0); list && k < room; k++)
        REQUIRE(list[k] == NEAR_BEFORE);
}

/* ---- the group that halves are made of ------------------------------------------------------- */

static void get_force(int64_t id)
{
    const struct cluster *known = model_find(id == ID_NULL ? 0 : id);
    const int nip = known->state >= IMPLICIT ? known->nip : 2, near = chance(2);
    const int missing = wild && chance(8) ? below(5) : -1;
    int *flag = tail_of(13, (size_t)(nip > 0 ? nip : 0) * sizeof(int)), bad_eps2 = 0;
    codes refusal;
    for (int i = 0; i < nip; i++) flag[i] = NEAR_BEFORE;
    make_outputs(nip);
    vector *const acc = missing == 0 ? NULL : out.acc, *const jerk = missing == 1 ? NULL : out.jerk;
    double *const pot = missing == 2 ? NULL : out.pot;
    int *const nn = missing == 3 ? NULL : out.near, *const flags = missing == 4 ? NULL : flag;
    const int code = near ? CALL(g6_get_force_etc, (a.id, acc, jerk, pot, nn, flags),
                                 (P(1, a.id), acc, jerk, pot, nn, flags))
                          : CALL(g6_get_force, (a.id, acc, jerk, pot, flags),
                                 (P(1, a.id), acc, jerk, pot, flags));
    say(" of %lld, missing %d", (long long)id, missing);
    struct cluster *c = model_take(id, &refusal);
    if (!c) {
        model_returned_again(NULL, refusal | (near && !nn ? CODE(G6X_E_NULL) : 0), code);
        return;
    }
    struct force_model *f = &c->call;
    if (missing >= 0 && (missing != 3 || near) && c->nip > 0) {
        model_returned_again(c, CODE(G6X_E_NULL) | faults_of_first(c, c->njp, c->nip, 1), code);
        for (int i = 0; i < c->nip; i++) {
            REQUIRE(!acc || is_nan3(acc[i]));
            REQUIRE(!jerk || is_nan3(jerk[i]));
            REQUIRE(!pot || isnan(pot[i]));
            REQUIRE(!flags || flag[i] == code);
        }
        calling = "g6calc_firsthalf"; /* whether one was made is left open */
        f->code =
            CODE(g6calc_firsthalf((int)id, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0.0, NULL));
        f->made = 1;
        model_first(c, 0, 0);
        return;
    }
    memcpy(f->target, c->pipe, sizeof f->target);
    for (int i = 0; i < c->nip; i++) {
        const struct target *t = &f->target[i];
        bad_eps2 |= is_bad_eps2(t->eps2);
    }
    codes all = faults_of_first(c, c->njp, c->nip, bad_eps2);
    f->made = 1;
    f->code = CODE(0);
    model_first(c, c->njp, c->nip < 0 ? 0 : c->nip);
    if (all) f->code = CODE(code);
    started.id = id, started.id32 = a.id, started.nj = c->njp, started.ni = c->nip;
    check_last(c, all, code, c->nip, near && nn, 0, 1);
    check_untouched(c->nip);
    for (int i = 0; flags && i < c->nip; i++) REQUIRE(flag[i] == code);
}

void try_pipes(void)
{
    int64_t id = begin_call();
    if (id == ID_ALL) id = own_id();
    codes refusal, all = CODE(0);
    const int which = below(8);
    int code;
    if (which >= 5) {
        get_force(id);
        return;
    }
    struct target t = {0};
    a.n = chance(20) ? -1 : chance(20) ? 60 : below(7);
    a.address = chance(20) ? -3 : chance(8) ? below(60) : below(6);
    a.index = t.index = any_index();
    a.eps2 = t.eps2 = any_square();
    a.h2 = t.h2 = any_square();
    for (int k = 0; k < 3; k++) a.x[k] = t.x[k] = any_coordinate();
    for (int k = 0; k < 3; k++) a.v[k] = t.v[k] = any_coordinate();
    for (int k = 0; k < 3; k++) t.invalid |= !isfinite(t.x[k]) || !isfinite(t.v[k]);
    const int null = which == 2 && wild && chance(20);
    struct arguments kept = a;
    say("pipes %d of %lld: n %d address %d index %d x (%a %a %a) v (%a %a %a) eps2 %a h2 %a", which,
        (long long)id, a.n, a.address, a.index, a.x[0], a.x[1], a.x[2], a.v[0], a.v[1], a.v[2],
        a.eps2, a.h2);
    if (which == 0)
        code = CALL(g6_set_nip, (a.id, a.n), (P(1, a.id), P(2, a.n)));
    else if (which == 1)
        code = CALL(g6_set_njp, (a.id, a.n), (P(1, a.id), P(2, a.n)));
    else if (which == 4)
        code = CALL(g6_set_i_particle_scales_from_real_value,
                    (a.id, a.address, a.x, a.v, a.eps2, a.h2, a.h2),
                    (P(1, a.id), P(2, a.address), a.x, a.v, P(3, a.eps2), &a.h2, &a.h2));
    else
        code = CALL(g6_set_i_particle,
                    (a.id, a.address, a.index, a.x, null ? NULL : a.v, a.eps2, a.h2),
                    (P(1, a.id), P(2, a.address), P(3, a.index), a.x, null ? NULL : a.v,
                     P(4, a.eps2), P(5, a.h2)));
    REQUIRE(memcmp(&a, &kept, sizeof a) == 0);
    if (which != 4 && form && lacking > 1 && lacking <= (which < 2 ? 2 : 5)) {
        struct cluster *c = model.opened && id != ID_NULL ? model_find(id) : NULL;
        model_returned_again(c && c->state >= IMPLICIT ? c : NULL, CODE(G6X_E_NULL), code);
        return;
    }
    struct cluster *c = model_take(id, &refusal);
    if (!c) all = refusal;
    if (c && which == 0) c->nip = a.n;
    if (c && which == 1) c->njp = a.n;
    if (c && (which == 2 || which == 3)) {
        if (null) all = CODE(G6X_E_NULL);
        if (a.address < 0) all = CODE(G6X_E_ADDRESS) | (null ? CODE(G6X_E_NULL) : 0);
        if (all == CODE(0)) c->pipe[a.address] = t;
    }
    model_returned(c, all, code);
}

/* ---- partial sums -----------------------------------------------------------------------------
 */

static void check_from_partial(struct cluster *c, int ni, words *w, int code_of_get)
{
    codes all;
    make_outputs(ni);
    calling = "g6x_from_partial";
    const int code = g6x_from_partial(ni, w[0], out.acc, out.jerk, out.pot);
    int invalid = 0;
    for (int i = 0; i < ni; i++) invalid |= c->call.target[i].invalid;
    all = check_rows(c, 0, 0, 1);
    if (invalid) all = CODE(G6X_E_RANGE);
    model_returned_again(NULL, all & ~CODE(G6X_E_VERIFY), code);
    check_untouched(ni);
    if (invalid != (code_of_get == G6X_E_I_NAN)) broken("an invalid row in partial sums is missed");

    /* They are the very numbers that a last half gives. */
    vector acc[MAX_NI], jerk[MAX_NI];
    double pot[MAX_NI];
    calling = "g6calc_lasthalf";
    if (c->id == ID_ALL || invalid || code) return;
    (void)g6calc_lasthalf((int)c->id, c->call.nj, ni, NULL, NULL, NULL, 0, NULL, acc, jerk, pot);
    const size_t n = (size_t)ni;
    if (ni && (memcmp(acc, out.acc, 24 * n) || memcmp(pot, out.pot, 8 * n)))
        broken("partial sums are not the force");
    c->call.rows = 1;
}

static void spoil(words *w, int ni)
{
    long long *const at = &w[below(ni)][below(G6X_PARTIAL_WORDS)];
    switch (below(5)) {
    case 0: *at = (long long)any_bits(); break;
    case 1: *at ^= (long long)(1ull << below(64)); break;
    case 2: *at = 0; break;
    case 3: *at = chance(2) ? INT64_MAX : INT64_MIN; break;
    default: *at = -1;
    }
}

void try_partial(void)
{
    (void)begin_call();
    int id = chance(8) || started.id != started.id32 ? a.id : started.id32;
    codes refusal, all = 0;
    const int ni = chance(8) ? below(8) - 1 : started.ni, null = chance(30);
    if (ni > MAX_NI) return;
    const size_t bytes = (size_t)(ni > 0 ? ni : 0) * sizeof(words);
    words *const w = tail_of(0, bytes), *const sum = tail_of(1, bytes);
    memset(w, 0x55, bytes);
    say("partial sums of %d, ni %d", id, ni);
    calling = "g6x_get_partial";
    int code = g6x_get_partial(id, ni, null ? NULL : w[0]);
    struct cluster *c = model_take(id, &refusal);
    if (!c) {
        model_returned(NULL, refusal, code);
        return;
    }
    struct force_model *f = &c->call;
    if (!f->made) all |= CODE(G6X_E_NO_FIRSTHALF);
    if (f->made && ni != f->ni) all |= CODE(G6X_E_MISMATCH) | (ni < 0 ? CODE(G6X_E_ARGUMENT) : 0);
    if (null && ni > 0) all |= CODE(G6X_E_NULL);
    if (all || f->code != CODE(0)) {
        model_returned_again(c, all ? all | (f->code & ~CODE(0)) : f->code, code);
        return;
    }
    note_coincidences(c);
    if (code == G6X_E_VERIFY) {
        f->code = CODE(code);
        model_returned(c, c->verify > 0 ? CODE(code) : 0, code);
        return;
    }
    int invalid = 0;
    for (int i = 0; i < ni; i++) invalid |= f->target[i].invalid;
    model_returned_again(c, CODE(invalid ? G6X_E_I_NAN : 0), code);
    f->rows = 1;
    if (null) return;
    check_from_partial(c, ni, w, code);

    calling = "g6x_add_partial";
    memcpy(sum, w, bytes);
    REQUIRE(g6x_add_partial(ni, sum[0], w[0]) == 0);
    for (int n = ni ? below(4) : 0; n > 0; n--) spoil(chance(2) ? sum : w, ni);
    code = g6x_add_partial(ni, sum[0], w[0]);
    model_returned_again(NULL, CODE(0) | CODE(G6X_E_ARGUMENT), code);
    make_outputs(ni);
    calling = "g6x_from_partial";
    code = g6x_from_partial(ni, sum[0], out.acc, out.jerk, out.pot);
    model_returned_again(NULL, CODE(0) | CODE(G6X_E_ARGUMENT) | CODE(G6X_E_RANGE), code);
    if (code == G6X_E_ARGUMENT) check_failed(ni, 0, 0);
    check_untouched(ni);
    if (!chance(4)) return;
    code = g6x_from_partial(-1, sum[0], NULL, NULL, NULL);
    model_returned_again(NULL, CODE(G6X_E_ARGUMENT), code);
    if (ni < 1) return;
    code = g6x_from_partial(ni, NULL, out.acc, out.jerk, out.pot);
    model_returned_again(NULL, CODE(G6X_E_NULL), code);
    check_failed(ni, 0, 0);
    code = g6x_add_partial(ni, sum[0], NULL);
    model_returned_again(NULL, CODE(G6X_E_NULL), code);
}
