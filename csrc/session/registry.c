/* registry.c - see registry.h. */
#include "session/registry.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/device.h"
#include "session/choice.h"
#include "session/force.h"
#include "session/grape5.h"
#include "util/memory.h"
#include "core/options.h"
#include "session/biased_lock.h"
#include "util/threads.h"
#include "session/walks.h"
#include "steps/groups.h"

enum { CHAINS = 256 };

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct session *chains[CHAINS], *unused;
static _Atomic int explicitly_open;
static int64_t sessions_open; /* opened by an open call or by first use */
static struct error process_error;

/* ---- the cluster ids closed since the last open ---------------------------------------------- */

/* Calls on them are errors and do not open them again: a hash table with linear probing, at most
 * half full, of 16 bytes per id, under the registry's lock. No id is INT64_MIN, so no key is 0; 0
 * marks an empty place. */
static uint64_t *table;
static int64_t places, closed;

static uint64_t key_of(int64_t id) { return (uint64_t)id ^ (uint64_t)1 << 63; }

/* Where a key is, or would be. */
static uint64_t *place_of(uint64_t key)
{
    int64_t at = (int64_t)(key * 0x9e3779b97f4a7c15u >> 20) & (places - 1);
    while (table[at] && table[at] != key) at = (at + 1) & (places - 1);
    return &table[at];
}

/* Reserves capacity for `ids` closed ones, so that adding them cannot fail. 0 or G6X_E_MEMORY. */
static int reserve_closed(int64_t ids)
{
    uint64_t *const old = table;
    const int64_t old_places = places;
    int64_t requested = 64;
    while (requested < 2 * ids) requested *= 2;
    if (requested <= places) return 0;
    uint64_t *more = memory_zeroed((size_t)requested * sizeof *more);
    if (!more) return G6X_E_MEMORY;
    table = more;
    places = requested;
    for (int64_t k = 0; k < old_places; k++)
        if (old[k]) *place_of(old[k]) = old[k];
    memory_free(old);
    return 0;
}

static int is_closed(int64_t id) { return places && *place_of(key_of(id)) != 0; }

static void clear_closed(void)
{
    if (closed) memset(table, 0, (size_t)places * sizeof *table);
    closed = 0;
}

/* ---- sessions ------------------------------------------------------------------------------- */

static void lock(struct session *s)
{
    for (int spins = 0; atomic_exchange_explicit(&s->lock, 1, memory_order_acquire); spins++) {
        threads_pause();
        if (spins > 1000) {
            const struct timespec moment = {0, 20000};
            (void)nanosleep(&moment, NULL);
        }
    }
    if (atomic_load_explicit(&s->bias.thread, memory_order_relaxed)) session_biased_lock_stop(s);
}

void session_registry_release(struct session *s)
{
    if (biased_lock_is_taken(s)) {
        biased_lock_leave(s);
        return;
    }
    if (s->open) session_biased_lock_allow(s);
    atomic_store_explicit(&s->lock, 0, memory_order_release);
}

int session_registry_leave(struct session *s, int code)
{
    session_registry_release(s);
    return code;
}

/* In a forked child no other thread exists that could release a lock, or end what it was doing. */
static void free_after_fork(struct session *s)
{
    const int locked = atomic_exchange(&s->lock, 0);
    const int taken = atomic_exchange(biased_lock_flag(s), 0);
    atomic_store(&s->bias.thread, NULL);
    if (locked || taken) s->torn = 1;
}

/* A fork waits for the thread that has the lists, unless this opens a backend: for a GPU it may
 * wait for Python, whose lock the forking thread may have; the lists are whole meanwhile. */
static _Atomic int opening;
static _Thread_local int kept;

static void before_fork(void)
{
    while (!(kept = !pthread_mutex_trylock(&registry)) && !atomic_load(&opening))
        (void)sched_yield();
}

static void after_fork(void)
{
    if (kept) (void)pthread_mutex_unlock(&registry);
}

static void in_child(void)
{
    (void)pthread_mutex_init(&registry, NULL);
    atomic_store(&opening, 0);
    session_biased_lock_prepare();
    python_bridge_after_fork();
    for (int c = 0; c < CHAINS; c++)
        for (struct session *s = chains[c]; s; s = s->next) free_after_fork(s);
    for (struct session *s = unused; s; s = s->next) free_after_fork(s), s->torn = 0;
}

