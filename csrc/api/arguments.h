/* arguments.h - shared by the files of exported functions. */
#pragma once

#include "session/registry.h"
#include "shared/host_device.h"

typedef double double3[3];
/* Marks ignored arguments: only the hardware used them. */
#define UNUSED __attribute__((unused))

/* Defines name_ and lets name__ be the same function. */
#define FORTRAN(name, ...)                                                                         \
    int name##_(__VA_ARGS__);                                                                      \
    int name##__(__VA_ARGS__) __attribute__((alias(#name "_")));                                   \
    int name##_(__VA_ARGS__)

static inline void leave_session(struct session *const *s)
{
    if (*s) session_registry_release(*s);
}
/* `s` is the session of an id, locked to the end of the block; or NULL, its error in `code`. */
#define SESSION_HERE(s, id, code)                                                                  \
    int code = 0;                                                                                  \
    __attribute__((cleanup(leave_session))) struct session *const s =                              \
        session_registry_take(id, &code)

/* The error of a Fortran call with a null pointer for a scalar. */
static inline int missing(void)
{
    return session_registry_refuse(G6X_E_NULL, "a scalar argument is a null pointer");
}

static inline int open_by_environment(int64_t id)
{
    return session_registry_open(id, SESSION_ENVIRONMENT, SESSION_DEVICE_BY_ID);
}

/* The calls that name their devices, which are not asked for. */
static inline int open_special(int64_t id, int n, const int *list, const char *call)
{
    if (n > 0 && !list) return session_registry_refuse(G6X_E_NULL, "%s: null pointer", call);
    return open_by_environment(id);
}
