/* report.c - see session.h. */
#include "session/session.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simd/dispatch.h"

void session_report_start(const struct session *s)
{
    static const char *const MODES[] = {"grape", "double", "single", "auto"};
    /* kira opens its cluster again every few hundred blocks: only a new line is printed */
    static struct error_last last = {.busy = ATOMIC_FLAG_INIT};
    const struct process_options *process = options_process();
    const struct options *o = &s->options;
    char about[ERROR_TEXT], name[SESSION_NAME], text[ERROR_LINE];
    Dl_info library; /* several may be installed */
    if (process->log < LOG_INFO) return;
    const int known = dladdr((void *)(uintptr_t)session_report_start, &library);
    s->backend->describe(s->state, o, about, sizeof about);
    const int word = (int)strcspn(about, " "); /* the backend; then the GPU's name */
    const int on_gpu = !strncmp(about, "cuda", 4) && about[word];
    (void)snprintf(text, sizeof text,
                   "%s: backend %.*s, device %s, mode %s, instruction set %s, %d threads, "
                   "%d pipes%s%s, library %s",
                   session_name(s->id, name), word, about, on_gpu ? about + word + 1 : "CPU",
                   MODES[s->backend->capabilities & CAN_APPROXIMATE && o->precision == MODE_AUTO
                             ? MODE_GRAPE
                             : o->precision],
                   simd_dispatch_name(o->isa), options_threads(o->threads), process->npipes,
                   process->client ? ", client " : "", process->client ? process->client : "",
                   known && library.dli_fname ? library.dli_fname : "?");
    if (error_is_news(&last, text)) error_info("%s", text);
}

void session_report_calls(struct session *s)
{
    char name[SESSION_NAME];
    const int64_t calls = atomic_exchange(&s->calls, 0), full = atomic_exchange(&s->full_calls, 0),
                  ahead = atomic_exchange(&s->calls_ahead, 0);
    const int64_t rows = atomic_exchange(&s->rows_asked, 0),
                  fine = atomic_exchange(&s->rows_fine, 0);
    const struct process_options *process = options_process();
    if (2 * fine > rows && s->process == getpid())
        error_info("%s: mode auto summed %lld of %lld i particles in double, since their steps are "
                   "small; where that is slow, GRAPE6_PRECISION=grape allows their roundoff",
                   session_name(s->id, name), (long long)fine, (long long)rows);
    if (calls && s->process == getpid())
        error_info("%s: %lld force calls, %lld of them full with %d particles, %lld summed ahead%s",
                   session_name(s->id, name), (long long)calls, (long long)full, process->npipes,
                   (long long)ahead,
                   full > 2 * ahead && !process->client
                       ? "; larger calls are faster: GRAPE6_CLIENT sets them "
                         "for a program in the table of docs/linking.md"
                       : "");
}
