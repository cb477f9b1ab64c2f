/* gil.c - see gil.h. The library does not link to Python: it looks up symbols when needed. */
#include "python/gil.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "python/find_python.h"

static void *symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }

const char *python_gil_version(char *version)
{
    const char *(*get)(void);
    unsigned major, minor;
    *(void **)&get = symbol("Py_GetVersion");
    if (!get || sscanf(get(), "%1u.%3u", &major, &minor) != 2) return NULL;
    (void)snprintf(version, VERSION, "%u.%u", major % 10, minor % 1000);
    return version;
}

int python_gil_python_runs(void)
{
    int (*is_initialized)(void);
    *(void **)&is_initialized = symbol("Py_IsInitialized");
    return is_initialized && is_initialized();
}

/* The same test as PyGILState_Check, which is wrong if there are subinterpreters. */
void *python_gil_release(void)
{
    void *(*mine)(void), *(*current)(void), *(*release)(void);
    *(void **)&mine = symbol("PyGILState_GetThisThreadState");
    *(void **)&current = symbol("PyThreadState_GetUnchecked");
    if (!current) *(void **)&current = symbol("_PyThreadState_UncheckedGet"); /* before 3.13 */
    *(void **)&release = symbol("PyEval_SaveThread");
    return mine && current && release && mine() && mine() == current() ? release() : NULL;
}

void python_gil_acquire(void *state)
{
    void (*take)(void *);
    *(void **)&take = symbol("PyEval_RestoreThread");
    if (state && take) take(state);
}
