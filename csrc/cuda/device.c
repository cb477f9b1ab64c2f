/* device.c - the backend of the direct sum on a GPU: opening it, its memory, its
 * launches. The arithmetic is in grape6py/cuda; the bridge to Python, which finds the kernels'
 * machine code and owns the memory, in bridge.c. */
#include "cuda/cuda.h"

#include <stdatomic.h>
#include <unistd.h>

#include "util/memory.h"

enum { SMALLEST_LEFT = 65536 }; /* initial capacity of `left`, in entries */
/* CUDA error numbers for a stream that does not belong to this device. */
enum { INVALID_HANDLE = 400, CONTEXT_DESTROYED = 709 };

#define NAME(number, name) #name
static const char *const NAMES[NKERNEL] = {CUDA_KERNELS(NAME)};

static _Atomic int multiprocessors; /* of the GPU opened last */

/* ---- the device ------------------------------------------------------------------- */

int cuda_device_answer(struct cuda *c, int64_t answer, struct error *err)
{
    if (answer > 0) return 0;
    if (answer == 0)
        return error_set(err, G6X_E_PYTHON, "the Python side of the GPU backend failed: %.150s",
                         c->device.text);
    if (answer == G6X_E_DEVICE_LOST) c->lost = 1;
    return error_set(err, (int)answer, "%.240s", c->device.text);
}

int cuda_device_check(struct cuda *c, int error, const char *what, struct error *err)
{
    const char *text = NULL;
    if (!error) return 0;
    c->lost = 1;
    (void)c->device.driver.error_text(error, &text);
    return error_set(err, G6X_E_DEVICE_LOST,
                     "the GPU %.60s failed (%s: CUDA error %d, %.80s); it is not used any more",
                     c->device.name, what, error, text ? text : "unknown");
}

int cuda_device_enter(struct cuda *c, struct error *err)
{
    if (c->lost)
        return error_set(err, G6X_E_DEVICE_LOST,
                         "the GPU %.60s has failed and is not used any more", c->device.name);
    if (getpid() != c->pid)
        return error_set(err, G6X_E_FORK,
                         "this process was forked after g6_open: a GPU cannot be used here; call "
                         "g6_open after the fork");
    return cuda_device_check(c, c->device.driver.push_context(c->device.context), "context", err);
}

void cuda_device_leave(struct cuda *c)
{
    void *context;
    (void)c->device.driver.pop_context(&context);
}

/* Finds kernels of the current mode, or compiles them. */
static int load_kernels(struct cuda *c, const int *kernel, int count, struct error *err)
{
    const char *names[NKERNEL] = {NULL};
    void *functions[NKERNEL] = {NULL};
    for (int k = 0; k < count; k++) names[k] = NAMES[kernel[k]];
    const int code = cuda_device_answer(
        c, c->bridge->kernels(&c->device, c->mode, count, names, functions), err);
    for (int k = 0; k < count && !code; k++) c->function[c->mode][kernel[k]] = functions[k];
    return code;
}

int cuda_device_launch_for(struct cuda *c, void *stream, int kernel, int64_t grid_x, int64_t grid_y,
                           void *job, struct error *err)
{
    const int found = c->function[c->mode][kernel] ? 0 : load_kernels(c, &kernel, 1, err);
    if (found) return found;
    void *arguments[] = {job};
    const int threads = kernel == KERNEL_WALKS   ? CUDA_WALK_THREADS
                        : kernel < KERNEL_MIDDLE ? 256
                                                 : WIDE_ROWS / 2;
    const int shared = kernel < KERNEL_FEW || kernel >= KERNEL_WIDE ? 0
                       : kernel < KERNEL_MIDDLE                     ? CUDA_SMALL_SHARED
                                                                    : CUDA_MIDDLE_SHARED;
    const int error =
        c->device.driver.launch(c->function[c->mode][kernel], (unsigned)grid_x, (unsigned)grid_y, 1,
                                (unsigned)threads, 1, 1, (unsigned)shared, stream, arguments, NULL);
    return cuda_device_check(c, error, NAMES[kernel], err);
}

int cuda_device_launch(struct cuda *c, int stream, int kernel, int64_t grid_x, int64_t grid_y,
                       void *job, struct error *err)
{
    if (stream >= c->busy) c->busy = stream + 1;
    return cuda_device_launch_for(c, c->device.stream[stream], kernel, grid_x, grid_y, job, err);
}

int cuda_device_follow(struct cuda *c, int stream, void *other, struct error *err)
{
    const struct driver *d = &c->device.driver;
    int error = d->record(c->device.event, other);
    if (!error) error = d->follow(c->device.stream[stream], c->device.event, 0);
    return cuda_device_check(c, error, "event", err);
}

/* Polls, because the driver's own wait keeps a CPU core busy. */
static int wait_for(const struct cuda *c, void *stream)
{
    struct cuda_wait w = {0};
    int state;
    while ((state = c->device.driver.query(stream)) == DRIVER_NOT_READY) cuda_wait_moment(&w);
    return state;
}

