/* cuda.c - the backend of the direct sum on a graphics card: opening it, its memory, and how j
 * particles get there. The arithmetic is in grape6py/cuda; the bridge to CuPy, which compiles it
 * and owns the memory, in bridge.c. */
#include "cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

static const char *const NAMES[NKERNEL] = {
    "receive",
    "predict",
    "neighbours",
    "take",
    "give",
    "examine",
    "collect",
    "predicted",
    "few",
    "few_jerk",
    "some",
    "some_jerk",
    "middle",
    "middle_jerk",
    "wide_plain",
    "wide_soft",
    "wide_near",
    "wide_near_soft",
    "wide_jerk",
    "wide_jerk_soft",
    "wide_jerk_near",
    "wide_jerk_near_soft",
};

/* ---- the card ------------------------------------------------------------------- */

static int of_bridge(struct cuda *c, int64_t answer, struct fault *f)
{
    if (answer > 0) return 0;
    if (answer == 0)
        return error_set(f, G6X_E_PYTHON, "the Python side of the GPU backend failed: %.150s",
                         c->device.text);
    if (answer == G6X_E_DEVICE_LOST) c->lost = 1;
    return error_set(f, (int)answer, "%.240s", c->device.text);
}

int cuda_check(struct cuda *c, int error, const char *what, struct fault *f)
{
    const char *text = NULL;
    if (!error) return 0;
    c->lost = 1;
    (void)c->device.driver.error_text(error, &text);
    return error_set(f, G6X_E_DEVICE_LOST,
                     "the GPU %.60s failed (%s: CUDA error %d, %.80s); it is not used any more",
                     c->device.name, what, error, text ? text : "unknown");
}

int cuda_enter(struct cuda *c, struct fault *f)
{
    if (c->lost)
        return error_set(f, G6X_E_DEVICE_LOST, "the GPU %.60s has failed and is not used any more",
                         c->device.name);
    if (getpid() != c->pid)
        return error_set(f, G6X_E_FORK,
                         "this process was forked after g6_open: a GPU cannot be used here; call "
                         "g6_open after the fork");
    return cuda_check(c, c->device.driver.push_context(c->device.context), "context", f);
}

void cuda_leave(struct cuda *c)
{
    void *context;
    (void)c->device.driver.pop_context(&context);
}

int cuda_launch(struct cuda *c, int lane, int kernel, int64_t grid_x, int64_t grid_y, void *job,
                struct fault *f)
{
    void *arguments[] = {job};
    const int threads = kernel < KERNEL_MIDDLE ? 256 : WIDE_ROWS / 2;
    const int shared = kernel < KERNEL_FEW || kernel >= KERNEL_WIDE ? 0
                       : kernel < KERNEL_MIDDLE                     ? CUDA_SMALL_SHARED
                                                                    : CUDA_MIDDLE_SHARED;
    const int error = c->device.driver.launch(
        c->function[c->mode][kernel], (unsigned)grid_x, (unsigned)grid_y, 1, (unsigned)threads, 1,
        1, (unsigned)shared, c->device.stream[lane], arguments, NULL);
    if (lane >= c->busy) c->busy = lane + 1;
    return cuda_check(c, error, NAMES[kernel], f);
}

int cuda_idle(struct cuda *c, const char *what, struct fault *f)
{
    int code = 0;
    for (int lane = 0; lane < c->busy && !code; lane++)
        code = cuda_check(c, c->device.driver.wait(c->device.stream[lane]), what, f);
    c->busy = 0;
    return code;
}

int cuda_fill(struct cuda *c, uint64_t address, uint64_t bytes, struct fault *f)
{
    return cuda_check(c, c->device.driver.fill(address, 0, bytes, c->device.stream[0]), "fill", f);
}

int cuda_copy_out(struct cuda *c, void *to, uint64_t from, size_t bytes, struct fault *f)
{
    const struct driver *d = &c->device.driver;
    const int code = cuda_check(c, d->copy_out(to, from, bytes, c->device.stream[0]), "copy", f);
    return code ? code : cuda_check(c, d->wait(c->device.stream[0]), "copy", f);
}

int cuda_reserve(struct cuda *c, struct cuda_memory *m, int kind, uint64_t bytes, struct fault *f)
{
    if (bytes <= m->bytes) return 0;
    struct cuda_memory more = {0,
                               m->bytes + m->bytes / 2 > bytes ? m->bytes + m->bytes / 2 : bytes};
    int code = of_bridge(c, c->bridge->allocate(&c->device, kind, more.bytes, &more.address), f);
    if (code) return code;
    if (m->address) { /* what still uses it has to end first */
        code = cuda_idle(c, "memory", f);
        (void)c->bridge->release(&c->device, m->address);
    }
    *m = more;
    return code;
}

