/* Put before the library (LD_PRELOAD): a board with intermittent hardware errors.
 *
 * FAULTY_CALLS: "every" that many calls of g6calc_lasthalf2_ one fails, in turn by a positive
 * potential, a negative neighbour and a status; 1: each one fails. Every seventh call of
 * g6_read_neighbour_list_ says that the lists did not fit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef double vec[3];
typedef int lasthalf2(int *, int *, int *, int *, vec *, vec *, double *, double *, vec *, vec *,
                      double *, int *);
typedef int read_list(int *);

static void *library_call(const char *name, void *call, size_t size)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return memcpy(call, &found, size);
}

int g6calc_lasthalf2_(int *id, int *nj, int *ni, int *index, vec *x, vec *v, double *eps2,
                      double *h2, vec *acc, vec *jerk, double *pot, int *inn)
{
    static long calls, faults;
    const char *every = getenv("FAULTY_CALLS");
    lasthalf2 *call;
    int status;

    library_call("g6calc_lasthalf2_", &call, sizeof call);
    status = call(id, nj, ni, index, x, v, eps2, h2, acc, jerk, pot, inn);
    if (every == NULL || ++calls % atol(every) != 0) return status;
    switch (faults++ % 3) {
    case 0: pot[*ni - 1] = 1.0; break;
    case 1: inn[0] = -1; break;
    default: status = -1;
    }
    return status;
}

int g6_read_neighbour_list_(int *id)
{
    static long calls;
    read_list *call;

    library_call("g6_read_neighbour_list_", &call, sizeof call);
    return call(id) != 0 || ++calls % 7 == 0;
}
