/* options.c - see options.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core/options.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <sys/auxv.h>
#endif

#include "core/environment.h"
#include "core/error.h"
#include "cpu/direct_kernel.h"
#include "tree/tree.h"

enum { MOST_PIPES = 16384, MOST_THREADS = 1024, LEAST_ORDER = 2, MOST_ORDER = 6 };

/* Of a tree. */
enum { DEFAULT_ORDER = 5 };
static const double DEFAULT_THETA = 0.5;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct process_options process;
static struct options initial;

struct word {
    const char *text;
    int value;
};

/* One line for each client of docs/environment.md. */
static const struct client {
    const char *name;
    int npipes, neighbour_self, jerk;
} CLIENTS[] = {
    {"kira", 1024, 1, 1},    {"phigrape", 16384, 0, 1}, {"ph4", 48, 0, 1},
    {"bhtree", 16384, 0, 0}, {"nbody4", 48, 0, 1},
};

const char *options_variable(const char *name)
{
    return options_is_privileged() ? NULL : getenv(name);
}

int options_is_privileged(void)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0;
#else
    return geteuid() != getuid() || getegid() != getgid();
#endif
}

static void problem(const char *name, const char *value, const char *wanted)
{
    if (!process.problem[0])
        (void)snprintf(process.problem, sizeof process.problem, "%s=%.60s: it must be %s", name,
                       value, wanted);
}

static void take_word(const char *name, const char *value, const struct word *words, int *to,
                      const char *wanted)
{
    for (; words->text; words++)
        if (!strcmp(words->text, value)) {
            *to = words->value;
            return;
        }
    problem(name, value, wanted);
}

static void take_number(const char *name, const char *value, long low, long high, int *to)
{
    char *end, wanted[80];
    const long n = strtol(value, &end, 10);
    if (*value && !*end && n >= low && n <= high) {
        *to = (int)n;
        return;
    }
    (void)snprintf(wanted, sizeof wanted, "an integer from %ld to %ld", low, high);
    problem(name, value, wanted);
}

/* A text that begins with one of some characters. */
static void take_text(const char *name, const char *value, char *to, size_t size, const char *first)
{
    if (strlen(value) < size && (strchr(first, *value) || (*first != '/' && !strcmp(value, "all"))))
        (void)snprintf(to, size, "%s", value);
    else
        problem(name, value,
                *first == '/' ? "the full path of a python or of an environment"
                              : "numbers of devices, as 0,2, or all");
}

/* A fraction from 0 to 1, read without the locale's decimal point. */
static void take_fraction(const char *name, const char *value, double *to)
{
    double number = 0.0, unit = 1.0;
    int point = 0, digits = 0;
    for (const char *c = value; *c; c++) {
        if (*c == '.' && !point) {
            point = 1;
        } else if (*c >= '0' && *c <= '9') {
            digits++;
            number = 10.0 * number + (*c - '0');
            if (point) unit *= 10.0;
        } else {
            digits = -1000;
        }
    }
    if (digits > 0 && digits < 16 && number <= unit)
        *to = number / unit;
    else
        problem(name, value, "a fraction from 0 to 1");
}

