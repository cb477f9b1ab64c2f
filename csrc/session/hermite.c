/* hermite.c - see hermite.h. */
#include "session/hermite.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>

#include "session/force.h"
#include "session/partial_words.h"
#include "steps/groups.h"
#include "util/clock.h"
#include "util/fpenv.h"
#include "util/threads.h"

enum { NEAR_ROWS = 64 };
enum { PREDICTED_ROWS = 128, CORRECTED_ROWS = 64 }; /* of a thread at a time */
enum { LINGER = 400000 }; /* nanoseconds: while a GPU sums a block, threads stay awake */

/* ---- particles of the host --------------------------------------------------------------- */

/* Particles that are j particles here. */
static int summed(const struct g6x_hermite *h)
{
    return h->words ? h->share_end - h->share_first : hermite_acting(h);
}

struct hermite_noise session_hermite_noise(struct session *s, const struct g6x_hermite *h)
{
    const int acting = hermite_acting(h);
    struct hermite_noise noise = {.noise = h->noise, .place = h->place, .acting = acting};
    if (session_force_scale_precision(s, summed(h)) != MODE_AUTO) return noise;
    const struct scale scale = session_force_scale_in(s, MODE_GRAPE);
    noise.step = fine_step((double)acting);
    for (int k = 0; k < 3; k++) noise.drift[k] = scale.drift[k];
    return noise;
}

/* The index of a j particle: members of subsystems have that of what carries their centre, so that
 * they are not its neighbours. */
static int index_of(const struct session *s, const struct g6x_hermite *h, int p)
{
    const struct group *q = h->subsystems ? groups_of(s->groups, p) : NULL;
    return q ? q->who[0] : p;
}

/* 0, or the error of a j particle that is not there or has another index: its own force would act
 * on it, and its index would name another one. */
static int check_indices(struct session *s, const struct g6x_hermite *h)
{
    const int first = h->words ? h->share_first : 0;
    jmemory_commit(&s->j);
    for (int k = 0; k < summed(h); k++) {
        const struct jparticle *p = k < s->j.capacity ? &s->j.body[k] : NULL;
        const int index = index_of(s, h, first + k);
        if (!p || !p->state || (p->state != SLOT_LOST && p->index != index))
            return error_set(&s->error, G6X_E_ARGUMENT,
                             "block step: the j particle at address %d has to be that with index "
                             "%d",
                             k, index);
    }
    return 0;
}

/* Threads for the rows of a block. */
static int threads_of(const struct session *s)
{
    const int threads = options_threads(s->options.threads);
    return threads < THREADS_AT_HAND ? threads : THREADS_AT_HAND;
}

static int next(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    const struct hermite_state state = hermite_state_of(h);
    const int ni =
        hermite_next(h->n, &state, hermite_common(h), threads_of(s), h->address, &e->next);
    for (int i = 0; i < ni; i++)
        if (!(e->next > h->t[h->address[i]])) return session_hermite_stuck(s, h->address[i]);
    return ni;
}

static struct groups_block block_of(const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    return (struct groups_block){e->ni, h->address, h->nearest, e->next, h->xi,
                                 h->vi, h->acc,     h->jerk,    h->pot};
}

/* Rows of a block, for threads. */
struct block_rows {
    const struct g6x_hermite *h;
    struct hermite_state state;
    double time;
    const struct hermite_correction *correction;
    _Atomic int clamped, unfit; /* unfit: the first row that is, or the number of rows */
};

static void predict_rows(void *context, int64_t k, int64_t end)
{
    const struct block_rows *r = context;
    hermite_predict((int)(end - k), r->h->address + k, r->time, &r->state, r->h->xi + k,
                    r->h->vi + k);
}

static int predict(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    const struct hermite_state state = hermite_state_of(h);
    struct block_rows rows = {.h = h, .state = state, .time = e->next};
    threads_each(threads_of(s), e->ni, PREDICTED_ROWS, predict_rows, &rows);
    const struct groups_block block = block_of(h, e);
    const long long failed = h->subsystems ? s->groups->failed : 0;
    const int code = h->subsystems ? groups_predict(s->groups, &state, &block, e->closer) : 0;
    if (h->subsystems && s->groups->failed > failed)
        error_warn(&s->error,
                   "subsystems: at time %g bodies do not converge by themselves, and go on with "
                   "block steps",
                   e->next);
    return code ? error_set(&s->error, code, "subsystems: there is no memory") : 0;
}

