/* threads.c - see threads.h. A worker spins for a moment before it sleeps, since the next
 * force call of a block-step integrator comes within tens of microseconds. */
#include "threads.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "fpenv.h"
#include "memory.h"

enum { MOST_WORKERS = 1023, STACK = 512 * 1024, SPIN_NANOSECONDS = 100000 };

struct worker {
    _Atomic int go, asleep;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    char pad[64];
};

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct worker *workers[MOST_WORKERS];
static int nworkers;
static int forked;

static void (*current_work)(void *);
static void *current_argument;
static _Atomic int running;

static int64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void wait_for_go(struct worker *w)
{
    const int64_t start = now();
    while (!atomic_load_explicit(&w->go, memory_order_acquire)) {
        for (int k = 0; k < 32 && !atomic_load_explicit(&w->go, memory_order_acquire); k++)
            threads_pause();
        if (now() - start < SPIN_NANOSECONDS) continue;
        (void)pthread_mutex_lock(&w->mutex);
        atomic_store(&w->asleep, 1);
        while (!atomic_load(&w->go)) (void)pthread_cond_wait(&w->wake, &w->mutex);
        atomic_store(&w->asleep, 0);
        (void)pthread_mutex_unlock(&w->mutex);
    }
    atomic_store_explicit(&w->go, 0, memory_order_relaxed);
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    fenv_t host;
    fpenv_enter(&host);
    for (;;) {
        wait_for_go(w);
        current_work(current_argument);
        atomic_fetch_sub_explicit(&running, 1, memory_order_release);
    }
    return NULL;
}

static void send(struct worker *w)
{
    atomic_store(&w->go, 1);
    if (atomic_load(&w->asleep)) {
        (void)pthread_mutex_lock(&w->mutex);
        (void)pthread_cond_signal(&w->wake);
        (void)pthread_mutex_unlock(&w->mutex);
    }
}

/* Workers take no signals: the host's handlers run in the host's threads. */
static int add_worker(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, old;
    struct worker *w = memory_zeroed(sizeof *w);
    if (!w) return 0;
    (void)pthread_mutex_init(&w->mutex, NULL);
    (void)pthread_cond_init(&w->wake, NULL);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    const int failed = pthread_create(&thread, &attributes, worker_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (failed) {
        memory_free(w);
        return 0;
    }
    workers[nworkers++] = w;
    return 1;
}

static void after_fork(void) { forked = 1; }
static void prepare(void) { (void)pthread_atfork(NULL, NULL, after_fork); }

void threads_run(int n, void (*work)(void *argument), void *argument)
{
    (void)pthread_once(&once, prepare);
    if (n <= 1 || forked || pthread_mutex_trylock(&in_use) != 0) {
        work(argument);
        return;
    }
    while (nworkers < n - 1 && nworkers < MOST_WORKERS && add_worker());
    const int helpers = n - 1 < nworkers ? n - 1 : nworkers;
    current_work = work;
    current_argument = argument;
    atomic_store(&running, helpers);
    for (int k = 0; k < helpers; k++) send(workers[k]);
    work(argument);
    for (int spins = 0; atomic_load_explicit(&running, memory_order_acquire) > 0; spins++) {
        threads_pause();
        if (spins > 10000) (void)sched_yield();
    }
    (void)pthread_mutex_unlock(&in_use);
}
