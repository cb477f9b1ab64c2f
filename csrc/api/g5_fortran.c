/* g5_fortran.c - the GRAPE-5 calls of g5_list.h for Fortran: every argument by pointer, lower-case
 * names with one underscore or two. */
#include <stddef.h>

#include "api/arguments.h"
#include "api/g5_calls.h"

static int zero;

/* A null pointer becomes an id that no session has. */
#define CLUSTER (devid ? GRAPE5_CLUSTER(*devid) : SESSION_NONE)
#define DEVICE_ZERO int *devid = &zero
#define MC(name) name##mc
#define MC0(name) name##mc0
#define IN(type, name) type *name
#define VALUE(name) *name
#define GIVEN(pointers, result) (pointers) ? (result) : missing()
#define FORM(name, result, ...)                                                                    \
    FORTRAN(name, __VA_ARGS__) { return result; }

#include "api/g5_list.h"
