/* g5.c - the GRAPE-5 calls, by value and for Fortran: those of g5_list.h, each implemented once.
 *
 * A GRAPE-5 cluster is a session with an id that no GRAPE-6 call can name. Its j particles are at
 * rest. Its i particles have an index that no j particle has, so each feels itself, too. Its pipes
 * keep the i particles between g5_set_xi and g5_run.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "api/arguments.h"
#include "cpu/grape5_sum.h"
#include "g5lib.h"
#include "session/choice.h"
#include "session/force.h"
#include "session/grape5.h"
#include "session/output.h"
#include "util/fpenv.h"
#include "util/memory.h"

#define GRAPE5_CLUSTER(devid) (SESSION_GRAPE5 + (int64_t)(devid))

/* J particles that a program is advised to send at a time. Arrays of this length are affordable,
 * and a large set is sent at once, so that its tree is not built in pieces. */
enum { GRAPE5_J_MEMORY = 1 << 24 };

/* Special values of a squared softening. */
#define EPS_NEVER_SET (-1.0)
#define EPS_REFUSED (-2.0)

/* The scale of a cut-off, which programs set by a table; there are none here. */
static int set_eta(struct session *s, double eta)
{
    static atomic_flag known = ATOMIC_FLAG_INIT;
    if (bits_of(eta) - 1 >= bits_of(INFINITY)) /* without a comparison, which may trap on a NaN */
        return error_set(&s->error, G6X_E_ARGUMENT, "g5_set_eta: eta is not above 0");
    if (is_finite(eta) && options_process()->log && !atomic_flag_test_and_set(&known))
        error_print("g5_set_eta: there is no cut-off here; forces reach to all distances");
    return 0;
}

/* ---- softening -------------------------------------------------------------------- */

/* The last value of g5_set_eps_to_all. */
static _Atomic double eps2_everywhere = EPS_NEVER_SET;
/* How often g5_set_eps_to_all has been called. */
static _Atomic int64_t times_set;

/* The open, locked session of a cluster, with the softening for all; as session_registry_take. */
static struct session *take(int64_t id, int *code)
{
    struct session *s = session_registry_take(id, code);
    if (!s) return NULL;
    struct grape5 *g = &s->grape5;
    const int64_t times = atomic_load(&times_set);
    if (!g->prepared) {
        const struct options *o = &s->options;
        session_choice_want_gpu(s); /* the length of its lists is not known yet */
        s->options.jerk = 0;
        g->here = s->backend == &cpu_direct_backend &&
                  (o->precision == MODE_GRAPE || o->precision == MODE_AUTO) && o->verify <= 0.0;
        g->points.kernel = cpu_grape5_sum_kernel(o->isa);
    }
    if (!g->prepared || g->times_set != times) {
        g->eps2 = atomic_load(&eps2_everywhere);
        g->n_each = 0;
        g->times_set = times;
    }
    g->prepared = 1;
    return s;
}

static double checked_eps2(double eps, int squared)
{
    if (is_negative(eps) || !is_finite(eps)) return EPS_REFUSED;
    if (squared) return eps;
    struct fpenv host;
    volatile double length = eps, square; /* volatile keeps the product inside fpenv_enter */
    fpenv_enter(&host);
    square = length * length;
    fpenv_leave(&host);
    const double eps2 = square;
    return is_finite(eps2) ? eps2 : EPS_REFUSED;
}

static const char REFUSED[] = "g5_set_eps: the softening is negative, NaN or too large";

/* Sets eps or, if `squared`, eps^2 of all clusters. */
static int set_eps_everywhere(double eps, int squared)
{
    const double eps2 = checked_eps2(eps, squared);
    atomic_store(&eps2_everywhere, eps2);
    atomic_fetch_add(&times_set, 1);
    return eps2 < 0.0 ? session_registry_refuse(G6X_E_ARGUMENT, "%s", REFUSED) : 0;
}

