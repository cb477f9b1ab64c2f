/* find_python.c - see find_python.h. It starts nothing, and looks for no library by its bare name:
 * LD_LIBRARY_PATH, PATH and PYTHONHOME must have no effect. */
#include "python/find_python.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"

#define ADVICE "set GRAPE6_PYTHON to the python that has grape6py, or run: grape6 config --python"

static __attribute__((format(printf, 3, 4))) int refuse(struct interpreter *found, int code,
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(found->reason, sizeof found->reason, format, arguments);
    va_end(arguments);
    return code;
}

/* ---- paths, and the folders that a Python imports packages from ---------------------------- */

/* Builds a path as printf does; whether it exists. */
static __attribute__((format(printf, 2, 3))) int exists(char *path, const char *format, ...)
{
    struct stat status;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(path, PLACE, format, arguments);
    va_end(arguments);
    return n > 0 && n < PLACE && stat(path, &status) == 0;
}

void python_find_python_up(char *path, int n)
{
    for (; n; n--) {
        char *slash = strrchr(path, '/');
        *(slash ? slash : path) = 0;
    }
}

/* Value of a line `name = value` of a file, of PLACE characters at most. */
static int setting(const char *file, const char *name, char *value)
{
    char line[PLACE];
    int got = 0;
    FILE *stream = fopen(file, "re");
    while (stream && !got && fgets(line, sizeof line, stream)) {
        const size_t n = strlen(name), blank = strspn(line, " \t");
        char *at = line + blank;
        if (strncmp(at, name, n)) continue;
        at += n + strspn(at + n, " \t");
        if (*at != '=') continue;
        at += 1 + strspn(at + 1, " \t");
        size_t length = strcspn(at, "\r\n");
        while (length && (at[length - 1] == ' ' || at[length - 1] == '\t')) length--;
        (void)snprintf(value, PLACE, "%.*s", (int)length, at);
        got = length > 0;
    }
    if (stream) (void)fclose(stream);
    return got;
}

/* Whether a folder has a file of this name. A name that ends in a dash is a prefix: that of an
 * extension, before the platform. */
static int folder_has(const char *folder, const char *file)
{
    char path[PLACE];
    const size_t n = strlen(file);
    if (file[n - 1] != '-') return exists(path, "%s/%s", folder, file);
    DIR *entries = opendir(folder);
    int has = 0;
    for (struct dirent *entry; entries && !has && (entry = readdir(entries));)
        has = !strncmp(entry->d_name, file, n);
    if (entries) (void)closedir(entries);
    return has;
}

/* Whether a folder that a .pth file adds, one per line, has a file. Lines of code are ignored. */
static int path_file_has(const char *folder, const char *name, const char *file)
{
    char path[PLACE], line[PLACE];
    int has = 0;
    if (!exists(path, "%s/%s", folder, name)) return 0;
    FILE *stream = fopen(path, "re");
    while (stream && !has && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!*line || *line == '#' || !strncmp(line, "import", 6)) continue;
        has = *line == '/' ? folder_has(line, file)
                           : exists(path, "%s/%s", folder, line) && folder_has(path, file);
    }
    if (stream) (void)fclose(stream);
    return has;
}

static int site_has(const char *folder, const char *file)
{
    if (folder_has(folder, file)) return 1;
    DIR *entries = opendir(folder);
    int has = 0;
    for (struct dirent *entry; entries && !has && (entry = readdir(entries));) {
        const size_t n = strlen(entry->d_name);
        if (n > 4 && !strcmp(entry->d_name + n - 4, ".pth"))
            has = path_file_has(folder, entry->d_name, file);
    }
    if (entries) (void)closedir(entries);
    return has;
}

static int prefix_has(const char *prefix, const char *version, const char *file)
{
    static const char *const forms[] = {"lib", "lib64"};
    char folder[PLACE];
    for (int k = 0; k < 2; k++)
        if (exists(folder, "%s/%s/python%s/site-packages", prefix, forms[k], version) &&
            site_has(folder, file))
            return 1;
    return 0;
}

/* Is `file` in a folder that this Python imports from? `base` is the installation with its standard
 * library, `prefix` the environment. */
static int packages_have(const char *prefix, const char *base, const char *version,
                         const char *beside, const char *file)
{
    char path[PLACE], value[PLACE];
    const char *name = strrchr(beside, '/');
    if (prefix_has(prefix, version, file)) return 1;
    if (name && (!strcmp(name, "/site-packages") || !strcmp(name, "/dist-packages")) &&
        site_has(beside, file))
        return 1;
    if (exists(path, "%s/pyvenv.cfg", prefix) &&
        (!setting(path, "include-system-site-packages", value) || strcmp(value, "true")))
        return 0;
    /* the base's own packages; the last two are Debian's */
    return prefix_has(base, version, file) ||
           (exists(path, "%s/local/lib/python%s/dist-packages", base, version) &&
            site_has(path, file)) ||
           (exists(path, "%s/lib/python3/dist-packages", base) && site_has(path, file));
}

