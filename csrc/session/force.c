/* force.c - see force.h. */
#include "session/force.h"

#include <limits.h>
#include <string.h>

#include "session/call_rows.h"
#include "session/choice.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"

void session_force_free(struct session *s)
{
    const struct memory_array all[] = ARRAYS_ON_HOST(&s->on_host, 0);
    memory_free_all(all);
    memory_free(s->given);
    session_call_rows_free(s);
    memset(&s->ahead, 0, sizeof s->ahead);
    s->on_host.capacity = 0;
    s->given = NULL;
    s->block_fine = NULL;
    s->given_rows = 0;
}

int session_force_reserve(struct session *s, int ni)
{
    if (!session_call_rows_reserve(s, ni)) return 0;
    return error_set(&s->error, G6X_E_MEMORY, "out of memory for the forces on %d particles", ni);
}

/* ---- firsthalf ------------------------------------------------------------------ */

int session_force_check_softening(struct session *s, int i, double eps2)
{
    if (!is_negative(eps2) && is_finite(eps2)) return 0;
    return error_set(&s->error, G6X_E_ARGUMENT, "eps2 of i particle %d is negative, NaN or Inf", i);
}

static int copy_softening(struct session *s, const double *eps2, int each)
{
    struct force_call *c = &s->call;
    int code = 0;
    for (int i = 0; i < (each ? c->ni : c->ni > 0) && !code; i++)
        code = session_force_check_softening(s, i, eps2[i]);
    if (code || !c->ni) return code;
    double *to = c->own.eps2;
    if (each) {
        memcpy(to, eps2, (size_t)c->ni * sizeof *to);
        c->alike = 1;
    } else if (c->ni > c->alike || bits_of(*to) != bits_of(*eps2)) {
        for (int i = 0; i < c->ni; i++) to[i] = *eps2;
        c->alike = c->ni;
    }
    return 0;
}

int session_force_check_particles(struct session *s, int nj, const char *or_what)
{
    int state;
    const int64_t bad = jmemory_first_bad(&s->j, nj, &state);
    if (bad < 0) return 0;
    return session_force_bad_particle(s, bad, state == SLOT_LOST ? 0 : s->j.body[bad].index,
                                      state == SLOT_LOST, or_what);
}

int session_force_bad_particle(struct session *s, int64_t bad, int index, int lost,
                               const char *or_what)
{
    if (lost)
        return error_set(&s->error, G6X_E_MEMORY,
                         "the j particle for address %lld was refused, the host being out of "
                         "memory; send it again",
                         (long long)bad);
    return error_set(&s->error, G6X_E_J_NAN,
                     "j particle at address %lld (index %d) has a NaN or Inf%s; send it again",
                     (long long)bad, index, or_what);
}

int session_force_check(struct session *s, int nj, int ni, int lacks)
{
    if (nj < 0 || ni < 0)
        return error_set(&s->error, G6X_E_ARGUMENT,
                         "force call with a negative number: nj = %d, ni = %d", nj, ni);
    if (ni && lacks) return error_set(&s->error, G6X_E_NULL, "force call: null pointer");
    if (s->time_bad)
        return error_set(&s->error, G6X_E_ARGUMENT, "g6_set_ti: the time is NaN or Inf");
    if (s->j.share_code)
        return error_set(&s->error, s->j.share_code,
                         "the exchange of the scale of all shares failed with %d; repeat it, or "
                         "call g6x_end_share",
                         s->j.share_code);
    return session_force_check_particles(s, nj, "");
}

void session_force_new(struct session *s, int nj, int ni)
{
    struct force_call *c = &s->call;
    c->made = 1;
    c->part = c->fine = 0;
    c->nj = nj;
    c->ni = c->rows = ni < 0 ? 0 : ni;
    session_call_rows_window(s, 0);
    c->done = 0;
    c->outdated = 0;
    c->invalid_rows = 0;
}

void session_force_freeze(struct session *s, int nj)
{
    struct force_call *c = &s->call;
    c->precision = session_force_scale_precision(s, nj);
    c->scale = session_force_scale_in(s, c->precision);
    c->jerk = s->options.jerk;
    c->snap = s->options.snap;
    c->isa = s->options.isa;
    c->time = s->time;
}

int session_force_upload(struct session *s, int nj)
{
    struct force_call *c = &s->call;
    struct options *used = &c->options;
    if (c->fine) c->fine_scale = session_force_scale_in(s, MODE_DOUBLE);
    if (memcmp(used, &s->options, sizeof *used) != 0) *used = s->options;
    used->precision = c->precision;
    used->jerk = c->jerk;
    used->snap = c->snap;
    used->isa = c->isa;
    const struct upload upload = {
        &s->j, nj, c->time, &c->scale, c->fine ? &c->fine_scale : &c->scale, used};
    return s->backend->set_j(s->state, &upload, &s->error);
}