static int sum(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e, int k,
               int count)
{
    const double (*x)[3] = CONST3(h->xi) + k, (*v)[3] = CONST3(h->vi) + k;
    const int nj = summed(h), partial = h->words != NULL;
    int code = session_force_first_plain(s, nj, count, h->address + k, x, v, e->eps2);
    if (!code && partial)
        code = session_partial_words_get(s, count, h->words + (size_t)k * G6X_PARTIAL_WORDS);
    const int nearest = e->closer > 0.0 || h->subsystems;
    return code || (partial && !nearest)
               ? code
               : session_force_last(s, nearest ? WANT_NEAREST : 0, nj, count, h->acc + k,
                                    h->jerk + k, h->pot + k, nearest ? h->nearest + k : NULL, NULL);
}

/* The nearer of the nearest j particle and the nearest of the particles that are none, of rows. */
static void find_nearest(void *context, int64_t first, int64_t end)
{
    enum { TILE = 64 };
    const struct block_rows *r = context;
    const struct g6x_hermite *h = r->h;
    struct watch_nearest near[NEAR_ROWS];
    double x[TILE][3], v[TILE][3];
    int q[TILE];
    for (int64_t i = first; i < end; i++) {
        const int p = h->address[i];
        near[i - first] = (struct watch_nearest){INFINITY, p};
        hermite_predict(1, &h->nearest[i], r->time, &r->state, x, v);
        if (h->nearest[i] != p) watch_add_near(&near[i - first], x[0], h->nearest[i], h->xi[i]);
    }
    for (int base = hermite_acting(h); base < h->n; base += TILE) {
        const int count = h->n - base < TILE ? h->n - base : TILE;
        for (int k = 0; k < count; k++) q[k] = base + k;
        hermite_predict(count, q, r->time, &r->state, x, v);
        for (int64_t i = first; i < end; i++)
            for (int k = 0; k < count; k++)
                if (q[k] != h->address[i]) watch_add_near(&near[i - first], x[k], q[k], h->xi[i]);
    }
    for (int64_t i = first; i < end; i++) h->nearest[i] = near[i - first].p;
}

static int watch(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    const struct hermite_state state = hermite_state_of(h);
    int found = 0;
    if (e->closer > 0.0 && h->massless) {
        struct block_rows rows = {.h = h, .state = state, .time = e->next};
        threads_each(options_threads(s->options.threads), e->ni, NEAR_ROWS, find_nearest, &rows);
    }
    for (int i = 0; i < e->ni; i++) {
        const int p = h->address[i];
        const struct watch_row row = {.closer = e->closer,
                                      .farther = e->farther,
                                      .centre = {e->centre[0], e->centre[1], e->centre[2]},
                                      .x = h->xi[i],
                                      .v = h->vi[i],
                                      .p = p,
                                      .nearest = e->closer > 0.0 ? h->nearest[i] : p};
        if (row.nearest < 0 || row.nearest >= h->n) return session_hermite_unknown(s);
        found |= watch_step(&state, &row, e->next, INFINITY, &h->close[i], &h->left[i]);
        const struct group *q = h->subsystems ? groups_of(s->groups, p) : NULL;
        if (!q || q->then.met == INFINITY) continue;
        h->close[i] = fmin(h->close[i], h->t[p] + q->then.met);
        found = 1;
    }
    return found;
}

