/* hermite_device.c - see hermite.h. */
#include <math.h>
#include <string.h>

#include "core/backend_device.h"
#include "session/choice.h"
#include "session/force.h"
#include "session/force_device.h"
#include "session/hermite.h"
#include "util/clock.h"
#include "util/fpenv.h"
#include "g6lib.h"

static int check(struct session *s, const char *call, const struct g6x_hermite *h, int ni,
                 double time)
{
    const int code = session_hermite_check(s, call, h);
    if (code) return code;
    session_choice_want_gpu(s);
    if (ni < 0 || ni > h->n)
        return error_set(&s->error, G6X_E_ARGUMENT, "%s: ni is negative or above n", call);
    if (!isfinite(time))
        return error_set(&s->error, G6X_E_ARGUMENT, "%s: the time is NaN or Inf", call);
    return s->backend->arrays ? 0 : session_force_device_missing(s, call);
}

int session_hermite_device_next(struct session *s, const struct g6x_hermite *h, double *time,
                                void *stream)
{
    static const char call[] = "g6x_hermite_next_device";
    int code = check(s, call, time ? h : NULL, 0, 0.0);
    struct device_block found = {.stream = stream};
    if (code) return code;
    *time = INFINITY;
    if (!h->n) return 0;
    FPENV_HERE;
    code = session_force_ended(s, s->backend->arrays->next(s->state, h, &found, &s->error));
    if (code) return code;
    *time = found.time;
    return found.bad < 0 ? found.ni : session_hermite_stuck(s, found.bad);
}

int session_hermite_device_predict(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, void *stream)
{
    const int code = check(s, "g6x_hermite_predict_device", h, ni, time);
    if (code || !ni) return code;
    FPENV_HERE;
    struct device_block b = {
        .ni = ni, .time = time, .stream = stream, .noise = session_hermite_noise(s, h)};
    s->block_rows = ni;
    s->block_time = time;
    const int failed = s->backend->arrays->predict(s->state, h, &b, &s->error);
    s->block_fine = b.fine;
    return session_force_ended(s, failed);
}

/* Besides G6X_HERMITE_MOVE and _WRITE: add h->field_acc and h->field_jerk. */
enum { ADD_GIVEN = 4 };

static int correct(struct session *s, const struct g6x_hermite *h, int ni, double time, int what,
                   double pairs, void *stream)
{
    struct field field;
    int code = check(s, "g6x_hermite_correct_device", h, ni, time);
    if (!code) code = session_hermite_field(s, h, time, &field);
    if (code || !ni) return code;
    struct device_block b = {.ni = ni, .time = time, .stream = stream, .pairs = pairs};
    b.noise = session_hermite_noise(s, h);
    b.field = what & ADD_GIVEN ? NULL : &field;
    b.moves = what & G6X_HERMITE_MOVE, b.writes = what & G6X_HERMITE_WRITE;
    FPENV_HERE;
    code = session_force_ended(s, s->backend->arrays->correct(s->state, h, &b, &s->error));
    if (!code && b.bad >= 0) code = session_hermite_unfit(s, b.bad);
    if (!code && b.writes && b.rows.n) code = session_force_device_receive(s, &b.rows);
    return code ? code : b.clamped;
}

int session_hermite_device_correct(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, int what, void *stream)
{
    return correct(s, h, ni, time, what & (G6X_HERMITE_MOVE | G6X_HERMITE_WRITE), NAN, stream);
}

/* ---- block after block ------------------------------------------------------------------- */

/* After a block that arrays->fused_step cannot compute, the operations compute so many blocks. */
enum { BY_OPERATIONS = 16 };

static int next(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    return session_hermite_device_next(s, h, &e->next, s->stream);
}

static int predict(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    return session_hermite_device_predict(s, h, e->ni, e->next, s->stream);
}

static struct targets targets_of(const struct session *s, const struct g6x_hermite *h,
                                 const struct g6x_evolution *e, int k, int count)
{
    /* of a later pass all are fine, having been written at this time */
    const int known =
        s->block_fine && s->block_rows == e->ni && s->block_time == e->next && !e->pass;
    return (struct targets){.ni = count,
                            .fine = known ? s->block_fine + k : NULL,
                            .index = h->address + k,
                            .x = CONST3(h->xi) + k,
                            .v = CONST3(h->vi) + k,
                            .eps2 = &e->eps2,
                            .on_device = 1,
                            .stream = s->stream};
}

static struct device_forces forces_of(const struct g6x_hermite *h, const struct g6x_evolution *e,
                                      int k, int count)
{
    return (struct device_forces){.ni = count,
                                  .acc = h->acc + k,
                                  .jerk = h->jerk + k,
                                  .pot = h->pot + k,
                                  .nearest = e->closer > 0.0 ? h->nearest + k : NULL};
}

static int sum(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e, int k,
               int count)
{
    const struct targets targets = targets_of(s, h, e, k, count);
    const struct device_forces to = forces_of(h, e, k, count);
    return session_force_device(s, hermite_acting(h), &targets, &to);
}

