/* g5_value.c - the GRAPE-5 calls by value: those of g5_list.h. */
#include <stddef.h>

#include "g5lib.h"
#include "api/arguments.h"
#include "api/g5_calls.h"

#define CLUSTER GRAPE5_CLUSTER(devid)
#define DEVICE_ZERO const int devid = 0
#define MC(name) name##MC
#define MC0(name) name##MC0
#define IN(type, name) type name
#define VALUE(name) name
#define GIVEN(pointers, result) result
#define FORM(name, result, ...)                                                                    \
    int name(__VA_ARGS__) { return result; }

#include "api/g5_list.h"

int g6x_g5_last_error(int devid, char *buffer, int length)
{
    return session_registry_last_error(CLUSTER, buffer, length);
}
