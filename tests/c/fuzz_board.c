/* fuzz_board.c - random calls that open, close, set options and ask for texts. */
#include "fuzz_calls.h"

struct arguments a;
int form, lacking;
static struct arguments kept;

static const int IDS[] = {0, 0, 0, 0, 1, 1, 2, 32652, -2147483647 - 1, 2147483647};

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

void keep(void) { memcpy(&kept, &a, sizeof a); }

void end_call(void)
{
    if (memcmp(&kept, &a, sizeof a)) broken("%s wrote to a scalar argument", calling);
}

int lacks(int last) { return form && lacking > 1 && lacking <= last; }

void null_returned(int64_t id, int code)
{
    struct cluster *c = model.opened && id != ID_NULL ? model_find(id) : NULL;
    model_returned_again(c && c->state >= IMPLICIT ? c : NULL, CODE(G6X_E_NULL), code);
}

void lacked(int code)
{
    null_returned(a.id == 2147483647 ? ID_NULL : a.id, code);
    end_call();
}

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
        if (lacks(2) || (a.n && !which)) {
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

void try_nothing(void)
{
    (void)begin_call();
    a.n = below(60) - 5;
    a.mode = below(9) - 4;
    keep();
    int code = 0;
    switch (below(13)) {
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
    case 12: REQUIRE(CALL(g6_changed_index, (a.id), (P(1, a.id))) == -1); break;
    }
    model_returned(NULL, CODE(0), code);
    end_call();
}

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
        if (!c) REQUIRE(code >= model.warnings_least && code <= model.warnings_most);
        if (text) check_text(text, length, code != 0);
        break;
    case 2:
        calling = "g6x_clear_error";
        REQUIRE(g6x_clear_error(id32) == 0);
        *(c ? &c->warnings_least : &model.warnings_least) = 0;
        *(c ? &c->warnings_most : &model.warnings_most) = 0;
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
        if (text && code == 0 && length > 20 && strcmp(backend, "auto"))
            REQUIRE(strncmp(text, backend, strlen(backend)) == 0);
    }
}

/* Whether an option may have a value; *changed: where it goes. */
static int is_option(int key, int value)
{
    static const int HIGH[NSETTING] = {-1, 2, 1024, NISA - 1, 1, 1, 1, 1000, 1000, 1000};
    if (key == G6X_LOG) return value >= 0 && value <= 2;
    if (key == G6X_ON_ERROR || key == G6X_TREE_METHOD) return value >= 0 && value <= 1;
    if (key == G6X_TREE_ORDER) return value >= 2 && value <= 6;
    if (key < 1 || key >= NSETTING) return 0;
    if (key == G6X_ISA && (value < 0 || value >= NISA || !model.isa[value])) return 0;
    if (key >= G6X_SCALE_LENGTH) return value == G6X_AUTO || (value >= -1000 && value <= 1000);
    return value >= 0 && value <= HIGH[key];
}

static int is_tree_option(int key) { return key == G6X_TREE_METHOD || key == G6X_TREE_ORDER; }

static double *value_of(struct cluster *c, int key)
{
    if (key == G6X_THETA) return c ? &c->theta : &model.theta;
    return c ? &c->verify : &model.verify;
}

static int any_value(int key)
{
    static const int ODD[] = {-1, 4, 1025, 2147483647, -2147483647 - 1, 1001};
    if (chance(8)) return ODD[below(6)];
    if (key == G6X_PRECISION || key == G6X_ISA) return below(key == G6X_ISA ? NISA : 3);
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
    /* Origins have tests of their own: they are left as they are. */
    const int which = below(8), id = a.id, any = chance(6) ? below(22) - 3 : 1 + below(9);
    const int key = any < G6X_ORIGIN_X ? any : any + G6X_DRIFT_Z - G6X_TREE_ORDER;
    const int value = any_value(key), anybody = model.opened > 0;
    const double fraction = FRACTIONS[below(10)];
    const int any_key = chance(8) ? key : chance(3) ? G6X_THETA : G6X_VERIFY;
    const int double_key = by_tree && any_key == G6X_THETA ? G6X_VERIFY : any_key;
    const int of_double = double_key == G6X_VERIFY || double_key == G6X_THETA;
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
        if (!refusal && code == 0 && is_tree_option(key))
            (c ? c->tree : model.tree)[key - G6X_TREE_METHOD] = value;
    } else if (which < 6) {
        calling = "g6x_get_int";
        code = g6x_get_int(id, key, to);
        const int known = (key >= 1 && key < NSETTING) || is_tree_option(key) ||
                          (key > G6X_VERIFY && key <= G6X_DEVICE);
        allowed = CODE(null ? G6X_E_NULL : known ? 0 : G6X_E_ARGUMENT);
        const int right = is_tree_option(key) ? (c ? c->tree : model.tree)[key - G6X_TREE_METHOD]
                          : key < NSETTING ? (c ? c->settings : model.settings)[key < 1 ? 1 : key]
                          : key == G6X_NPIPES ? model.npipes
                          : key == G6X_DEVICE ? (c && !strcmp(backend, "cuda")) - 1
                                              : 0;
        if (!null && !refusal && (key != G6X_DEVICE || strcmp(backend, "auto")))
            REQUIRE(found == (known ? right : -777));
    } else if (which == 6) {
        calling = "g6x_set_double";
        code = g6x_set_double(id, double_key, fraction);
        const int good = of_double && fraction >= 0 && fraction <= 1;
        allowed = CODE(good ? 0 : G6X_E_ARGUMENT);
        if (!refusal && code == 0) *value_of(c, double_key) = fraction;
    } else {
        calling = "g6x_get_double";
        code = g6x_get_double(id, double_key, to_real);
        allowed = CODE(null ? G6X_E_NULL : of_double ? 0 : G6X_E_ARGUMENT);
        if (!null && !refusal && code == 0) REQUIRE(real == *value_of(c, double_key));
    }
    if (refusal) allowed = refusal;
    if (null && anybody) c = model_find(id);
    if (null || (!anybody && code))
        model_returned_again(c && c->state >= IMPLICIT ? c : NULL, allowed, code);
    else
        model_returned(c, allowed, code);
}
