/* error.h - errors: their text, their line on stderr, and the only call of abort. */
#pragma once

#include <stdatomic.h>

#include "g6lib.h"

enum { ERROR_TEXT = 256, ERROR_LINE = 1024 };

/* The last error and warning of a session, or of the process. */
struct error {
    int code;
    int warnings;
    int quiet;   /* only record errors: do not print, do not end the process */
    int printed; /* the text of the last error was printed on stderr */
    char text[ERROR_TEXT];
    char warning[ERROR_TEXT];
};

/* Records an error and returns its code. The first error of each kind in the process prints one
 * line, unless the log is off. With GRAPE6_ON_ERROR=abort it ends the process. */
int error_set(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Records a warning. Nothing is printed. */
void error_warn(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line on stderr at any log level. One write of at most ERROR_LINE bytes, so that lines of
 * different threads and MPI ranks do not mix. */
void error_print(const char *text);
/* Prints a line on stderr at log level 2 (info) or above. */
void error_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The text of the last call of error_is_news. */
struct error_last {
    atomic_flag busy;
    char text[ERROR_LINE];
};
/* Whether a text differs from the last one. Also 1 while another thread is in this call. */
int error_is_news(struct error_last *last, const char *text);
/* Copies a text to a caller's buffer of `length` bytes; always terminates it. */
void error_copy(const char *text, char *buffer, int length);
