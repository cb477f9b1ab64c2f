/* arrays_j.c - j particles from arrays in device memory. A kernel writes them to their slots and,
 * through pinned memory, to the host's copy, with which the session goes on if the device fails. */
#include "cuda/arrays.h"
#include "cuda/jparticles.h"
#include "util/memory.h"
#include "util/threads.h"

enum { LANES = 16 };

static struct cuda_collect_job job_of(const struct cuda *c, const struct device_particles *from)
{
    return (struct cuda_collect_job){.address = from->address,
                                     .index = from->index,
                                     .time = from->time,
                                     .mass = from->mass,
                                     .k18 = (const double *)from->k18,
                                     .j6 = (const double *)from->j6,
                                     .a2 = (const double *)from->a2,
                                     .v = (const double *)from->v,
                                     .x = (const double *)from->x,
                                     .sent = cuda_pointer(&c->sent),
                                     .notes = cuda_notes(c),
                                     .count = from->n};
}

/* ---- checks, before anything is written ------------------------------------------------- */

static int wait(struct cuda *c, struct error *err)
{
    c->unread = 0;
    return cuda_device_wait(c, 0, "receive", err);
}

/* Reads one element of an int array on the device; `instead` if the array is NULL. */
static int value_of(struct cuda *c, const int32_t *array, int row, int instead, int *value,
                    struct error *err)
{
    *value = instead;
    if (!array) return 0;
    return cuda_device_copy_out(c, value, array + row, sizeof *value, err);
}

static int examine(struct cuda *c, const struct device_particles *from, struct error *err)
{
    const struct cuda_notes *notes = cuda_notes(c);
    struct cuda_collect_job job = job_of(c, from);
    int address, index,
        code = cuda_device_launch(c, 0, KERNEL_EXAMINE, ceil_div(from->n, THREADS), 1, &job, err);
    if (!code) code = wait(c, err);
    const int bad = notes->invalid;
    if (code || bad == CUDA_NO_ROW) return code;
    code = value_of(c, from->address, bad, bad, &address, err);
    if (!code) code = value_of(c, from->index, bad, address, &index, err);
    if (code) return code;
    return error_set(err, G6X_E_J_NAN,
                     "g6x_set_j_particles_device: NaN or Inf in the particle at address %d (index "
                     "%d); none was written",
                     address, index);
}

/* Finds the highest address, and whether all differ: two GPU threads must not write to one slot. */
static int survey(struct cuda *c, const struct device_particles *from, int64_t *highest,
                  int *once_each, struct error *err)
{
    const size_t n = (size_t)from->n;
    *highest = from->below ? from->below - 1 : from->n - 1;
    *once_each = 1;
    if (from->below || !from->address) return 0;
    int32_t *address = memory_zeroed(n * sizeof *address);
    if (!address) {
        *highest = INT32_MAX;
        return error_set(err, G6X_E_MEMORY, "out of memory for %d addresses", from->n);
    }
    int code = cuda_device_copy_out(c, address, from->address, n * sizeof *address, err);
    int ascending = 1;
    *highest = 0;
    for (size_t k = 0; k < n && !code; k++) {
        if (address[k] < 0)
            code = error_set(err, G6X_E_ADDRESS,
                             "g6x_set_j_particles_device: address %d is negative; none was written",
                             address[k]);
        ascending &= !k || address[k] > address[k - 1];
        if (address[k] > *highest) *highest = address[k];
    }
    uint64_t *seen = code || ascending ? NULL : memory_zeroed((size_t)(*highest / 64 + 1) * 8);
    *once_each = ascending || seen;
    for (size_t k = 0; k < n && seen; k++) {
        const uint64_t bit = (uint64_t)1 << address[k] % 64;
        if (seen[address[k] / 64] & bit) *once_each = 0;
        seen[address[k] / 64] |= bit;
    }
    memory_free(seen);
    memory_free(address);
    return code;
}

/* ---- writing ---------------------------------------------------------------------------- */