static int sum_share(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e, int k,
                     int count)
{
    struct targets targets = targets_of(s, h, e, k, count);
    targets.share = h->share;
    targets.shares = h->shares;
    return session_force_device_part(s, hermite_acting(h), &targets, e->closer > 0.0, h->part,
                                     &e->part_bytes);
}

static int merge(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
                 int k, int count)
{
    const struct device_forces to = forces_of(h, e, k, count);
    return session_force_device_merge(s, h->parts, h->shares, &to, s->stream);
}

static int watch(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    int found = 0;
    const int code = s->backend->arrays->watch(s->state, h, e, s->stream, &found, &s->error);
    return code ? session_force_ended(s, code) : found < 0 ? session_hermite_unknown(s) : found;
}

static int end(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
               int moves)
{
    const int what =
        G6X_HERMITE_WRITE | (moves ? G6X_HERMITE_MOVE : 0) | (e->pause ? ADD_GIVEN : 0);
    return correct(s, h, e->ni, e->next, what, session_hermite_pairs(e), s->stream);
}

/* Submits the sum on the block found by arrays->fused_step. BLOCK_BY_OPERATIONS: its fine rows were
 * found for another drift than the j particles have now. */
static int sum_fused_step(struct session *s, const struct g6x_hermite *h,
                          const struct g6x_evolution *e, const struct device_fused_step *step)
{
    s->time = e->next;
    s->time_bad = 0;
    const int nj = hermite_acting(h);
    session_force_new(s, nj, e->ni);
    s->call.made = 0;
    session_force_freeze(s, nj);
    const struct hermite_noise noise = session_hermite_noise(s, h);
    if (memcmp(&noise, &step->noise, sizeof noise) != 0) return BLOCK_BY_OPERATIONS;
    s->call.fine = step->fine;
    const int code = session_force_upload(s, nj);
    s->calls++;
    s->rows += e->ni;
    s->rows_asked += e->ni;
    s->rows_fine += step->fine;
    return code ? code
                : s->backend->arrays->sum_fused_step(s->state, e->ni, step->fine, e->eps2,
                                                     &s->error);
}

static int run(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
               double until, long long last)
{
    const struct device_arrays *arrays = s->backend->arrays;
    if (!arrays) return session_force_device_missing(s, "g6x_hermite_evolve_device");
    if (e->passes > 1 || e->pause || session_hermite_watches(e) || s->options.verify > 0.0 ||
        !s->options.jerk || session_hermite_is_shared(h, h->n) || s->by_operations-- > 0)
        return BLOCK_BY_OPERATIONS;
    s->by_operations = 0;
    s->call.made = 0; /* its i particles and results are overwritten */
    const int bad = session_force_check_particles(s, hermite_acting(h), "");
    if (bad) return bad;
    if (!arrays->can_fuse_step(s->state, &s->j, h, s->stream)) return BLOCK_BY_OPERATIONS;
    double began = 0.0; /* start of the submitted sum */
    for (int ni = 0;;) {
        struct device_fused_step step = {.ni = ni, .time = e->next, .eps2 = e->eps2};
        struct field field;
        if (ni && session_hermite_field(s, h, e->next, &field)) return s->error.code;
        if (ni) step.field = &field;
        step.noise = session_hermite_noise(s, h);
        const int code = arrays->fused_step(s->state, &s->j, h, &step, &s->error);
        if (!code) session_force_warn(s, s->backend->zero_distances(s->state));
        e->ni = ni;
        if (ni) e->force_seconds += clock_seconds() - began;
        if (!code && step.invalid >= 0) return session_hermite_unfit(s, step.invalid);
        if (code) return session_force_ended(s, code);
        if (!step.incomplete && ni) session_hermite_count(e, step.clamped);
        e->ni = 0;
        if (step.incomplete || !step.next_ni) { /* close pairs, or another unusual case */
            s->by_operations = BY_OPERATIONS;
            return BLOCK_BY_OPERATIONS;
        }
        e->next = step.next;
        if (e->next > e->t_end || (ni && session_hermite_is_over(e, last))) return G6X_HERMITE_DONE;
        if (ni && clock_seconds() > until) return G6X_HERMITE_UNFINISHED;
        e->ni = ni = step.next_ni;
        began = clock_seconds();
        const int failed = sum_fused_step(s, h, e, &step);
        e->ni = 0;
        if (failed == BLOCK_BY_OPERATIONS) return failed;
        if (failed) return session_force_ended(s, failed);
    }
}

static const struct session_hermite_operations DEVICE = {
    .pairs_at_once = (int64_t)1 << 37, /* a fraction of a second */
    .most_rows = 1 << 20,
    .run = run,
    .next = next,
    .predict = predict,
    .sum = sum,
    .sum_share = sum_share,
    .merge = merge,
    .watch = watch,
    .end = end,
};

int session_hermite_device_evolve(struct session *s, const struct g6x_hermite *h,
                                  struct g6x_evolution *e, void *stream)
{
    const int code = session_hermite_check_evolution(s, "g6x_hermite_evolve_device", h, e);
    if (code) return code;
    session_choice_want_gpu(s);
    s->stream = stream;
    return session_hermite_loop(s, h, e, &DEVICE);
}
