/* jparticles.c - j particles on their way from the host to their slots on the device, and what a
 * prediction of them is told. */
#include <string.h>

#include "cuda/jparticles.h"

/* Rows of sources per slot, in bytes. */
static uint64_t source_bytes(int mode)
{
    return mode == MODE_GRAPE ? 40 : mode == MODE_SINGLE ? 32 : 64;
}

int cuda_jparticles_reserve(struct cuda *c, int64_t slots, struct fault *f)
{
    const uint64_t n = (uint64_t)slots, bytes = source_bytes(MODE_DOUBLE);
    if (slots <= c->slots) return 0;
    c->slots = 0;
    c->predicted = 0;
    int code = cuda_device_reserve(c, &c->body, MEMORY_DEVICE, n * CUDA_WORDS * 8, f);
    if (!code && c->k18.bytes) code = cuda_device_reserve(c, &c->k18, MEMORY_DEVICE, n * 24, f);
    if (!code)
        code =
            cuda_device_reserve(c, &c->pairs, MEMORY_DEVICE,
                                n * (c->mode == MODE_DOUBLE ? bytes : source_bytes(MODE_GRAPE)), f);
    if (!code) code = cuda_device_reserve(c, &c->index, MEMORY_DEVICE, n * sizeof(int32_t), f);
    if (!code)
        code = cuda_device_reserve(c, &c->spans, MEMORY_DEVICE,
                                   n / CUDA_GROUP * sizeof(struct cuda_span), f);
    if (!code)
        code = cuda_device_reserve(c, &c->ranges, MEMORY_DEVICE,
                                   n / CUDA_QUARTER * sizeof(struct block_range), f);
    if (!code) c->slots = slots;
    if (c->memory) cuda_fresh(c, c->memory)->lost = 1;
    return code;
}

/* Fills one particle's place in pinned memory; as predicted on the host, if so wanted. */
static void pack(struct cuda *c, struct cuda_sent *to, int64_t a, const struct upload *u)
{
    const struct jmemory *j = u->memory;
    to->body = j->body[a];
    to->address = (int32_t)a;
    if (u->options->predict_on_host && to->body.state == SLOT_SET) {
        jmemory_predict(j, a, u->time, u->options->snap, to->body.x, to->body.v);
        to->body.time = u->time;
        memset(to->body.a2, 0, sizeof to->body.a2);
        memset(to->body.j6, 0, sizeof to->body.j6);
    }
    if (c->k18.bytes) {
        memset(to->k18, 0, sizeof to->k18);
        if (j->k18 && !u->options->predict_on_host) memcpy(to->k18, j->k18[a], sizeof to->k18);
    }
}

struct cuda_store cuda_jparticles_store(const struct cuda *c)
{
    return (struct cuda_store){cuda_pointer(&c->body), c->on_host ? NULL : cuda_pointer(&c->k18),
                               c->slots};
}

/* Lets the device take `count` particles; what they lie in is free again when c->unread is 0. */
static int send(struct cuda *c, int count, struct fault *f)
{
    struct cuda_receive_job job = {
        .store = cuda_jparticles_store(c), .sent = cuda_pointer(&c->sent), .count = count};
    c->unread = 1;
    return cuda_device_launch(c, 0, KERNEL_RECEIVE, (16 * (int64_t)count + 255) / 256, 1, &job, f);
}

/* The same of particles at rest. */
static int send_at_rest(struct cuda *c, struct fault *f)
{
    struct cuda_receive_job job = {.store = cuda_jparticles_store(c), .rest = c->rest};
    c->unread = 1;
    c->rest.count = 0;
    return cuda_device_launch(c, 0, KERNEL_RECEIVE_AT_REST, ceil_div(job.rest.count, 256), 1, &job,
                              f);
}

static int wait_for_sent(struct cuda *c, struct fault *f)
{
    const int code = c->unread ? cuda_device_idle(c, "receive", f) : 0;
    c->unread = 0;
    return code;
}

/* Lets the particles that wait for a prediction go to their slots without one. */
static int send_few(struct cuda *c, struct fault *f)
{
    const int count = c->few;
    c->few = 0;
    if (c->rest.count) return send_at_rest(c, f);
    return count ? send(c, count, f) : 0;
}

int cuda_jparticles_flush(struct cuda *c, struct fault *f)
{
    const int code = send_few(c, f);
    return code ? code : wait_for_sent(c, f);
}

/* Brings particles at rest to pinned memory, where the prediction takes the last of them. */
static int send_fresh_at_rest(struct cuda *c, const struct at_rest *r, struct fresh *fresh,
                              struct fault *f)
{
    double (*xm)[4] = cuda_pointer(&c->sent);
    int32_t *index = (int32_t *)(void *)(xm + SENT_AT_REST);
    int code = cuda_jparticles_flush(c, f);
    for (int32_t first = fresh->first; first < fresh->end && !code; first += SENT_AT_REST) {
        const int32_t left = fresh->end - first, n = left < SENT_AT_REST ? left : SENT_AT_REST;
        memcpy(xm, r->xm + first, (size_t)n * sizeof *xm);
        memcpy(index, r->index + first, (size_t)n * sizeof *index);
        c->rest = (struct cuda_at_rest){(const double (*)[4])xm, index, r->time, first, n};
        if (n < left) code = cuda_jparticles_flush(c, f);
    }
    if (!code) fresh->first = fresh->end = 0;
    return code;
}

/* Whether all that is fresh is at rest, and not in slots. */
static int is_all_at_rest(const struct fresh *fresh, const struct at_rest *r)
{
    return !fresh->count && fresh->first >= r->first && fresh->end <= r->end;
}