enum { AHEAD = 8 };                       /* rows whose slots are prefetched */
enum { MANY = 1024, ROWS_AT_ONCE = 256 }; /* rows that several threads write, and those of one */

struct mirrored {
    struct jmemory *j;
    const struct cuda_sent *sent;
    int32_t *written; /* address of each row that is written, or -1 */
};

static void mirror_task(void *mirrored, int64_t first, int64_t end)
{
    const struct mirrored *m = mirrored;
    for (int64_t k = first; k < end; k++) {
        const int32_t address = m->sent[k].address;
        m->written[k] = jmemory_rewrite(m->j, address, &m->sent[k].body) ? address : -1;
    }
}

static int write_mirror(struct jmemory *j, const struct cuda_sent *sent, int count, int finite,
                        int threads)
{
    int code = 0;
    struct mirrored m = {.j = j, .sent = sent};
    if (finite && count >= MANY) m.written = memory_zeroed((size_t)count * sizeof *m.written);
    if (m.written) { /* many rows, by several threads: the memory answers each late */
        jmemory_commit(j);
        threads_each(threads, count, ROWS_AT_ONCE, mirror_task, &m);
    }
    for (int k = 0; k < count && !code; k++) {
        const struct jparticle *p = &sent[k].body;
        if (m.written && m.written[k] >= 0) {
            jmemory_rewritten(j, m.written[k]);
            continue;
        }
        if (finite && k + AHEAD < count) {
            __builtin_prefetch(&j->body[sent[k + AHEAD].address], 1);
            __builtin_prefetch(j->body[sent[k + AHEAD].address].a2, 1);
            __builtin_prefetch(&j->note[sent[k + AHEAD].address], 1);
        }
        if (!finite || !jmemory_move(j, sent[k].address, p))
            code = jmemory_set(j, sent[k].address, p->index, p->time, p->mass, sent[k].k18, p->j6,
                               p->a2, p->v, p->x);
    }
    memory_free(m.written);
    return code;
}

/* Copies all rows to the host's j memory, and to the device's slots if `direct`. */
static int collect(struct cuda *c, struct jmemory *j, const struct device_particles *from,
                   int direct, struct error *err)
{
    struct cuda_collect_job job = job_of(c, from);
    int code = 0;
    if (direct) job.store = cuda_jparticles_store(c);
    for (int first = 0; first < from->n && !code; first += MOST_SENT) {
        job.first = first;
        job.count = from->n - first < MOST_SENT ? from->n - first : MOST_SENT;
        c->unread = 1;
        code = cuda_device_launch(c, 0, KERNEL_COLLECT,
                                  ceil_div((int64_t)LANES * job.count, THREADS), 1, &job, err);
        if (!code) code = wait(c, err);
        if (!code &&
            write_mirror(j, job.sent, job.count, from->below > 0, options_threads(c->threads)))
            code = error_set(err, G6X_E_MEMORY, "out of memory for j particles");
    }
    return code;
}

/* Reserves slots in the j memory and, if the device has none yet, on the device. Sets *direct if
 * the device's slots equal the j memory except for the dirty list. Does not enlarge the device's
 * slots: that would discard predictions that neighbour lists may still need. The next force call
 * enlarges them. */
static int reserve(struct cuda *c, struct jmemory *j, int64_t highest, int k18, int *direct,
                   struct error *err)
{
    const int first = !j->capacity && !c->slots;
    int code = 0;
    if (jmemory_reserve(j, highest, k18) || jmemory_follow(j, c->mirror))
        return error_set(err, G6X_E_MEMORY,
                         "g6x_set_j_particles_device: out of memory for address %lld; %lld slots "
                         "are in use",
                         (long long)highest, (long long)j->capacity);
    if (first) code = cuda_jparticles_reserve(c, j->capacity, err);
    if (!code && k18 && !c->k18.bytes && c->slots >= j->capacity)
        code = cuda_device_reserve(c, &c->k18, MEMORY_DEVICE, (uint64_t)c->slots * 24, err);
    if (!code && first) {
        c->memory = j;
        cuda_dirty_list(c, j)->overflow = 0;
    }
    *direct = c->memory == j && c->slots >= j->capacity && !cuda_dirty_list(c, j)->overflow;
    return code;
}

