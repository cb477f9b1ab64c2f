/* fuzz_forces.c - random first and last halves. */
#include "fuzz_calls.h"

struct started started;

void forget_first(void) { memset(&started, 0, sizeof started); }
int id_of_first(void) { return started.id32; }

static void make_targets(struct cluster *c, int ni, int each, double eps2)
{
    for (int i = 0; i < ni; i++) {
        const int as_j = c && c->nbody && chance(2) ? below(c->nbody) : -1;
        in.index[i] = as_j >= 0 && !chance(6) ? c->body[as_j].index : any_index();
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

int is_bad_eps2(double e) { return !isfinite(e) || e < 0; }

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
        invalid |= t->invalid = is_bad(t->x) || is_bad(t->v);
        *bad_eps2 |= is_bad_eps2(t->eps2);
    }
    return invalid;
}

codes faults_of_first(const struct cluster *c, int nj, int ni, int bad_eps2)
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
#define BODIES index, in.x, in.v, in.old, in.old, in.phi
    if (each)
        code = CALL_OF(id, g6calc_firsthalf0, (a.nj, a.ni, BODIES, in.eps2, in.h2, a.mode),
                       (P(2, a.nj), P(3, a.ni), BODIES, in.eps2, in.h2, P(8, a.mode)));
    else
        code = CALL_OF(id, g6calc_firsthalf, (a.nj, a.ni, BODIES, a.eps2, in.h2),
                       (P(2, a.nj), P(3, a.ni), BODIES, P(4, a.eps2), in.h2));
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

static int last_of(int which, int64_t id, vector *acc, vector *jerk, double *pot, int *near,
                   float *distance)
{
#define HEAD a.nj, a.ni, in.index, in.x, in.v
#define HEAD_BY_POINTER P(2, a.nj), P(3, a.ni), in.index, in.x, in.v
#define OUT in.h2, acc, jerk, pot
#define LAST(name, ...)                                                                            \
    CALL(name, (a.id, HEAD, a.eps2, __VA_ARGS__),                                                  \
         (P(1, a.id), HEAD_BY_POINTER, &a.eps2, __VA_ARGS__))
#define LAST_OF(name, ...)                                                                         \
    CALL_OF(id, name, (HEAD, a.eps2, __VA_ARGS__), (HEAD_BY_POINTER, &a.eps2, __VA_ARGS__))
    switch (id == ID_ALL && which == 2 ? 3 : which) {
    case 0: return LAST_OF(g6calc_lasthalf, OUT);
    case 1:
        return CALL_OF(id, g6calc_lasthalf0, (HEAD, in.eps2, OUT, a.mode),
                       (HEAD_BY_POINTER, in.eps2, OUT, &a.mode));
    case 2: return LAST(g6calc_lasthalfn, OUT);
    case 3: return LAST_OF(g6calc_lasthalf2, OUT, near);
    case 4: return LAST(g6calc_lasthalf2n, OUT, near);
    case 5: return LAST(g6calc_lasthalf2p, OUT, near, distance);
    default: return LAST(g6calc_lasthalf2np, OUT, near, distance);
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
    for (int i = 0; shape != 2 && !huge && i < a.ni; i++)
        for (int k = 0; k < 3; k++) REQUIRE(in.x[i][k] == 0 && in.v[i][k] == 0);
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
            const int lost = near && !f->nearest && f->written && code == G6X_E_NO_FIRSTHALF;
            check_last(c, lost ? CODE(code) : 0, code, 0, near && missing != 3, distance, 1);
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
