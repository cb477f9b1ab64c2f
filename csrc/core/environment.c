/* environment.c - see environment.h. */
#include "core/environment.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/options.h"

enum { PREFIX = sizeof "GRAPE6_" - 1, MOST_KEY = 32, MOST_SHOWN = 60 };

extern char **environ;

/* Variables that the library does not read: test hooks, and names that makefiles and CMake use for
 * its flags and folder, as legacy_examples/Makefile does. The shell may export them. */
static int is_foreign(const char *key, size_t length)
{
    static const char *const FOREIGN[] = {"CFLAGS", "FFLAGS", "FSOURCE", "LDFLAGS",
                                          "LIBS",   "DIR",    "ROOT"};
    if (!strncmp(key, "TEST_", 5)) return 1;
    for (size_t k = 0; k < sizeof FOREIGN / sizeof *FOREIGN; k++)
        if (strlen(FOREIGN[k]) == length && !strncmp(FOREIGN[k], key, length)) return 1;
    return 0;
}

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

static int least(int a, int b) { return a < b ? a : b; }

/* Levenshtein distance of two texts, ignoring case: letters to insert, delete or replace. b has at
 * most MOST_KEY letters. */
static int distance(const char *a, size_t length, const char *b)
{
    const int m = (int)strlen(b);
    int row[MOST_KEY + 1];
    for (int k = 0; k <= m; k++) row[k] = k;
    for (size_t i = 0; i < length; i++) {
        int diagonal = row[0]++;
        for (int k = 1; k <= m; k++) {
            const int other = diagonal + (lower(a[i]) != lower(b[k - 1]));
            diagonal = row[k];
            row[k] = least(other, 1 + least(row[k], row[k - 1]));
        }
    }
    return row[m];
}

/* The option that was probably meant; NULL if none is close. Close: at most one letter in four
 * differs, plus one. */
static const char *nearest(const char *key, size_t length)
{
    const char *found = NULL;
    int best = 0;
    for (const struct option *p = options_table; p->name && length < MOST_KEY; p++) {
        const char *other = p->name + PREFIX;
        const int d = strlen(other) > MOST_KEY ? MOST_KEY : distance(key, length, other);
        if (d > 1 + (int)strlen(other) / 4 || (found && d >= best)) continue;
        found = p->name;
        best = d;
    }
    return found;
}

static int is_option(const char *name, size_t length)
{
    for (const struct option *p = options_table; p->name; p++)
        if (strlen(p->name) == length && !strncmp(p->name, name, length)) return 1;
    return 0;
}

void environment_check(void)
{
    char text[ERROR_TEXT];
    for (char **at = environ; at && *at; at++) {
        const size_t length = strcspn(*at, "=");
        if (strncmp(*at, "GRAPE6_", PREFIX) != 0 || !(*at)[length] || !(*at)[length + 1]) continue;
        if (is_option(*at, length) || is_foreign(*at + PREFIX, length - PREFIX)) continue;
        const char *meant = nearest(*at + PREFIX, length - PREFIX);
        (void)snprintf(text, sizeof text, "warning: %.*s%s is no variable of this library%s%s%s",
                       (int)(length < MOST_SHOWN ? length : MOST_SHOWN), *at,
                       length < MOST_SHOWN ? "" : "...", meant ? "; " : "", meant ? meant : "",
                       meant ? " is" : "");
        error_print(text);
    }
}
