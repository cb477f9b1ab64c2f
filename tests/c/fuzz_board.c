/* fuzz_board.c - random calls that compute no forces: opening, options, texts, particles. */
#include "fuzz.h"

struct arguments a;
int form, lacking;
static struct arguments kept;

/* Every name of a historical call; by pointer the arguments are not declared. */
#define NAMES(name) int name##_(), name##__()
NAMES(g6_open);
NAMES(g6_close);
NAMES(g6_npipes);
NAMES(get_device_count);
NAMES(g6_open_special);
NAMES(g6_open_special2);
NAMES(g6_reset);
NAMES(g6_reset_fofpga);
NAMES(g6_reinitialize);
NAMES(g6_set_tunit);
NAMES(g6_set_xunit);
NAMES(g6_set_overflow_flag_test_mode);
NAMES(g6_set_neighbour_list_sort_mode);
NAMES(g6_get_neighbour_list_sort_mode);
NAMES(g6_open_all);
NAMES(g6_close_all);
NAMES(g6_reset_all);
NAMES(g6_reset_fofpga_all);
NAMES(g6_initialize_jp_buffer);
NAMES(g6_flush_jp_buffer);
NAMES(g6_flush_jp_buffer_and_multisend);
NAMES(g6_setup_njdata);
NAMES(g6_print_chip_status);
NAMES(force_j_particle_send);
NAMES(g6_getnjmax);
NAMES(g6_initialize_jp_buffer_all);
NAMES(g6_flush_jp_buffer_all);
NAMES(g6_set_ti);
NAMES(g6_set_ti_all);
NAMES(g6_set_j_particle);
NAMES(g6_set_j_particle_all);
NAMES(g6_set_j_particle_mxonly);
NAMES(g6_set_j_particle_mxonly_all);
NAMES(g6_get_predicted_j_particles);
NAMES(get_j_part_data);
NAMES(g6_set_i_particle_scales_from_real_value);
int g6_set_j_particle_multisend_mxfast__();

static const int IDS[] = {0, 0, 0, 0, 1, 1, 2, -7, 32652, 2147483647};

int64_t own_id(void) { return form && lacking == 1 ? ID_NULL : a.id; }

int64_t begin_call(void)
{
    memset(&a, 0, sizeof a);
    form = below(3);
    lacking = wild && chance(12) ? 1 + below(8) : 0;
    a.id = chance(3) ? id_of_first() : IDS[below(10)];
    if (chance(12)) return ID_ALL;
    return own_id();
}

/* Arguments are final: they are kept, to be compared afterwards. */
static void keep(void) { memcpy(&kept, &a, sizeof a); }

void end_call(void)
{
    if (memcmp(&kept, &a, sizeof a)) broken("%s wrote to a scalar argument", calling);
}

/* Whether a scalar other than the id is missing: the call then says so, and does nothing. */
static int lacks(int last) { return form && lacking > 1 && lacking <= last; }

static void lacked(int code)
{
    struct cluster *c = model.opened && a.id != 2147483647 ? model_find(a.id) : NULL;
    model_returned_again(c && c->state >= IMPLICIT ? c : NULL, CODE(G6X_E_NULL), code);
    end_call();
}

/* ---- clusters ------------------------------------------------------------------------- */

void try_open(void)
{
    const int64_t id = begin_call();
    int list[2] = {0, 1}, code;
    a.n = below(3);
    keep();
    say(" (%d)", a.id);
    if (id == ID_ALL) {
        code = CALL(g6_open_all, (), ());
        model_open(ID_ALL);
    } else if (chance(8)) {
        int *const which = chance(4) ? NULL : list;
        code = chance(2)
                   ? CALL(g6_open_special, (a.n, which), (P(2, a.n), which))
                   : CALL(g6_open_special2, (a.n, which, a.mode), (P(2, a.n), which, P(3, a.mode)));
        if (lacks(2)) {
            model_returned(NULL, CODE(G6X_E_NULL), code);
            return;
        }
        if (a.n && !which) {
            model_returned(NULL, CODE(G6X_E_NULL), code);
            return;
        }
        model_open(0);
    } else {
        code = CALL(g6_open, (a.id), (P(1, a.id)));
        model_open(id == ID_NULL ? 0 : id);
    }
    model_returned(NULL, CODE(0), code);
    end_call();
}

void try_close(void)
{
    const int64_t id = begin_call();
    keep();
    say(" (%d)", a.id);
    const int code =
        id == ID_ALL ? CALL(g6_close_all, (), ()) : CALL(g6_close, (a.id), (P(1, a.id)));
    model_close(id == ID_NULL ? 0 : id);
    model_returned(NULL, CODE(0), code);
    end_call();
}