/* Writes a particle as j particle, at a time; acc and jerk are at x, v. */
static int write_one(struct session *s, const struct g6x_hermite *h, int p, int from, double time,
                     const double x[3], const double v[3], const double acc[3],
                     const double jerk[3])
{
    const int first = h->words ? h->share_first : 0;
    const int end = h->words ? h->share_end : hermite_acting(h), index = index_of(s, h, p);
    double a2[3], j6[3];
    int code = 0;
    if (p >= hermite_acting(h)) return 0;
    for (int k = 0; k < 3; k++) a2[k] = acc[k] / 2.0, j6[k] = jerk[k] / 6.0;
    if (h->words) code = jmemory_set(s->whole, p, index, time, h->mass[p], NULL, j6, a2, v, x);
    if (!code && p >= first && p < end)
        code = jmemory_set(&s->j, p - first, index, time, h->mass[p], NULL, j6, a2, v, x);
    return code ? error_set(&s->error, code, "block step: particle %d is refused", from) : 0;
}

/* Writes the block, as it is in xi, vi, acc and jerk, as j particles. */
static int write(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    int code = 0;
    session_force_before_write(s);
    for (int i = 0; i < e->ni && !code; i++) { /* ascending */
        const int p = h->address[i];
        const struct group *q = h->subsystems ? groups_of(s->groups, p) : NULL;
        for (int k = 0; k < (q ? q->n : 1) && !code; k++)
            code = write_one(s, h, q ? q->who[k] : p, p, e->next, h->xi[i], h->vi[i], h->acc[i],
                             h->jerk[i]);
    }
    return code;
}

/* Writes what has become, or was, part of a subsystem. */
static int write_changed(struct session *s, const struct g6x_hermite *h)
{
    int code = 0;
    for (int p = 0; p < h->n && !code; p++) {
        if (!s->groups->changed[p]) continue;
        const int c = index_of(s, h, p);
        code = write_one(s, h, p, p, h->t[c], h->x[c], h->v[c], h->a[c], h->j[c]);
    }
    return code;
}

static void correct_rows(void *context, int64_t k, int64_t end)
{
    struct block_rows *r = context;
    int unfit, before = r->unfit;
    r->clamped += hermite_correct(r->correction, (int)k, (int)end, &unfit);
    if (unfit < 0) return;
    while (unfit < before && !atomic_compare_exchange_weak(&r->unfit, &before, unfit)) continue;
}

static int end(struct session *s, const struct g6x_hermite *h, const struct g6x_evolution *e,
               int moves)
{
    const struct hermite_state state = hermite_state_of(h);
    struct hermite_correction c = hermite_correction_of(h, e->next);
    c.out = (struct hermite_outside){h->field_acc, h->field_jerk, hermite_work_of(h)};
    struct field field;
    if (session_hermite_field(s, h, e->next, &field)) return s->error.code;
    c.errors.field = field.roundoff;
    const int outside = e->pause || !field_is_none(&field);
    c.errors.outside = outside ? CONST3(h->field_acc) : NULL;
    c.errors.row = session_hermite_noise(s, h);
    const struct groups_block block = block_of(h, e);
    if (h->subsystems) groups_pull(s->groups, &state, &block);
    if (outside && !h->field_acc) c.errors.row.noise = 0.0;
    if (outside) hermite_add_field_to(&c, e->ni, e->pause ? NULL : &field);
    const struct hermite_rows pairs = {.count = e->ni,
                                       .address = h->address,
                                       .time = e->next,
                                       .eps2 = session_hermite_pairs(e),
                                       .x = CONST3(h->xi),
                                       .v = CONST3(h->vi),
                                       .group = h->subsystems ? s->groups->of : NULL};
    hermite_correct_pairs(&pairs, &state, h->acc, h->jerk);
    if (h->subsystems && moves) groups_find_partners(s->groups, &state, &block);
    if (!moves) c.state.dt = NULL;
    struct block_rows rows = {.correction = &c, .unfit = e->ni};
    threads_each(threads_of(s), e->ni, CORRECTED_ROWS, correct_rows, &rows);
    int code = rows.unfit == e->ni ? write(s, h, e) : session_hermite_unfit(s, rows.unfit);
    if (!code && moves && h->subsystems) code = groups_end(s->groups, &state, &c.rule, &block);
    if (code > 0) code = write_changed(s, h);
    return code ? code : rows.clamped;
}

