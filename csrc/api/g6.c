/* g6.c - the historical calls, by value and for Fortran: those of g6_list.h, and some of their own,
 * each implemented once. Ids are 64 bits wide, so that the calls without a cluster have their own
 * id (SESSION_ALL). Calls that take a session are made with ON_SESSION. The exported functions
 * never call each other: a host program may define some of the exported names itself. */
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "api/arguments.h"
#include "g6lib.h"
#include "session/force.h"
#include "session/biased_lock.h"
#include "util/fpenv.h"

/* `result`, but needs an open cluster. */
static int idle(int64_t id, int result)
{
    SESSION_HERE(s, id, code);
    return s ? result : code;
}

/* ---- j particles ------------------------------------------------------------------ */

static int set_ti(struct session *s, double ti)
{
    s->time = ti;
    s->time_bad = !is_finite(ti);
    if (!s->time_bad) return 0;
    return error_set(&s->error, G6X_E_ARGUMENT, "g6_set_ti: the time is NaN or Inf");
}

static int explain(struct session *s, int code, int address, int index)
{
    if (code == G6X_E_ADDRESS)
        return error_set(&s->error, code, "g6_set_j_particle: address %d is negative", address);
    if (code == G6X_E_J_NAN)
        return error_set(&s->error, code,
                         "g6_set_j_particle: NaN or Inf in the particle at address %d (index %d)",
                         address, index);
    return error_set(&s->error, code,
                     "g6_set_j_particle: out of memory for address %d; %lld slots are in use",
                     address, (long long)s->j.capacity);
}

/* Not static, so that each form of g6_set_j_particle jumps to it. */
int api_g6_set_j(int64_t id, int address, int index, double tj, double mass, const double *k18,
                 const double *j6, const double *a2, const double *v, const double *x)
{
    int code;
    /* Prefetches while the lock is taken and the last call's stores drain. */
    __builtin_prefetch(x);
    __builtin_prefetch(v);
    __builtin_prefetch(a2);
    __builtin_prefetch(j6);
    struct session *s = biased_lock_take(id);
    if (!s) s = session_registry_take(id, &code);
    if (!s) return code;
    if (k18 && j6 && a2 && v && x) {
        if (session_force_minds_writes(s)) session_force_before_write(s);
        code = jmemory_continue_at_rest(&s->j, address, index, tj, mass, k18, j6, a2, v, x)
                   ? 0
                   : jmemory_set(&s->j, address, index, tj, mass, k18, j6, a2, v, x);
        if (code) (void)explain(s, code, address, index);
    } else {
        code = error_set(&s->error, G6X_E_NULL, "g6_set_j_particle: null pointer");
    }
    if (!biased_lock_is_taken(s)) return session_registry_leave(s, code);
    biased_lock_leave(s);
    return code;
}

static int set_j_at_rest(int64_t id, int address, int index, double mass, const double *x)
{
    static const double zero[3];
    return api_g6_set_j(id, address, index, 0.0, mass, zero, zero, zero, zero, x);
}

int g6x_set_j_particles(int clusterid, int n, const int *address, const int *index,
                        const double *tj, const double *dtj, const double *mass,
                        const double (*k18)[3], const double (*j6)[3], const double (*a2)[3],
                        const double (*v)[3], const double (*x)[3])
{
    int first = 0;
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    (void)dtj;
    if (n < 0)
        first = error_set(&s->error, G6X_E_ARGUMENT, "g6x_set_j_particles: n = %d is negative", n);
    else if (n && (!mass || !x))
        first = error_set(&s->error, G6X_E_NULL, "g6x_set_j_particles: null pointer");
    else
        session_force_before_write(s);
    const int requested = first ? 0 : n;
    for (int k = 0; k < requested; k++) {
        const int a = address ? address[k] : k, label = index ? index[k] : a;
        code = jmemory_set(&s->j, a, label, tj ? tj[k] : 0.0, mass[k], k18 ? k18[k] : NULL,
                           j6 ? j6[k] : NULL, a2 ? a2[k] : NULL, v ? v[k] : NULL, x[k]);
        if (code && !first) first = explain(s, code, a, label);
    }
    return first;
}