/* Legal at any time. */
void try_nothing(void)
{
    (void)begin_call();
    a.n = below(60) - 5;
    a.mode = below(9) - 4;
    keep();
    int code = 0;
    switch (below(12)) {
    case 0: code = CALL(g6_reset, (a.id), (P(1, a.id))); break;
    case 1: code = CALL(g6_reset_fofpga, (a.id), (P(1, a.id))); break;
    case 2: code = CALL(g6_reinitialize, (a.id), (P(1, a.id))); break;
    case 3: code = CALL(g6_set_tunit, (a.n), (P(1, a.n))); break;
    case 4: code = CALL(g6_set_xunit, (a.n), (P(1, a.n))); break;
    case 5: code = CALL(g6_reset_all, (), ()); break;
    case 6: code = CALL(g6_reset_fofpga_all, (), ()); break;
    case 7:
        code = CALL(g6_set_overflow_flag_test_mode, (a.n, a.mode, a.n),
                    (P(1, a.n), P(2, a.mode), P(3, a.n)));
        break;
    case 8:
        code = CALL(g6_set_neighbour_list_sort_mode, (a.mode), (P(2, a.mode)));
        if (lacks(2))
            lacked(code), code = 0;
        else
            model.sort_mode = a.mode;
        break;
    case 9: REQUIRE(CALL(g6_get_neighbour_list_sort_mode, (), ()) == model.sort_mode); break;
    case 10: REQUIRE(CALL(g6_npipes, (), ()) == model.npipes); break;
    case 11: REQUIRE(CALL(get_device_count, (), ()) == 1); break;
    }
    model_returned(NULL, CODE(0), code);
    end_call();
}

/* What does nothing, but only on an open cluster. */
void try_idle(void)
{
    int64_t id = begin_call();
    const int which = below(9);
    codes refusal, good = CODE(0);
    int code = 0;
    a.n = below(10000) - 10;
    keep();
    if (which == 0) id = model.recent->id;
    if (which > 2) id = own_id();
    if (which < 3 && which > 0) id = ID_ALL;
    switch (which) {
    case 0: code = CALL(force_j_particle_send, (), ()); break;
    case 1: code = CALL(g6_initialize_jp_buffer_all, (a.n), (P(2, a.n))); break;
    case 2: code = CALL(g6_flush_jp_buffer_all, (), ()); break;
    case 3: code = CALL(g6_initialize_jp_buffer, (a.id, a.n), (P(1, a.id), P(2, a.n))); break;
    case 4: code = CALL(g6_flush_jp_buffer, (a.id), (P(1, a.id))); break;
    case 5:
        code = CALL(g6_flush_jp_buffer_and_multisend, (a.id, a.n), (P(1, a.id), P(2, a.n)));
        break;
    case 6: code = CALL(g6_setup_njdata, (a.id, a.n), (P(1, a.id), P(2, a.n))); break;
    case 7: code = CALL(g6_print_chip_status, (a.id), (P(1, a.id))); break;
    case 8:
        code = CALL(g6_getnjmax, (a.id), (P(1, a.id)));
        if (code > 0) {
            REQUIRE(code > 1 << 30);
            code = 0;
        }
        break;
    }
    struct cluster *c = model_take(id, &refusal);
    say(" cluster %lld", (long long)id);
    model_returned(c, c ? good : refusal, code);
    end_call();
}

/* ---- texts and options ---------------------------------------------------------------- */

static void check_text(const char *buffer, int length, int filled)
{
    if (length <= 0) {
        REQUIRE(buffer[0] == '?');
        return;
    }
    REQUIRE(memchr(buffer, 0, (size_t)length) != NULL);
    if (length > 1 && filled >= 0) REQUIRE((buffer[0] != 0) == filled);
}

