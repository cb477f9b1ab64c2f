/* force_device.c - see force_device.h. Host fallback and verification use force.c: only then are i
 * particles and results copied to the host. */
#include "session/force_device.h"

#include <string.h>

#include "session/choice.h"
#include "session/call_rows.h"
#include "session/force.h"
#include "util/fpenv.h"
#include "util/memory.h"

int session_force_device_missing(struct session *s, const char *call)
{
    return error_set(&s->error, G6X_E_NO_DEVICE,
                     "%s: this cluster computes on the CPU, which has no device's arrays", call);
}

/* ---- forces ----------------------------------------------------------------------------- */

static unsigned requested(const struct force_call *c, const struct device_forces *to)
{
    return (c->jerk ? WANT_JERK : 0) | (to->nearest || to->distance ? WANT_NEAREST : 0);
}

/* Finds the rows that mode auto sums in double, by t->fine or by their indices, which it copies to
 * the host. */
static int find_fine(struct session *s, int nj, struct targets *t)
{
    struct force_call *c = &s->call;
    if (c->precision != MODE_AUTO || !t->ni) return 0;
    const struct device_arrays *arrays = s->backend->arrays;
    const size_t ni = (size_t)t->ni;
    int code = session_force_reserve(s, t->ni);
    if (!code && t->fine) code = arrays->wait(s->state, t->stream, &s->error);
    if (!code && !t->fine)
        code = arrays->to_host(s->state, c->all.index, t->index, ni * sizeof *t->index, t->stream,
                               &s->error);
    if (code) return code;
    if (t->fine) {
        memcpy(c->is_fine, t->fine, ni);
        for (size_t i = 0; i < ni; i++) c->fine += c->is_fine[i];
    } else {
        c->fine = session_call_rows_fine(s, nj, t->ni, c->all.index, c->is_fine);
    }
    t->fine = c->fine ? c->is_fine : NULL;
    s->rows_fine += c->fine;
    return 0;
}

/* Copies the call to the host, where its sums are completed. */
static int sum_on_host(struct session *s, unsigned want)
{
    struct force_call *c = &s->call;
    int code = session_force_reserve(s, c->ni);
    if (!code) code = s->backend->arrays->fetch(s->state, &c->own, &s->error);
    if (!code) code = s->backend->collect(s->state, want, c->ni, &c->results, &s->error);
    if (!code) session_force_warn(s, s->backend->zero_distances(s->state));
    return code;
}

/* Writes the results of a call; `lists` will be read after it. */
static int write(struct session *s, const struct device_forces *to, int lists,
                 struct device_found *found)
{
    const struct device_arrays *arrays = s->backend->arrays;
    const unsigned want = requested(&s->call, to);
    int code = arrays->write_outputs(s->state, to, found, &s->error);
    if (!code && !found->left) session_force_warn(s, s->backend->zero_distances(s->state));
    if (code || (!found->left && !lists && !(s->options.verify > 0.0))) return code;
    code = sum_on_host(s, want);
    if (code) return code;
    s->call.done = DONE_SUMS | want;
    code = session_output_verify(s, want);
    return code || !found->left ? code : arrays->write_outputs(s->state, to, found, &s->error);
}

static int verdict(struct session *s, const struct device_found *found)
{
    const struct device_row *far = &found->out_of_range, *bad = &found->invalid;
    return far->row >= 0   ? session_output_unfit(s, far->row, far->index)
           : bad->row >= 0 ? session_output_invalid(s, bad->row, bad->index)
                           : 0;
}

/* ---- calls that several devices share: as host calls -------------------------------------- */

/* Copies an array to the host; `from` is NULL if it is not requested. */
static int fetch(struct session *s, void *to, const void *from, size_t bytes, void *stream)
{
    return from ? s->backend->arrays->to_host(s->state, to, from, bytes, stream, &s->error) : 0;
}

/* Copies an array back; `to` is NULL if it is not requested. */
static int put(struct session *s, void *to, const void *from, size_t bytes)
{
    return to ? s->backend->arrays->from_host(s->state, to, from, bytes, &s->error) : 0;
}

static int fetch_targets(struct session *s, const struct targets *t)
{
    const struct rows *h = &s->on_host.rows;
    const size_t n = (size_t)t->ni;
    int code = fetch(s, h->index, t->index, n * sizeof *h->index, t->stream);
    if (!code) code = fetch(s, h->x, t->x, n * sizeof *h->x, t->stream);
    if (!code) code = fetch(s, h->v, t->v, n * sizeof *h->v, t->stream);
    if (!code) code = fetch(s, h->h2, t->h2, n * sizeof *h->h2, t->stream);
    for (size_t i = 0; i < n && !t->h2; i++) h->h2[i] = -1.0;
    return code;
}