/* n particles from address `first` on; particle k goes to x[step k] and v[step k]. */
static int predicted(struct session *s, int first, int n, double3 *x, double3 *v, size_t step)
{
    int code = 0;
    if (n < 0 || s->time_bad)
        code = error_set(&s->error, G6X_E_ARGUMENT,
                         "predicted particles: nj = %d is negative, or the time NaN or Inf", n);
    else if (first < 0)
        code = error_set(&s->error, G6X_E_ADDRESS, "predicted particles: address %d is negative",
                         first);
    else if (n && (!x || !v))
        code = error_set(&s->error, G6X_E_NULL, "predicted particles: null pointer");
    FPENV_HERE;
    if (!code && n) jmemory_commit(&s->j);
    for (int k = 0; !code && k < n; k++) {
        const int64_t address = (int64_t)first + k;
        double *place = x[step * (size_t)k], *speed = v[step * (size_t)k];
        memset(place, 0, sizeof(double3));
        memset(speed, 0, sizeof(double3));
        if (address < s->j.capacity && s->j.body[address].state == SLOT_SET)
            jmemory_predict(&s->j, address, s->time, s->options.snap, place, speed);
    }
    return code;
}

/* ---- forces ----------------------------------------------------------------------- */

/* A firsthalf with a null pointer for a scalar: no call is in progress then. */
static int first_null(struct session *s)
{
    s->call.made = 0;
    return error_set(&s->error, G6X_E_NULL, "firsthalf: a scalar argument is a null pointer");
}

/* A force call with a null pointer: sets the outputs that are not NULL to NaN. */
static int null_pointer(int ni, double3 *acc, double3 *jerk, double *pot, int *nearest,
                        float *distance)
{
    session_output_nan(ni, acc, jerk, pot, nearest, distance);
    return session_registry_refuse(G6X_E_NULL, "null pointer in a force call");
}

/* ---- neighbour lists -------------------------------------------------------------- */

static _Atomic int sort_mode;

static int read_lists(struct session *s)
{
    if (s->call.made) return s->call.code;
    return error_set(&s->error, G6X_E_NO_FIRSTHALF, "g6_read_neighbour_list without firsthalf");
}

/* ---- the low-level group ------------------------------------------------------------ */

/* How many j particles act, or i particles are in the pipes. */
static int set_count(struct session *s, int of_j, int n)
{
    *(of_j ? &s->pipes.njp : &s->pipes.nip) = n;
    return 0;
}

static int set_i(struct session *s, int address, int index, const double *x, const double *v,
                 double eps2, double h2)
{
    struct pipes *p = &s->pipes;
    if (address < 0 || address > INT_MAX / 4)
        return error_set(&s->error, G6X_E_ADDRESS, "g6_set_i_particle: pipe %d", address);
    if (!x || !v) return error_set(&s->error, G6X_E_NULL, "g6_set_i_particle: null pointer");
    if (address >= p->capacity && session_grow_pipes(p, 2 * address + 48))
        return error_set(&s->error, G6X_E_MEMORY, "g6_set_i_particle: out of memory for pipe %d",
                         address);
    p->rows.index[address] = index;
    memcpy(p->rows.x[address], x, sizeof *p->rows.x);
    memcpy(p->rows.v[address], v, sizeof *p->rows.v);
    p->rows.eps2[address] = eps2;
    p->rows.h2[address] = h2;
    return 0;
}