/* ---- the package, its bridge, and the Python ------------------------------------------------ */

/* Finds the package that contains the library: by the path that it was loaded from or, if that is a
 * link from elsewhere, by its real path. */
static int find_package(struct interpreter *found)
{
    char path[PLACE], *real;
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)python_find_python, &info) || !info.dli_fname) return 0;
    error_copy(info.dli_fname, found->package, PLACE);
    python_find_python_up(found->package, 2);
    if (info.dli_fname[0] == '/' && exists(path, "%s/cuda/bridge.py", found->package)) return 1;
    real = realpath(info.dli_fname, NULL);
    error_copy(real ? real : "", found->package, PLACE);
    free(real);
    python_find_python_up(found->package, 2);
    return exists(path, "%s/cuda/bridge.py", found->package);
}

/* Finds the bridge for found->version, or for any version if that is empty. It is in the file's
 * name, as _bridge.cpython-311-x86_64-linux-gnu.so; other builds of Python (debug, free-threaded)
 * have a letter after the digits. */
static int find_bridge(struct interpreter *found)
{
    char version[VERSION], other[VERSION] = "", end;
    unsigned minor;
    DIR *folder;
    if (!find_package(found))
        return refuse(found, G6X_E_PYTHON,
                      "libgrape6.so is not inside its Python package, which a GPU needs: link the "
                      "one that `grape6 config --libs` names");
    folder = opendir(found->package);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (sscanf(entry->d_name, "_bridge.cpython-3%3u%c", &minor, &end) == 2 && end == '-') {
            (void)snprintf(version, VERSION, "3.%u", minor % 1000);
            error_copy(version, other, VERSION);
            if (found->version[0] && strcmp(version, found->version)) continue;
            if (!exists(found->bridge, "%s/%s", found->package, entry->d_name)) continue;
            error_copy(version, found->version, VERSION);
            (void)closedir(folder);
            return 0;
        }
    if (folder) (void)closedir(folder);
    if (!other[0])
        return refuse(found, G6X_E_PYTHON,
                      "this grape6py was built without the bridge to Python: install cffi and "
                      "Python.h (python3-dev), and build it again");
    return refuse(found, G6X_E_PYTHON,
                  "grape6py was installed for Python %s, but the Python here is %s: install it "
                  "for that one",
                  other, found->version);
}

int python_find_python_bridge(struct interpreter *found, const char *version)
{
    memset(found, 0, sizeof *found);
    error_copy(version, found->version, VERSION);
    return find_bridge(found);
}

static int find_executable(struct interpreter *found, const char *prefix, const char *version)
{
    return (version[0] && exists(found->executable, "%s/bin/python%s", prefix, version)) ||
           exists(found->executable, "%s/bin/python3", prefix) ||
           exists(found->executable, "%s/bin/python", prefix);
}

/* In .../lib/python3.11/site-packages/grape6py the environment is four levels up, and the path has
 * the version. Debian's pip installs for /usr/bin/python3 below /usr/local. */
static int find_own_environment(struct interpreter *found)
{
    char site[PLACE], prefix[PLACE], version[VERSION] = "";
    const char *name;
    error_copy(found->package, site, PLACE);
    python_find_python_up(site, 1);
    name = strrchr(site, '/');
    if (!name || (strcmp(name, "/site-packages") && strcmp(name, "/dist-packages"))) return 0;
    python_find_python_up(site, 1);
    name = strrchr(site, '/');
    if (!name || strncmp(name, "/python3", 8)) return 0;
    error_copy(name + strlen("/python"), version, VERSION);
    error_copy(site, prefix, PLACE);
    python_find_python_up(prefix, 2);
    if (find_executable(found, prefix, version)) return 1;
    return !strcmp(prefix, "/usr/local") && find_executable(found, "/usr", version);
}