static void cuda_close(void *state)
{
    struct cuda *c = state;
    if (!c) return;
    if (getpid() == c->pid) (void)c->bridge->close(&c->device, c->lost);
    memory_free(c->rows);
    memory_free(c->list);
    memory_free(c->list_start);
    memory_free(c);
}

static int take_mode(struct cuda *c, int mode, struct fault *f)
{
    c->mode = mode;
    if (c->function[mode][0]) return 0;
    return of_bridge(c, c->bridge->kernels(&c->device, mode, NKERNEL, NAMES, c->function[mode]), f);
}

static int cuda_open(const struct options *o, int choice, void **state, struct fault *f)
{
    const struct bridge *bridge = bridge_start(o->backend != BACKEND_AUTO, f);
    if (!bridge) return f->code;
    struct cuda *c = memory_zeroed(sizeof *c);
    if (!c) return error_set(f, G6X_E_MEMORY, "out of memory at open");
    c->bridge = bridge;
    c->pid = getpid();
    c->guess = o->jerk ? WANT_NEAREST : 0;
    int code = of_bridge(c, bridge->open(choice, &c->device), f);
    if (code) {
        memory_free(c);
        return code;
    }
    code = cuda_enter(c, f);
    if (!code) {
        code = take_mode(c, o->precision, f);
        if (!code)
            code =
                cuda_reserve(c, &c->sent, MEMORY_PINNED, SENT_ROOM * sizeof(struct cuda_sent), f);
        if (!code)
            code = cuda_reserve(c, &c->left, MEMORY_PINNED,
                                SMALLEST_LEFT * sizeof(struct cuda_left), f);
        cuda_leave(c);
    }
    if (code)
        cuda_close(c);
    else
        *state = c;
    return code;
}

/* ---- j particles -------------------------------------------------------------------- */

/* Rows of sources per slot, in bytes. */
static uint64_t source_bytes(int mode)
{
    return mode == MODE_GRAPE ? 40 : mode == MODE_SINGLE ? 32 : 64;
}

static int grow(struct cuda *c, int64_t slots, struct fault *f)
{
    const uint64_t n = (uint64_t)slots, bytes = source_bytes(MODE_DOUBLE);
    if (slots <= c->slots) return 0;
    c->slots = 0;
    c->predicted = 0;
    int code = cuda_reserve(c, &c->body, MEMORY_DEVICE, n * CUDA_WORDS * 8, f);
    if (!code && c->k18.bytes) code = cuda_reserve(c, &c->k18, MEMORY_DEVICE, n * 24, f);
    if (!code)
        code = cuda_reserve(c, &c->pairs, MEMORY_DEVICE,
                            n * (c->mode == MODE_DOUBLE ? bytes : source_bytes(MODE_GRAPE)), f);
    if (!code) code = cuda_reserve(c, &c->index, MEMORY_DEVICE, n * sizeof(int32_t), f);
    if (!code)
        code =
            cuda_reserve(c, &c->spans, MEMORY_DEVICE, n / CUDA_GROUP * sizeof(struct cuda_span), f);
    if (!code)
        code = cuda_reserve(c, &c->ranges, MEMORY_DEVICE,
                            n / CUDA_QUARTER * sizeof(struct block_range), f);
    if (!code) c->slots = slots;
    if (c->memory) c->memory->fresh_lost = 1;
    return code;
}