static int put_forces(struct session *s, const struct device_forces *to)
{
    const struct on_host *h = &s->on_host;
    const size_t n = (size_t)to->ni;
    int code = put(s, to->acc, h->acc, n * sizeof *h->acc);
    if (!code) code = put(s, to->jerk, h->jerk, n * sizeof *h->jerk);
    if (!code) code = put(s, to->pot, h->pot, n * sizeof *h->pot);
    if (!code) code = put(s, to->nearest, h->nearest, n * sizeof *h->nearest);
    return code ? code : put(s, to->distance, h->distance, n * sizeof *h->distance);
}

static int shared(struct session *s, int nj, const struct targets *t,
                  const struct device_forces *to)
{
    struct on_host *h = &s->on_host;
    const struct memory_array all[] = ARRAYS_ON_HOST(h, t->ni);
    int code = memory_reserve(all, t->ni, &h->capacity);
    if (code) (void)error_set(&s->error, code, "g6x_forces_device: out of memory");
    if (!code) code = fetch_targets(s, t);
    if (code) {
        (void)session_force_ended(s, code);
        session_force_new(s, nj, t->ni);
        s->call.made = 0;
        s->call.code = code;
        return code;
    }
    code = session_force_first(s, nj, t->ni, h->rows.index, CONST3(h->rows.x), CONST3(h->rows.v),
                               t->eps2, 0, h->rows.h2);
    const unsigned want =
        (to->distance ? WANT_DISTANCE : 0) | (to->nearest || to->distance ? WANT_NEAREST : 0);
    const int last =
        session_force_last(s, want, nj, t->ni, h->acc, h->jerk, h->pot, want ? h->nearest : NULL,
                           to->distance ? h->distance : NULL);
    if (!code || code == G6X_E_I_NAN) code = last;
    s->call.made = t->h2 != NULL;
    if (!s->backend->arrays)
        return error_set(&s->error, G6X_E_DEVICE_LOST,
                         "g6x_forces_device: the device has failed, which was to have the forces");
    const int there = put_forces(s, to);
    (void)session_force_ended(s, there);
    return code ? code : there;
}

int session_force_device(struct session *s, int nj, const struct targets *targets,
                         const struct device_forces *to)
{
    struct targets t = *targets;
    session_choice_want_gpu(s);
    struct force_call *c = &s->call;
    const struct device_arrays *arrays = s->backend->arrays;
    struct device_found found = {{-1, -1}, {-1, -1}, 0};
    int code = session_force_check(s, nj, t.ni, !t.index || !t.x || !t.v);
    if (!code && t.ni && (!to->acc || !to->jerk || !to->pot))
        code = error_set(&s->error, G6X_E_NULL, "g6x_forces_device: null pointer");
    if (!code) code = session_force_check_softening(s, 0, t.eps2[0]);
    if (!code && !arrays) code = session_force_device_missing(s, "g6x_forces_device");
    const int64_t present = nj < s->j.capacity ? nj : s->j.capacity;
    if (!code && arrays->shares(s->state, t.ni, (int)present)) return shared(s, nj, targets, to);
    session_force_new(s, nj, t.ni);
    FPENV_HERE;
    if (!code) {
        session_force_freeze(s, nj);
        t.want = requested(c, to);
        code = find_fine(s, nj, &t);
    }
    if (!code) code = session_force_start(s, nj, &t);
    if (!code) code = write(s, to, t.h2 != NULL, &found);
    if (code && arrays) arrays->fill_nan(s->state, to, t.stream);
    c->made = t.h2 != NULL;
    c->invalid_rows = !code && found.invalid.row >= 0;
    c->code = code;
    (void)session_force_ended(s, code);
    s->calls++;
    s->rows_asked += t.ni;
    s->full_calls += t.ni == options_process()->npipes;
    return code ? code : verdict(s, &found);
}

/* ---- shares of a call -------------------------------------------------------------------- */

