/* config.c - see config.h. */
#include "core/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/options.h"

static struct process_options *process;
static struct options *initial;

/* Whose GRAPE-5 calls a program expects (docs/grape5.md). */
enum g5 { BOARD, PG5, SAPPORO };

/* Defined in programs that were linked by these names (grape6py/cli/link.py). */
extern const char grape6_linked_as_pg5 __attribute__((weak));
extern const char grape6_linked_as_sapporo __attribute__((weak));

/* One line for each client of docs/linking.md. */
static const struct client {
    const char *name;
    int npipes, neighbour_self, jerk;
    enum g5 g5;
} CLIENTS[] = {
    {"kira", 1024, 1, 1, BOARD},      {"phigrape", 16384, 0, 1, BOARD},   {"ph4", 48, 0, 1, BOARD},
    {"bhtree", 16384, 0, 0, BOARD},   {"nbody4", 48, 0, 1, BOARD},        {"fdps", 48, 0, 1, BOARD},
    {"phantom-grape", 48, 0, 1, PG5}, {"sapporo2", 16384, 0, 1, SAPPORO},
};

static int in_file; /* whether the value being read comes from the configuration file */

/* Of several problems the first one is reported. */
#define TELL(...)                                                                                  \
    (void)(process->problem[0] || snprintf(process->problem, sizeof process->problem, __VA_ARGS__))

static void problem(const char *name, const char *value, const char *requested)
{
    TELL("%s=%.60s: it must be %s%s", name, value, requested,
         in_file ? " (in the file of GRAPE6_CONFIG)" : "");
}

/* ---- values ------------------------------------------------------------------------- */

/* Position of a value in a list of words separated by spaces; the number of words if not found. */
static int word(const char *words, const char *value)
{
    int k = 0;
    for (const char *at = words; *at; k++) {
        const size_t n = strcspn(at, " ");
        if (strlen(value) == n && !strncmp(at, value, n)) return k;
        at += n + (at[n] == ' ');
    }
    return k;
}

static void take_word(const struct option *p, const char *value)
{
    char requested[80], *to = requested;
    const char *last = strrchr(p->words, ' ');
    const int k = word(p->words, value);
    if (k > options_highest(p)) {
        for (const char *c = p->words; *c; c++) /* writes "a b c" as "a, b or c" */
            to += sprintf(to, *c != ' ' ? "%c" : c == last ? " or%c" : ",%c", *c);
        problem(p->name, value, requested);
    } else if (p->shared) {
        *p->shared = k;
    } else {
        *p->number = k;
    }
}

static void take_number(const struct option *p, const char *value)
{
    char *end, requested[80];
    const long n = strtol(value, &end, 10);
    if (*value && !*end && n >= p->low && n <= p->high) {
        *p->number = (int)n;
        return;
    }
    (void)snprintf(requested, sizeof requested, "an integer from %d to %d", p->low, p->high);
    problem(p->name, value, requested);
}

/* Sets a text option; the value must begin with one of certain characters. */
static void take_text(const struct option *p, const char *value)
{
    const int path = *p->words == '/';
    if (strlen(value) < (size_t)p->high &&
        (strchr(p->words, *value) || (!path && !strcmp(value, "all"))))
        (void)snprintf(p->text, (size_t)p->high, "%s", value);
    else
        problem(p->name, value,
                path ? "the full path of a python or of an environment"
                     : "numbers of devices, as 0,2, or all");
}

/* A fraction from 0 to 1, read without the locale's decimal point. */
static void take_fraction(const struct option *p, const char *value)
{
    double number = 0.0, unit = 1.0;
    int point = 0, digits = 0;
    for (const char *c = value; *c; c++) {
        if (*c == '.' && !point) {
            point = 1;
        } else if (*c >= '0' && *c <= '9') {
            digits++;
            number = 10.0 * number + (*c - '0');
            if (point) unit *= 10.0;
        } else {
            digits = -1000;
        }
    }
    if (digits > 0 && digits < 16 && number <= unit)
        *p->real = number / unit;
    else
        problem(p->name, value, "a fraction from 0 to 1");
}

static void apply(const struct option *p, const char *value)
{
    switch (p->kind) {
    case OPTION_WORD: take_word(p, value); break;
    case OPTION_NUMBER: take_number(p, value); break;
    case OPTION_FRACTION: take_fraction(p, value); break;
    case OPTION_TEXT: take_text(p, value); break;
    default: break;
    }
}

static void expect_g5(enum g5 whose)
{
    process->g5_pot_positive = whose != SAPPORO;
    process->g5_source_by_address = whose != BOARD;
}

static void take_client(const char *value)
{
    for (size_t k = 0; k < sizeof CLIENTS / sizeof *CLIENTS; k++)
        if (!strcmp(CLIENTS[k].name, value)) {
            process->client = CLIENTS[k].name;
            process->npipes = CLIENTS[k].npipes;
            initial->neighbour_self = CLIENTS[k].neighbour_self;
            initial->jerk = CLIENTS[k].jerk;
            expect_g5(CLIENTS[k].g5);
            return;
        }
    problem("GRAPE6_CLIENT", value,
            "kira, phigrape, ph4, bhtree, nbody4, fdps, phantom-grape or sapporo2");
}

