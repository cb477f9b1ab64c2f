/* find_python.h - finds the Python to embed, by looking at files alone. */
#pragma once

enum { PLACE = 1024, VERSION = 8, REASON = 256 };

/* All are full paths of what was seen to be there. */
struct interpreter {
    char version[VERSION];  /* 3.11 */
    char package[PLACE];    /* folder grape6py that this library lies in */
    char bridge[PLACE];     /* its extension _bridge */
    char executable[PLACE]; /* python of the environment */
    char libpython[PLACE];
    char reason[REASON]; /* what is missing, and what to do */
};

/* The Python to start; 0, or G6X_E_PYTHON or G6X_E_RUNTIME with the reason. It is that of, in
 * this order, `wish` (a python or an environment's folder, if not empty); the environment that
 * the library is installed in; the file `interpreter` beside the library. `loaded`: version of
 * a libpython that the process has already and that is therefore taken, or NULL. With
 * `cuda`, the version that the driver is good for, CuPy has to be there, too. */
int python_find_python(struct interpreter *found, const char *wish, const char *loaded, int cuda);
/* Only the bridge, for a Python of this version that runs in this process already. */
int python_find_python_bridge(struct interpreter *found, const char *version);

/* python/site_packages.c: is a package in the folders that this Python imports from? `base` is
 * where its standard library lies, `prefix` the environment. */
int python_site_packages_have(const char *prefix, const char *base, const char *version,
                              const char *beside, const char *file);
/* Whether this path, put together as printf does it, is there. */
int python_site_packages_exists(char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Value of a line `name = value` of a file, of PLACE characters at most. */
int python_site_packages_setting(const char *file, const char *name, char *value);
/* Takes the last n parts off a path. */
void python_site_packages_up(char *path, int n);