int cuda_device_wait(struct cuda *c, int stream, const char *what, struct error *err)
{
    return cuda_device_check(c, wait_for(c, c->device.stream[stream]), what, err);
}

int cuda_device_idle(struct cuda *c, const char *what, struct error *err)
{
    int code = 0;
    for (int stream = 0; stream < c->busy && !code; stream++)
        code = cuda_device_wait(c, stream, what, err);
    c->busy = 0;
    return code;
}

int cuda_device_fill(struct cuda *c, uint64_t address, uint64_t bytes, struct error *err)
{
    return cuda_device_check(c, c->device.driver.fill(address, 0, bytes, c->device.stream[0]),
                             "fill", err);
}

int cuda_device_copy_out(struct cuda *c, void *to, const void *from, size_t bytes,
                         struct error *err)
{
    const int error = c->device.driver.copy_out(to, (uintptr_t)from, bytes, c->device.stream[0]);
    const int code = cuda_device_check(c, error, "copy", err);
    return code ? code : cuda_device_wait(c, 0, "copy", err);
}

int cuda_device_copy_in(struct cuda *c, void *to, const void *from, size_t bytes, struct error *err)
{
    const int error = c->device.driver.copy_in((uintptr_t)to, from, bytes, c->device.stream[0]);
    const int code = cuda_device_check(c, error, "copy", err);
    return code ? code : cuda_device_wait(c, 0, "copy", err);
}

int cuda_device_wait_for_caller(struct cuda *c, void *stream, struct error *err)
{
    const int error = wait_for(c, stream);
    if (error == INVALID_HANDLE || error == CONTEXT_DESTROYED)
        return error_set(err, G6X_E_ARGUMENT, "the stream is none of the session's device");
    return cuda_device_check(c, error, "caller's stream", err);
}

int cuda_device_clear_notes(struct cuda *c, struct error *err)
{
    const int code =
        cuda_device_reserve(c, &c->notes, MEMORY_PINNED, sizeof(struct cuda_notes), err);
    if (!code)
        *cuda_notes(c) = (struct cuda_notes){.invalid = CUDA_NO_ROW, .out_of_range = CUDA_NO_ROW};
    return code;
}

int cuda_device_reserve(struct cuda *c, struct cuda_memory *m, int kind, uint64_t bytes,
                        struct error *err)
{
    if (bytes <= m->bytes) return 0;
    struct cuda_memory more = {0,
                               m->bytes + m->bytes / 2 > bytes ? m->bytes + m->bytes / 2 : bytes};
    int code = cuda_device_answer(
        c, c->bridge->allocate(&c->device, kind, more.bytes, &more.address), err);
    if (code) return code;
    if (m->address) { /* what still uses it has to end first */
        code = cuda_device_idle(c, "memory", err);
        (void)c->bridge->release(&c->device, m->address);
    }
    *m = more;
    return code;
}

void cuda_device_close(struct cuda *c)
{
    if (getpid() == c->pid) (void)c->bridge->close(&c->device, c->lost);
    memory_free(c->rows);
    neighbour_lists_free(&c->lists);
    memory_free(c);
}

int cuda_device_open(const struct options *o, int choice, int mirror, struct cuda **device,
                     struct error *err)
{
    const struct bridge *bridge =
        python_bridge_start(o->backend != BACKEND_AUTO && o->backend != BACKEND_TREE, err);
    if (!bridge) return err->code;
    struct cuda *c = memory_zeroed(sizeof *c);
    if (!c) return error_set(err, G6X_E_MEMORY, "out of memory at open");
    c->bridge = bridge;
    c->pid = getpid();
    c->mirror = mirror;
    c->guess = o->jerk ? WANT_NEAREST : 0;
    int code = cuda_device_answer(c, bridge->open(choice, &c->device), err);
    if (code) {
        memory_free(c);
        return code;
    }
    code = cuda_device_enter(c, err);
    if (!code) {
        c->mode = o->precision;
        /* Those of the first force calls together, so that they compile in parallel. */
        const int jerk = o->jerk ? 1 : 0;
        const int first[] = {KERNEL_RECEIVE, KERNEL_RECEIVE_AT_REST, KERNEL_PREDICT,
                             KERNEL_FEW + jerk, KERNEL_SOME + jerk};
        code = load_kernels(c, first, (int)(sizeof first / sizeof *first), err);
        if (!code)
            code = cuda_device_reserve(c, &c->sent, MEMORY_PINNED,
                                       MOST_SENT * sizeof(struct cuda_sent), err);
        if (!code)
            code = cuda_device_reserve(c, &c->left, MEMORY_PINNED,
                                       SMALLEST_LEFT * sizeof(struct cuda_left), err);
        if (!code)
            code = cuda_device_reserve(c, &c->left_count, MEMORY_DEVICE, sizeof(int32_t), err);
        cuda_device_leave(c);
    }
    if (code) {
        cuda_device_close(c);
        return code;
    }
    atomic_store(&multiprocessors, c->device.multiprocessors);
    *device = c;
    return 0;
}

int cuda_device_multiprocessors(void) { return atomic_load(&multiprocessors); }