/* The same for one cluster. */
static int set_eps_to_all(struct session *s, double eps, int squared)
{
    s->grape5.eps2 = checked_eps2(eps, squared);
    s->grape5.n_each = 0;
    return s->grape5.eps2 < 0.0 ? error_set(&s->error, G6X_E_ARGUMENT, "%s", REFUSED) : 0;
}

static int set_eps(struct session *s, int ni, const double *eps)
{
    struct grape5 *g = &s->grape5;
    const struct memory_array each[] = {MEMORY_ARRAY(g->eps2_each, ni), {0}};
    int code = 0;
    g->n_each = 0;
    if (ni < 0)
        code = error_set(&s->error, G6X_E_ARGUMENT, "g5_set_eps: ni = %d is negative", ni);
    else if (ni && !eps)
        code = error_set(&s->error, G6X_E_NULL, "g5_set_eps: null pointer");
    else if (memory_reserve(each, ni, &g->capacity_each))
        code = error_set(&s->error, G6X_E_MEMORY, "g5_set_eps: out of memory for %d particles", ni);
    if (code)
        g->eps2 = EPS_REFUSED; /* the old softening is not the requested one */
    else
        g->n_each = ni;
    for (int i = 0; i < g->n_each; i++) {
        g->eps2_each[i] = checked_eps2(eps[i], 0);
        if (g->eps2_each[i] < 0.0) code = error_set(&s->error, G6X_E_ARGUMENT, "%s", REFUSED);
    }
    return code;
}

/* The softenings of the next run: *eps2, one or, if *each, one per pipe. */
static int softening(struct session *s, const double **eps2, int *each)
{
    struct grape5 *g = &s->grape5;
    struct pipes *p = &s->pipes;
    *each = g->own_eps2 || g->n_each;
    *eps2 = *each ? p->rows.eps2 : &g->eps2;
    for (int i = 0; *each && !g->own_eps2 && i < p->nip; i++)
        p->rows.eps2[i] = i < g->n_each ? g->eps2_each[i] : g->eps2;
    for (int i = 0; i < (*each ? p->nip : p->nip > 0); i++) {
        const double e = (*eps2)[i];
        if (!g->own_eps2 && e == EPS_NEVER_SET)
            return error_set(&s->error, G6X_E_NO_FIRSTHALF,
                             "g5_run: no softening; call g5_set_eps_to_all first");
        if (is_negative(e) || !is_finite(e))
            return error_set(&s->error, G6X_E_ARGUMENT,
                             "g5_run: the softening of i particle %d is negative, NaN or too large",
                             i);
    }
    return 0;
}

/* ---- j particles ------------------------------------------------------------------ */

static int set_n(struct session *s, int n)
{
    s->grape5.n = n;
    s->grape5.n_given = 1;
    return n < 0 ? error_set(&s->error, G6X_E_ARGUMENT, "g5_set_n: n = %d is negative", n) : 0;
}

/* Writes a particle, or half of one. The other half is kept, or is NaN if it was never sent, so
 * that a force call that needs it fails. 0 or an error code. */
static int set_one(struct session *s, int halves, int address, const double *x, const double *mass)
{
    struct jmemory *j = &s->j;
    double place[3] = {NAN, NAN, NAN}, m = NAN;
    if (halves != GRAPE5_BOTH) {
        jmemory_commit(j);
        if (address < j->capacity && j->body[address].state != SLOT_EMPTY) {
            memcpy(place, j->body[address].x, sizeof place);
            m = j->body[address].mass;
        }
    }
    if (halves & GRAPE5_POSITIONS) memcpy(place, x, sizeof place);
    if (halves & GRAPE5_MASSES) m = *mass;
    const int code = jmemory_set(j, address, address, 0.0, m, NULL, NULL, NULL, NULL, place);
    const int finite = (!(halves & GRAPE5_POSITIONS) || all_finite(place, 3)) &&
                       (!(halves & GRAPE5_MASSES) || is_finite(m));
    if (!code || (code == G6X_E_J_NAN && finite)) return 0;
    return session_grape5_bad_write(s, code, address, j->capacity);
}