int session_force_start(struct session *s, int nj, const struct targets *targets)
{
    const int code = session_force_upload(s, nj);
    return code ? code : s->backend->submit(s->state, targets, &s->error);
}

/* Submits a call. If `from` is NULL, the i particles were copied before, and the call keeps its
 * time and options, even if the caller has changed them since. */
static int begin(struct session *s, int nj, struct caller_arrays *from, int each)
{
    struct force_call *c = &s->call;
    if (from) {
        session_force_freeze(s, nj);
        session_call_rows_plan(s, from, each);
    } else {
        (void)session_force_scale(s, nj); /* settles the j memory */
        c->rows = c->first + c->ni;       /* of rows in advance the call's are not the first */
    }
    const struct targets targets = {.ni = c->rows,
                                    .from = from,
                                    .index = c->all.index,
                                    .x = CONST3(c->all.x),
                                    .v = CONST3(c->all.v),
                                    .eps2 = c->all.eps2,
                                    .alike = c->alike >= c->rows,
                                    .h2 = c->all.h2,
                                    .fine = c->fine ? c->is_fine : NULL};
    return session_force_start(s, nj, &targets);
}

static int move_to_cpu(struct session *s, int code)
{
    const int of_device = code == G6X_E_DEVICE_MEMORY || code == G6X_E_DEVICE_LOST ||
                          code == G6X_E_RUNTIME || code == G6X_E_PYTHON || code == G6X_E_FORK;
    const int requested = s->options.backend;
    const struct backend *cpu = requested == BACKEND_TREE ? &tree_backend_cpu : &cpu_direct_backend;
    char name[SESSION_NAME];
    if (!of_device || (requested != BACKEND_AUTO && requested != BACKEND_TREE) || s->backend == cpu)
        return code;
    void *state = NULL;
    if (cpu->open(&s->options, 0, &state, &s->error)) return code;
    error_info("%s goes on with the CPU", session_name(s->id, name));
    s->backend->close(s->state);
    s->backend = cpu;
    s->state = state;
    s->call.lists.count = s->call.distances = 0;
    s->block_fine = NULL;
    for (int k = 0; k < PACKINGS; k++) jmemory_stale_all(&s->j, k);
    return 0;
}

static void count_rows(struct session *s)
{
    const struct force_call *c = &s->call;
    int64_t fine = 0;
    for (int i = 0; i < c->ni && c->fine; i++) fine += c->is_fine[c->first + i];
    s->rows_asked += c->ni;
    if (fine) s->rows_fine += fine;
}

/* Threads that settle, send and copy what a device needs take longer to wake up than to do it. */
static void wake_threads(const struct session *s, int ni)
{
    enum { MANY = 4096, ROWS_PER_THREAD = 1024 };
    const int64_t rows = ni > s->j.changes ? ni : s->j.changes;
    if (rows >= MANY && s->backend && s->backend->capabilities & CAN_OVERLAP)
        threads_wake(options_threads_for(rows / ROWS_PER_THREAD, s->options.threads));
}

static int first_half(struct session *s, int nj, int ni, struct caller_arrays *from,
                      const double *eps2, int each, int lacks)
{
    struct force_call *c = &s->call;
    wake_threads(s, ni);
    int code = session_force_check(s, nj, ni, lacks);
    if (s->given_rows) from->fine = s->given;
    if (!code && from->fine && s->given_rows != ni + 1)
        code = error_set(&s->error, G6X_E_MISMATCH,
                         "force call with ni = %d after g6x_set_fine_rows with %d", ni,
                         s->given_rows - 1);
    s->given_rows = 0;
    s->calls++;
    if (ni == options_process()->npipes) s->full_calls++;
    s->rows += ni > 0 ? ni : 0;
    if (!code && s->undecided) session_choice_make(s, ni, nj, nj);
    if (!code && session_call_rows_take(s, nj, ni, from, eps2, each)) {
        count_rows(s);
        return 0;
    }
    session_call_rows_drop(s);
    c->made = 0;
    if (!code) code = session_force_reserve(s, ni);
    session_force_new(s, nj, ni);
    if (!code) code = copy_softening(s, eps2, each);
    if (!code) {
        struct fpenv host;
        fpenv_enter(&host);
        code = begin(s, nj, from, each);
        if (code && !move_to_cpu(s, code)) code = begin(s, nj, from, each);
        fpenv_leave(&host);
    }
    const int bad = atomic_load(&from->first_bad);
    if (!code && bad != INT_MAX) {
        c->invalid_rows = 1;
        (void)session_output_invalid(s, bad, from->index[bad]);
    }
    c->code = code;
    if (!code) count_rows(s);
    return code ? code : c->invalid_rows ? G6X_E_I_NAN : 0;
}

int session_force_first(struct session *s, int nj, int ni, const int *index, const double (*x)[3],
                        const double (*v)[3], const double *eps2, int each, const double *h2)
{
    struct caller_arrays from = {ni, index, x, v, h2, NULL, &s->call.all, INT_MAX, NULL};
    return first_half(s, nj, ni, &from, eps2, each, !index || !x || !v || !eps2 || !h2);
}

