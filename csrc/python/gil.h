/* gil.h - the Python that the process has already, whoever brought it. */
#pragma once

/* Version of the libpython in the process, as 3.11, in a buffer of VERSION characters; NULL if
 * there is none. */
const char *python_gil_version(char *version);
/* Whether it has been started, and not ended. */
int python_gil_python_runs(void);
/* Gives up the interpreter's lock if this thread has it, which python_gil_acquire takes again. */
void *python_gil_release(void);
void python_gil_acquire(void *state);
