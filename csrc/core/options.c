/* options.c - see options.h: the table of options, and their values. config.c reads them. */
#include "core/options.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sched.h>
#include <sys/auxv.h>

#include "core/config.h"
#include "core/error.h"
#include "core/partial.h"
#include "shared/range.h"
#include "shared/tree_numbers.h"
#include "simd/dispatch.h"

enum { MOST_PIPES = 16384, MOST_THREADS = 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct process_options process;
static struct options initial;

const char *options_variable(const char *name)
{
    return options_is_privileged() ? NULL : getenv(name);
}

int options_is_privileged(void) { return getauxval(AT_SECURE) != 0; }

#define SET(name, ...) " " #name
#define WORDS(to, text) .kind = OPTION_WORD, .number = &(to), .words = text
#define SHARED(to, text) .kind = OPTION_WORD, .shared = &(to), .words = text
#define NUMBER(to, least, most) .kind = OPTION_NUMBER, .number = &(to), .low = least, .high = most
#define FRACTION(to) .kind = OPTION_FRACTION, .real = &(to)
#define PLACE(to) .kind = OPTION_PLACE, .real = &(to)
#define TEXT(to, first) .kind = OPTION_TEXT, .text = to, .words = first, .high = (int)sizeof(to)

/* Session options point to their initial values. The values of words are 0, 1, ... */
const struct option options_table[] = {
    {"GRAPE6_BACKEND", 0, WORDS(initial.backend, "auto cpu cuda tree cpu-tree cuda-tree")},
    {"GRAPE6_PRECISION", G6X_PRECISION, WORDS(initial.precision, "grape double single auto")},
    {"GRAPE6_ISA", G6X_ISA, WORDS(initial.isa, "best" SIMD_ALL(SET))},
    {"GRAPE6_LOG", G6X_LOG, SHARED(process.log, "none faults info")},
    {"GRAPE6_ON_ERROR", G6X_ON_ERROR, SHARED(process.on_error, "return abort")},
    {"GRAPE6_NPIPES", 0, NUMBER(process.npipes, 1, MOST_PIPES)},
    {"GRAPE6_THREADS", G6X_THREADS, NUMBER(initial.threads, 0, MOST_THREADS)},
    {"GRAPE6_JERK", G6X_JERK, NUMBER(initial.jerk, 0, 1)},
    {"GRAPE6_SNAP", G6X_SNAP, NUMBER(initial.snap, 0, 1)},
    {"GRAPE6_NEIGHBOUR_SELF", G6X_NEIGHBOUR_SELF, NUMBER(initial.neighbour_self, 0, 1)},
    {"GRAPE6_VERIFY", G6X_VERIFY, FRACTION(initial.verify)},
    {"GRAPE6_PYTHON", 0, TEXT(process.python, "/")},
    {"GRAPE6_DEVICES", 0, TEXT(process.devices, "0123456789")},
    {"GRAPE6_TRANSFERS", 0, WORDS(process.transfers, "auto nccl mpi host")},
    {"GRAPE6_PREDICT", 0, WORDS(initial.predict_on_host, "device host")},
    {"GRAPE6_THETA", G6X_THETA, FRACTION(initial.theta)},
    {"GRAPE6_TREE_METHOD", G6X_TREE_METHOD, WORDS(initial.tree_method, "fmm bh")},
    {"GRAPE6_TREE_ORDER", G6X_TREE_ORDER,
     NUMBER(initial.tree_order, TREE_LEAST_ORDER, TREE_LARGEST_ORDER)},
    {"GRAPE6_G5_POT_SIGN", 0, WORDS(process.g5_pot_positive, "-1 1")},
    {"GRAPE6_G5_SOURCE", 0, WORDS(process.g5_source_by_address, "first address")},
    {"GRAPE6_CONFIG", 0, .kind = OPTION_SOURCE},
    {"GRAPE6_CLIENT", 0, .kind = OPTION_SOURCE},
    {NULL, G6X_SCALE_LENGTH, NUMBER(initial.scale[0], -1000, 1000)},
    {NULL, G6X_SCALE_MASS, NUMBER(initial.scale[1], -1000, 1000)},
    {NULL, G6X_SCALE_VELOCITY, NUMBER(initial.scale[2], -1000, 1000)},
    {NULL, G6X_ORIGIN_X, PLACE(initial.origin[0])},
    {NULL, G6X_ORIGIN_Y, PLACE(initial.origin[1])},
    {NULL, G6X_ORIGIN_Z, PLACE(initial.origin[2])},
    {NULL, G6X_DRIFT_X, PLACE(initial.drift[0])},
    {NULL, G6X_DRIFT_Y, PLACE(initial.drift[1])},
    {NULL, G6X_DRIFT_Z, PLACE(initial.drift[2])},
    {NULL, 0, .kind = OPTION_END},
};

/* Of Open MPI, MPICH and Intel MPI, and Slurm, whose number may go on as in "4(x2)". */
static int ranks_here(void)
{
    static const char *const SIZES[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_STEP_TASKS_PER_NODE"};
    for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
        const char *size = options_variable(SIZES[k]);
        const long ranks = size ? strtol(size, NULL, 10) : 0;
        if (ranks > 0 && ranks <= 4096) return (int)ranks;
    }
    return 1;
}

/* The first number of OMP_NUM_THREADS, which may be a list; 0 if it is none, as OpenMP has it. */
static int threads_of_openmp(void)
{
    const char *list = options_variable("OMP_NUM_THREADS");
    char *end = NULL;
    const long threads = list ? strtol(list, &end, 10) : 0;
    while (end && isspace((unsigned char)*end)) end++;
    return threads > 0 && (!*end || *end == ',') ? (int)(threads < 1024 ? threads : 1024) : 0;
}

static void read_all(void)
{
    process = (struct process_options){.npipes = 48, .log = LOG_FAULTS, .g5_pot_positive = 1};
    initial = (struct options){.precision = MODE_AUTO,
                               .jerk = 1,
                               .snap = 1,
                               .scale = {G6X_AUTO, G6X_AUTO, G6X_AUTO},
                               .origin = {NAN, NAN, NAN},
                               .drift = {NAN, NAN, NAN},
                               .tree_order = TREE_USUAL_ORDER,
                               .theta = 0.5};
    process.ranks_here = ranks_here();
    process.openmp_threads = threads_of_openmp();
    config_read(&process, &initial);
}

struct process_options *options_process(void)
{
    (void)pthread_once(&once, read_all);
    return &process;
}

struct options *options_initial_values(void)
{
    (void)pthread_once(&once, read_all);
    return &initial;
}

/* As many as OpenMP would use, or the cores that the affinity mask allows. Ranks that may use all
 * cores share them: with more threads than cores they would wait for each other. */
static int cores(int ranks)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int n = online > 0 ? (int)online : 1;
    int allowed = n;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) allowed = CPU_COUNT(&set);
    return allowed < n || ranks == 1 ? allowed : n > ranks ? n / ranks : 1;
}

