/* fuzz_particles.c - random calls about the time, j particles and their scale. */
#include "fuzz_calls.h"

void try_time(void)
{
    const int64_t id = begin_call();
    codes refusal;
    a.ti = any_time();
    keep();
    const int code = CALL_OF(id, g6_set_ti, (a.ti), (P(2, a.ti)));
    say(" cluster %lld: %a", (long long)id, a.ti);
    if (lacks(2)) {
        lacked(code);
        return;
    }
    struct cluster *c = model_take(id, &refusal);
    if (c) c->time = a.ti;
    model_returned(c, c ? CODE(isfinite(a.ti) ? 0 : G6X_E_ARGUMENT) : refusal, code);
    end_call();
}

static int any_address(int64_t id)
{
    const struct cluster *c = model_find(id == ID_NULL ? 0 : id);
    if (c->state >= IMPLICIT && c->nbody > MAX_BODY - 20) return c->body[below(c->nbody)].address;
    if (chance(200)) return chance(3) ? 200000 : 5000 + below(3) * 1024;
    if (chance(60)) return 1022 + below(5);
    if (chance(40)) return chance(2) ? -1 - below(9) : chance(2) ? -2147483647 - 1 : 2147483647;
    return chance(3) ? below(40) : below(12);
}

static void any_body(struct body *b, int64_t id)
{
    memset(b, 0, sizeof *b);
    b->address = any_address(id);
    b->index = chance(3) ? any_index() : b->address;
    b->mass = any_mass();
    for (int k = 0; k < 3; k++) b->x[k] = any_coordinate();
    if (chance(3)) return;
    b->t = any_time();
    for (int k = 0; k < 3; k++) b->v[k] = any_coordinate();
    if (chance(2)) return;
    for (int k = 0; k < 3; k++) b->a2[k] = any_coordinate(), b->j6[k] = any_coordinate();
    for (int k = 0; k < 3 && chance(2); k++) b->k18[k] = any_coordinate();
}

static void say_body(const struct body *b)
{
    say("\n  address %d index %d m %a t %a", b->address, b->index, b->mass, b->t);
    const double *const all[] = {b->k18, b->j6, b->a2, b->v, b->x};
    for (int k = 0; k < 5; k++) say(" (%a %a %a)", all[k][0], all[k][1], all[k][2]);
}

int listing; /* as many writes are to come of a list of particles at rest */

