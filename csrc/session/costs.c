/* costs.c - see costs.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "session/costs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpu/direct_kernel.h"
#include "simd/dispatch.h"
#include "util/clock.h"

/* Costs of an H200 machine, used until they are measured. */
static const struct costs TYPICAL = {.gpu_start = 0.4, .gpu_call = 20e-6, .gpu_pair = 1 / 300e9};
enum { LONGEST_FILE = 4096, LONGEST_NAME = 1024 };

/* What costs depend on besides the machine. */
struct settings {
    int precision, isa, threads;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct costs known; /* zero: unknown */
static struct settings known_for;
static int was_read;

/* ---- the file ---------------------------------------------------------------------------- */

#define FIELD(name) {#name, offsetof(struct costs, name)}
static const struct {
    const char *name;
    size_t at;
} FIELDS[] = {FIELD(cpu_call),   FIELD(cpu_pair),  FIELD(cpu_j),    FIELD(cpu_fork),
              FIELD(cpu_thread), FIELD(gpu_start), FIELD(gpu_call), FIELD(gpu_pair)};
enum { NFIELD = sizeof FIELDS / sizeof *FIELDS };

static double *field_of(struct costs *c, int k)
{
    return (double *)(void *)((char *)c + FIELDS[k].at);
}

/* Different machines may share a home folder, so each machine has a file per settings, or one for
 * all settings (`general`), which the user has put there. 0 if there is no folder for it. */
static int name_of_file(char name[LONGEST_NAME], int make, int general)
{
    const char *cache = options_variable("XDG_CACHE_HOME"), *home = options_variable("HOME");
    char host[256] = "";
    const int own = cache && *cache == '/';
    if (gethostname(host, sizeof host - 1) || strchr(host, '/') ||
        (!own && (!home || *home != '/')))
        return 0;
    if (make && !own) {
        (void)snprintf(name, LONGEST_NAME, "%s/.cache", home);
        (void)mkdir(name, 0700);
    } else if (make) {
        (void)mkdir(cache, 0700);
    }
    int n = snprintf(name, LONGEST_NAME, "%s%s/grape6py", own ? cache : home, own ? "" : "/.cache");
    if (make && n < LONGEST_NAME) (void)mkdir(name, 0700);
    n = snprintf(name, LONGEST_NAME, "%s%s/grape6py/costs-%s", own ? cache : home,
                 own ? "" : "/.cache", host);
    if (!general && n > 0 && n < LONGEST_NAME)
        n += snprintf(name + n, LONGEST_NAME - (size_t)n, "-%d-%s-%d", known_for.precision,
                      simd_dispatch_name(known_for.isa), known_for.threads);
    return n > 0 && n < LONGEST_NAME;
}

/* Costs are stored as multiples of this: a decimal point depends on the host's locale. */
static const double UNIT = 1e-15, MOST_UNITS = 1e17;

static void take_line(const char *line)
{
    char word[32], more[2];
    long long units;
    if (sscanf(line, "%31s %18lld %1s", word, &units, more) != 2 || units < 0) return;
    for (int k = 0; k < NFIELD; k++)
        if (!strcmp(word, FIELDS[k].name)) *field_of(&known, k) = UNIT * (double)units;
}

/* Reads a file owned by the user; 0 if there is none. */
static int read_file(int general)
{
    char name[LONGEST_NAME], text[LONGEST_FILE + 1], *rest = text;
    struct stat about;
    if (!name_of_file(name, 0, general)) return 0;
    const int file = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return 0;
    const int fine = !fstat(file, &about) && S_ISREG(about.st_mode) && about.st_uid == geteuid();
    const ssize_t n = fine ? read(file, text, LONGEST_FILE) : -1;
    (void)close(file);
    text[n < 0 ? 0 : n] = 0;
    for (char *line; (line = strsep(&rest, "\n"));) take_line(line);
    return n > 0;
}

/* Writes the whole file or nothing. If it fails, the next process measures again. */
static void write_file(void)
{
    char name[LONGEST_NAME], aside[LONGEST_NAME + 16], text[LONGEST_FILE];
    struct rlimit largest; /* the system kills a process that writes beyond it */
    int n = 0;
    for (int k = 0; k < NFIELD; k++) {
        const double units = *field_of(&known, k) / UNIT;
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %lld\n", FIELDS[k].name,
                      (long long)(units < MOST_UNITS ? units + 0.5 : MOST_UNITS));
    }
    if (getrlimit(RLIMIT_FSIZE, &largest) || largest.rlim_cur < (rlim_t)n) return;
    if (!name_of_file(name, 1, 0)) return;
    (void)snprintf(aside, sizeof aside, "%s.XXXXXX", name);
    const int file = mkstemp(aside);
    if (file < 0) return;
    const int written = write(file, text, (size_t)n) == n;
    if (close(file) || !written || rename(aside, name)) (void)unlink(aside);
}

