/* fuzz_lists.c - random calls about neighbour lists, pipes and partial sums. */
#include "fuzz_calls.h"

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

/* The code of the sum that lists belong to: it may be one of the verification. */
static codes code_of_sum(struct cluster *c, int code)
{
    if (c->call.unverified && code == G6X_E_VERIFY) c->call.code = CODE(code);
    return c->call.code;
}

static void all_lists(void)
{
    enum { MOST = 4096 };
    const int id = chance(8) || started.id != started.id32 ? a.id : started.id32;
    const int ni = chance(8) ? below(8) - 1 : started.ni, capacity = chance(3) ? below(4) : MOST;
    if (ni > MAX_NI) return;
    long long *start = tail_of(1, (size_t)(ni < 0 ? 0 : ni + 1) * sizeof *start);
    int *list = tail_of(0, (size_t)capacity * sizeof *list);
    codes refusal, all = 0;
    say("all lists of %d, ni %d, capacity %d", id, ni, capacity);
    calling = "g6x_get_neighbour_lists";
    const int code = g6x_get_neighbour_lists(id, ni, capacity, start, list);
    struct cluster *c = model_take(id, &refusal);
    const int rows = c && c->call.made && c->call.ni < ni ? c->call.ni : ni;
    if (code < 0 && code != G6X_E_I_NAN)
        for (int k = 0; k <= rows; k++) REQUIRE(start[k] == 0);
    if (!c) {
        model_returned(NULL, refusal, code);
        return;
    }
    if (!c->call.made) all |= CODE(G6X_E_NO_FIRSTHALF);
    if (c->call.made && ni != c->call.ni) all |= CODE(G6X_E_MISMATCH);
    if (all) {
        model_returned(c, all | (c->call.made ? c->call.code & ~CODE(0) : 0), code);
    } else if (code_of_sum(c, code) != CODE(0)) {
        model_returned_again(c, c->call.code, code);
    } else {
        int invalid = 0;
        for (int i = 0; i < ni; i++) invalid |= c->call.target[i].invalid;
        model_returned_again(c, CODE(1) | CODE(invalid ? G6X_E_I_NAN : 0), code);
        REQUIRE((code == 1) == (start[ni] > capacity));
        for (int i = 0; i < ni; i++) {
            const int length = (int)(start[i + 1] - start[i]);
            if (c->call.target[i].invalid)
                REQUIRE(length == 0);
            else if (code != 1)
                check_list(c, i, length, 0, length, list + start[i]);
        }
    }
}

void try_lists(void)
{
    int64_t id = begin_call();
    codes refusal;
    if (chance(3)) {
        all_lists();
        return;
    }
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
            model_returned_again(c, code_of_sum(c, code), code);
        return;
    }
    static const int MOST[] = {100, 100, 1, 3, 0, -1};
    a.pipe = chance(12)                           ? (chance(2) ? -1 : 2147483647)
             : started.ni > 0 && started.ni < 100 ? below(started.ni + 1)
                                                  : 0;
    a.most = MOST[below(6)];
    const int null = wild && chance(20), no_list = null && chance(2);
    const size_t capacity = (size_t)(a.most > 0 ? a.most : 0);
    int *list = tail_of(0, capacity * sizeof(int)), *const to = null && !no_list ? NULL : &length;
    for (size_t k = 0; k < capacity; k++) list[k] = NEAR_BEFORE;
    if (no_list) list = NULL;
    say(" pipe %d most %d", a.pipe, a.most);
    code = CALL_OF(id, g6_get_neighbour_list, (a.pipe, a.most, to, list),
                   (P(2, a.pipe), P(3, a.most), to, list));
    if (form && (lacking == 2 || lacking == 3)) {
        null_returned(id, code);
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
    } else if (code_of_sum(c, code) != CODE(0)) {
        model_returned_again(c, c->call.code, code);
    } else if (c->call.target[a.pipe].invalid) {
        model_returned_again(c, CODE(G6X_E_I_NAN), code);
    } else {
        model_returned(c, CODE(0) | CODE(1), code);
        check_list(c, a.pipe, a.most, code, length, list);
    }
    if (code < 0 && to && !null) REQUIRE(length == 0);
    for (size_t k = (size_t)(length > 0 ? length : 0); list && k < capacity; k++)
        REQUIRE(list[k] == NEAR_BEFORE);
}

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
    t.invalid = is_bad(t.x) || is_bad(t.v);
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
        null_returned(id, code);
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
        model_returned(c, f->unverified || model_verify_may_fail(c) ? CODE(code) : 0, code);
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
}