void try_write(void)
{
    static int next, at, its_form, only; /* of that list: address, cluster, form and call */
    int64_t id = begin_call();
    struct body b;
    codes refusal;
    const int goes_on = listing > 0, at_rest = goes_on || chance(4);
    const int many = at_rest && !goes_on && chance(4);
    const int starts = at_rest && !many && id != ID_ALL && id != ID_NULL && chance(3);
    if (starts) only = chance(2);
    const int mxonly = at_rest && !many && (only || !(goes_on || starts));
    int code, clusters = below(4) - 1;
    if (starts) listing = below(20), next = chance(4) ? below(9) : 0, at = a.id, its_form = form;
    if (goes_on) id = a.id = at, form = its_form, lacking = 0, listing--;
    if (many) form = 1 + below(2);
    if (many && a.id == 2147483647) a.id = 0;
    if (many) id = own_id();
    any_body(&b, id);
    if (at_rest) {
        b.t = 0;
        memset(b.k18, 0, sizeof b.k18), memset(b.j6, 0, sizeof b.j6);
        memset(b.a2, 0, sizeof b.a2), memset(b.v, 0, sizeof b.v);
        if (goes_on || starts) b.address = next++;
        if (goes_on && !only && chance(15)) b.v[1] = chance(2) ? -0.0 : 0.5; /* which ends it */
    }
    a.address = b.address, a.index = b.index, a.tj = b.t, a.mass = b.mass;
    a.dtj = wild && chance(2) ? NAN : 0.125;
    memcpy(a.k18, b.k18, sizeof a.k18), memcpy(a.j6, b.j6, sizeof a.j6);
    memcpy(a.a2, b.a2, sizeof a.a2), memcpy(a.v, b.v, sizeof a.v), memcpy(a.x, b.x, sizeof a.x);
    a.n = clusters;
    double *const x = wild && chance(30) ? NULL : a.x, *const a2 = wild && chance(30) ? NULL : a.a2;
    keep();
    if (many) {
        calling = "g6_set_j_particle_multisend_mxfast_";
        code = form == 1
                   ? g6_set_j_particle_multisend_mxfast_(P(1, a.id), P(2, a.n), P(3, a.address),
                                                         P(4, a.index), P(5, a.mass), x)
                   : g6_set_j_particle_multisend_mxfast__(P(1, a.id), P(2, a.n), P(3, a.address),
                                                          P(4, a.index), P(5, a.mass), x);
    } else if (mxonly) {
        code = CALL_OF(id, g6_set_j_particle_mxonly, (a.address, a.index, a.mass, x),
                       (P(2, a.address), P(3, a.index), P(4, a.mass), x));
    } else {
        code = CALL_OF(id, g6_set_j_particle,
                       (a.address, a.index, a.tj, a.dtj, a.mass, a.k18, a.j6, a2, a.v, x),
                       (P(2, a.address), P(3, a.index), P(4, a.tj), &a.dtj, P(5, a.mass), a.k18,
                        a.j6, a2, a.v, x));
    }
    say(" cluster %lld, %d clusters", (long long)id, clusters);
    say_body(&b);
    if (lacks(mxonly ? 4 : 5) || (many && form && lacking == 1)) {
        lacked(code);
        return;
    }
    const int null = !x || (!many && !mxonly && !a2);
    codes all = clusters < 0 && many ? CODE(0) | CODE(G6X_E_ARGUMENT) : CODE(0);
    struct cluster *c = NULL;
    for (int k = 0; k < (many ? clusters : 1); k++) { /* a fault in one keeps none from its own */
        c = model_take(many ? id + k : id, &refusal);
        const codes one = !c ? refusal : null ? CODE(G6X_E_NULL) : model_write(c, &b);
        if (c && !null) model_written(c);
        if (one != CODE(0)) *(c ? &c->fault : &model.fault) = one;
        if (all == CODE(0)) all = one;
    }
    if (many)
        model_returned_again(NULL, all, code);
    else
        model_returned(c, all, code);
    end_call();
}

void try_write_many(void)
{
    int64_t id = begin_call();
    struct body b[12];
    codes refusal, all = CODE(0);
    if (id == ID_ALL || id == ID_NULL) id = a.id;
    const int n = chance(20) ? -1 : below(13), capacity = n > 0 ? n : 0;
    const struct cluster *old = model_find(id);
    const int in_order = chance(3), labels = chance(2), moving = chance(2);
    int *address = in_order ? NULL : tail_of(0, (size_t)capacity * sizeof(int));
    int *index = labels ? tail_of(1, (size_t)capacity * sizeof(int)) : NULL;
    double *t = moving ? tail_of(2, (size_t)capacity * 8) : NULL,
           *m = tail_of(3, (size_t)capacity * 8);
    double *f[5];
    for (int q = 0; q < 5; q++)
        f[q] = q == 4 || (moving && chance(2)) ? tail_of(4 + q, (size_t)capacity * 24) : NULL;
    for (int k = 0; k < capacity; k++) {
        any_body(&b[k], id);
        if (old->state >= IMPLICIT && old->nbody + n > MAX_BODY - 12 && !in_order)
            b[k].address = old->body[below(old->nbody)].address;
        if (in_order) b[k].address = k;
        if (!labels) b[k].index = b[k].address;
        if (!t) b[k].t = 0;
        double *const to[5] = {b[k].k18, b[k].j6, b[k].a2, b[k].v, b[k].x};
        for (int q = 0; q < 5; q++)
            if (f[q])
                memcpy(f[q] + 3 * k, to[q], 24);
            else
                memset(to[q], 0, 24);
        if (address) address[k] = b[k].address;
        if (index) index[k] = b[k].index;
        if (t) t[k] = b[k].t;
        m[k] = b[k].mass;
    }
    const int null = wild && chance(20);
    calling = "g6x_set_j_particles";
    say("g6x_set_j_particles %lld, %d", (long long)id, n);
    for (int k = 0; k < capacity; k++) say_body(&b[k]);
    typedef const double (*vectors)[3];
    const int code = g6x_set_j_particles(
        (int)id, null ? 2147483647 : n, address, index, t, chance(2) ? NULL : t, null ? NULL : m,
        (vectors)f[0], (vectors)f[1], (vectors)f[2], (vectors)f[3], (vectors)f[4]);
    struct cluster *c = model_take(id, &refusal);
    if (!c) {
        all = refusal;
    } else if (n < 0 || null) {
        all = CODE(null ? G6X_E_NULL : G6X_E_ARGUMENT);
    } else {
        for (int k = 0; k < n; k++) {
            const codes one = model_write(c, &b[k]);
            if (all == CODE(0)) all = one;
        }
        model_written(c);
    }
    model_returned(c, all, code);
}

