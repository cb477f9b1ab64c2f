/* site_packages.c - paths, and the folders that a Python imports packages from; see
 * python/find_python.h. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "python/find_python.h"

int python_site_packages_exists(char *path, const char *format, ...)
{
    struct stat status;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(path, PLACE, format, arguments);
    va_end(arguments);
    return n > 0 && n < PLACE && stat(path, &status) == 0;
}

void python_site_packages_up(char *path, int n)
{
    for (; n; n--) {
        char *slash = strrchr(path, '/');
        *(slash ? slash : path) = 0;
    }
}

int python_site_packages_setting(const char *file, const char *name, char *value)
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
    if (file[n - 1] != '-') return python_site_packages_exists(path, "%s/%s", folder, file);
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
    if (!python_site_packages_exists(path, "%s/%s", folder, name)) return 0;
    FILE *stream = fopen(path, "re");
    while (stream && !has && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!*line || *line == '#' || !strncmp(line, "import", 6)) continue;
        has = *line == '/' ? folder_has(line, file)
                           : python_site_packages_exists(path, "%s/%s", folder, line) &&
                                 folder_has(path, file);
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
        if (python_site_packages_exists(folder, "%s/%s/python%s/site-packages", prefix, forms[k],
                                        version) &&
            site_has(folder, file))
            return 1;
    return 0;
}

int python_site_packages_have(const char *prefix, const char *base, const char *version,
                              const char *beside, const char *file)
{
    char path[PLACE], value[PLACE];
    const char *name = strrchr(beside, '/');
    if (prefix_has(prefix, version, file)) return 1;
    if (name && (!strcmp(name, "/site-packages") || !strcmp(name, "/dist-packages")) &&
        site_has(beside, file))
        return 1;
    if (python_site_packages_exists(path, "%s/pyvenv.cfg", prefix) &&
        (!python_site_packages_setting(path, "include-system-site-packages", value) ||
         strcmp(value, "true")))
        return 0;
    /* the base's own packages; the last two are Debian's */
    return prefix_has(base, version, file) ||
           (python_site_packages_exists(path, "%s/local/lib/python%s/dist-packages", base,
                                        version) &&
            site_has(path, file)) ||
           (python_site_packages_exists(path, "%s/lib/python3/dist-packages", base) &&
            site_has(path, file));
}