/* ---- measuring --------------------------------------------------------------------------- */

/* Test particles on a lattice: number of j particles, number of i particles. */
enum { MOST_BODIES = 131072, TARGETS = 2048 };
/* Seconds that a session adds to a call of its backend. */
static const double SESSION_CALL = 1e-6;

struct trial {
    const struct backend *backend;
    void *state;
    struct options options;
    struct jmemory j;
    struct error error;
    double time;
    int32_t index[TARGETS];
    double x[TARGETS][3], v[TARGETS][3], eps2[TARGETS];
};

static struct trial *begin(const struct backend *backend, const struct options *o, int number,
                           int bodies)
{
    struct trial *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    *t = (struct trial){.backend = backend, .options = *o, .error.quiet = 1};
    for (int i = 0; i < bodies; i++) {
        const int plane = i / 4096;
        const double x[3] = {0.01 * (i % 64), 0.01 * (i / 64 % 64), 0.01 * plane},
                     v[3] = {1.0, 0.0, 0.0};
        (void)jmemory_set(&t->j, i, i, 0.0, 1e-4, NULL, NULL, NULL, v, x);
        if (i < TARGETS) memcpy(t->x[i], x, sizeof x), t->index[i] = i, t->eps2[i] = 1e-6;
    }
    if (t->j.capacity >= bodies && !backend->open(&t->options, number, &t->state, &t->error))
        return t;
    jmemory_free(&t->j);
    free(t);
    return NULL;
}

static void end(struct trial *t)
{
    t->backend->close(t->state);
    jmemory_free(&t->j);
    free(t);
}

/* Seconds of the shortest of `takes` force calls; 0 if one fails. `moves`: each has a new time. */
static double call(struct trial *t, int ni, int nj, int moves, int takes)
{
    const struct targets targets = {.ni = ni,
                                    .index = t->index,
                                    .x = (const double (*)[3])t->x,
                                    .v = (const double (*)[3])t->v,
                                    .eps2 = t->eps2};
    double least = 0.0;
    for (int take = 0; take < takes; take++) {
        const double start = clock_seconds();
        struct results results;
        t->time += moves ? 0x1p-20 : 0.0;
        jmemory_settle(&t->j, nj, options_threads(t->options.threads));
        const struct scale scale = jmemory_scale(&t->j);
        const struct upload upload = {&t->j, nj, t->time, scale, scale, &t->options};
        int code = t->backend->reserve(t->state, t->j.capacity, &t->error);
        if (!code) code = t->backend->set_j(t->state, &upload, &t->error);
        if (!code) code = t->backend->submit(t->state, &targets, &t->error);
        if (!code) code = t->backend->collect(t->state, WANT_JERK, ni, &results, &t->error);
        if (code) return 0.0;
        const double seconds = clock_seconds() - start;
        if (!take || seconds < least) least = seconds;
    }
    return least;
}

static double positive(double a, double least) { return a > least ? a : least; }

double session_costs_speedup(const struct costs *c, double threads, double shares)
{
    const double busy = shares + 1.0 < threads ? shares + 1.0 : threads;
    return 1.0 + (busy - 1.0) * c->cpu_thread;
}

