/* fuzz_calls.h - what the files that make random calls share. */
#pragma once

#include "fuzz.h"

int g6_set_j_particle_multisend_mxfast__();

/* Arguments by pointer travel in here, so that it shows if the library writes to them. */
struct arguments {
    int id, nj, ni, address, index, n, mode, key, value, pipe, most;
    double ti, tj, dtj, mass, eps2, h2, k18[3], j6[3], a2[3], v[3], x[3];
};
extern struct arguments a;
extern int form, lacking; /* by value, name_ or name__; the scalar that is a null pointer, or 0 */
/* A fresh set of arguments for a cluster; its id as the library will see it. */
int64_t begin_call(void);
int64_t own_id(void); /* ... if the call has no _all form */
void end_call(void);  /* the arguments are as they were */

#define P(k, scalar) (lacking == (k) ? NULL : &(scalar))
/* By pointer the arguments are not declared. */
#define CALL(name, by_value, by_pointer)                                                           \
    ({                                                                                             \
        int name##_(), name##__();                                                                 \
        calling = #name;                                                                           \
        say("%s%.*s", #name, form, "__");                                                          \
        form == 0 ? name by_value : form == 1 ? name##_ by_pointer : name##__ by_pointer;          \
    })

/* The form for all clusters, or for one: arguments after the cluster, in parentheses. */
#define THESE(...) __VA_ARGS__
#define CALL_OF(id, name, by_value, by_pointer)                                                    \
    ((id) == ID_ALL ? CALL(name##_all, by_value, by_pointer)                                       \
                    : CALL(name, (a.id, THESE by_value), (P(1, a.id), THESE by_pointer)))

void try_open(void), try_close(void), try_nothing(void), try_idle(void), try_time(void);
void try_write(void), try_write_many(void), try_predicted(void);
void try_texts(void), try_options(void), try_scale(void);
void try_first(void), try_last(void), try_lists(void), try_pipes(void), try_partial(void);
void try_block(void), try_tree(void), try_walks(void);

extern int listing;
void close_trees(void);  /* a sequence ends */
void forget_first(void); /* a sequence begins */
int id_of_first(void);   /* the cluster of the latest first half */

void keep(void);     /* the arguments are final: end_call compares them with what they are now */
int lacks(int last); /* whether a scalar other than the id is missing: the call does nothing then */
void lacked(int code);                    /* ... and this ends it */
void null_returned(int64_t id, int code); /* ... or this, of a cluster, without looking at them */

/* ---- fuzz_rows.c: what force calls read and write, and whether it is right ------------------ */

typedef double vector[3];
typedef long long words[G6X_PARTIAL_WORDS];

/* What a force call reads, and its copy; `capacity` rows end where their allocations end. */
extern struct inputs {
    int *index;
    vector *x, *v, *old;
    double *phi, *eps2, *h2;
} in;
extern struct copy {
    int index[MAX_NI];
    vector x[MAX_NI], v[MAX_NI];
    double eps2[MAX_NI], h2[MAX_NI];
} copy;
extern struct outputs {
    vector *acc, *jerk;
    double *pot;
    int *near;
    float *distance;
    int rows; /* there are this many, and the last may be none of the call's */
} out;

#define BEFORE 777.25 /* what outputs hold before a call */
enum { NEAR_BEFORE = -777 };

void make_inputs(int capacity);
void make_outputs(int ni);
int is_nan3(const double *d);
int is_bad(const double *d); /* NaN or Inf among three */
int is_tame(double a);       /* forces of such numbers are in range of both precisions */
int are_tame(long long n, const double *a); /* ... but for NaN and Inf; a may be NULL */
void check_nan(long long rows, int jerk);
/* Outputs that a call did not get are NaN, as those of a call that failed. */
void without(const void *acc, const void *jerk, const void *pot, size_t rows);
void check_numbers(const char *what, long long i, const double *found, const long double *right,
                   int n, long double error);
void check_untouched(int from);
void check_failed(int rows, int near, int distance);
/* The rows of a last half that found its first half; `plain`: acc and jerk are their own. The code
 * it must have, given its code. */
codes check_rows(struct cluster *c, int near, int distance, int plain);
/* A last half, or what is one: code and rows of `rows` it was asked for. */
void check_last(struct cluster *c, codes before, int code, int rows, int near, int distance,
                int plain);

extern struct started {
    int64_t id;
    int id32, nj, ni;
} started; /* the latest first half */
int is_bad_eps2(double e);
codes faults_of_first(const struct cluster *c, int nj, int ni, int bad_eps2);