/* Marks the addresses as lost, so that forces that use them fail until they are written again. If
 * the addresses cannot be read, marks all up to `highest`. */
static void lose(struct cuda *c, struct jmemory *j, const struct device_particles *from,
                 int64_t highest)
{
    const size_t n = (size_t)from->n;
    struct error quiet = {.quiet = 1};
    int32_t *address = from->address ? memory_zeroed(n * sizeof *address) : NULL;
    if (address && !cuda_device_copy_out(c, address, from->address, n * sizeof *address, &quiet))
        for (size_t k = 0; k < n; k++) jmemory_lose(j, address[k], (int64_t)address[k] + 1);
    else
        jmemory_lose(j, 0, highest + 1);
    memory_free(address);
}

/* Writes between begin_direct and end_direct do not go on the dirty list: the device's slots
 * already hold them. */
static struct dirty_list begin_direct(const struct cuda *c, struct jmemory *j)
{
    jmemory_settle(j, j->counted,
                   options_threads(c->threads)); /* puts earlier writes on the list */
    return *cuda_dirty_list(c, j);
}

static void end_direct(struct cuda *c, struct jmemory *j, const struct dirty_list *before)
{
    struct dirty_list *list = cuda_dirty_list(c, j);
    jmemory_settle(j, j->counted, options_threads(c->threads));
    list->count = before->count;
    list->first = before->first;
    list->end = before->end;
    list->overflow = 0;
    c->outdated = 1;
    c->changes++;
}

int cuda_arrays_j_receive(struct cuda *c, struct jmemory *j, const struct device_particles *from,
                          struct error *err)
{
    int64_t highest = 0;
    int once_each = 0, direct = 0;
    int code = cuda_device_wait_for_caller(c, from->stream, err);
    if (!code) code = cuda_jparticles_flush(c, err);
    if (!code) code = wait(c, err);
    if (!code) code = cuda_device_clear_notes(c, err);
    if (!code) code = survey(c, from, &highest, &once_each, err);
    if (!code && !from->below) code = examine(c, from, err);
    if (!code) code = reserve(c, j, highest, from->k18 != NULL, &direct, err);
    if (code == G6X_E_MEMORY) lose(c, j, from, highest);
    if (code) return code;
    direct &= once_each;
    const struct dirty_list before = begin_direct(c, j);
    code = collect(c, j, from, direct, err);
    if (direct && !code) end_direct(c, j, &before);
    return code;
}

int cuda_arrays_j_mirror(struct cuda *c, struct jmemory *j, const struct cuda_sent *sent, int count,
                         struct error *err)
{
    const struct dirty_list before = begin_direct(c, j);
    if (write_mirror(j, sent, count, 1, options_threads(c->threads)))
        return error_set(err, G6X_E_MEMORY, "out of memory for j particles");
    end_direct(c, j, &before);
    return 0;
}

/* ---- predicted particles ---------------------------------------------------------------- */

int cuda_arrays_j_predicted(struct cuda *c, int n, double (*x)[3], double (*v)[3], void *stream,
                            struct error *err)
{
    struct cuda_predicted_job job = {.store = cuda_jparticles_store(c),
                                     .time = c->time,
                                     .x = (double *)x,
                                     .v = (double *)v,
                                     .n = n,
                                     .snap = c->snap};
    int code = cuda_device_wait_for_caller(c, stream, err);
    if (!code) code = cuda_jparticles_flush(c, err);
    if (!code)
        code = cuda_device_launch(c, 0, KERNEL_PREDICTED, ceil_div(n, THREADS), 1, &job, err);
    return code ? code : wait(c, err);
}