static void take(const char *name, const char *value)
{
    static const struct word BACKENDS[] = {
        {"auto", BACKEND_AUTO},
        {"cpu", BACKEND_CPU},
        {"cuda", BACKEND_CUDA},
        {"tree", BACKEND_TREE},
        {"cpu-tree", BACKEND_CPU_TREE},
        {"cuda-tree", BACKEND_CUDA_TREE},
        {NULL, 0},
    };
    static const struct word PRECISIONS[] = {
        {"grape", G6X_GRAPE}, {"double", G6X_DOUBLE}, {"single", G6X_SINGLE}, {NULL, 0}};
    static const struct word ISAS[] = {{"best", G6X_ISA_BEST},
                                       {"base", G6X_ISA_BASE},
                                       {"avx2", G6X_ISA_AVX2},
                                       {"avx512", G6X_ISA_AVX512},
                                       {NULL, 0}};
    static const struct word LOGS[] = {
        {"none", LOG_NONE}, {"faults", LOG_FAULTS}, {"info", LOG_INFO}, {NULL, 0}};
    static const struct word ERRORS[] = {
        {"return", ON_ERROR_RETURN}, {"abort", ON_ERROR_ABORT}, {NULL, 0}};
    static const struct word METHODS[] = {{"fmm", TREE_FMM}, {"bh", TREE_BARNES_HUT}, {NULL, 0}};
    static const struct word SIGNS[] = {{"-1", -1}, {"1", 1}, {NULL, 0}};
    static const struct word SOURCES[] = {{"first", 0}, {"address", 1}, {NULL, 0}};
    static const struct word PREDICTORS[] = {{"device", 0}, {"host", 1}, {NULL, 0}};
    const char *key = name + strlen("GRAPE6_");
    int log = process.log, on_error = process.on_error;
    if (!strcmp(key, "BACKEND"))
        take_word(name, value, BACKENDS, &initial.backend,
                  "auto, cpu, cuda, tree, cpu-tree or cuda-tree");
    else if (!strcmp(key, "PRECISION"))
        take_word(name, value, PRECISIONS, &initial.precision, "grape, double or single");
    else if (!strcmp(key, "ISA"))
        take_word(name, value, ISAS, &initial.isa, "best, base, avx2 or avx512");
    else if (!strcmp(key, "LOG"))
        take_word(name, value, LOGS, &log, "none, faults or info");
    else if (!strcmp(key, "ON_ERROR"))
        take_word(name, value, ERRORS, &on_error, "return or abort");
    else if (!strcmp(key, "PREDICT"))
        take_word(name, value, PREDICTORS, &initial.predict_on_host, "device or host");
    else if (!strcmp(key, "NPIPES"))
        take_number(name, value, 1, MOST_PIPES, &process.npipes);
    else if (!strcmp(key, "THREADS"))
        take_number(name, value, 0, MOST_THREADS, &initial.threads);
    else if (!strcmp(key, "JERK"))
        take_number(name, value, 0, 1, &initial.jerk);
    else if (!strcmp(key, "SNAP"))
        take_number(name, value, 0, 1, &initial.snap);
    else if (!strcmp(key, "NEIGHBOUR_SELF"))
        take_number(name, value, 0, 1, &initial.neighbour_self);
    else if (!strcmp(key, "VERIFY"))
        take_fraction(name, value, &initial.verify);
    else if (!strcmp(key, "THETA"))
        take_fraction(name, value, &initial.theta);
    else if (!strcmp(key, "TREE_METHOD"))
        take_word(name, value, METHODS, &initial.tree_method, "fmm or bh");
    else if (!strcmp(key, "TREE_ORDER"))
        take_number(name, value, LEAST_ORDER, MOST_ORDER, &initial.tree_order);
    else if (!strcmp(key, "G5_POT_SIGN"))
        take_word(name, value, SIGNS, &process.g5_pot_sign, "-1 or 1");
    else if (!strcmp(key, "G5_SOURCE"))
        take_word(name, value, SOURCES, &process.g5_source_by_address, "first or address");
    else if (!strcmp(key, "PYTHON"))
        take_text(name, value, process.python, sizeof process.python, "/");
    else if (!strcmp(key, "DEVICES"))
        take_text(name, value, process.devices, sizeof process.devices, "0123456789");
    process.log = log;
    process.on_error = on_error;
}

static void take_client(const char *value)
{
    for (size_t k = 0; k < sizeof CLIENTS / sizeof *CLIENTS; k++)
        if (!strcmp(CLIENTS[k].name, value)) {
            process.client = CLIENTS[k].name;
            process.npipes = CLIENTS[k].npipes;
            initial.neighbour_self = CLIENTS[k].neighbour_self;
            initial.jerk = CLIENTS[k].jerk;
            return;
        }
    problem("GRAPE6_CLIENT", value, "kira, phigrape, ph4, bhtree or nbody4");
}

/* The last two say where the others come from, and are read before them. */
static const char *const NAMES[] = {
    "GRAPE6_BACKEND",    "GRAPE6_PRECISION",      "GRAPE6_ISA",       "GRAPE6_LOG",
    "GRAPE6_ON_ERROR",   "GRAPE6_NPIPES",         "GRAPE6_THREADS",   "GRAPE6_JERK",
    "GRAPE6_SNAP",       "GRAPE6_NEIGHBOUR_SELF", "GRAPE6_VERIFY",    "GRAPE6_PYTHON",
    "GRAPE6_DEVICES",    "GRAPE6_PREDICT",        "GRAPE6_THETA",     "GRAPE6_TREE_METHOD",
    "GRAPE6_TREE_ORDER", "GRAPE6_G5_POT_SIGN",    "GRAPE6_G5_SOURCE", "GRAPE6_CONFIG",
    "GRAPE6_CLIENT",
};
enum { NNAMES = sizeof NAMES / sizeof *NAMES, NOTHERS = NNAMES - 2 };

enum { CONFIG_LINE = 512, MOST_CONFIG = 1 << 16 };