void try_texts(void)
{
    static const int LENGTHS[] = {300, 300, 1, 5, 0, -1};
    const int64_t id = begin_call();
    const int length = LENGTHS[below(6)], which = below(5), id32 = a.id;
    char *const buffer = tail_of(0, length > 0 ? (size_t)length : 1);
    char *const text = chance(10) ? NULL : buffer;
    struct cluster *c = model_find(a.id);
    codes refusal;
    int code;
    (void)id;
    memset(buffer, '?', length > 0 ? (size_t)length : 1);
    say("text %d of %d, length %d", which, id32, length);
    if (c->state < IMPLICIT) c = NULL;
    switch (which) {
    case 0:
        calling = "g6x_last_error";
        code = g6x_last_error(id32, text, length);
        if (!((c ? c->fault : model.fault) >> -code & 1))
            broken("g6x_last_error gave %d, not one of %#llx", code,
                   (unsigned long long)(c ? c->fault : model.fault));
        if (text) check_text(text, length, code != 0);
        *(c ? &c->fault : &model.fault) = CODE(code);
        break;
    case 1:
        calling = "g6x_last_warning";
        code = g6x_last_warning(id32, text, length);
        if (c) REQUIRE(code >= c->warnings_least && code <= c->warnings_most);
        if (!c) REQUIRE(code == 0);
        if (text) check_text(text, length, code != 0);
        break;
    case 2:
        calling = "g6x_clear_error";
        REQUIRE(g6x_clear_error(id32) == 0);
        if (c) c->warnings_least = c->warnings_most = 0;
        *(c ? &c->fault : &model.fault) = CODE(0);
        break;
    case 3:
        calling = "g6x_version";
        REQUIRE(g6x_version(text, length) >= 100);
        if (text) check_text(text, length, 1);
        break;
    default:
        calling = "g6x_backend";
        code = g6x_backend(id32, text, length);
        c = model_take(id32, &refusal);
        model_returned(c, c ? CODE(0) : refusal, code);
        if (text && code == 0) check_text(text, length, 1);
        if (text && code == 0 && length > 20) REQUIRE(strncmp(text, "cpu ", 4) == 0);
    }
}

/* Whether an option may have a value; *changed: where it goes. */
static int is_option(int key, int value)
{
    static const int HIGH[NSETTING] = {-1, 2, 1024, 3, 1, 1, 1, 1000, 1000, 1000};
    if (key == G6X_LOG) return value >= 0 && value <= 2;
    if (key == G6X_ON_ERROR) return value >= 0 && value <= 1;
    if (key < 1 || key >= NSETTING) return 0;
    if (key == G6X_ISA && (value < 0 || value > 3 || !model.isa[value])) return 0;
    if (key >= G6X_SCALE_LENGTH) return value == G6X_AUTO || (value >= -1000 && value <= 1000);
    return value >= 0 && value <= HIGH[key];
}

static int any_value(int key)
{
    static const int ODD[] = {-1, 4, 1025, 2147483647, -2147483647 - 1, 1001};
    if (chance(8)) return ODD[below(6)];
    if (key == G6X_PRECISION || key == G6X_ISA) return below(key == G6X_ISA ? 4 : 3);
    if (key == G6X_THREADS) return chance(4) ? 2 : 1;
    if (key == G6X_LOG || key == G6X_ON_ERROR) return 0;
    if (key >= G6X_SCALE_LENGTH && key <= G6X_SCALE_VELOCITY)
        return chance(2) ? G6X_AUTO : wild && chance(3) ? below(2003) - 1001 : below(41) - 20;
    return below(2);
}

void try_options(void)
{
    static const double FRACTIONS[] = {0, 0, 1, 0.5, 1, -0.0, -1e-300, 1.5, NAN, INFINITY};
    (void)begin_call();
    const int which = below(8), id = a.id, key = chance(6) ? below(20) - 3 : 1 + below(9);
    const int value = any_value(key), anybody = model.opened > 0;
    const double fraction = FRACTIONS[below(10)];
    const int double_key = chance(8) ? key : G6X_VERIFY;
    codes refusal = 0, allowed;
    struct cluster *c = NULL;
    int code, found = -777, *const to = chance(20) ? NULL : &found;
    double real = -777, *const to_real = chance(20) ? NULL : &real;
    say("option %d of %d: %d or %g", key, id, value, fraction);
    const int null = (which >= 4 && which < 6 && !to) || (which == 7 && !to_real);
    if (anybody && !null) c = model_take(id, &refusal);
    if (which < 4) {
        calling = "g6x_set_int";
        code = g6x_set_int(id, key, value);
        allowed = CODE(is_option(key, value) ? 0 : G6X_E_ARGUMENT);
        if (!refusal && code == 0 && key < NSETTING)
            (c ? c->settings : model.settings)[key] = value;
    } else if (which < 6) {
        calling = "g6x_get_int";
        code = g6x_get_int(id, key, to);
        const int known = (key >= 1 && key < NSETTING) || (key > G6X_VERIFY && key <= G6X_NPIPES);
        allowed = CODE(null ? G6X_E_NULL : known ? 0 : G6X_E_ARGUMENT);
        const int right = key < NSETTING ? (c ? c->settings : model.settings)[key < 1 ? 1 : key]
                          : key == G6X_NPIPES ? model.npipes
                                              : 0;
        if (!null && !refusal) REQUIRE(found == (known ? right : -777));
    } else if (which == 6) {
        calling = "g6x_set_double";
        code = g6x_set_double(id, double_key, fraction);
        const int good = double_key == G6X_VERIFY && fraction >= 0 && fraction <= 1;
        allowed = CODE(good ? 0 : G6X_E_ARGUMENT);
        if (!refusal && code == 0) *(c ? &c->verify : &model.verify) = fraction;
    } else {
        calling = "g6x_get_double";
        code = g6x_get_double(id, double_key, to_real);
        allowed = CODE(null ? G6X_E_NULL : double_key == G6X_VERIFY ? 0 : G6X_E_ARGUMENT);
        if (!null && !refusal && code == 0) REQUIRE(real == (c ? c->verify : model.verify));
    }
    if (refusal) allowed = refusal;
    if (null && anybody) c = model_find(id);
    if (null || (!anybody && code))
        model_returned_again(c && c->state >= IMPLICIT ? c : NULL, allowed, code);
    else
        model_returned(c, allowed, code);
}

