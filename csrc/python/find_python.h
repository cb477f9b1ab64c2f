/* find_python.h - finds the Python to embed, by looking only at files. */
#pragma once

enum { PLACE = 1024, VERSION = 8, REASON = 256 };

/* Full paths of existing files and folders, except version and reason. */
struct interpreter {
    char version[VERSION];  /* 3.11 */
    char package[PLACE];    /* folder grape6py that contains this library */
    char bridge[PLACE];     /* its extension _bridge */
    char executable[PLACE]; /* python of the environment */
    char libpython[PLACE];
    char reason[REASON]; /* what is missing, and what to do */
};

/* Finds the Python to start: 0, or G6X_E_PYTHON or G6X_E_RUNTIME with the reason. It takes the
 * first of: `requested` (a python or an environment's folder, if not empty); the environment that
 * the library is installed in; the file `interpreter` next to the library. `loaded`: version of a
 * libpython already in the process, which must then be used, or NULL. `cuda`: the version that the
 * driver supports; if not 0, CuPy is required, too. */
int python_find_python(struct interpreter *found, const char *requested, const char *loaded,
                       int cuda);
/* Finds only the bridge, for a Python of this version that already runs in this process. */
int python_find_python_bridge(struct interpreter *found, const char *version);
/* Removes the last n components of a path. */
void python_find_python_up(char *path, int n);