/* ---- the file ----------------------------------------------------------------------- */

enum { CONFIG_LINE = 512, MOST_CONFIG = 1 << 16 };

/* A value that TOML accepts without quotes: a number or a boolean. */
static int is_plain(const char *text)
{
    return !text[strspn(text, "-+.0123456789")] || !strcmp(text, "true") || !strcmp(text, "false");
}

/* Opens a small regular file; NULL for anything else, such as a device or an endless file. */
static FILE *open_config(const char *path)
{
    struct stat about;
    const int number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    FILE *file = NULL;
    if (number < 0) return NULL;
    if (!fstat(number, &about) && S_ISREG(about.st_mode) && about.st_size <= MOST_CONFIG)
        file = fdopen(number, "r");
    if (!file) (void)close(number);
    return file;
}

/* Reads `name = value` lines, the flat part of TOML: strings in quotes, integers,
 * fractions, true and false. Names are those of the environment, in either case, with or
 * without GRAPE6_. Calls `use` for each. Messages never show the content of the file, which may
 * belong to another user. */
static void read_config(const char *path, void (*use)(const char *name, const char *value))
{
    char line[CONFIG_LINE];
    int number = 0;
    FILE *file = open_config(path);
    if (!file) {
        problem("GRAPE6_CONFIG", path, "a regular file of at most 64 kB that can be read");
        return;
    }
    in_file = 1;
    while (number++, fgets(line, sizeof line, file)) {
        if (!strchr(line, '\n') && strlen(line) == sizeof line - 1) {
            TELL("GRAPE6_CONFIG, line %d: it must be of at most 510 characters", number);
            for (int c = 0; c != EOF && c != '\n';) c = getc(file);
            continue;
        }
        char name[CONFIG_LINE] = "GRAPE6_", text[CONFIG_LINE];
        int end = 0;
        char *at = line + strspn(line, " \t");
        if (*at == '#' || *at == '\n' || *at == '\r' || !*at) continue;
        const size_t n = strcspn(at, " \t=");
        const int prefixed = n > 7 && !strncasecmp(at, "GRAPE6_", 7);
        (void)snprintf(name + 7, sizeof name - 7, "%.*s", (int)n - (prefixed ? 7 : 0),
                       at + (prefixed ? 7 : 0));
        for (char *c = name; *c; c++)
            if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
        at += n;
        if (sscanf(at, " = \"%511[^\"]\" %n", text, &end) == 1 && end &&
            (!at[end] || at[end] == '#')) {
            use(name, text);
        } else if (end = 0, sscanf(at, " = %511[-+.0-9a-z] %n", text, &end) == 1 && end &&
                                (!at[end] || at[end] == '#') && is_plain(text)) {
            use(name, !strcmp(text, "true") ? "1" : !strcmp(text, "false") ? "0" : text);
        } else {
            TELL("GRAPE6_CONFIG, line %d: it must be of the form name = value", number);
        }
    }
    in_file = 0;
    if (ferror(file)) problem("GRAPE6_CONFIG", path, "a file that can be read");
    (void)fclose(file);
}

static void use_client(const char *name, const char *value)
{
    if (!strcmp(name, "GRAPE6_CLIENT")) take_client(value);
}

static void use_other(const char *name, const char *value)
{
    if (!strcmp(name, "GRAPE6_CLIENT")) return;
    for (const struct option *p = options_table; p->name; p++)
        if (p->kind != OPTION_SOURCE && !strcmp(p->name, name)) {
            apply(p, value);
            return;
        }
    TELL("%.60s, in the file of GRAPE6_CONFIG: it must be a name of docs/environment.md", name + 7);
}

/* ---- variables GRAPE6_* that the library does not know --------------------------- */

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

/* Prints a warning for each variable GRAPE6_* that is set and is not an option, a test hook or a
 * makefile variable. */
static void check_environment(void)
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

void config_read(struct process_options *of_process, struct options *of_sessions)
{
    const char *config = options_variable("GRAPE6_CONFIG"),
               *client = options_variable("GRAPE6_CLIENT");
    process = of_process;
    initial = of_sessions;
    if (&grape6_linked_as_pg5) expect_g5(PG5);
    if (&grape6_linked_as_sapporo) expect_g5(SAPPORO);
    if (config && *config) read_config(config, use_client);
    if (client && *client) take_client(client);
    if (config && *config) read_config(config, use_other);
    for (const struct option *p = options_table; p->name; p++) {
        const char *value = options_variable(p->name);
        if (value && *value) apply(p, value);
    }
    if (process->log > LOG_NONE && !options_is_privileged()) check_environment();
}
