/* walks.c - see walks.h. */
#include "session/walks.h"

#include <string.h>

#include "session/choice.h"
#include "session/force.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "session/session.h"

/* A dispatch that was not retrieved yet. */
struct pending_walks {
    int used, tag;
    int code;      /* of the dispatch */
    int on_device; /* the results are on the device; else here */
    int64_t count; /* of walks */
    int64_t *ni;   /* [count] */
    double (*acc)[3], *pot;
    int64_t bad_target, bad_entry, out_of_range; /* as in struct walks */
};

static void fill_nan(const struct walks *w)
{
    for (int64_t k = 0; k < w->count; k++)
        for (int64_t i = 0; i < w->group[k].ni; i++)
            session_output_nan(1, w->group[k].acc ? &w->group[k].acc[i] : NULL, NULL,
                               w->group[k].pot ? &w->group[k].pot[i] : NULL, NULL, NULL);
}

/* ---- sums --------------------------------------------------------------------------------- */

static void prepare(const struct session *s, struct walks *w)
{
    w->precision = s->options.precision == MODE_AUTO ? MODE_GRAPE : s->options.precision;
    w->isa = s->options.isa;
    w->threads = options_threads(s->options.threads);
    w->bad_target = w->bad_entry = w->bad_number = w->out_of_range = NO_WALK;
}

/* The error code of completed sums. */
static int verdict(const struct walks *w, struct error *err)
{
    if (w->bad_number != NO_WALK)
        return error_set(err, G6X_E_ADDRESS, "the list of walk %lld has a number that no entry has",
                         (long long)w->bad_number);
    if (w->bad_entry != NO_WALK)
        return error_set(err, G6X_E_J_NAN, "NaN or Inf in the list of walk %lld",
                         (long long)w->bad_entry);
    if (w->out_of_range != NO_WALK)
        (void)error_set(err, G6X_E_RANGE, "a force of walk %lld does not fit a double",
                        (long long)w->out_of_range);
    if (w->bad_target != NO_WALK)
        return error_set(err, G6X_E_I_NAN, "NaN or Inf in a target of walk %lld; its force is NaN",
                         (long long)w->bad_target);
    return w->out_of_range != NO_WALK ? G6X_E_RANGE : 0;
}

static int fails_all(int code) { return code && code != G6X_E_I_NAN && code != G6X_E_RANGE; }

/* For `auto`, before any force call: all walks count as one with as many pairs. */
static void choose(struct session *s, const struct walks *w)
{
    int64_t pairs = 0;
    if (s->undecided != CHOICE_OPEN || s->call.made || !w->ni) return;
    for (int64_t k = 0; k < w->count; k++)
        pairs += w->group[k].ni * (w->group[k].list[0].n + w->group[k].list[1].n);
    session_choice_make(s, w->ni, pairs / w->ni, w->ni);
}

int session_walks_sum(struct session *s, struct walks *w)
{
    choose(s, w);
    const struct walk_engine *engine = s->backend->walks;
    FPENV_FLUSHED_HERE;
    prepare(s, w);
    int code = engine ? engine->sum(s->state, w, &s->error) : cpu_walks_sum(w, &s->error);
    if (code && !session_force_fall_back(s, code)) {
        prepare(s, w);
        code = cpu_walks_sum(w, &s->error);
    }
    if (!code) code = verdict(w, &s->error);
    if (fails_all(code)) fill_nan(w);
    return code;
}

/* ---- dispatch and retrieve ------------------------------------------------------------------ */

static void forget(struct pending_walks *f)
{
    memory_free(f->ni);
    memory_free(f->acc);
    memory_free(f->pot);
    *f = (struct pending_walks){0};
}

void session_walks_free(struct session *s)
{
    for (int k = 0; s->walks && k < WALK_TAGS; k++) forget(&s->walks[k]);
    memory_free(s->walks);
    s->walks = NULL;
}

/* The pending walks of a tag; or, if `new`, an unused entry, if there is one. */
static struct pending_walks *pending_of(const struct session *s, int tag, int new)
{
    struct pending_walks *unused = NULL;
    for (int k = WALK_TAGS - 1; s->walks && k >= 0; k--) {
        if (s->walks[k].used && s->walks[k].tag == tag) return &s->walks[k];
        if (!s->walks[k].used) unused = &s->walks[k];
    }
    return new ? unused : NULL;
}

