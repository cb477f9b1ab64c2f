/* error.c - see error.h. */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/options.h"

void error_print(const char *text)
{
    char line[ERROR_LINE];
    int n = snprintf(line, sizeof line - 1, "grape6: %s", text);
    if (n < 0) return;
    if (n > ERROR_LINE - 2) n = ERROR_LINE - 2;
    for (int k = 0; k < n; k++)
        if ((unsigned char)line[k] < ' ' || line[k] == 127) line[k] = ' '; /* one line, not two */
    line[n++] = '\n';
    for (int done = 0; done < n;) {
        const ssize_t k = write(STDERR_FILENO, line + done, (size_t)(n - done));
        if (k == 0 || (k < 0 && errno != EINTR)) return;
        if (k > 0) done += (int)k;
    }
}

int error_set(struct error *err, int code, const char *format, ...)
{
    static _Atomic uint64_t printed;
    const uint64_t kind = (uint64_t)1 << (-code & 63);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    err->code = code;
    err->printed = 0;
    if (err->quiet) return code;
    const int fatal = options_process()->on_error == ON_ERROR_ABORT;
    if (options_process()->log > LOG_NONE && !(atomic_fetch_or(&printed, kind) & kind)) {
        error_print(err->text);
        err->printed = 1;
    }
    if (fatal) abort();
    return code;
}

void error_warn(struct error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(err->warning, sizeof err->warning, format, arguments);
    va_end(arguments);
    err->warnings++;
}

void error_info(const char *format, ...)
{
    char text[ERROR_LINE];
    va_list arguments;
    if (options_process()->log < LOG_INFO) return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_print(text);
}

int error_is_news(struct error_last *last, const char *text)
{
    if (atomic_flag_test_and_set(&last->busy)) return 1;
    const int news = strcmp(last->text, text) != 0;
    (void)snprintf(last->text, sizeof last->text, "%s", text);
    atomic_flag_clear(&last->busy);
    return news;
}

void error_copy(const char *text, char *buffer, int length)
{
    if (!buffer || length <= 0) return;
    const size_t n = strlen(text) < (size_t)length - 1 ? strlen(text) : (size_t)length - 1;
    memcpy(buffer, text, n);
    buffer[n] = 0;
}