/* Whether groups of bodies as they were given are still to be made, which needs their forces. */
static int lacks_groups(const struct session *s, const struct g6x_hermite *h)
{
    if (!h->subsystems || !h->n) return 0;
    for (int p = 0; p < h->n && s->groups->rounds; p++)
        if (groups_carries(s->groups, p) && h->t[p] != h->t[0]) s->groups->rounds = 0;
    return s->groups->rounds > 0;
}

/* Makes them, when all are rows of a block of no length, and groups of these in the next rounds. */
static int make_groups(struct session *s, const struct g6x_hermite *h,
                       const struct g6x_evolution *e)
{
    const struct hermite_correction c = hermite_correction_of(h, e->next);
    const struct groups_block block = block_of(h, e);
    struct field field;
    if (session_hermite_field(s, h, e->next, &field)) return s->error.code;
    hermite_add_field_to(&c, e->ni, &field);
    groups_find_partners(s->groups, &c.state, &block);
    if (groups_end(s->groups, &c.state, &c.rule, &block)) {
        s->groups->rounds--;
        return write_changed(s, h);
    }
    s->groups->rounds = 0;
    return 0;
}

static const struct session_hermite_operations HOST = {
    .pairs_at_once = (int64_t)1 << 31, /* about a second of one core's work */
    .most_rows = 65536,
    .next = next,
    .predict = predict,
    .sum = sum,
    .watch = watch,
    .end = end,
};

/* ---- the loop ---------------------------------------------------------------------------- */

/* Begins the next block, unless it ends after t_end. */
static int begin(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                 const struct session_hermite_operations *ops)
{
    int ni = h->n;
    if (lacks_groups(s, h)) {
        ni = 0;
        for (int p = 0; p < h->n; p++)
            if (groups_carries(s->groups, p)) h->address[ni++] = p;
        e->next = h->t[0];
    } else if (h->n) {
        ni = ops->next(s, h, e);
    } else {
        e->next = INFINITY;
    }
    if (ni <= 0 || e->next > e->t_end) return ni < 0 ? ni : 0;
    e->ni = ni;
    e->row = e->pass = e->stage = 0;
    return ops->predict(s, h, e);
}

/* Stages of a block: merging comes first. */
enum { MERGED = 1, PAUSED = G6X_HERMITE_PAUSED, WATCHED = G6X_HERMITE_WATCHED };

int session_hermite_is_shared(const struct g6x_hermite *h, int ni)
{
    const int64_t acting = hermite_acting(h);
    return h->part && h->shares > 1 && ceil_div(acting, BLOCK) >= h->shares &&
           ni * acting >= h->share_pairs;
}

/* Computes the forces on the next rows of the block; *now: the time of the clock behind it. */
static int go_on(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                 const struct session_hermite_operations *ops, double *now)
{
    const double began = clock_seconds();
    const int nj = summed(h);
    const int shared = ops->sum_share && session_hermite_is_shared(h, e->ni);
    const int most = shared && h->part_rows < ops->most_rows ? h->part_rows : ops->most_rows;
    const int64_t fitting = ops->pairs_at_once / (nj ? nj : 1), rows = fitting > most ? most
                                                                       : fitting < LEAST_ROWS
                                                                           ? LEAST_ROWS
                                                                           : fitting;
    const int count = (int)(e->ni - e->row < rows ? e->ni - e->row : rows);
    s->time = e->next;
    s->time_bad = 0;
    int code;
    if (!shared) {
        code = ops->sum(s, h, e, e->row, count);
    } else if (e->stage == MERGED) { /* the caller has gathered the parts of the shares */
        e->stage = 0;
        code = ops->merge(s, h, e, e->row, count);
    } else {
        code = ops->sum_share(s, h, e, e->row, count);
        if (!code) e->stage = MERGED, code = G6X_HERMITE_MERGE;
    }
    if (!code) e->row += count;
    *now = clock_seconds();
    e->force_seconds += *now - began;
    return code;
}

void session_hermite_count(struct g6x_evolution *e, int clamped)
{
    e->blocks++;
    e->steps += e->ni;
    if (clamped && !e->clamped) e->clamped_time = e->next;
    e->clamped += clamped;
    e->time = e->next;
    e->ni = 0;
}