/* ---- time and particles ---------------------------------------------------------------- */

void try_time(void)
{
    const int64_t id = begin_call();
    codes refusal;
    a.ti = any_time();
    keep();
    const int code = id == ID_ALL ? CALL(g6_set_ti_all, (a.ti), (P(2, a.ti)))
                                  : CALL(g6_set_ti, (a.id, a.ti), (P(1, a.id), P(2, a.ti)));
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
    if (chance(200)) return 5000 + below(3) * 1024;
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

void try_write(void)
{
    int64_t id = begin_call();
    struct body b;
    codes refusal;
    const int at_rest = chance(4), many = at_rest && chance(4);
    int code, clusters = below(4) - 1;
    if (many) form = 1 + below(2);
    if (many && a.id == 2147483647) a.id = 0;
    if (many) id = own_id();
    any_body(&b, id);
    if (at_rest) {
        b.t = 0;
        memset(b.k18, 0, sizeof b.k18), memset(b.j6, 0, sizeof b.j6);
        memset(b.a2, 0, sizeof b.a2), memset(b.v, 0, sizeof b.v);
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
    } else if (at_rest) {
        code = id == ID_ALL ? CALL(g6_set_j_particle_mxonly_all, (a.address, a.index, a.mass, x),
                                   (P(2, a.address), P(3, a.index), P(4, a.mass), x))
                            : CALL(g6_set_j_particle_mxonly, (a.id, a.address, a.index, a.mass, x),
                                   (P(1, a.id), P(2, a.address), P(3, a.index), P(4, a.mass), x));
    } else if (id == ID_ALL) {
        code = CALL(g6_set_j_particle_all,
                    (a.address, a.index, a.tj, a.dtj, a.mass, a.k18, a.j6, a2, a.v, x),
                    (P(2, a.address), P(3, a.index), P(4, a.tj), &a.dtj, P(5, a.mass), a.k18, a.j6,
                     a2, a.v, x));
    } else {
        code = CALL(g6_set_j_particle,
                    (a.id, a.address, a.index, a.tj, a.dtj, a.mass, a.k18, a.j6, a2, a.v, x),
                    (P(1, a.id), P(2, a.address), P(3, a.index), P(4, a.tj), &a.dtj, P(5, a.mass),
                     a.k18, a.j6, a2, a.v, x));
    }
    say(" cluster %lld, %d clusters", (long long)id, clusters);
    say_body(&b);
    if (lacks(many ? 5 : at_rest ? 4 : 5) || (many && form && lacking == 1)) {
        lacked(code);
        return;
    }
    const int null = !x || (!at_rest && !a2);
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
    const int n = chance(20) ? -1 : below(13), room = n > 0 ? n : 0;
    const struct cluster *old = model_find(id);
    const int in_order = chance(3), labels = chance(2), moving = chance(2);
    int *address = in_order ? NULL : tail_of(0, (size_t)room * sizeof(int));
    int *index = labels ? tail_of(1, (size_t)room * sizeof(int)) : NULL;
    double *t = moving ? tail_of(2, (size_t)room * 8) : NULL, *m = tail_of(3, (size_t)room * 8);
    double *f[5];
    for (int q = 0; q < 5; q++)
        f[q] = q == 4 || (moving && chance(2)) ? tail_of(4 + q, (size_t)room * 24) : NULL;
    for (int k = 0; k < room; k++) {
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
    for (int k = 0; k < room; k++) say_body(&b[k]);
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
            if (one == CODE(G6X_E_MEMORY)) break;
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
    const size_t room = n > 0 ? (size_t)n : 0;
    double *x = tail_of(0, room * 48), *v = tail_of(1, room * 24);
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
        x = tail_of(0, room * 24);
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
    model_scale(c, nj, right);
    for (int k = 0; k < 3; k++)
        if (found[k] != right[k]) broken("scale %d is %d, not %d", k, found[k], right[k]);
}