static int is_near(double found, double right, double error)
{
    if (found == right || (isnan(found) && !isfinite(right))) return 1;
    return !isfinite(right) || fabs(found - right) <= error;
}

/* Predicted particles of addresses first .. first + n - 1, xv[6 n] or x[3 n] and v[3 n]. */
static void check_predicted(const struct cluster *c, int first, int n, const double *x,
                            const double *v, int step)
{
    for (int k = 0; k < n; k++, x += step, v += step) {
        struct source s;
        (void)model_predict(c, (int64_t)first + k, c->settings[G6X_SNAP], c->time, &s);
        for (int q = 0; q < 3; q++) {
            if (!is_near(x[q], s.x[q], s.ex + 0x1p-1021) ||
                !is_near(v[q], s.v[q], s.ev + 0x1p-1021))
                broken("%s: particle %d: x %a for %a, v %a for %a", calling, first + k, x[q],
                       s.x[q], v[q], s.v[q]);
        }
    }
}

void try_predicted(void)
{
    int64_t id = begin_call();
    codes refusal, all;
    const int recent = chance(2), n = chance(12) ? -1 - below(3) : below(14);
    const size_t capacity = n > 0 ? (size_t)n : 0;
    double *x = tail_of(0, capacity * 48), *v = tail_of(1, capacity * 24);
    if (id == ID_ALL) id = own_id();
    a.n = n;
    a.address = chance(10) ? any_address(0) : below(6);
    const int null = chance(30);
    if (null && chance(2)) a.n = 2147483647;
    keep();
    int code;
    if (recent) {
        id = model.recent->id;
        code = CALL(get_j_part_data, (a.address, a.n, null ? NULL : x),
                    (P(2, a.address), P(3, a.n), null ? NULL : x));
    } else {
        x = tail_of(0, capacity * 24);
        code = CALL(g6_get_predicted_j_particles,
                    (a.id, a.n, (double (*)[3])x, null ? NULL : (double (*)[3])v),
                    (P(1, a.id), P(2, a.n), x, null ? NULL : v));
    }
    say(" cluster %lld, address %d, n %d", (long long)id, a.address, a.n);
    if (lacks(recent ? 3 : 2)) {
        lacked(code);
        return;
    }
    struct cluster *c = model_take(id, &refusal);
    all = 0;
    if (null && a.n) all |= CODE(G6X_E_NULL);
    if (a.n < 0 || (c && !isfinite(c->time))) all |= CODE(G6X_E_ARGUMENT);
    if (recent && a.address < 0) all |= CODE(G6X_E_ADDRESS);
    if (!c) all = refusal;
    if (!all) all = CODE(0);
    model_returned(c, all, code);
    if (code == 0 && recent && a.n > 0)
        check_predicted(c, a.address, a.n, x, x + 3, 6);
    else if (code == 0 && a.n > 0)
        check_predicted(c, 0, a.n, x, v, 3);
    end_call();
}

void try_scale(void)
{
    (void)begin_call();
    codes refusal;
    int found[3] = {-777, -777, -777}, right[3];
    const int nj = chance(12) ? -1 : chance(12) ? 2147483647 : below(40), null = chance(30);
    const int id = a.id;
    calling = "g6x_get_scale";
    say("g6x_get_scale %d, nj %d", id, nj);
    const int code = g6x_get_scale(id, nj, null ? NULL : found);
    struct cluster *c = model_take(id, &refusal);
    codes all = refusal;
    if (c) all = (null ? CODE(G6X_E_NULL) : 0) | (nj < 0 ? CODE(G6X_E_ARGUMENT) : 0);
    if (c && !all) all = CODE(0);
    model_returned(c, all, code);
    if (code != 0) return;
    (void)model_scale(c, nj, right);
    for (int k = 0; k < 3; k++)
        if (found[k] != right[k]) broken("scale %d is %d, not %d", k, found[k], right[k]);
}