/* Checks the arguments of a write. */
static int check_write(struct session *s, int address, int n, int null)
{
    if (n < 0) return error_set(&s->error, G6X_E_ARGUMENT, "g5_set_xmj: nj = %d is negative", n);
    if (address < 0)
        return error_set(&s->error, G6X_E_ADDRESS, "g5_set_xmj: address %d is negative", address);
    return n && null ? error_set(&s->error, G6X_E_NULL, "g5_set_xmj: null pointer") : 0;
}

/* As set_j, of the calls that end in 0. */
static int set_j0(struct session *s, int address, int n, const double (*x)[3], const double *mass,
                  const double *eps2)
{
    int64_t which;
    const int source = options_process()->g5_source_by_address ? address : 0;
    int code = check_write(s, address, n, !x || !mass || !eps2);
    if (code || !n) return code;
    struct symmetric *p = &s->grape5.symmetric;
    code = cpu_symmetric_set(p, address, n, x + source, mass + source, eps2 + source, &which);
    if (code == G6X_E_ARGUMENT)
        (void)error_set(&s->error, code, "g5_set_xmj0: a negative softening at address %lld",
                        (long long)which);
    else if (code)
        (void)session_grape5_bad_write(s, code, which, p->capacity);
    return code;
}

static int set_j(struct session *s, int halves, int address, int n, const double (*x)[3],
                 const double *mass)
{
    struct grape5_points *points = &s->grape5.points;
    int first = check_write(s, address, n,
                            (halves & GRAPE5_POSITIONS && !x) || (halves & GRAPE5_MASSES && !mass));
    if (!first) session_force_before_write(s);
    if (!first && address > INT_MAX - n) {
        if (s->grape5.here)
            cpu_grape5_points_lose(points, address, (int64_t)address + n);
        else
            jmemory_lose(&s->j, address, (int64_t)address + n);
        first = error_set(&s->error, G6X_E_MEMORY, "g5_set_xmj: %d particles from address %d on", n,
                          address);
    }
    const int source = options_process()->g5_source_by_address ? address : 0;
    const int requested = first ? 0 : n;
    if (s->grape5.here && requested) {
        int64_t which;
        first = cpu_grape5_points_set(points, halves, address, n, x ? x + source : NULL,
                                      mass ? mass + source : NULL, &which);
        if (first) (void)session_grape5_bad_write(s, first, which, points->capacity);
    }
    for (int k = 0; !s->grape5.here && k < requested; k++) {
        static const double zero[3];
        const int from = source + k, a = address + k;
        if (halves == GRAPE5_BOTH &&
            jmemory_continue_at_rest(&s->j, a, a, 0.0, mass[from], zero, zero, zero, zero, x[from]))
            continue;
        const int code = set_one(s, halves, a, x ? x[from] : NULL, mass ? mass + from : NULL);
        if (!first) first = code;
    }
    return first;
}

/* ---- forces ----------------------------------------------------------------------- */

enum { OF_ALL, SQUARED, LENGTHS }; /* softenings: of g5_set_eps etc., or in `eps` */

static int set_xi(struct session *s, int ni, const double (*x)[3], int each, const double *eps)
{
    struct grape5 *g = &s->grape5;
    struct pipes *p = &s->pipes;
    g->filled = g->ran = 0;
    if (ni < 0) return error_set(&s->error, G6X_E_ARGUMENT, "g5_set_xi: ni = %d is negative", ni);
    if (ni && (!x || (each && !eps)))
        return error_set(&s->error, G6X_E_NULL, "g5_set_xi: null pointer");
    if (session_grow_pipes(p, ni))
        return error_set(&s->error, G6X_E_MEMORY, "g5_set_xi: out of memory for %d particles", ni);
    if (ni) memcpy(p->rows.x, x, (size_t)ni * sizeof *p->rows.x);
    for (int i = 0; i < ni; i++) {
        p->rows.index[i] = -1; /* j particles have their addresses */
        if (each) p->rows.eps2[i] = each == LENGTHS ? checked_eps2(eps[i], 0) : eps[i];
    }
    p->nip = ni;
    g->own_eps2 = each;
    g->filled = 1;
    return 0;
}

