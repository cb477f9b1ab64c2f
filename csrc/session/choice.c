/* choice.c - see choice.h. */
#include "session/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "session/costs.h"
#include "session/report.h"
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
    const double i = ni > 0 ? (double)ni : 1.0, j = nj > 0 ? (double)nj : 1.0,
                 all = n > 0 ? (double)n : 1.0;
    const double calls = fmax(STEPS * all, (double)rows) / i, block = BLOCK_ROOTS * sqrt(all),
                 start = session_costs_start();
    const double cpu = calls * session_costs_cpu(o, i, j, fmin(i / block, 1.0)),
                 gpu = start + calls * session_costs_gpu(i, j);
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

/* Moves the session to the GPU. The next force call uploads the j particles. */
static void move_to_gpu(struct session *s)
{
    void *state = NULL;
    if (!try_gpu(s, &cuda_backend, &state)) return;
    s->call.made = 0; /* its results are on the CPU */
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
