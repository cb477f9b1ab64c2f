/* jparticles.c - transfer of j particles from the host to their slots on the device, and launches
 * of their prediction. */
#include <string.h>

#include "cuda/jparticles.h"
#include "util/threads.h"

/* Bytes of a source, per slot. */
static uint64_t source_bytes(int mode)
{
    return mode == MODE_GRAPE ? 40 : mode == MODE_SINGLE ? 32 : 64;
}

int cuda_jparticles_reserve(struct cuda *c, int64_t slots, struct error *err)
{
    const uint64_t n = (uint64_t)slots, bytes = source_bytes(MODE_DOUBLE);
    if (slots <= c->slots) return 0;
    c->slots = 0;
    c->predicted = 0;
    int code =
        c->owner ? 0 : cuda_device_reserve(c, &c->body, MEMORY_DEVICE, n * CUDA_WORDS * 8, err);
    if (!code && c->k18.bytes) code = cuda_device_reserve(c, &c->k18, MEMORY_DEVICE, n * 24, err);
    if (!code)
        code = cuda_device_reserve(c, &c->pairs, MEMORY_DEVICE,
                                   n * (c->mode == MODE_DOUBLE ? bytes : source_bytes(MODE_GRAPE)),
                                   err);
    if (!code) code = cuda_device_reserve(c, &c->index, MEMORY_DEVICE, n * sizeof(int32_t), err);
    if (!code)
        code = cuda_device_reserve(c, &c->spans, MEMORY_DEVICE,
                                   n / CUDA_GROUP * sizeof(struct cuda_span), err);
    if (!code)
        code = cuda_device_reserve(c, &c->ranges, MEMORY_DEVICE,
                                   n / CUDA_QUARTER * sizeof(struct block_range), err);
    if (!code) c->slots = slots;
    if (c->memory && !c->owner) cuda_dirty_list(c, c->memory)->overflow = 1;
    return code;
}

struct cuda_store cuda_jparticles_store(const struct cuda *c)
{
    const struct cuda *of = c->owner ? c->owner : c;
    return (struct cuda_store){cuda_pointer(&of->body), of->on_host ? NULL : cuda_pointer(&of->k18),
                               of->slots};
}

/* Launches the transfer of `count` particles. They may be overwritten when c->unread is 0, or the
 * stream is idle. */
static int send(struct cuda *c, int stream, const struct cuda_sent *sent, int count,
                struct error *err)
{
    struct cuda_receive_job job = {.store = cuda_jparticles_store(c), .sent = sent, .count = count};
    c->unread = 1;
    return cuda_device_launch(c, stream, KERNEL_RECEIVE, (16 * (int64_t)count + 255) / 256, 1, &job,
                              err);
}

static int wait_for_sent(struct cuda *c, struct error *err)
{
    const int code = c->unread ? cuda_device_idle(c, "receive", err) : 0;
    c->unread = 0;
    return code;
}

/* Writes the particles that wait for a prediction to their slots now. */
static int send_few(struct cuda *c, struct error *err)
{
    struct cuda_receive_job job = {.store = cuda_jparticles_store(c), .rest = c->rest};
    const int count = c->few;
    const int64_t blocks = ceil_div(job.rest.count, 256);
    c->few = 0;
    if (!blocks) return count ? send(c, 0, cuda_pointer(&c->sent), count, err) : 0;
    c->unread = 1;
    c->rest.count = 0;
    return cuda_device_launch(c, 0, KERNEL_RECEIVE_AT_REST, blocks, 1, &job, err);
}

int cuda_jparticles_flush(struct cuda *c, struct error *err)
{
    const int code = send_few(c, err);
    return code ? code : wait_for_sent(c, err);
}