/* Sends all slots in use, or those that have changed; the last few wait for the prediction. */
static int send_fresh(struct cuda *c, const struct upload *u, int all, struct fault *f)
{
    struct jmemory *j = u->memory;
    struct fresh *fresh = cuda_fresh(c, j);
    struct cuda_sent *sent = cuda_pointer(&c->sent);
    if (!all && !u->options->predict_on_host && is_all_at_rest(fresh, &j->rest))
        return send_fresh_at_rest(c, &j->rest, fresh, f);
    if (at_rest_any(&j->rest)) jmemory_commit(j);
    const int64_t run = all ? j->capacity : fresh->end - fresh->first;
    const int64_t total = all ? run : run + fresh->count, first = all ? 0 : fresh->first;
    int n = 0, code = cuda_jparticles_flush(c, f); /* no prediction took those */
    if (code) return code;
    for (int64_t k = 0; k < total; k++) {
        const int64_t a = k < run ? first + k : fresh->slot[k - run];
        if (j->body[a].state == SLOT_EMPTY) continue;
        pack(c, &sent[n++], a, u);
        if (n < MOST_SENT) continue;
        code = send(c, n, f);
        if (!code) code = wait_for_sent(c, f);
        if (code) return code;
        n = 0;
    }
    c->few = n <= CUDA_FEW ? n : 0;
    c->few_first = INT32_MAX;
    c->few_end = 0;
    for (int k = 0; k < c->few; k++) {
        if (sent[k].address >= c->few_end) c->few_end = sent[k].address + 1;
        if (sent[k].address < c->few_first) c->few_first = sent[k].address;
    }
    if (n > CUDA_FEW) code = send(c, n, f);
    if (!code) fresh->count = fresh->lost = fresh->first = fresh->end = 0;
    return code;
}

static int settle_sources(struct cuda *c, const struct upload *u, struct fault *f)
{
    struct jmemory *j = u->memory;
    const struct options *o = u->options;
    int code = 0;
    c->mode = o->precision;
    if (o->precision == MODE_DOUBLE)
        code = cuda_device_reserve(c, &c->pairs, MEMORY_DEVICE,
                                   (uint64_t)c->slots * source_bytes(MODE_DOUBLE), f);
    const int wants_k18 = j->k18 != NULL;
    if (!code && wants_k18 && !c->k18.bytes) {
        code = cuda_device_reserve(c, &c->k18, MEMORY_DEVICE, (uint64_t)c->slots * 24, f);
        cuda_fresh(c, j)->lost = 1;
    }
    if (!code && jmemory_follow(j, c->follower))
        code = error_set(f, G6X_E_MEMORY, "out of memory for a force call");
    if (code) return code;
    code = wait_for_sent(c, f);
    if (code) return code;
    const int64_t nj = u->nj < j->capacity ? u->nj : j->capacity;
    const int same = c->predicted && !c->outdated && c->memory == j && c->time == u->time &&
                     c->nj == nj && c->snap == o->snap && c->on_host == o->predict_on_host &&
                     c->predicted_mode == o->precision &&
                     !memcmp(&c->scale, &u->scale, sizeof u->scale);
    const struct fresh *list = cuda_fresh(c, j);
    const int all = list->lost || c->memory != j || c->on_host != o->predict_on_host ||
                    (o->predict_on_host && !same);
    const int fresh = all || list->count || list->first < list->end;
    c->predicted = same && !fresh;
    c->outdated = 0;
    c->memory = j;
    c->time = u->time;
    c->nj = nj;
    c->snap = o->snap;
    c->on_host = o->predict_on_host;
    c->predicted_mode = o->precision;
    c->scale = u->scale;
    return fresh ? send_fresh(c, u, all, f) : 0;
}

int cuda_jparticles_update(struct cuda *c, const struct upload *u, struct fault *f)
{
    int code = cuda_jparticles_reserve(c, u->memory->capacity, f);
    if (!code) code = settle_sources(c, u, f);
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

struct cuda_frame cuda_jparticles_frame(const struct cuda *c)
{
    const struct scale *s = &c->scale;
    struct cuda_frame frame = {.x_unit = scale_power_of_two(length_shift(s, c->mode)),
                               .v_unit = scale_power_of_two(velocity_shift(s)),
                               .m_unit = scale_power_of_two(mass_shift(s))};
    memcpy(frame.origin, s->origin, sizeof frame.origin);
    memcpy(frame.drift, s->drift, sizeof frame.drift);
    return frame;
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

int cuda_jparticles_predict(struct cuda *c, struct fault *f)
{
    const int64_t quarters = cuda_blocks(c) * (CUDA_BLOCK / CUDA_QUARTER);
    int code = cuda_jparticles_few_are_within(c) ? 0 : send_few(c, f);
    struct cuda_predict_job job = {.store = cuda_jparticles_store(c),
                                   .sources = cuda_jparticles_sources(c),
                                   .time = c->time,
                                   .frame = cuda_jparticles_frame(c),
                                   .nj = (int32_t)c->nj,
                                   .snap = c->snap,
                                   .first_block = (int32_t)c->first_block,
                                   .arrivals = cuda_jparticles_arrivals(c),
                                   .rest = c->rest};
    c->unread |= job.rest.count > 0;
    if (!code) code = cuda_device_launch(c, 0, KERNEL_PREDICT, quarters, 1, &job, f);
    if (!code) cuda_jparticles_has_predicted(c);
    return code;
}
