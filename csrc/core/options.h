/* options.h - the options set by GRAPE6_* environment variables and g6x_set_*. */
#pragma once

#include <stdint.h>

struct error;

enum { LOG_NONE, LOG_FAULTS, LOG_INFO };
enum { ON_ERROR_RETURN, ON_ERROR_ABORT };
/* The first values equal G6X_BACKEND_*. */
enum { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA, BACKEND_TREE, BACKEND_CPU_TREE, BACKEND_CUDA_TREE };

struct options {
    int backend, precision, threads, isa, jerk, snap, neighbour_self, predict_on_host;
    int all_devices;             /* a session uses all usable CUDA devices */
    void *fine_of;               /* the state whose fine rows this one sums (by_row.h), or NULL */
    int scale[3];                /* exponents of length, mass, velocity, or G6X_AUTO */
    double origin[3], drift[3];  /* of positions and velocities; NaN: not set */
    int tree_method, tree_order; /* enum tree_method; order of expansions */
    double theta;                /* opening angle; 0: all pairs */
    double verify;
};

/* Options of the whole process. npipes never changes after it was first read. */
struct process_options {
    int npipes;
    _Atomic int log, on_error; /* any thread may change them */
    int g5_pot_positive;       /* potentials of GRAPE-5 calls are positive */
    int g5_source_by_address;  /* GRAPE-5 calls read j particles starting at x[adr], not at x[0] */
    const char *client;        /* value of GRAPE6_CLIENT, or NULL */
    char problem[256];         /* error in the environment, or empty */
    char python[512];   /* Python to embed: an executable or an environment's folder, or empty */
    char devices[64];   /* numbers of the CUDA devices to use, or "all", or empty */
    int transfers;      /* between the GPUs of ranks: read by grape6py/ranks/carriers.py */
    int ranks_here;     /* ranks of MPI on this machine, as the launcher says; 1 without one */
    int openmp_threads; /* of OMP_NUM_THREADS; 0: it says nothing */
    _Atomic int cores;  /* for this process: options_count_cores */
};

enum option_kind {
    OPTION_WORD, /* one of `words`, whose values are 0, 1, ... */
    OPTION_NUMBER,
    OPTION_FRACTION, /* from 0 to 1 */
    OPTION_PLACE,    /* a coordinate, or NaN */
    OPTION_TEXT,     /* shorter than `high` bytes; begins with one of the bytes of `words` */
    OPTION_SOURCE,   /* says where others come from */
    OPTION_END
};

struct option {
    const char *name; /* in the environment, or NULL */
    int key;          /* G6X_*, or 0 */
    int kind, low, high;
    const char *words;
    _Atomic int *shared; /* the value, if it belongs to the process and can change; or NULL */
    union {              /* otherwise the value */
        int *number;
        double *real;
        char *text;
    };
};
/* Options with a name come first; the last is of kind OPTION_END. */
extern const struct option options_table[];
/* The largest value of a number or a word. */
int options_highest(const struct option *p);

/* An environment variable, or NULL. Always NULL in a set-uid program, since the user controls the
 * environment. */
const char *options_variable(const char *name);
/* One that only builds for tests read. */
#ifdef GRAPE6_TEST_HOOKS
#define TEST_VARIABLE(name) options_variable("GRAPE6_TEST_" #name)
#else
#define TEST_VARIABLE(name) ((const char *)0)
#endif
/* Whether the process runs with more rights than its user has. */
int options_is_privileged(void);

/* Both are read from the configuration file and the environment at the first call. */
struct process_options *options_process(void);
struct options *options_initial_values(void);

/* Sets or gets one option by its G6X_ key; returns 0 or G6X_E_ARGUMENT, with a text if err is
 * given. */
int options_set_int(struct options *o, int key, int value, struct error *err);
int options_get_int(const struct options *o, int key, int *value);
int options_set_double(struct options *o, int key, double value, struct error *err);
int options_get_double(const struct options *o, int key, double *value);

/* Look again, when a session is opened, how many cores the affinity mask allows: these calls of the
 * system, one of which reads a file, take longer than a small block. */
void options_count_cores(void);

/* Threads of a force call: the requested number; if 0, the number that the affinity mask allowed,
 * and of all cores this rank's share. */
int options_threads(int asked);
/* The same, but at most `useful`: more threads would not be faster. */
int options_threads_for(int64_t useful, int asked);