/* Copies dirty particles at rest to pinned memory. The prediction reads the last batch there. */
static int send_dirty_at_rest(struct cuda *c, const struct at_rest *r, struct dirty_list *dirty,
                              struct error *err)
{
    double (*xm)[4] = cuda_pointer(&c->sent);
    int32_t *index = (int32_t *)(void *)(xm + SENT_AT_REST);
    int code = cuda_jparticles_flush(c, err);
    for (int32_t first = dirty->first; first < dirty->end && !code; first += SENT_AT_REST) {
        const int32_t left = dirty->end - first, n = left < SENT_AT_REST ? left : SENT_AT_REST;
        memcpy(xm, r->xm + first, (size_t)n * sizeof *xm);
        memcpy(index, r->index + first, (size_t)n * sizeof *index);
        c->rest = (struct cuda_at_rest){(const double (*)[4])xm, index, r->time, first, n};
        if (n < left) code = cuda_jparticles_flush(c, err);
    }
    if (!code) dirty->first = dirty->end = 0;
    return code;
}

/* ---- dirty particles ------------------------------------------------------------------ */

/* What is packed for the device: slots first .. first + run - 1, then those of a list. */
struct packing {
    const struct cuda *c;
    const struct upload *upload;
    const int32_t *list;
    int64_t first, run;
    int64_t from; /* number of the particle that goes to sent[0] */
    struct cuda_sent *sent;
};

/* Packs particles into pinned memory, predicted if options->predict_on_host is set. */
static void pack(void *packing, int64_t first, int64_t end)
{
    const struct packing *p = packing;
    const struct jmemory *j = p->upload->memory;
    const struct options *o = p->upload->options;
    for (int64_t k = first; k < end; k++) {
        const int64_t n = p->from + k, a = n < p->run ? p->first + n : p->list[n - p->run];
        struct cuda_sent *to = &p->sent[k];
        to->address = j->body[a].state == SLOT_EMPTY ? CUDA_NOT_SENT : (int32_t)a;
        to->body = j->body[a];
        if (o->predict_on_host && to->body.state == SLOT_SET) {
            jmemory_predict(j, a, p->upload->time, o->snap, to->body.x, to->body.v);
            to->body.time = p->upload->time;
            memset(to->body.a2, 0, sizeof to->body.a2);
            memset(to->body.j6, 0, sizeof to->body.j6);
        }
        if (p->c->k18.bytes) {
            memset(to->k18, 0, sizeof to->k18);
            if (j->k18 && !o->predict_on_host) memcpy(to->k18, j->k18[a], sizeof to->k18);
        }
    }
}

/* Packs and sends `total` particles in batches. Two halves of the pinned memory alternate, each
 * with its stream, so that one is packed while the device reads the other. */
static int send_all(struct cuda *c, struct packing *p, int64_t total, struct error *err)
{
    enum { PIECE = 256, PER_THREAD = 1024 };
    const int64_t size = total <= MOST_SENT ? MOST_SENT : MOST_SENT_HALF;
    const int64_t capacity = total <= size ? size : 2 * size;
    const int threads = options_threads_for(total / PER_THREAD + 1, p->upload->options->threads);
    int code = cuda_device_reserve(c, &c->sent, MEMORY_PINNED,
                                   (uint64_t)capacity * sizeof(struct cuda_sent), err);
    int stream = 0;
    for (p->from = 0; p->from < total && !code; p->from += size, stream = !stream) {
        const int64_t n = total - p->from < size ? total - p->from : size;
        p->sent = (struct cuda_sent *)cuda_pointer(&c->sent) + stream * size;
        if (p->from >= 2 * size) code = cuda_device_wait(c, stream, "receive", err);
        if (code) break;
        threads_each(threads, n, PIECE, pack, p);
        if (total > CUDA_FEW) code = send(c, stream, p->sent, (int)n, err);
    }
    return code || total <= size ? code : cuda_device_follow(c, 0, c->device.stream[1], err);
}

