/* choice.c - see choice.h. */
#include "session/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "cpu/direct_kernel.h"
#include "cuda/cuda.h"
#include "util/clock.h"
#include "util/fpenv.h"

/* Assumed length of a run: one N-body time unit, which is STEPS steps per particle (a Plummer
 * sphere of 1024 bodies; larger ones need hardly more), or as many steps as the process has already
 * computed, if these are more. */
enum { STEPS = 165 };

/* Block size in units of sqrt(N): 57 of 1024, 134 of 16384. */
static const double BLOCK_ROOTS = 1.5;

static _Atomic int64_t rows_before; /* i particles computed by closed sessions of this process */

/* ---- opening ----------------------------------------------------------------------------- */

/* The MPI local rank from the launcher's environment, or -1. */
static int local_rank(void)
{
    static const char *const RANKS[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID"};
    for (size_t k = 0; k < sizeof RANKS / sizeof *RANKS; k++) {
        const char *rank = options_variable(RANKS[k]);
        if (rank && *rank >= '0' && *rank <= '9') return (int)(strtol(rank, NULL, 10) & 0xffffff);
    }
    return -1;
}

/* Each MPI rank uses one device. Without MPI a session uses all named devices, or one: a number
 * modulo how many there are, or that device (~number). */
static int open_gpu(struct session *s, const struct backend *backend, void **state,
                    struct error *err)
{
    const char *named = options_process()->devices;
    const int rank = local_rank(), by_id = s->device == SESSION_DEVICE_BY_ID;
    s->options.all_devices = rank < 0 && (strchr(named, ',') || !strcmp(named, "all"));
    const int number = rank >= 0 ? rank : by_id ? (int)(s->id & 0xffffff) : ~s->device;
    return backend->open(&s->options, number, state, err);
}

/* For `auto`: 1, or 0 if no GPU can be used. The reason is printed once at log level info. */
static int try_gpu(struct session *s, const struct backend *backend, void **state)
{
    static struct error_last printed = {.busy = ATOMIC_FLAG_INIT};
    struct error quiet = {.quiet = 1};
    if (!open_gpu(s, backend, state, &quiet)) return 1;
    if (error_is_news(&printed, quiet.text)) error_info("no GPU is used: %.200s", quiet.text);
    return 0;
}

/* The two backends of each kind: on the CPU, on a GPU. */
static const struct backend *const DIRECT[] = {&cpu_direct_backend, &cuda_backend};
static const struct backend *const TREE[] = {&tree_backend_cpu, &tree_backend_cuda};

int session_choice_open(struct session *s, struct error *err)
{
    const int requested = s->options.backend;
    const struct backend *const *kind = requested >= BACKEND_TREE ? TREE : DIRECT;
    s->rows = 0;
    s->undecided = requested == BACKEND_AUTO && python_bridge_may_find_gpu() ? CHOICE_OPEN : 0;
    s->backend = kind[1];
    if (requested == BACKEND_CUDA || requested == BACKEND_CUDA_TREE)
        return open_gpu(s, s->backend, &s->state, err);
    const int now_or_never =
        requested == BACKEND_TREE || (requested == BACKEND_AUTO && !s->undecided);
    if (now_or_never && try_gpu(s, s->backend, &s->state)) return 0;
    s->backend = kind[0];
    return s->backend->open(&s->options, 0, &s->state, err);
}

/* ---- what force calls take, in seconds ------------------------------------------------- */

/* A pair and a prediction on the CPU are timed when a process first asks, for each mode and
 * instruction set, in some milliseconds. Other costs are typical ones of two machines with 16 cores
 * and an H200 (benchmarks/pages/runs.md). All this is in the floating-point environment of
 * util/fpenv.h. */
static const double CPU_CALL = 1.5e-6, GPU_CALL = 20e-6, GPU_START = 0.2;
/* Programs work between their calls: then threads sleep, and each has to be woken. */
static const double WAKE = 6e-6;
static const double THREAD_GAIN = 0.6; /* of each further thread; 1: as much as the first */
static const double PAIRS_PER_MULTIPROCESSOR = 2.3e9, MULTIPROCESSORS = 132;

/* Seconds of a pair and of a prediction by mode and instruction set; zero until timed. Threads that
 * ask at once all time. */
static struct timing {
    _Atomic double pair, prediction;
} timings[MODE_AUTO + 1][G6X_ISA_NEON + 1];
static const double PAIR = 1e-9, PREDICTION = 5e-9; /* if it fails for lack of memory */

enum { NJ = 4096, NI = 32, TAKES = 5 };

/* Seconds of the shortest of some calls; 0 if one fails. If the time `moves`, they predict. */
static double shortest(void *state, struct upload *j, const struct targets *i, int moves)
{
    const struct backend *const cpu = &cpu_direct_backend;
    struct error error = {.quiet = 1};
    double least = 0.0;
    for (int take = 0; take < TAKES; take++) {
        struct results results;
        const double start = clock_seconds();
        j->time += moves ? 0x1p-20 : 0.0;
        if (cpu->set_j(state, j, &error) || cpu->submit(state, i, &error) ||
            cpu->collect(state, WANT_JERK, i->ni, &results, &error))
            return 0.0;
        const double seconds = clock_seconds() - start;
        if (!take || seconds < least) least = seconds;
    }
    return least;
}

/* Times one thread with particles on a lattice. */
static void time_cpu(const struct options *asked, struct timing *t)
{
    struct options options = *asked;
    struct error error = {.quiet = 1};
    struct jmemory j = {0};
    double x[NI][3], v[NI][3], eps2[NI], pair = 0.0, prediction = 0.0;
    int32_t index[NI];
    void *state;
    options.threads = 1;
    for (int k = NJ - 1; k >= 0; k--) { /* the first NI are the i particles */
        const int i = k % NI;
        for (int axis = 0; axis < 3; axis++)
            x[i][axis] = 0.01 * (k >> 4 * axis & 15), v[i][axis] = !axis;
        index[i] = k, eps2[i] = 1e-6;
        (void)jmemory_set(&j, k, k, 0.0, 1e-4, NULL, NULL, NULL, v[i], x[i]);
    }
    if (j.capacity >= NJ && !cpu_direct_backend.open(&options, 0, &state, &error)) {
        jmemory_settle(&j, NJ, 1);
        const struct scale scale = jmemory_scale(&j);
        const double (*at)[3] = CONST3(x), (*moving)[3] = CONST3(v);
        const struct targets one = {.ni = 1, .index = index, .x = at, .v = moving, .eps2 = eps2};
        struct targets some = one;
        struct upload upload = {&j, NJ, 0.0, &scale, &scale, &options};
        some.ni = NI;
        pair = shortest(state, &upload, &some, 0) / (NI * NJ);
        prediction = shortest(state, &upload, &one, 1) / NJ - pair;
        cpu_direct_backend.close(state);
    }
    jmemory_free(&j);
    atomic_store(&t->prediction, prediction > 0.0 ? prediction : PREDICTION);
    atomic_store(&t->pair, pair > 0.0 ? pair : PAIR);
}

/* Work that takes one thread so many seconds, and can be divided into so many parts. */
static double shared_out(double seconds, double parts, double threads)
{
    const double more = fmin(parts, threads - 1.0);
    return fmin(seconds, seconds / (1.0 + more * THREAD_GAIN) + more * WAKE);
}

/* Of a call of ni i and nj j particles; these are predicted once in 1 / `predictions` calls. */
static double cpu_seconds(const struct options *o, double ni, double nj, double predictions)
{
    struct timing *t = &timings[o->precision][o->isa];
    const char *given = TEST_VARIABLE(CPU_PAIR);
    if (given)
        atomic_store(&t->prediction, PREDICTION), atomic_store(&t->pair, strtod(given, NULL));
    if (!(atomic_load(&t->pair) > 0.0)) time_cpu(o, t);
    const double threads = options_threads(o->threads), pairs = ni * nj,
                 summing = pairs * atomic_load(&t->pair),
                 predicting = nj * atomic_load(&t->prediction);
    return CPU_CALL + shared_out(summing, pairs / DIRECT_PAIRS_PER_THREAD, threads) +
           predictions * shared_out(predicting, nj / (DIRECT_CHUNKS_PER_THREAD * CHUNK), threads);
}

/* ---- the choice -------------------------------------------------------------------------- */

/* A run, and the seconds that it is taken to cost. */
struct run {
    double ni, nj, cpu, gpu, start;
    int gpu_wins;
};

/* A run of n particles, in calls of ni i particles and nj j particles for each. `rows` i particles
 * have already been computed. */
static struct run estimate(int64_t ni, int64_t nj, int64_t n, const struct options *o, int64_t rows)
{
    FPENV_HERE;
    const char *given = TEST_VARIABLE(GPU_START);
    const double i = ni > 0 ? (double)ni : 1.0, j = nj > 0 ? (double)nj : 1.0,
                 all = n > 0 ? (double)n : 1.0;
    const double calls = fmax(STEPS * all, (double)rows) / i, block = BLOCK_ROOTS * sqrt(all);
    const double open = cuda_device_multiprocessors(); /* of a GPU that the process has opened */
    const double start = given ? strtod(given, NULL) : open > 0.0 ? 0.0 : GPU_START;
    const double rate = PAIRS_PER_MULTIPROCESSOR * (open > 0.0 ? open : MULTIPROCESSORS);
    const double cpu = calls * cpu_seconds(o, i, j, fmin(i / block, 1.0)),
                 gpu = start + calls * (GPU_CALL + i * j / rate);
    return (struct run){i, j, cpu, gpu, start, gpu < cpu};
}

static void explain(const struct run *r, char *why, int length)
{
    FPENV_HERE;
    (void)snprintf(why, (size_t)length,
                   "%s: a run of %.0f j particles in calls of %.0f i particles is taken to cost "
                   "%.2g s on the CPU, and %.2g s on a GPU, of which %.2g s are its start",
                   r->gpu_wins ? "cuda" : "cpu", r->nj, r->ni, r->cpu, r->gpu, r->start);
}

/* Moves the session to the GPU, if one can be used. The next force call uploads the j particles. */
static void move_to_gpu(struct session *s)
{
    void *state = NULL;
    if (!try_gpu(s, &cuda_backend, &state)) return;
    if (!s->call.code) s->call.made = 0; /* its results are on the CPU */
    s->backend->close(s->state);
    s->backend = &cuda_backend;
    s->state = state;
}

void session_choice_make(struct session *s, int64_t ni, int64_t nj, int64_t n)
{
    char why[ERROR_TEXT], name[SESSION_NAME];
    const int were_lists = s->undecided == CHOICE_OF_LISTS, lists = jmemory_all_rest(&s->j, nj);
    const int64_t calls = s->calls;
    if (!s->undecided || (were_lists && !lists)) {
        s->undecided = 0;
        return;
    }
    if (were_lists && calls & (calls - 1)) return; /* it asks the system */
    const struct run r = estimate(ni, nj, n, &s->options, s->rows + atomic_load(&rows_before));
    if (were_lists && !r.gpu_wins) return;
    s->undecided = lists && !r.gpu_wins ? CHOICE_OF_LISTS : 0;
    if (r.gpu_wins) move_to_gpu(s);
    explain(&r, why, sizeof why);
    if (!r.gpu_wins || s->backend == &cuda_backend)
        error_info("%s: auto takes %s", session_name(s->id, name), why);
    session_report_start(s);
}

void session_choice_want_gpu(struct session *s)
{
    if (s->undecided != CHOICE_OPEN) return;
    s->undecided = 0;
    move_to_gpu(s);
    session_report_start(s);
}

void session_choice_again(struct session *s)
{
    if (s->options.backend != BACKEND_AUTO || s->backend != &cpu_direct_backend) return;
    s->undecided = python_bridge_may_find_gpu() ? CHOICE_OPEN : 0;
}

int session_choice_foresee(const struct options *o, int64_t ni, int64_t nj, char *why, int length)
{
    const struct run r = estimate(ni, nj, nj, o, 0);
    explain(&r, why, length);
    return r.gpu_wins ? BACKEND_CUDA : BACKEND_CPU;
}

void session_choice_end(struct session *s) { atomic_fetch_add(&rows_before, s->rows); }