static void prepare(void)
{
    session_biased_lock_prepare();
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

static struct session **chain_of(int64_t id)
{
    return &chains[((uint64_t)id * 0x9e3779b97f4a7c15u) >> 56];
}

static struct session *find(int64_t id)
{
    struct session *s = *chain_of(id);
    while (s && s->id != id) s = s->next;
    return s;
}

int session_registry_refuse(int code, const char *format, ...)
{
    char text[ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)pthread_mutex_lock(&registry);
    (void)error_set(&process_error, code, "%s", text);
    (void)pthread_mutex_unlock(&registry);
    return code;
}

void session_registry_warn(const char *format, ...)
{
    char text[ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)pthread_mutex_lock(&registry);
    error_warn(&process_error, "%s", text);
    (void)pthread_mutex_unlock(&registry);
}

/* Opens an id that is not open; the registry is locked. */
static int open_new(int64_t id, int how, int backend, int device, struct session **out)
{
    struct session *s = unused ? unused : memory_zeroed(sizeof *s);
    if (!s || reserve_closed(sessions_open + 1 + closed)) {
        if (s != unused) memory_free(s);
        return error_set(&process_error, G6X_E_MEMORY, "out of memory at open");
    }
    if (s == unused) unused = s->next;
    lock(s);
    s->id = id;
    s->process = getpid();
    s->device = device;
    s->time = 0.0;
    s->time_bad = 0;
    memset(&s->error, 0, sizeof s->error);
    s->options = *options_initial_values();
    options_count_cores();
    if (backend != SESSION_ENVIRONMENT) s->options.backend = backend;
    const char *problem = options_process()->problem;
    atomic_store(&opening, 1);
    const int code = *problem ? error_set(&process_error, G6X_E_ARGUMENT, "%s", problem)
                              : session_choice_open(s, &process_error);
    atomic_store(&opening, 0);
    if (!code && !s->undecided) session_report_start(s);
    if (!code) s->open = how;
    atomic_store(&s->closing, 0);
    session_registry_release(s);
    struct session **at = code ? &unused : chain_of(id);
    s->next = *at;
    *at = s;
    if (code) return code;
    sessions_open++;
    explicitly_open += how == 1;
    *out = s;
    return 0;
}

int session_registry_open(int64_t id, int backend, int device)
{
    int code = 0;
    (void)pthread_once(&once, prepare);
    (void)pthread_mutex_lock(&registry);
    struct session *s = find(id);
    if (!s) {
        code = open_new(id, 1, backend, device, &s);
    } else if (s->open == 2) {
        s->open = 1;
        explicitly_open++;
    }
    if (!code) {
        clear_closed();
        atomic_store(&session_used_last, s);
    }
    (void)pthread_mutex_unlock(&registry);
    return code;
}

/* Removes a session from the open ones; the registry is locked. */
static void detach(struct session *s, struct session **list)
{
    struct session **at = chain_of(s->id);
    uint64_t *place = place_of(key_of(s->id));
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    atomic_store(&s->closing, 1);
    closed += !*place;
    *place = key_of(s->id);
    sessions_open--;
    s->next = *list;
    *list = s;
}

/* Closes a session. Waits for a call in progress, which may be long. Nothing is freed of one that
 * another thread was changing at a fork. */
static void shut(struct session *s)
{
    lock(s);
    if (s->torn) {
        struct session *next = s->next;
        memset(s, 0, sizeof *s);
        s->next = next;
        return;
    }
    session_report_calls(s);
    session_choice_end(s);
    session_walks_free(s);
    groups_free(s->groups);
    s->groups = NULL;
    if (s->state) s->backend->close(s->state);
    s->state = NULL;
    jmemory_free(&s->j);
    session_force_scale_end_whole(s);
    session_force_free(s);
    session_free_pipes(&s->pipes);
    session_grape5_free(&s->grape5);
    s->open = 0;
    session_registry_release(s);
}

int session_registry_close(int64_t id)
{
    struct session *list = NULL;
    (void)pthread_once(&once, prepare);
    (void)pthread_mutex_lock(&registry);
    struct session *s = find(id);
    if (s) {
        explicitly_open -= s->open == 1;
        detach(s, &list);
        for (int c = 0; c < CHAINS && !explicitly_open; c++)
            while (chains[c]) detach(chains[c], &list);
    }
    (void)pthread_mutex_unlock(&registry);
    while ((s = list)) {
        list = s->next;
        shut(s);
        (void)pthread_mutex_lock(&registry);
        s->next = unused;
        unused = s;
        (void)pthread_mutex_unlock(&registry);
    }
    return 0;
}

/* Reports at exit, since most old programs close nothing. It waits for no lock: the thread that
 * holds it may never run again. It frees nothing: other threads may be in their calls. */
__attribute__((destructor)) static void at_exit(void)
{
    if (pthread_mutex_trylock(&registry)) return;
    for (int c = 0; c < CHAINS; c++)
        for (struct session *s = chains[c]; s; s = s->next)
            if (s->open) session_report_calls(s);
    (void)pthread_mutex_unlock(&registry);
}

/* The open session of an id, opened if necessary and allowed; else NULL and *code. */
static struct session *find_or_open(int64_t id, int *code)
{
    (void)pthread_mutex_lock(&registry);
    struct session *s = find(id);
    const char *call = session_is_grape5(id) ? "g5_open" : "g6_open";
    char name[SESSION_NAME];
    *code = 0;
    if (id == SESSION_NONE)
        *code = error_set(&process_error, G6X_E_NULL, "the cluster id is a null pointer");
    else if (!explicitly_open)
        *code =
            error_set(&process_error, G6X_E_NOT_OPEN, "no cluster is open; call %s first", call);
    else if (is_closed(id))
        *code = error_set(&process_error, G6X_E_NOT_OPEN, "%s was closed; call %s again",
                          session_name(id, name), call);
    else if (!s)
        *code = open_new(id, 2, SESSION_ENVIRONMENT, SESSION_DEVICE_BY_ID, &s);
    (void)pthread_mutex_unlock(&registry);
    return *code ? NULL : s;
}

/* Locks a session for a call; 0 if it is not that of the id any more. */
static int enter(struct session *s, int64_t id)
{
    lock(s);
    if (s->open && !atomic_load(&s->closing) && s->id == id) return 1;
    session_registry_release(s);
    return 0;
}

struct session *session_registry_take(int64_t id, int *code)
{
    struct session *s = biased_lock_take(id);
    if (s) return s;
    s = atomic_load_explicit(&session_used_last, memory_order_acquire);
    if (!s || s->id != id || !enter(s, id)) {
        (void)pthread_once(&once, prepare);
        do { /* enters without the registry's lock: another thread may be computing there */
            s = find_or_open(id, code);
            if (!s) return NULL;
        } while (!enter(s, id));
        atomic_store_explicit(&session_used_last, s, memory_order_release);
    }
    if (!s->torn) return s;
    char name[SESSION_NAME];
    *code = error_set(&s->error, G6X_E_FORK,
                      "%s was in a call of another thread when this process was forked; close it, "
                      "and open it again",
                      session_name(id, name));
    session_registry_release(s);
    return NULL;
}

static void copy_or_clear(struct error *err, struct error *copy)
{
    if (copy)
        *copy = *err;
    else
        memset(err, 0, sizeof *err);
}

void session_registry_error(int64_t id, struct error *copy)
{
    if (copy) memset(copy, 0, sizeof *copy);
    (void)pthread_mutex_lock(&registry);
    struct session *s = find(id);
    if (!s) copy_or_clear(&process_error, copy);
    (void)pthread_mutex_unlock(&registry);
    if (!s) return;
    lock(s);
    if (s->id == id) copy_or_clear(&s->error, copy);
    session_registry_release(s);
}

int session_registry_last_error(int64_t id, char *buffer, int length)
{
    struct error err;
    session_registry_error(id, &err);
    error_copy(err.text, buffer, length);
    return err.code;
}

void session_registry_reset(int64_t id)
{
    (void)pthread_once(&once, prepare);
    (void)pthread_mutex_lock(&registry);
    struct session *s = find(id);
    (void)pthread_mutex_unlock(&registry);
    if (!s) return;
    lock(s);
    if (s->open && s->id == id && !s->torn) session_choice_again(s);
    session_registry_release(s);
}

int session_registry_any_open(void) { return explicitly_open > 0; }

struct options session_registry_initial(void)
{
    (void)pthread_once(&once, prepare);
    (void)pthread_mutex_lock(&registry);
    const struct options copy = *options_initial_values();
    (void)pthread_mutex_unlock(&registry);
    return copy;
}

int session_registry_set_initial(int key, int is_whole, double value)
{
    struct options *initial = options_initial_values();
    (void)pthread_mutex_lock(&registry);
    const int code = is_whole ? options_set_int(initial, key, (int)value, &process_error)
                              : options_set_double(initial, key, value, &process_error);
    (void)pthread_mutex_unlock(&registry);
    return code;
}

int64_t session_registry_recent(void)
{
    const struct session *s = atomic_load(&session_used_last);
    return s ? s->id : 0;
}