/* `etc`: nearest neighbours are requested; `nearest` must not be NULL. */
static int get_force(struct session *s, double3 *acc, double3 *jerk, double *pot, int etc,
                     int *nearest, int *flag)
{
    struct pipes *p = &s->pipes;
    int code = 0;
    if (p->nip > 0 && (!flag || (etc && !nearest)))
        code = error_set(&s->error, G6X_E_NULL, "g6_get_force: null pointer");
    else if (session_grow_pipes(p, p->nip))
        code = error_set(&s->error, G6X_E_MEMORY, "g6_get_force: out of memory for %d particles",
                         p->nip);
    if (!code) {
        code = session_force_first(s, p->njp, p->nip, p->rows.index, (const double3 *)p->rows.x,
                                   (const double3 *)p->rows.v, p->rows.eps2, 1, p->rows.h2);
        if (p->nip >= 0)
            code = session_force_last(s, etc ? WANT_NEAREST : 0, p->njp, p->nip, acc, jerk, pot,
                                      nearest, NULL);
    } else {
        session_output_nan(p->nip, acc, jerk, pot, nearest, NULL);
    }
    for (int i = 0; flag && i < p->nip; i++) flag[i] = code;
    return code;
}

/* ---- by value ------------------------------------------------------------------------- */

#define IN(type, name) type name
#define VALUE(name) name
#define ADDRESS(name) &name
#define GIVEN(pointers, result) result
#define GIVEN_OR(otherwise, pointers, result) result
#define FORM(name, result, ...)                                                                    \
    int name(__VA_ARGS__) { return result; }
#define CALL(name, result, ...)                                                                    \
    int name(int clusterid, ##__VA_ARGS__)                                                         \
    {                                                                                              \
        const int64_t id = clusterid;                                                              \
        return result;                                                                             \
    }

#include "api/g6_list.h"

int g6_open(int clusterid) { return open_by_environment(clusterid); }
int g6_close(int clusterid) { return session_registry_close(clusterid); }

int g6_set_j_particle(int clusterid, int address, int index, double tj, UNUSED double dtj,
                      double mass, double k18[3], double j6[3], double a2[3], double v[3],
                      double x[3])
{
    return api_g6_set_j(clusterid, address, index, tj, mass, k18, j6, a2, v, x);
}

/* ---- for Fortran: every argument by pointer, names with one underscore or two ---------------- */

static int64_t id_of(const int *clusterid) { return clusterid ? *clusterid : SESSION_NONE; }

#undef IN
#undef VALUE
#undef ADDRESS
#undef GIVEN
#undef GIVEN_OR
#undef FORM
#undef CALL
#define IN(type, name) type *name
#define VALUE(name) *name
#define ADDRESS(name) name
#define GIVEN(pointers, result) GIVEN_OR(missing(), pointers, result)
#define GIVEN_OR(otherwise, pointers, result) (pointers) ? (result) : (otherwise)
#define FORM(name, result, ...)                                                                    \
    FORTRAN(name, __VA_ARGS__) { return result; }
#define CALL(name, result, ...)                                                                    \
    FORTRAN(name, int *clusterid, ##__VA_ARGS__)                                                   \
    {                                                                                              \
        const int64_t id = id_of(clusterid);                                                       \
        return result;                                                                             \
    }

#include "api/g6_list.h"

/* A null pointer opens cluster 0: sapporo2's own test does so. */
FORTRAN(g6_open, int *clusterid) { return open_by_environment(clusterid ? *clusterid : 0); }
FORTRAN(g6_close, int *clusterid) { return session_registry_close(clusterid ? *clusterid : 0); }

FORTRAN(g6_set_j_particle, int *clusterid, int *address, int *index, double *tj, UNUSED double *dtj,
        double *mass, double *k18, double *j6, double *a2, double *v, double *x)
{
    if (!address || !index || !tj || !mass) return missing();
    return api_g6_set_j(id_of(clusterid), *address, *index, *tj, *mass, k18, j6, a2, v, x);
}

FORTRAN(g6_set_j_particle_multisend_mxfast, int *clusterid, int *nclusters, int *address,
        int *index, double *mass, double x[3])
{
    int code = 0;
    if (!clusterid || !nclusters || !address || !index || !mass) return missing();
    for (int k = 0; k < *nclusters; k++) {
        const int one = set_j_at_rest(*clusterid + (int64_t)k, *address, *index, *mass, x);
        if (!code) code = one;
    }
    return code;
}