int session_force_first_plain(struct session *s, int nj, int ni, const int *index,
                              const double (*x)[3], const double (*v)[3], double eps2)
{
    struct caller_arrays from = {ni, index, x, v, NULL, NULL, &s->call.all, INT_MAX, NULL};
    return first_half(s, nj, ni, &from, &eps2, 0, 0);
}

/* ---- lasthalf ------------------------------------------------------------------- */

/* Collects all rows of the call; or of the submission, if the backend returns only all of them. */
static int finish(struct session *s, unsigned want)
{
    struct force_call *c = &s->call;
    const int code = session_call_rows_collect(s, want, c->ni);
    return code > 0 ? session_call_rows_collect(s, want, c->rows - c->first) : code;
}

int session_force_fall_back(struct session *s, int code)
{
    struct force_call *c = &s->call;
    const int failed = move_to_cpu(s, code);
    if (failed || !c->made || c->code) return failed;
    FPENV_HERE;
    c->code = c->outdated ? code : begin(s, c->nj, NULL, 0);
    if (!c->code && c->done) c->code = finish(s, c->done & (WANT_JERK | WANT_NEAREST));
    (void)s->backend->zero_distances(s->state); /* already reported */
    return 0;
}

int session_force_resume(struct session *s, int code)
{
    const int failed = s->call.outdated ? code : session_force_fall_back(s, code);
    return failed ? failed : s->call.code;
}

void session_force_warn(struct session *s, int64_t zero_distances)
{
    if (!zero_distances) return;
    error_warn(&s->error,
               "%lld pairs of different particles at one place with eps = 0 were left out",
               (long long)zero_distances);
}

int session_force_complete(struct session *s, unsigned want)
{
    struct force_call *c = &s->call;
    int verified = 0;
    if (c->jerk) want |= WANT_JERK;
    if (c->done && (c->done & want) == want) return 0;
    if (c->done && c->outdated)
        return error_set(&s->error, G6X_E_NO_FIRSTHALF,
                         "lasthalf: j particles were written since the last one; call firsthalf "
                         "again for the nearest neighbours");
    FPENV_HERE;
    int code = finish(s, want & ~(unsigned)WANT_DISTANCE);
    if (code && !(code = session_force_resume(s, code)))
        code = finish(s, want & ~(unsigned)WANT_DISTANCE);
    const int64_t zero_distances = s->backend->zero_distances(s->state);
    if (!code && want & WANT_DISTANCE) session_output_distances(s, c->ni);
    if (!code) verified = session_output_verify(s, want);
    if (!c->done) session_force_warn(s, zero_distances);
    c->done = DONE_SUMS | want;
    if (code || verified) c->code = code ? code : verified;
    return c->code;
}

void session_force_before_write(struct session *s)
{
    struct force_call *c = &s->call;
    c->part = 0;
    if (!c->made || c->outdated) return;
    if (!c->done && !c->code) (void)session_force_complete(s, WANT_NEAREST | WANT_DISTANCE);
    c->outdated = 1;
}

int session_force_last(struct session *s, unsigned want, int nj, int ni, double (*acc)[3],
                       double (*jerk)[3], double *pot, int *nearest, float *distance)
{
    struct force_call *c = &s->call;
    int code = 0, rows = ni;
    if (ni > 0 && ((want && !nearest) || (want & WANT_DISTANCE && !distance))) {
        code = error_set(&s->error, G6X_E_NULL, "lasthalf: null pointer");
    } else if (!c->made) {
        code = error_set(&s->error, G6X_E_NO_FIRSTHALF, "lasthalf without firsthalf");
    } else if (ni != c->ni || nj != c->nj) {
        if (c->ni < rows) rows = c->ni;
        code = error_set(&s->error, G6X_E_MISMATCH,
                         "lasthalf with nj = %d, ni = %d after firsthalf with nj = %d, ni = %d", nj,
                         ni, c->nj, c->ni);
    } else if (ni && (!acc || (!jerk && (c->jerk || s->id <= SESSION_NONE)) || !pot)) {
        code = error_set(&s->error, G6X_E_NULL, "force call: null pointer for acc, jerk or pot");
    } else if (c->code) {
        code = c->code;
    }
    FPENV_HERE;
    if (!code) {
        struct outputs o = {c, acc, jerk, pot, nearest, distance, 0, 0, INT_MAX};
        const struct backend *backend = s->backend;
        int written = session_output_early(s, &o, want | (c->jerk ? WANT_JERK : 0));
        code = session_force_complete(s, want);
        if (s->backend != backend) written = 0;
        if (!code) {
            session_output_rows(s, &o, written, c->ni);
            code = session_output_verdict(s, &o);
            rows = 0;
        }
    }
    if (code && rows) session_output_nan(rows, acc, jerk, pot, nearest, distance);
    return code;
}