/* Sends all slots in use, or the dirty ones. A few wait for the prediction. */
static int send_dirty(struct cuda *c, const struct upload *u, int all, struct error *err)
{
    struct jmemory *j = u->memory;
    struct dirty_list *dirty = cuda_dirty_list(c, j);
    const int is_at_rest =
        !dirty->count && dirty->first >= j->rest.first && dirty->end <= j->rest.end;
    if (!all && !u->options->predict_on_host && is_at_rest)
        return send_dirty_at_rest(c, &j->rest, dirty, err);
    if (at_rest_any(&j->rest)) jmemory_commit(j);
    struct packing p = {.c = c,
                        .upload = u,
                        .list = dirty->slot,
                        .first = all ? 0 : dirty->first,
                        .run = all ? j->capacity : dirty->end - dirty->first};
    const int64_t total = all ? p.run : p.run + dirty->count;
    int code = cuda_jparticles_flush(c, err); /* if no prediction stored those */
    if (!code) code = send_all(c, &p, total, err);
    if (code) return code;
    c->few = total <= CUDA_FEW ? (int)total : 0;
    c->few_first = INT32_MAX;
    c->few_end = 0;
    for (int k = 0; k < c->few; k++) {
        const int32_t a = p.sent[k].address;
        if (a == CUDA_NOT_SENT) continue;
        if (a >= c->few_end) c->few_end = a + 1;
        if (a < c->few_first) c->few_first = a;
    }
    dirty->count = dirty->overflow = dirty->first = dirty->end = 0;
    return 0;
}

/* Brings the slots up to date with the j memory: *dirty, whether they have changed. `same`: all
 * else that they depend on is as it was. */
static int update_slots(struct cuda *c, const struct upload *u, int same, int *dirty,
                        struct error *err)
{
    struct jmemory *j = u->memory;
    const struct options *o = u->options;
    int code = 0;
    if (j->k18 != NULL && !c->k18.bytes) {
        code = cuda_device_reserve(c, &c->k18, MEMORY_DEVICE, (uint64_t)c->slots * 24, err);
        cuda_dirty_list(c, j)->overflow = 1;
    }
    if (!code && jmemory_follow(j, c->mirror))
        code = error_set(err, G6X_E_MEMORY, "out of memory for a force call");
    if (!code) code = wait_for_sent(c, err);
    if (code) return code;
    const struct dirty_list *list = cuda_dirty_list(c, j);
    const int all = list->overflow || c->memory != j || c->on_host != o->predict_on_host ||
                    (o->predict_on_host && !same);
    *dirty = all || list->count || list->first < list->end;
    c->memory = j;
    c->on_host = o->predict_on_host;
    c->changes += *dirty;
    return *dirty ? send_dirty(c, u, all, err) : 0;
}

/* The same for the owner of the slots, whose own sums of this call may come before, or never. */
static int update_owner(struct cuda *c, const struct upload *u, int same, int *dirty,
                        struct error *err)
{
    struct cuda *owner = c->owner;
    const struct dirty_list *list = cuda_dirty_list(owner, u->memory);
    const int host = u->options->predict_on_host;
    const int current = owner->memory == u->memory && owner->slots >= u->memory->capacity &&
                        owner->on_host == host && !(host && !same) && !list->overflow &&
                        !list->count && list->first >= list->end;
    int code = 0, changed = 0;
    if (!current) code = cuda_jparticles_reserve(owner, u->memory->capacity, err);
    if (!code && !current) code = update_slots(owner, u, same, &changed, err);
    if (!code) code = send_few(owner, err);
    if (!code) code = cuda_device_follow(c, 0, owner->device.stream[0], err);
    owner->predicted &= !changed;
    *dirty = owner->changes != c->seen;
    c->seen = owner->changes;
    c->memory = u->memory;
    return code;
}