static int no_memory(struct session *s, const struct walks *w)
{
    return error_set(&s->error, G6X_E_MEMORY, "out of memory for %lld walks", (long long)w->count);
}

/* On the CPU the sums are computed at once. */
static int sum_now(struct session *s, struct walks *w, struct pending_walks *f)
{
    f->acc = memory_zeroed((size_t)w->ni * sizeof *f->acc);
    f->pot = memory_zeroed((size_t)w->ni * sizeof *f->pot);
    if (!f->acc || !f->pot) return no_memory(s, w);
    int64_t at = 0;
    for (int64_t k = 0; k < w->count; at += w->group[k++].ni) {
        w->group[k].acc = f->acc + at;
        w->group[k].pot = f->pot + at;
    }
    prepare(s, w);
    const int code = cpu_walks_sum(w, &s->error);
    f->bad_target = w->bad_target;
    f->bad_entry = w->bad_entry;
    f->out_of_range = w->out_of_range;
    return code;
}

static int start(struct session *s, struct walks *w, struct pending_walks *f)
{
    choose(s, w);
    const struct walk_engine *engine = s->backend->walks;
    prepare(s, w);
    if (!engine) return sum_now(s, w, f);
    f->on_device = 1;
    const int code = engine->start(s->state, (int)(f - s->walks), w, &s->error);
    if (!code || session_force_fall_back(s, code)) return code;
    f->on_device = 0;
    return sum_now(s, w, f);
}

int session_walks_dispatch(struct session *s, int tag, struct walks *w, int code)
{
    if (!s->walks) s->walks = memory_zeroed(WALK_TAGS * sizeof *s->walks);
    if (!s->walks) return no_memory(s, w);
    struct pending_walks *f = pending_of(s, tag, 1);
    if (!f)
        return error_set(&s->error, G6X_E_ARGUMENT,
                         "%d tags are in pending: retrieve one before the next dispatch",
                         WALK_TAGS);
    forget(f);
    f->ni = memory_zeroed((size_t)w->count * sizeof *f->ni);
    if (!f->ni && !code) code = no_memory(s, w);
    for (int64_t k = 0; f->ni && k < w->count; k++) f->ni[k] = w->group[k].ni;
    f->used = 1;
    f->tag = tag;
    f->count = w->count;
    FPENV_FLUSHED_HERE;
    f->code = code ? code : start(s, w, f);
    return f->code;
}

static int matches(const struct pending_walks *f, const struct walks *w)
{
    if (f->count != w->count) return 0;
    for (int64_t k = 0; k < w->count; k++)
        if (f->ni[k] != w->group[k].ni) return 0;
    return 1;
}

static int retrieve(struct session *s, struct pending_walks *f, struct walks *w)
{
    if (f->code) return f->code;
    if (f->on_device && !s->backend->walks)
        return error_set(&s->error, G6X_E_DEVICE_LOST,
                         "the device that had the walks of tag %d has failed", f->tag);
    prepare(s, w);
    if (f->on_device) {
        const int code = s->backend->walks->finish(s->state, (int)(f - s->walks), w, &s->error);
        return code ? session_force_ended(s, code) : verdict(w, &s->error);
    }
    w->bad_target = f->bad_target;
    w->bad_entry = f->bad_entry;
    w->out_of_range = f->out_of_range;
    int64_t at = 0;
    for (int64_t k = 0; k < w->count; at += w->group[k++].ni) {
        const size_t n = (size_t)w->group[k].ni;
        if (!n) continue;
        memcpy(w->group[k].acc, f->acc + at, n * sizeof *f->acc);
        memcpy(w->group[k].pot, f->pot + at, n * sizeof *f->pot);
    }
    return verdict(w, &s->error);
}

int session_walks_retrieve(struct session *s, int tag, struct walks *w)
{
    struct pending_walks *f = pending_of(s, tag, 0);
    int code;
    FPENV_FLUSHED_HERE;
    if (!f)
        code = error_set(&s->error, G6X_E_NO_FIRSTHALF,
                         "walks of tag %d are to be retrieved, but were not dispatched", tag);
    else if (!f->code && !matches(f, w))
        code = error_set(&s->error, G6X_E_MISMATCH,
                         "walks of tag %d were dispatched with other numbers of targets", tag);
    else
        code = retrieve(s, f, w);
    if (f && code != G6X_E_MISMATCH) forget(f);
    if (fails_all(code)) fill_nan(w);
    return code;
}