static const char LACKS[] = ", or lacks its position or its mass";
static const char REFUSED_TOO[] = ", or a negative softening";

/* Checks that a run has all its inputs. */
static int check(struct session *s)
{
    const struct grape5 *g = &s->grape5;
    if (!g->filled) return error_set(&s->error, G6X_E_NO_FIRSTHALF, "g5_run without g5_set_xi");
    if (!g->n_given) return error_set(&s->error, G6X_E_NO_FIRSTHALF, "g5_run: call g5_set_n first");
    if (g->n < 0) return error_set(&s->error, G6X_E_ARGUMENT, "g5_set_n: n = %d is negative", g->n);
    int lost = 0;
    if (g->ran_symmetric) {
        const struct symmetric *p = &g->symmetric;
        if (g->n && !p->capacity)
            return error_set(&s->error, G6X_E_NO_FIRSTHALF, "g5_runMC0: call g5_set_xmjMC0 first");
        const int64_t bad = cpu_symmetric_first_bad(p, g->n);
        return bad < 0
                   ? 0
                   : session_force_bad_particle(s, bad, (int)bad, bad >= p->capacity, REFUSED_TOO);
    }
    if (!g->here) return session_force_check_particles(s, g->n, LACKS);
    const int64_t bad = cpu_grape5_points_first_bad(&s->grape5.points, g->n, &lost);
    return bad < 0 ? 0 : session_force_bad_particle(s, bad, (int)bad, lost, LACKS);
}

/* `symmetric`: the run of the calls that end in 0. */
static int run(struct session *s, int symmetric)
{
    struct grape5 *g = &s->grape5;
    const struct pipes *p = &s->pipes;
    const double *eps2;
    int each, code;
    g->ran_symmetric = symmetric;
    code = check(s);
    if (!code) code = softening(s, &eps2, &each);
    if (g->here || symmetric) {
        if (!code) code = session_grape5_run(s, eps2, each);
        g->ran = 1;
        g->code = code == G6X_E_I_NAN ? 0 : code;
        return code;
    }
    if (!code)
        code = session_force_first(s, g->n, p->nip, p->rows.index, CONST3(p->rows.x),
                                   CONST3(p->rows.v), eps2, each, p->rows.h2);
    else
        s->call.made = 0;
    g->ran = 1;
    g->code = code && s->call.made ? s->call.code : code;
    return code;
}

/* Writes the forces on the first ni i particles of a larger run. */
static int first_rows(struct session *s, int ni, double (*a)[3], double *p)
{
    const struct force_call *c = &s->call;
    double (*all_a)[3] = memory_zeroed((size_t)c->ni * sizeof *all_a);
    double *all_p = memory_zeroed((size_t)c->ni * sizeof *all_p);
    int code = G6X_E_MEMORY;
    if (all_a && all_p) {
        code = session_force_last(s, 0, c->nj, c->ni, all_a, NULL, all_p, NULL, NULL);
        memcpy(a, all_a, (size_t)ni * sizeof *a);
        memcpy(p, all_p, (size_t)ni * sizeof *p);
    } else {
        (void)error_set(&s->error, code, "g5_get_force: out of memory for %d particles", c->ni);
        session_output_nan(ni, a, NULL, p, NULL, NULL);
    }
    memory_free(all_a);
    memory_free(all_p);
    return code;
}