/* A value that TOML takes without quotes: a number or a truth value. */
static int is_plain(const char *text)
{
    return !text[strspn(text, "-+.0123456789")] || !strcmp(text, "true") || !strcmp(text, "false");
}

/* A small regular file, opened; NULL for what could be anything, or without end. */
static FILE *open_config(const char *path)
{
    struct stat about;
    const int number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    FILE *file = NULL;
    if (number < 0) return NULL;
    if (!fstat(number, &about) && S_ISREG(about.st_mode) && about.st_size <= MOST_CONFIG)
        file = fdopen(number, "r");
    if (!file) (void)close(number);
    return file;
}

/* What stands there is in no message: the file may be anybody's. */
static void bad_line(int number, const char *wanted)
{
    if (!process.problem[0])
        (void)snprintf(process.problem, sizeof process.problem,
                       "GRAPE6_CONFIG, line %d: it must be %s", number, wanted);
}

/* Reads `name = value` lines, the flat part of TOML: strings in quotes, integers,
 * fractions, true and false. Names are those of the environment, in either case, with or
 * without GRAPE6_. Calls `use` for each. */
static void read_config(const char *path, void (*use)(const char *name, const char *value))
{
    char line[CONFIG_LINE];
    int number = 0;
    FILE *file = open_config(path);
    if (!file) {
        problem("GRAPE6_CONFIG", path, "a regular file of at most 64 kB that can be read");
        return;
    }
    while (number++, fgets(line, sizeof line, file)) {
        if (!strchr(line, '\n') && strlen(line) == sizeof line - 1) {
            bad_line(number, "of at most 510 characters");
            for (int c = 0; c != EOF && c != '\n';) c = getc(file);
            continue;
        }
        char name[CONFIG_LINE] = "GRAPE6_", text[CONFIG_LINE];
        int end = 0;
        char *at = line + strspn(line, " \t");
        if (*at == '#' || *at == '\n' || *at == '\r' || !*at) continue;
        const size_t n = strcspn(at, " \t=");
        const int prefixed = n > 7 && !strncasecmp(at, "GRAPE6_", 7);
        (void)snprintf(name + 7, sizeof name - 7, "%.*s", (int)n - (prefixed ? 7 : 0),
                       at + (prefixed ? 7 : 0));
        for (char *c = name; *c; c++)
            if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
        at += n;
        if (sscanf(at, " = \"%511[^\"]\" %n", text, &end) == 1 && end &&
            (!at[end] || at[end] == '#')) {
            use(name, text);
        } else if (end = 0, sscanf(at, " = %511[-+.0-9a-z] %n", text, &end) == 1 && end &&
                                (!at[end] || at[end] == '#') && is_plain(text)) {
            use(name, !strcmp(text, "true") ? "1" : !strcmp(text, "false") ? "0" : text);
        } else {
            bad_line(number, "of the form name = value");
        }
    }
    if (ferror(file)) problem("GRAPE6_CONFIG", path, "a file that can be read");
    (void)fclose(file);
}

static void use_client(const char *name, const char *value)
{
    if (!strcmp(name, "GRAPE6_CLIENT")) take_client(value);
}

static void use_other(const char *name, const char *value)
{
    if (!strcmp(name, "GRAPE6_CLIENT")) return;
    for (int k = 0; k < NOTHERS; k++)
        if (!strcmp(NAMES[k], name)) {
            take(name, value);
            return;
        }
    problem("GRAPE6_CONFIG", name + 7, "a name of docs/environment.md");
}

/* The client first, since the others may override what it sets; the file before the
 * environment. */