int cuda_grow(void *state, int64_t slots, struct fault *f)
{
    struct cuda *c = state;
    int code = cuda_enter(c, f);
    if (code) return code;
    code = grow(c, slots, f);
    cuda_leave(c);
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

struct cuda_store cuda_store(const struct cuda *c)
{
    return (struct cuda_store){cuda_pointer(&c->body), c->on_host ? NULL : cuda_pointer(&c->k18),
                               c->slots};
}

/* Lets the card take `count` particles; what they lie in is free again when c->unread is 0. */
static int send(struct cuda *c, int count, struct fault *f)
{
    struct cuda_receive_job job = {
        .store = cuda_store(c), .sent = cuda_pointer(&c->sent), .count = count};
    c->unread = 1;
    return cuda_launch(c, 0, KERNEL_RECEIVE, (16 * (int64_t)count + 255) / 256, 1, &job, f);
}

static int wait_for_sent(struct cuda *c, struct fault *f)
{
    const int code = c->unread ? cuda_idle(c, "receive", f) : 0;
    c->unread = 0;
    return code;
}

int cuda_flush(struct cuda *c, struct fault *f)
{
    const int code = c->few ? send(c, c->few, f) : 0;
    c->few = 0;
    return code ? code : wait_for_sent(c, f);
}

/* Sends all slots in use, or those that have changed; the last few wait for the prediction. */
static int send_fresh(struct cuda *c, const struct upload *u, int all, struct fault *f)
{
    struct jmemory *j = u->memory;
    struct cuda_sent *sent = cuda_pointer(&c->sent);
    const int64_t total = all ? j->capacity : j->fresh_count;
    int n = 0, code = cuda_flush(c, f); /* no prediction took those */
    if (code) return code;
    for (int64_t k = 0; k < total; k++) {
        const int64_t a = all ? k : j->fresh[k];
        if (j->body[a].state == SLOT_EMPTY) continue;
        pack(c, &sent[n++], a, u);
        if (n < SENT_ROOM) continue;
        code = send(c, n, f);
        if (!code) code = wait_for_sent(c, f);
        if (code) return code;
        n = 0;
    }
    c->few = n <= CUDA_FEW ? n : 0;
    c->few_end = 0;
    for (int k = 0; k < c->few; k++)
        if (sent[k].address >= c->few_end) c->few_end = sent[k].address + 1;
    if (n > CUDA_FEW) code = send(c, n, f);
    if (!code) j->fresh_count = j->fresh_lost = 0;
    return code;
}

static int settle_sources(struct cuda *c, const struct upload *u, struct fault *f)
{
    struct jmemory *j = u->memory;
    const struct options *o = u->options;
    int code = take_mode(c, o->precision, f);
    if (!code && o->precision == MODE_DOUBLE)
        code = cuda_reserve(c, &c->pairs, MEMORY_DEVICE,
                            (uint64_t)c->slots * source_bytes(MODE_DOUBLE), f);
    const int wants_k18 = j->k18 != NULL;
    if (!code && wants_k18 && !c->k18.bytes) {
        code = cuda_reserve(c, &c->k18, MEMORY_DEVICE, (uint64_t)c->slots * 24, f);
        j->fresh_lost = 1;
    }
    if (!code && jmemory_follow(j)) code = error_set(f, G6X_E_MEMORY, "out of memory at firsthalf");
    if (code) return code;
    code = wait_for_sent(c, f);
    if (code) return code;
    const int64_t nj = u->nj < j->capacity ? u->nj : j->capacity;
    const int same = c->predicted && !c->outdated && c->memory == j && c->time == u->time &&
                     c->nj == nj && c->snap == o->snap && c->on_host == o->predict_on_host &&
                     c->predicted_mode == o->precision &&
                     !memcmp(&c->scale, &u->scale, sizeof u->scale);
    const int all = j->fresh_lost || c->memory != j || c->on_host != o->predict_on_host ||
                    (o->predict_on_host && !same);
    const int fresh = all || j->fresh_count;
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

static int cuda_upload(void *state, const struct upload *u, struct fault *f)
{
    struct cuda *c = state;
    int code = cuda_enter(c, f);
    if (code) return code;
    code = grow(c, u->memory->capacity, f);
    if (!code) code = settle_sources(c, u, f);
    if (code) c->predicted = 0;
    c->jerk = u->options->jerk;
    c->threads = u->options->threads;
    cuda_leave(c);
    return code;
}

struct cuda_sources cuda_sources(const struct cuda *c)
{
    return (struct cuda_sources){cuda_pointer(&c->pairs), cuda_pointer(&c->index),
                                 cuda_pointer(&c->spans), cuda_pointer(&c->ranges)};
}

void cuda_prediction(const struct cuda *c, struct cuda_predict_job *job)
{
    const struct cuda_sent *sent = cuda_pointer(&c->sent);
    job->store = cuda_store(c);
    job->sources = cuda_sources(c);
    job->time = c->time;
    job->x_unit = power_of_two(length_shift(&c->scale, c->mode));
    job->m_unit = power_of_two(mass_shift(&c->scale));
    job->v_unit = power_of_two(velocity_shift(&c->scale));
    job->nj = (int32_t)c->nj;
    job->snap = c->snap;
    job->few = c->few;
    job->sent = sent;
    for (int k = 0; k < c->few; k++) job->address[k] = sent[k].address;
}

void cuda_has_predicted(struct cuda *c)
{
    c->few = 0;
    c->predicted = 1;
}

static int64_t cuda_coincidences(void *state)
{
    struct cuda *c = state;
    return atomic_exchange(&c->coincidences, 0);
}

static void cuda_describe(void *state, const struct options *o, char *buffer, int length)
{
    const struct cuda *c = state;
    char text[DEVICE_TEXT + 8];
    (void)o;
    (void)snprintf(text, sizeof text, "cuda %s", c->device.name);
    error_copy(text, buffer, length);
}

const struct backend backend_cuda = {
    BACKEND_ABI,
    CAN_OVERLAP | CAN_DEVICE_POINTERS,
    "cuda",
    cuda_open,
    cuda_grow,
    cuda_upload,
    cuda_start,
    cuda_finish,
    cuda_partials,
    cuda_neighbours,
    cuda_coincidences,
    cuda_describe,
    cuda_close,
    &cuda_arrays,
};
