/* gil.h - the Python already in the process, whether the host or this library has loaded it. */
#pragma once

/* Version of the libpython in the process, as 3.11, in a buffer of VERSION characters; or NULL. */
const char *python_gil_version(char *version);
/* Whether it has been started, and not ended. */
int python_gil_python_runs(void);
/* Releases the interpreter's lock (GIL) if this thread holds it. */
void *python_gil_release(void);
/* Acquires it again; `state` is the result of python_gil_release. */
void python_gil_acquire(void *state);