static void read_all(void)
{
    const char *config = options_variable("GRAPE6_CONFIG"),
               *client = options_variable("GRAPE6_CLIENT");
    process = (struct process_options){.npipes = 48, .log = LOG_FAULTS, .g5_pot_sign = -1};
    initial = (struct options){.jerk = 1,
                               .snap = 1,
                               .scale = {G6X_AUTO, G6X_AUTO, G6X_AUTO},
                               .origin = {NAN, NAN, NAN},
                               .drift = {NAN, NAN, NAN},
                               .tree_order = DEFAULT_ORDER,
                               .theta = DEFAULT_THETA};
    if (config && *config) read_config(config, use_client);
    if (client && *client) take_client(client);
    if (config && *config) read_config(config, use_other);
    for (int k = 0; k < NOTHERS; k++) {
        const char *value = options_variable(NAMES[k]);
        if (value && *value) take(NAMES[k], value);
    }
    if (process.log > LOG_NONE && !options_is_privileged()) environment_check(NAMES, NNAMES);
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

int options_cores(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* Integer options of a session. */
static int *int_option(struct options *o, int key, int *low, int *high)
{
    *low = 0, *high = 1;
    switch (key) {
    case G6X_PRECISION: *high = G6X_SINGLE; return &o->precision;
    case G6X_THREADS: *high = MOST_THREADS; return &o->threads;
    case G6X_ISA: *high = G6X_ISA_AVX512; return &o->isa;
    case G6X_JERK: return &o->jerk;
    case G6X_SNAP: return &o->snap;
    case G6X_NEIGHBOUR_SELF: return &o->neighbour_self;
    case G6X_TREE_METHOD: *high = TREE_BARNES_HUT; return &o->tree_method;
    case G6X_TREE_ORDER: *low = LEAST_ORDER, *high = MOST_ORDER; return &o->tree_order;
    case G6X_SCALE_LENGTH:
    case G6X_SCALE_MASS:
    case G6X_SCALE_VELOCITY: *low = -1000, *high = 1000; return &o->scale[key - G6X_SCALE_LENGTH];
    default: return NULL;
    }
}

int options_set_int(struct options *o, int key, int value, struct fault *f)
{
    int low, high;
    if (key == G6X_LOG && value >= LOG_NONE && value <= LOG_INFO) {
        options_process()->log = value;
        return 0;
    }
    if (key == G6X_ON_ERROR && (value == ON_ERROR_RETURN || value == ON_ERROR_ABORT)) {
        options_process()->on_error = value;
        return 0;
    }
    int *to = int_option(o, key, &low, &high);
    if (!to)
        return error_set(f, G6X_E_ARGUMENT, "option %d: no such integer option, or not that value",
                         key);
    const int automatic = low < 0 && value == G6X_AUTO;
    if (!automatic && (value < low || value > high))
        return error_set(f, G6X_E_ARGUMENT, "option %d: the value %d is not from %d to %d", key,
                         value, low, high);
    if (key == G6X_ISA && !kernel_choose(value, MODE_GRAPE))
        return error_set(f, G6X_E_ARGUMENT, "this machine lacks instruction set %d", value);
    *to = value;
    return 0;
}

int options_get_int(const struct options *o, int key, int *value)
{
    struct options copy = *o;
    int low, high;
    if (key == G6X_LOG) return *value = options_process()->log, 0;
    if (key == G6X_ON_ERROR) return *value = options_process()->on_error, 0;
    if (key == G6X_NPIPES) return *value = options_process()->npipes, 0;
    if (key == G6X_DEVICE) return *value = -1, 0; /* until there is a session */
    const int *from = int_option(&copy, key, &low, &high);
    if (!from) return G6X_E_ARGUMENT;
    *value = *from;
    return 0;
}

/* From 0 to 1, by the bits: a comparison with NaN may trap. */
static int is_fraction(double a) { return bits_of(a) << 1 == 0 || bits_of(a) <= bits_of(1.0); }

/* Fractional options of a session. */
static double *double_option(struct options *o, int key)
{
    return key == G6X_VERIFY ? &o->verify : key == G6X_THETA ? &o->theta : NULL;
}

/* Components of the origin and the drift. */
static double *place_option(struct options *o, int key)
{
    if (key >= G6X_ORIGIN_X && key <= G6X_ORIGIN_Z) return &o->origin[key - G6X_ORIGIN_X];
    return key >= G6X_DRIFT_X && key <= G6X_DRIFT_Z ? &o->drift[key - G6X_DRIFT_X] : NULL;
}

/* No larger, so that differences do not overflow; NaN: from the data. */
static int is_place(double a)
{
    const uint64_t most = bits_of(0x1p900), magnitude = bits_of(a) << 1 >> 1;
    return magnitude <= most || magnitude > bits_of(INFINITY);
}

int options_set_double(struct options *o, int key, double value, struct fault *f)
{
    double *to = place_option(o, key);
    if (to && !is_place(value)) return error_set(f, G6X_E_ARGUMENT, "option %d: beyond 2^900", key);
    if (to) {
        *to = value;
        return 0;
    }
    to = double_option(o, key);
    if (!to || !is_fraction(value))
        return error_set(f, G6X_E_ARGUMENT,
                         "option %d: no such fractional option, or not from 0 to 1", key);
    *to = value;
    return 0;
}

int options_get_double(const struct options *o, int key, double *value)
{
    struct options copy = *o;
    const double *place = place_option(&copy, key),
                 *from = place ? place : double_option(&copy, key);
    if (!from) return G6X_E_ARGUMENT;
    *value = *from;
    return 0;
}