static int settle_sources(struct cuda *c, const struct upload *u, struct error *err)
{
    struct jmemory *j = u->memory;
    const struct options *o = u->options;
    int code = 0, dirty = 0;
    c->mode = o->precision;
    if (o->precision == MODE_DOUBLE)
        code = cuda_device_reserve(c, &c->pairs, MEMORY_DEVICE,
                                   (uint64_t)c->slots * source_bytes(MODE_DOUBLE), err);
    if (code) return code;
    const int64_t nj = u->nj < j->capacity ? u->nj : j->capacity;
    const int same = c->predicted && !c->outdated && c->memory == j && c->time == u->time &&
                     c->nj == nj && c->snap == o->snap && c->on_host == o->predict_on_host &&
                     c->predicted_mode == o->precision &&
                     !memcmp(&c->scale, u->scale, sizeof c->scale);
    code = c->owner ? update_owner(c, u, same, &dirty, err) : update_slots(c, u, same, &dirty, err);
    c->predicted = same && !dirty;
    c->outdated = 0;
    c->time = u->time;
    c->nj = nj;
    c->snap = o->snap;
    c->on_host = o->predict_on_host;
    c->predicted_mode = o->precision;
    c->scale = *u->scale;
    return code;
}

int cuda_jparticles_update(struct cuda *c, const struct upload *u, struct error *err)
{
    int code = cuda_jparticles_reserve(c, u->memory->capacity, err);
    if (!code) code = settle_sources(c, u, err);
    if (code) c->predicted = 0;
    c->jerk = u->options->jerk;
    c->threads = u->options->threads;
    return code;
}

struct cuda_sources cuda_jparticles_sources(const struct cuda *c)
{
    return (struct cuda_sources){cuda_pointer(&c->pairs), cuda_pointer(&c->index),
                                 cuda_pointer(&c->spans), cuda_pointer(&c->ranges)};
}

struct cuda_arrivals cuda_jparticles_arrivals(const struct cuda *c)
{
    struct cuda_arrivals a = {.sent = cuda_pointer(&c->sent), .few = c->few};
    for (int k = 0; k < c->few; k++) a.address[k] = a.sent[k].address;
    return a;
}

struct cuda_units cuda_jparticles_units(const struct cuda *c)
{
    const struct scale *s = &c->scale;
    struct cuda_units units = {.x_unit = scale_power_of_two(length_shift(s, c->mode)),
                               .v_unit = scale_power_of_two(velocity_shift(s)),
                               .m_unit = scale_power_of_two(mass_shift(s))};
    memcpy(units.origin, s->origin, sizeof units.origin);
    memcpy(units.drift, s->drift, sizeof units.drift);
    return units;
}

void cuda_jparticles_has_predicted(struct cuda *c)
{
    c->few = c->rest.count = 0;
    c->predicted = 1;
}

int cuda_jparticles_few_are_within(const struct cuda *c)
{
    const struct cuda_at_rest *r = &c->rest;
    const int64_t first = r->count ? r->first : c->few_first,
                  end = r->count ? (int64_t)r->first + r->count : c->few_end;
    return (!c->few && !r->count) ||
           (first >= c->first_block * CUDA_BLOCK && end <= c->end_block * CUDA_BLOCK);
}

void cuda_jparticles_set_blocks(struct cuda *c, int64_t first, int64_t end)
{
    if (first != c->first_block || end != c->end_block) c->predicted = 0;
    c->first_block = first;
    c->end_block = end;
}

int cuda_jparticles_predict(struct cuda *c, struct error *err)
{
    const int64_t quarters = cuda_blocks(c) * (CUDA_BLOCK / CUDA_QUARTER);
    int code = cuda_jparticles_few_are_within(c) ? 0 : send_few(c, err);
    struct cuda_predict_job job = {.store = cuda_jparticles_store(c),
                                   .sources = cuda_jparticles_sources(c),
                                   .time = c->time,
                                   .units = cuda_jparticles_units(c),
                                   .nj = (int32_t)c->nj,
                                   .snap = c->snap,
                                   .first_block = (int32_t)c->first_block,
                                   .arrivals = cuda_jparticles_arrivals(c),
                                   .rest = c->rest};
    c->unread |= job.rest.count > 0;
    if (!code) code = cuda_device_launch(c, 0, KERNEL_PREDICT, quarters, 1, &job, err);
    if (!code) cuda_jparticles_has_predicted(c);
    return code;
}
