/* g6x_session.c - the g6x_ calls: errors, version, options, bulk writing, lists, partial sums. */
#include <string.h>

#include "api/arguments.h"
#include "shared/package.h"
#include "session/partial_words.h"
#include "session/force.h"
#include "core/backend_device.h"
#include "session/choice.h"
#include "util/fpenv.h"
#include "g6lib.h"
#include "session/output.h"
#include "core/device.h"

#define TEXT_OF(a) #a
#define TEXT(a) TEXT_OF(a)

int g6x_version(char *buffer, int length)
{
    error_copy("grape6py " TEXT(VERSION_MAJOR) "." TEXT(VERSION_MINOR) "." TEXT(VERSION_PATCH),
               buffer, length);
    return 10000 * VERSION_MAJOR + 100 * VERSION_MINOR + VERSION_PATCH;
}

int g6x_last_error(int clusterid, char *buffer, int length)
{
    return session_registry_last_error(clusterid, buffer, length);
}

int g6x_last_warning(int clusterid, char *buffer, int length)
{
    struct error err;
    session_registry_error(clusterid, &err);
    error_copy(err.warning, buffer, length);
    return err.warnings;
}

int g6x_clear_error(int clusterid)
{
    session_registry_error(clusterid, NULL);
    return 0;
}

int g6x_open(int clusterid, int backend)
{
    if (backend < G6X_BACKEND_AUTO || backend > G6X_BACKEND_CUDA_TREE)
        return session_registry_refuse(G6X_E_ARGUMENT, "g6x_open: no such backend");
    return session_registry_open(clusterid, backend, SESSION_DEVICE_BY_ID);
}

int g6x_backend(int clusterid, char *buffer, int length)
{
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    if (s->undecided == CHOICE_OPEN)
        error_copy("auto, decided at the first force call", buffer, length);
    else
        s->backend->describe(s->state, &s->options, buffer, length);
    return 0;
}

int g6x_prepare(int clusterid, int ni, int nj)
{
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    if (ni < 0 || nj < 0)
        return error_set(&s->error, G6X_E_ARGUMENT, "g6x_prepare: ni = %d or nj = %d is negative",
                         ni, nj);
    if (!ni)
        session_choice_want_gpu(s);
    else if (s->undecided == CHOICE_OPEN)
        session_choice_make(s, ni, nj, nj);
    return 0;
}

int g6x_choice(int ni, int nj, char *buffer, int length)
{
    char why[ERROR_TEXT];
    if (ni < 1 || nj < 0)
        return session_registry_refuse(G6X_E_ARGUMENT, "g6x_choice: ni = %d or nj = %d", ni, nj);
    if (!buffer) return session_registry_refuse(G6X_E_NULL, "g6x_choice: null pointer");
    const struct options first = session_registry_initial();
    const int backend = session_choice_foresee(&first, ni, nj, why, sizeof why);
    error_copy(why, buffer, length);
    return backend;
}

int g6x_counts(int clusterid, long long found[3])
{
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    if (!found) return error_set(&s->error, G6X_E_NULL, "g6x_counts: null pointer");
    found[0] = s->calls, found[1] = s->rows_asked, found[2] = s->rows_fine;
    return 0;
}

/* ---- options ---------------------------------------------------------------------- */

/* An option of integers, if `whole`, or of doubles. A firsthalf copies the options: a change
 * applies from the next one on. */
static int set(int clusterid, int key, int whole, double value)
{
    if (!session_registry_any_open()) return session_registry_set_initial(key, whole, value);
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    return whole ? options_set_int(&s->options, key, (int)value, &s->error)
                 : options_set_double(&s->options, key, value, &s->error);
}

int g6x_set_int(int clusterid, int key, int value) { return set(clusterid, key, 1, value); }

int g6x_set_double(int clusterid, int key, double value) { return set(clusterid, key, 0, value); }

static int get_from(const struct options *o, int key, int *whole, double *real)
{
    return whole ? options_get_int(o, key, whole) : options_get_double(o, key, real);
}

/* `whole` is NULL for doubles. */
static int get(int clusterid, int key, int *whole, double *real)
{
    if (!session_registry_any_open()) {
        const struct options first = session_registry_initial();
        const int failed = get_from(&first, key, whole, real);
        return failed
                   ? session_registry_refuse(failed, whole ? "g6x_get_int: no such integer option"
                                                           : "g6x_get_double: no such option")
                   : 0;
    }
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    code = get_from(&s->options, key, whole, real);
    if (code)
        (void)error_set(&s->error, code,
                        whole ? "g6x_get_int: no integer option %d"
                              : "g6x_get_double: no such option: %d",
                        key);
    if (whole && key == G6X_DEVICE) /* as CUDA numbers it, -1 for the CPU */
        *whole = s->backend->arrays && !s->undecided ? s->backend->arrays->number(s->state) : -1;
    return code;
}