static int get_force(struct session *s, int ni, double (*a)[3], double *p)
{
    const struct grape5 *g = &s->grape5;
    const int here = g->here || g->ran_symmetric, results = here ? g->results : s->call.ni;
    int code = 0, rows = ni;
    if (ni < 0) {
        code = error_set(&s->error, G6X_E_ARGUMENT, "g5_get_force: ni = %d is negative", ni);
    } else if (!g->ran) {
        code = error_set(&s->error, G6X_E_NO_FIRSTHALF, "g5_get_force without g5_run");
    } else if (g->code) {
        code = g->code;
    } else if (ni > results) {
        rows = results;
        code = error_set(&s->error, G6X_E_MISMATCH,
                         "g5_get_force for %d particles; g5_set_xi had %d", ni, results);
    } else if (ni && (!a || !p)) {
        code = error_set(&s->error, G6X_E_NULL, "g5_get_force: null pointer");
    }
    if (code) {
        session_output_nan(rows, a, NULL, p, NULL, NULL);
        return code;
    }
    if (!ni) return 0;
    code = here           ? session_grape5_output(s, ni, a, p)
           : ni < results ? first_rows(s, ni, a, p)
                          : session_force_last(s, 0, s->call.nj, ni, a, NULL, p, NULL, NULL);
    const int positive = options_process()->g5_pot_positive;
    for (int i = 0; positive && i < ni; i++) p[i] = 0.0 - p[i];
    return code;
}

/* The last three in one call, which no other thread can interrupt. */
static int calculate(struct session *s, int symmetric, int ni, const double (*x)[3], int each,
                     const double *eps2, double (*a)[3], double *p)
{
    const int code = set_xi(s, ni, x, each, eps2);
    if (code) {
        session_output_nan(ni, a, NULL, p, NULL, NULL);
        return code;
    }
    (void)run(s, symmetric);
    return get_force(s, ni, a, p);
}

/* As ON_SESSION and ON_SESSION_OR, of a cluster. */
#define ON_CLUSTER(call, ...) ON_CLUSTER_OR((void)0, call, __VA_ARGS__)
#define ON_CLUSTER_OR(missing, call, ...)                                                          \
    __extension__({                                                                                \
        int code_of_id;                                                                            \
        struct session *session_of_id = take(CLUSTER, &code_of_id);                                \
        if (!session_of_id) missing;                                                               \
        session_of_id ? session_registry_leave(session_of_id, call(session_of_id, __VA_ARGS__))    \
                      : code_of_id;                                                                \
    })

/* ---- by value ------------------------------------------------------------------------- */

#define CLUSTER GRAPE5_CLUSTER(devid)
#define DEVICE_ZERO const int devid = 0
#define MC(name) name##MC
#define MC0(name) name##MC0
#define IN(type, name) type name
#define VALUE(name) name
#define GIVEN(pointers, result) result
#define FORM(name, result, ...)                                                                    \
    int name(__VA_ARGS__) { return result; }

#include "api/g5_list.h"

int g6x_g5_last_error(int devid, char *buffer, int length)
{
    return session_registry_last_error(CLUSTER, buffer, length);
}

/* ---- for Fortran: every argument by pointer, lower-case names with one underscore or two ----- */

#undef CLUSTER
#undef DEVICE_ZERO
#undef MC
#undef MC0
#undef IN
#undef VALUE
#undef GIVEN
#undef FORM
static int zero;

/* A null pointer becomes an id that no session has. */
#define CLUSTER (devid ? GRAPE5_CLUSTER(*devid) : SESSION_NONE)
#define DEVICE_ZERO int *devid = &zero
#define MC(name) name##mc
#define MC0(name) name##mc0
#define IN(type, name) type *name
#define VALUE(name) *name
#define GIVEN(pointers, result) (pointers) ? (result) : missing()
#define FORM(name, result, ...)                                                                    \
    FORTRAN(name, __VA_ARGS__) { return result; }

#include "api/g5_list.h"