int session_force_device_part(struct session *s, int nj, const struct targets *targets, int nearest,
                              void *part, long long *bytes)
{
    static const char call[] = "g6x_force_part_device";
    session_choice_want_gpu(s);
    const struct device_arrays *arrays = s->backend->arrays;
    struct targets t = *targets;
    int left = 0;
    s->call.part = 0;
    int code = session_force_check(s, nj, t.ni, !t.index || !t.x || !t.v || !part || !bytes);
    if (!code) code = session_force_check_softening(s, 0, t.eps2[0]);
    if (!code && (t.shares < 2 || t.share < 0 || t.share >= t.shares))
        code = error_set(&s->error, G6X_E_ARGUMENT, "%s: share %d of %d", call, t.share, t.shares);
    const int64_t present = nj < s->j.capacity ? nj : s->j.capacity;
    if (!code && t.shares > ceil_div(present, BLOCK))
        code = error_set(&s->error, G6X_E_ARGUMENT,
                         "%s: %d shares of %lld j particles: one needs a block of %d", call,
                         t.shares, (long long)present, BLOCK);
    if (!code && !arrays) code = session_force_device_missing(s, call);
    if (code) return code;
    session_force_new(s, nj, t.ni);
    s->call.made = 0;
    session_force_freeze(s, nj);
    t.want = (s->call.jerk ? WANT_JERK : 0) | (nearest ? WANT_NEAREST : 0);
    FPENV_HERE;
    if (t.ni) {
        code = find_fine(s, nj, &t);
        if (!code) code = session_force_start(s, nj, &t);
        if (!code) code = arrays->store_part(s->state, part, t.stream, &left, &s->error);
        if (!code && left) code = sum_on_host(s, t.want);
        if (!code && left) code = arrays->store_part(s->state, part, t.stream, &left, &s->error);
        if (!code) session_force_warn(s, s->backend->zero_distances(s->state));
    }
    (void)session_force_ended(s, code);
    s->calls++;
    s->rows += t.ni;
    s->call.part = code ? 0 : nearest ? 2 : 1;
    const struct force_call *c = &s->call;
    *bytes = c->precision == MODE_AUTO
                 ? part_bytes(MODE_GRAPE, t.ni - c->fine) + part_bytes(MODE_DOUBLE, c->fine)
                 : part_bytes(c->precision, t.ni);
    return code;
}

int session_force_device_merge(struct session *s, void *parts, int shares,
                               const struct device_forces *to, void *stream)
{
    static const char call[] = "g6x_merge_parts_device";
    const struct device_arrays *arrays = s->backend->arrays;
    struct device_found found = {{-1, -1}, {-1, -1}, 0};
    if (to->ni && (!parts || !to->acc || !to->jerk || !to->pot))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    if (!arrays) return session_force_device_missing(s, call);
    if (!s->call.part)
        return error_set(&s->error, G6X_E_NO_FIRSTHALF, "%s without g6x_force_part_device", call);
    if (to->ni != s->call.ni || shares < 1)
        return error_set(&s->error, G6X_E_MISMATCH, "%s: ni = %d of %d parts, but that had %d",
                         call, to->ni, shares, s->call.ni);
    if ((to->nearest || to->distance) && s->call.part < 2)
        return error_set(&s->error, G6X_E_MISMATCH, "%s: the parts have no nearest neighbours",
                         call);
    s->call.part = 0;
    if (!to->ni) return 0;
    FPENV_HERE;
    int code = arrays->merge_parts(s->state, parts, shares, stream, &s->error);
    if (!code) code = write(s, to, 0, &found);
    if (code) arrays->fill_nan(s->state, to, stream);
    return code ? session_force_ended(s, code) : verdict(s, &found);
}

/* ---- j particles ------------------------------------------------------------------------ */

int session_force_device_receive(struct session *s, const struct device_particles *from)
{
    session_choice_want_gpu(s);
    static const char call[] = "g6x_set_j_particles_device";
    const struct device_arrays *arrays = s->backend->arrays;
    if (from->n < 0)
        return error_set(&s->error, G6X_E_ARGUMENT, "%s: n = %d is negative", call, from->n);
    if (from->n && (!from->mass || !from->x))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    if (!arrays) return session_force_device_missing(s, call);
    session_force_before_write(s);
    if (!from->n) return 0;
    FPENV_HERE;
    return session_force_ended(s, arrays->receive(s->state, &s->j, from, &s->error));
}

int session_force_device_predicted(struct session *s, int nj, double (*x)[3], double (*v)[3],
                                   void *stream)
{
    session_choice_want_gpu(s);
    static const char call[] = "g6x_get_predicted_j_particles_device";
    const struct device_arrays *arrays = s->backend->arrays;
    if (nj < 0 || s->time_bad)
        return error_set(&s->error, G6X_E_ARGUMENT,
                         "%s: nj = %d is negative, or the time NaN or Inf", call, nj);
    if (nj && (!x || !v)) return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    if (!arrays) return session_force_device_missing(s, call);
    s->call.made = s->call.part = 0;
    if (!nj) return 0;
    FPENV_HERE;
    session_force_freeze(s, nj);
    int code = session_force_upload(s, nj);
    if (!code) code = arrays->predicted(s->state, nj, x, v, stream, &s->error);
    return session_force_ended(s, code);
}