int g6x_get_int(int clusterid, int key, int *value)
{
    return value ? get(clusterid, key, value, NULL)
                 : session_registry_refuse(G6X_E_NULL, "g6x_get_int: null pointer");
}

int g6x_get_double(int clusterid, int key, double *value)
{
    return value ? get(clusterid, key, NULL, value)
                 : session_registry_refuse(G6X_E_NULL, "g6x_get_double: null pointer");
}

/* The scale of a force call with nj; `lacks`: a pointer for the result is NULL. */
static int find_scale(struct session *s, int nj, int lacks, const char *call, struct scale *scale)
{
    if (lacks || nj < 0)
        return error_set(&s->error, lacks ? G6X_E_NULL : G6X_E_ARGUMENT,
                         "%s: null pointer or nj = %d", call, nj);
    FPENV_HERE;
    *scale = session_force_scale(s, nj);
    return 0;
}

int g6x_get_scale(int clusterid, int nj, int exponent[3])
{
    struct scale scale;
    const int code = ON_SESSION(clusterid, find_scale, nj, !exponent, "g6x_get_scale", &scale);
    if (code) return code;
    exponent[0] = scale.length;
    exponent[1] = scale.mass;
    exponent[2] = scale.velocity;
    return 0;
}

int g6x_get_origin(int clusterid, int nj, double origin[3], double drift[3])
{
    struct scale scale;
    const int code =
        ON_SESSION(clusterid, find_scale, nj, !origin || !drift, "g6x_get_origin", &scale);
    if (code) return code;
    memcpy(origin, scale.origin, sizeof scale.origin);
    memcpy(drift, scale.drift, sizeof scale.drift);
    return 0;
}

/* ---- bulk and partial -------------------------------------------------------------- */

int g6x_get_neighbour_lists(int clusterid, int ni, long long capacity, long long start[],
                            int list[])
{
    return ON_SESSION_OR(session_force_no_lists(ni, start), clusterid, session_force_lists, ni,
                         capacity, start, list);
}

int g6x_get_partial(int clusterid, int ni, long long *words)
{
    const int code = ON_SESSION(clusterid, session_partial_words_get, ni, words);
    if (code && code != G6X_E_I_NAN && code != G6X_E_MISMATCH)
        session_partial_words_spoil(ni, words, code);
    return code;
}

static int checked(int ni, const void *a, const void *b)
{
    if (ni < 0) return session_registry_refuse(G6X_E_ARGUMENT, "partial sums: ni is negative");
    if (ni && (!a || !b)) return session_registry_refuse(G6X_E_NULL, "partial sums: null pointer");
    return 0;
}

/* Makes a call of partial_words.h on two arrays of rows; `changed`: those it changes, or NULL. */
#define ON_ROWS(changed, call, ni, a, b)                                                           \
    __extension__({                                                                                \
        struct error err = {.quiet = 1};                                                           \
        int code = checked(ni, a, b);                                                              \
        if (!code) code = call(ni, a, b, &err);                                                    \
        if (code) session_partial_words_spoil(ni, changed, code);                                  \
        err.code ? session_registry_refuse(err.code, "%s", err.text) : code;                       \
    })

int g6x_add_partial(int ni, long long *sum, const long long *words)
{
    return ON_ROWS(sum, session_partial_words_add, ni, sum, words);
}

int g6x_get_tops(int ni, const long long *words, int (*top)[G6X_PARTIAL_TOPS])
{
    return ON_ROWS(NULL, session_partial_words_tops, ni, words, top);
}

int g6x_raise_partial(int ni, long long *words, const int (*top)[G6X_PARTIAL_TOPS])
{
    return ON_ROWS(words, session_partial_words_raise, ni, words, top);
}

int g6x_from_partial(int ni, const long long *words, double (*acc)[3], double (*jerk)[3],
                     double pot[])
{
    struct error err = {.quiet = 1};
    int code = checked(ni, words, pot);
    if (!code) code = checked(ni, acc, jerk);
    if (code) {
        session_output_nan(ni, acc, jerk, pot, NULL, NULL);
        return code;
    }
    FPENV_HERE;
    code = session_partial_words_force(ni, words, acc, jerk, pot, &err);
    return code ? session_registry_refuse(err.code, "%s", err.text) : 0;
}

int g6x_error_printed(int clusterid)
{
    struct error err;
    session_registry_error(clusterid, &err);
    return err.printed;
}

int g6x_runs_python(void) { return python_bridge_runs(); }

int g6x_open_on(int clusterid, int backend, int device)
{
    return session_registry_open(clusterid, backend, device);
}

int g6x_threads(void) { return options_threads(0); }

double g6x_fma_rate(int isa, int mode)
{
    const struct direct_kernel *k = cpu_direct_kernel_choose(isa, mode);
    return k ? k->fma_rate() : 0.0;
}
