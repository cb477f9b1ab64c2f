/* error.h - errors: their text, their one line on stderr, and the only abort. */
#pragma once

#include <stdatomic.h>

#include "g6lib.h"

enum { ERROR_TEXT = 256, ERROR_LINE = 1024 };

/* The last error and warning of a session, or of the process. */
struct error {
    int code;
    int warnings;
    int quiet;   /* recorded only: nothing is printed, nor the process ended */
    int printed; /* the text of the last error stands on stderr */
    char text[ERROR_TEXT];
    char warning[ERROR_TEXT];
};

/* Records an error and returns its code. The first of each kind in the process prints one
 * line, unless the log is off; with GRAPE6_ON_ERROR=abort it ends the process. */
int error_set(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Records a warning. Nothing is printed. */
void error_warn(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line on stderr, whatever the log level is: one write of at most ERROR_LINE bytes, so
 * that lines of threads and of ranks do not mix. */
void error_print(const char *text);
/* Prints a line on stderr at log level 2 (info) or above. */
void error_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether a text is not that of the last such call; also 1 while another thread is at it. */
struct error_last {
    atomic_flag busy;
    char text[ERROR_LINE];
};
int error_is_news(struct error_last *last, const char *text);
/* Copies a text to a caller's buffer of length bytes, always ending it. */
void error_copy(const char *text, char *buffer, int length);