/* Chooses the python executable; nothing else is known of it yet. */
static int choose(struct interpreter *found, const char *requested)
{
    char file[PLACE], path[PLACE];
    if (*requested) {
        const char *name = strrchr(requested, '/');
        if (*requested == '/' &&
            (find_executable(found, requested, "") ||
             (!strncmp(name, "/python", 7) && !exists(path, "%s/.", requested) &&
              exists(found->executable, "%s", requested))))
            return 0;
        return refuse(found, G6X_E_PYTHON,
                      "GRAPE6_PYTHON=%.120s: it must be the full path of a python, or of the "
                      "folder of an environment",
                      requested);
    }
    if (find_own_environment(found)) return 0;
    if (!exists(file, "%s/lib/interpreter", found->package))
        return refuse(found, G6X_E_PYTHON,
                      "no Python for the GPU side is known to this library; " ADVICE);
    if (!setting(file, "executable", path) || !exists(found->executable, "%s", path))
        return refuse(found, G6X_E_PYTHON,
                      "the Python that lib/interpreter of grape6py names is not there; " ADVICE);
    if (setting(file, "libpython", path) && exists(found->libpython, "%s", path)) return 0;
    found->libpython[0] = 0;
    return 0;
}

/* Finds the environment of the executable, the installation that it comes from, and its version as
 * far as names and pyvenv.cfg tell. */
static void survey(const char *executable, char *prefix, char *base, char *version)
{
    char file[PLACE], value[PLACE], *real;
    error_copy(executable, prefix, PLACE);
    python_find_python_up(prefix, 2);
    real = realpath(executable, NULL);
    error_copy(real ? real : executable, base, PLACE);
    free(real);
    const char *name = strrchr(base, '/');
    if (name && !strncmp(name, "/python3.", 9) && strlen(name + 7) < VERSION)
        error_copy(name + 7, version, VERSION);
    python_find_python_up(base, 2);
    if (!exists(file, "%s/pyvenv.cfg", prefix)) {
        error_copy(base, prefix, PLACE);
        return;
    }
    if (setting(file, "home", value)) {
        error_copy(value, base, PLACE);
        python_find_python_up(base, 1);
    }
    unsigned major, minor;
    if ((setting(file, "version", value) || setting(file, "version_info", value)) &&
        sscanf(value, "%1u.%3u", &major, &minor) == 2)
        (void)snprintf(version, VERSION, "%u.%u", major % 10, minor % 1000);
}

static int find_libpython(struct interpreter *found, const char *base)
{
#if defined(__aarch64__)
    static const char triplet[] = "aarch64-linux-gnu";
#else
    static const char triplet[] = "x86_64-linux-gnu";
#endif
    char *to = found->libpython;
    const char *v = found->version;
    return *to || exists(to, "%s/lib/libpython%s.so.1.0", base, v) ||
           exists(to, "%s/lib64/libpython%s.so.1.0", base, v) ||
           exists(to, "%s/lib/%s/libpython%s.so.1.0", base, triplet, v);
}

int python_find_python(struct interpreter *found, const char *requested, const char *loaded,
                       int cuda)
{
    char prefix[PLACE], base[PLACE], beside[PLACE], path[PLACE];
    int code;
    memset(found, 0, sizeof *found);
    if ((code = find_bridge(found)) || (code = choose(found, requested))) return code;
    found->version[0] = 0;
    survey(found->executable, prefix, base, found->version);
    if ((code = find_bridge(found))) return code;
    const char *v = found->version;
    if (!exists(path, "%s/lib/python%s/encodings/__init__.py", base, v) &&
        !exists(path, "%s/lib64/python%s/encodings/__init__.py", base, v))
        return refuse(found, G6X_E_PYTHON, "the standard library of %.100s is not there; " ADVICE,
                      found->executable);
    if (loaded ? strcmp(loaded, v) != 0 : !find_libpython(found, base))
        return loaded
                   ? refuse(found, G6X_E_PYTHON,
                            "this program has loaded Python %s, but grape6py is for %s", loaded, v)
                   : refuse(found, G6X_E_PYTHON,
                            "Python was built without a shared library (there is no "
                            "libpython%s.so.1.0; Debian: apt-get install libpython%s): %.90s",
                            v, v, base);
    /* Packages next to grape6py are found, too, if that is a site-packages folder. */
    error_copy(found->package, beside, PLACE);
    python_find_python_up(beside, 1);
    (void)snprintf(path, PLACE, "_cffi_backend.cpython-3%s-", v + 2);
    const char *missing = !packages_have(prefix, base, v, beside, "numpy/__init__.py") ? "numpy"
                          : !packages_have(prefix, base, v, beside, path)              ? "cffi"
                          : cuda && !packages_have(prefix, base, v, beside, "cupy/__init__.py")
                              ? "cupy"
                              : NULL;
    if (!missing) return 0;
    return refuse(found, strcmp(missing, "cupy") ? G6X_E_PYTHON : G6X_E_RUNTIME,
                  "the Python package %s is missing: pip install 'grape6py[cuda%d]' into %.150s",
                  missing, cuda && cuda < 13 ? 12 : 13, prefix);
}