/* Ends a pass, when all its forces are computed, unless the caller is to look at them before. */
static int end_pass(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                    const struct session_hermite_operations *ops)
{
    const int moves = e->pass + 1 == e->passes;
    if (h->words && e->stage < MERGED) {
        e->stage = MERGED;
        return G6X_HERMITE_MERGE;
    }
    if (e->pause && e->stage < PAUSED) {
        e->stage = PAUSED;
        return G6X_HERMITE_PAUSED;
    }
    if (lacks_groups(s, h)) {
        const int code = make_groups(s, h, e);
        e->ni = e->stage = 0;
        return code;
    }
    if (moves && e->stage < WATCHED && session_hermite_watches(e)) {
        e->stage = WATCHED;
        const int found = ops->watch(s, h, e);
        if (found) return found < 0 ? found : G6X_HERMITE_WATCHED;
    }
    e->stage = 0;
    const int clamped = ops->end(s, h, e, moves);
    e->row = 0;
    e->pass++;
    if (clamped >= 0 && moves) session_hermite_count(e, clamped);
    return clamped < 0 ? clamped : 0;
}

int session_hermite_is_over(const struct g6x_evolution *e, long long last)
{
    const volatile int *stop = e->stop;
    return e->blocks == last || (stop && *stop);
}

int session_hermite_loop(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e,
                         const struct session_hermite_operations *ops)
{
    int code = 0;
    double now = 0.0;
    const double until = e->seconds > 0.0 ? clock_seconds() + e->seconds : INFINITY;
    const long long last =
        e->most_blocks && e->most_blocks < LLONG_MAX - e->blocks ? e->blocks + e->most_blocks : -1;
    struct fpenv host;
    fpenv_enter(&host);
    if (s->backend->arrays) threads_linger(LINGER);
    s->call.made = 0; /* its results are overwritten */
    while (!code) {
        code = e->ni || !ops->run ? BLOCK_BY_OPERATIONS : ops->run(s, h, e, until, last);
        if (code != BLOCK_BY_OPERATIONS) break;
        code = G6X_HERMITE_DONE;
        if (!e->ni) code = begin(s, h, e, ops);
        if (code || !e->ni) break;
        if (e->row < e->ni) code = go_on(s, h, e, ops, &now);
        if (!code && e->row == e->ni) code = end_pass(s, h, e, ops);
        if (code || (!e->ni && session_hermite_is_over(e, last))) break;
        if (now > until) code = G6X_HERMITE_UNFINISHED;
    }
    s->call.made = 0;
    threads_linger(0);
    if (code < 0) e->ni = e->stage = 0;
    fpenv_leave(&host);
    return code;
}

int session_hermite_evolve(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    struct g6x_hermite with;
    int code = session_hermite_check_evolution(s, "g6x_hermite_evolve", h, e);
    if (!code) code = session_subsystems_begin(s, h, &with);
    if (code) return code;
    const struct hermite_state state = hermite_state_of(&with);
    const int endless =
        hermite_endless(with.n, &state, hermite_common(&with)); /* never in a block */
    if (endless >= 0) return session_hermite_stuck(s, endless);
    for (int i = 0, last = -1; i < e->ni; last = with.address[i++]) /* a block under way */
        if (with.address[i] <= last || with.address[i] >= with.n)
            return error_set(&s->error, G6X_E_ADDRESS,
                             "block step: the addresses of the block are not ascending below n");
    code = e->ni ? 0 : check_indices(s, &with);
    return code ? code : session_hermite_loop(s, &with, e, &HOST);
}

int session_hermite_put_subsystems(struct session *s, const struct g6x_hermite *h, int count,
                                   const double state[])
{
    struct g6x_hermite with;
    int code = session_hermite_check(s, "g6x_subsystems_put", h);
    if (!code) code = session_subsystems_put(s, h, count, state);
    if (!code) code = session_subsystems_begin(s, h, &with);
    if (code || !s->groups) return code;
    for (int p = 0; p < h->n; p++) s->groups->changed[p] = s->groups->of[p] >= 0;
    session_force_before_write(s);
    return write_changed(s, &with);
}
