/* A host that opens a device, and looks whether anything of its own was changed by that.
 * usage: open_device (plain | traps | signals | threads | fork | codes | auto) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bridge_calls.h"

extern char **environ;

/* Writes what is the host's own: signals, locale, floating point, environment, working directory.
 */
static void look(char *text, size_t length)
{
    const int of_libc = 0x04000000; /* SA_RESTORER, once a signal's action was ever set */
    FILE *own = fmemopen(text, length, "w");
    char folder[1000];
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int s = 1; s < 32; s++) {
        struct sigaction action = {0};
        if (s != SIGKILL && s != SIGSTOP) sigaction(s, NULL, &action);
        fprintf(own, "%p %x %d\n", (void *)action.sa_sigaction, action.sa_flags & ~of_libc,
                sigismember(&blocked, s));
    }
    fprintf(own, "%s %x %x\n", setlocale(LC_ALL, NULL), fegetexcept(), fegetround());
    fprintf(own, "%s\n", getcwd(folder, sizeof folder) ? folder : "none");
    for (char **e = environ; *e; e++) fprintf(own, "%s\n", *e);
    fclose(own);
}

static int plain(void)
{
    enum { LENGTH = 30000 };
    char *before = calloc(2, LENGTH), *after = before + LENGTH;
    look(before, LENGTH);
    const int code = bridge_calls_();
    look(after, LENGTH);
    const int changed = strcmp(before, after);
    free(before);
    return code ? code : changed ? 93 : 0;
}

static void *in_thread(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)plain();
}

static pthread_t worker;
static volatile sig_atomic_t here, elsewhere;

static void alarmed(int signal)
{
    (void)signal;
    if (pthread_equal(pthread_self(), worker))
        here++;
    else
        elsewhere++;
}

static void *alarmed_thread(void *unused)
{
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms;
    (void)unused;
    worker = pthread_self();
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    const int code = plain();
    setitimer(ITIMER_REAL, &never, NULL);
    return (void *)(intptr_t)code;
}

/* The host's handlers run on its own threads, here on the only one that lets them, and never
 * inside Python. */
static int signals(void)
{
    pthread_t thread;
    sigset_t alarms;
    void *code;
    signal(SIGALRM, alarmed);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    pthread_create(&thread, NULL, alarmed_thread, NULL);
    pthread_join(thread, &code);
    return code ? (int)(intptr_t)code : elsewhere || here < 10 ? 98 : 0;
}

/* Eight threads, with so little stack that Python could not run on it. */
static int threads(void)
{
    pthread_t thread[8];
    pthread_attr_t attributes;
    void *code;
    int bad = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    for (int t = 0; t < 8; t++) pthread_create(&thread[t], &attributes, in_thread, NULL);
    for (int t = 0; t < 8; t++) {
        pthread_join(thread[t], &code);
        bad |= code != NULL;
    }
    return bad;
}

/* The child is refused, with a code, by each call; the parent goes on. */
static int forked(void)
{
    struct error fault = {0};
    struct device device = {0};
    const struct bridge *b = python_bridge_start(1, &fault);
    int status = 0;
    if (!b || b->open(0, &device) <= 0) return 94;
    const pid_t child = fork();
    if (child == 0) {
        struct device other = {0};
        uint64_t address = 0;
        void *function = NULL;
        const char *name = "probe";
        int bad = python_bridge_start(0, &fault) != NULL || fault.code != G6X_E_FORK;
        bad |= b->open(0, &other) != G6X_E_FORK || !strstr(other.text, "fork");
        bad |= b->kernels(&device, 0, 1, &name, &function) != G6X_E_FORK;
        bad |= b->allocate(&device, 0, 8, &address) != G6X_E_FORK;
        bad |= b->release(&device, 1) != G6X_E_FORK;
        bad |= b->close(&device, 0) != G6X_E_FORK;
        exit(bad);
    }
    waitpid(child, &status, 0);
    if (status || b->close(&device, 0) <= 0) return 95;
    return plain();
}

static int codes(void)
{
    struct error fault = {0};
    struct device device = {0};
    uint64_t address = 0;
    void *function = NULL;
    const char *name = "probe";
    const struct bridge *b = python_bridge_start(1, &fault);
    if (!b) return printf("start %d %s\n", fault.code, fault.text) < 0;
#define SAY(call) printf("%s %d %s\n", #call, (int)(b->call), device.text)
    SAY(open(0, &device));
    SAY(kernels(&device, 0, 1, &name, &function));
    SAY(allocate(&device, MEMORY_DEVICE, 8, &address));
    SAY(release(&device, address));
    SAY(close(&device, 0));
    return 0;
}

/* Prints the code, how many microseconds a call took, first and again, and its text. */
static int quick(int wanted)
{
    struct error fault = {0};
    double us[2];
    for (int k = 0; k < 2; k++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (python_bridge_start(wanted, &fault)) return 96;
        clock_gettime(CLOCK_MONOTONIC, &b);
        us[k] = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
    }
    printf("%d %.1f %.1f %s\n", fault.code, us[0], us[1], fault.text);
    return dlsym(RTLD_DEFAULT, "Py_IsInitialized") ? 97 : 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    setlocale(LC_ALL, "");
    if (!strcmp(how, "traps")) feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    if (!strcmp(how, "signals")) return signals();
    if (!strcmp(how, "threads")) return threads();
    if (!strcmp(how, "fork")) return forked();
    if (!strcmp(how, "codes")) return codes();
    if (!strcmp(how, "auto")) return quick(0);
    if (!strcmp(how, "refused")) return quick(1);
    return plain();
}
