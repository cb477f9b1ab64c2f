/* gil.h - the Python that the process has already, whoever brought it. */
#ifndef GRAPE6_PYTHON_GIL_H
#define GRAPE6_PYTHON_GIL_H

/* Version of the libpython in the process, as 3.11, in a buffer of VERSION characters; NULL if
 * there is none. */
const char *hosted_version(char *version);
/* Whether it has been started, and not ended. */
int hosted_runs(void);
/* Gives up the interpreter's lock if this thread has it, which hosted_take takes again. */
void *hosted_release(void);
void hosted_take(void *state);

#endif