void options_count_cores(void)
{
    struct process_options *p = options_process();
    p->cores = p->openmp_threads ? p->openmp_threads : cores(p->ranks_here);
}

int options_threads(int asked)
{
    if (asked) return asked;
    if (!options_process()->cores) options_count_cores();
    return options_process()->cores;
}

int options_threads_for(int64_t useful, int asked)
{
    if (useful <= 1) return 1;
    const int most = options_threads(asked);
    return useful < most ? (int)useful : most;
}

/* ---- by key ------------------------------------------------------------------------- */

/* The option of a key: an integer option if `whole`, otherwise a real one; NULL if there is none.
 */
static const struct option *find(int key, int whole)
{
    const struct option *p = options_table;
    while (p->kind != OPTION_END && (p->key != key || !key)) p++;
    const int is_whole = p->kind == OPTION_WORD || p->kind == OPTION_NUMBER;
    return p->kind != OPTION_END && is_whole == whole ? p : NULL;
}

/* Address of a session's value, from the address of the initial value of the option. */
static void *of_session(const struct options *o, const void *initial_value)
{
    return (char *)(uintptr_t)o + ((const char *)initial_value - (const char *)&initial);
}

int options_highest(const struct option *p)
{
    int high = p->high;
    for (const char *c = p->words; c && *c; c++) high += *c == ' ';
    return high;
}

/* Name of an option in messages. */
static const char *label(const struct option *p)
{
    return p->name ? p->name + sizeof "GRAPE6_" - 1 : "SCALE";
}

int options_set_int(struct options *o, int key, int value, struct error *err)
{
    const struct option *p = find(key, 1);
    if (!p) return error_set(err, G6X_E_ARGUMENT, "option %d: no such integer option", key);
    const int automatic = p->low < 0 && value == G6X_AUTO, high = options_highest(p);
    if (!automatic && (value < p->low || value > high))
        return error_set(err, G6X_E_ARGUMENT, "option %s: the value %d is not from %d to %d",
                         label(p), value, p->low, high);
    if (key == G6X_ISA && simd_dispatch(value) < 0) {
        const char *name = p->words;
        for (int k = 0; k < value; k++) name = strchr(name, ' ') + 1;
        return error_set(err, G6X_E_ARGUMENT,
                         "this machine lacks instruction set %.*s; best takes what it has",
                         (int)strcspn(name, " "), name);
    }
    if (p->shared)
        *p->shared = value;
    else
        *(int *)of_session(o, p->number) = value;
    return 0;
}

int options_get_int(const struct options *o, int key, int *value)
{
    if (key == G6X_NPIPES) return *value = options_process()->npipes, 0;
    if (key == G6X_DEVICE) return *value = -1, 0; /* before a session exists */
    const struct option *p = find(key, 1);
    if (!p) return G6X_E_ARGUMENT;
    *value = p->shared ? *p->shared : *(const int *)of_session(o, p->number);
    return 0;
}

/* Whether a is from 0 to 1. Compares bits, since a comparison with NaN may trap. */
static int is_fraction(double a) { return bits_of(a) << 1 == 0 || bits_of(a) <= bits_of(1.0); }

/* At most 2^900, so that differences do not overflow; or NaN: chosen from the data. */
static int is_place(double a)
{
    const uint64_t most = bits_of(0x1p900), magnitude = bits_of(a) << 1 >> 1;
    return magnitude <= most || magnitude > bits_of(INFINITY);
}

int options_set_double(struct options *o, int key, double value, struct error *err)
{
    const struct option *p = find(key, 0);
    if (p && p->kind == OPTION_PLACE && !is_place(value))
        return error_set(err, G6X_E_ARGUMENT, "option %d: beyond 2^900", key);
    if (p && p->kind == OPTION_FRACTION && !is_fraction(value))
        return error_set(err, G6X_E_ARGUMENT, "option %s: the value is not from 0 to 1", label(p));
    if (!p) return error_set(err, G6X_E_ARGUMENT, "option %d: no such fractional option", key);
    *(double *)of_session(o, p->real) = value;
    return 0;
}

int options_get_double(const struct options *o, int key, double *value)
{
    const struct option *p = find(key, 0);
    if (!p) return G6X_E_ARGUMENT;
    *value = *(const double *)of_session(o, p->real);
    return 0;
}