static void measure_cpu(const struct options *of)
{
    enum { NJ = 4096, FEW = 64, SOME = 32, SHARED = 16, TAKES = 5 };
    enum { SHARES = SHARED * NJ / DIRECT_PAIRS_PER_THREAD };
    struct options o = *of;
    const int threads = options_threads(o.threads);
    o.threads = 1;
    struct trial *t = begin(&cpu_direct_backend, &o, 0, NJ);
    if (!t) return;
    known.cpu_call = positive(SESSION_CALL + call(t, 1, FEW, 0, TAKES), 1e-7);
    const double some = call(t, SOME, NJ, 0, TAKES);
    known.cpu_pair = positive(some / (SOME * NJ), 1e-12);
    const double moved = call(t, 1, NJ, 1, TAKES), unmoved = call(t, 1, NJ, 0, TAKES);
    known.cpu_j = positive((moved - unmoved) / NJ, 1e-12);
    t->options.threads = threads;
    const double gain =
        known.cpu_pair * NJ * TARGETS / positive(call(t, TARGETS, NJ, 0, TAKES), 1e-9);
    known.cpu_thread = threads > 1 ? positive((gain - 1.0) / (threads - 1), 0.3) : 0.5;
    const double shared = call(t, SHARED, NJ, 0, TAKES),
                 alone =
                     known.cpu_pair * SHARED * NJ / session_costs_speedup(&known, threads, SHARES);
    known.cpu_fork = positive(shared - alone, 1e-7);
    end(t);
}

static void measure_gpu(const struct backend *gpu, const struct options *o, int number)
{
    enum { FEW = 1024, NI = 48, TAKES = 32 };
    struct trial *t = begin(gpu, o, number, MOST_BODIES);
    if (!t) return;
    const double few = call(t, NI, FEW, 1, TAKES), many = call(t, NI, MOST_BODIES, 1, TAKES);
    known.gpu_call = few > 0.0 ? SESSION_CALL + few : 0.0;
    known.gpu_pair =
        few > 0.0 && many > few ? (many - few) / ((double)NI * (MOST_BODIES - FEW)) : 0.0;
    end(t);
}

/* ---- interface -------------------------------------------------------------------------- */

static void read_for(const struct options *o)
{
    const struct settings asked = {o->precision, o->isa, options_threads(o->threads)};
    if (was_read && !memcmp(&asked, &known_for, sizeof asked)) return;
    memset(&known, 0, sizeof known);
    known_for = asked;
    if (!read_file(0)) (void)read_file(1);
    was_read = 1;
}

void session_costs_after_fork(void)
{
    (void)pthread_mutex_init(&mutex, NULL);
    was_read = 0;
}

static int knows_cpu(void)
{
    return known.cpu_call > 0.0 && known.cpu_pair > 0.0 && known.cpu_j > 0.0 &&
           known.cpu_fork > 0.0 && known.cpu_thread > 0.0;
}

struct costs session_costs_get(const struct options *o)
{
    (void)pthread_mutex_lock(&mutex);
    read_for(o);
    if (!knows_cpu()) {
        measure_cpu(o);
        write_file();
    }
    struct costs c = known;
    (void)pthread_mutex_unlock(&mutex);
    if (!(c.gpu_start > 0.0)) c.gpu_start = TYPICAL.gpu_start;
    if (!(c.gpu_call > 0.0)) c.gpu_call = TYPICAL.gpu_call;
    if (!(c.gpu_pair > 0.0)) c.gpu_pair = TYPICAL.gpu_pair;
    return c;
}

void session_costs_learn(const struct backend *gpu, const struct options *o, int number,
                         double start)
{
    (void)pthread_mutex_lock(&mutex);
    read_for(o);
    const int news = !(known.gpu_call > 0.0) || start < known.gpu_start;
    /* Keeps the shortest start: a cold start takes longer. */
    if (!(known.gpu_start > 0.0) || start < known.gpu_start) known.gpu_start = start;
    if (!(known.gpu_call > 0.0)) measure_gpu(gpu, o, number);
    if (news) write_file();
    (void)pthread_mutex_unlock(&mutex);
}
