/* threads.c - see threads.h. A worker spins for 50 microseconds before it sleeps, since the next
 * force call of a block-step integrator comes within tens of microseconds. Short work does not wait
 * for workers that sleep, nor again for those that another program has kept from running. To wake a
 * worker takes microseconds, so those that were woken wake others. */
#include "util/threads.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <sys/prctl.h>

#include "util/clock.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"

enum { MOST_WORKERS = 1023, STACK = 2 * 1024 * 1024, SPIN_NANOSECONDS = 50000 };
static _Atomic int64_t spin = SPIN_NANOSECONDS;

void threads_linger(int64_t nanoseconds)
{
    spin = nanoseconds > SPIN_NANOSECONDS ? nanoseconds : SPIN_NANOSECONDS;
}

enum { IDLE, ASKED, WORKING };

struct worker {
    _Atomic int state, asleep, called; /* called: to wait awake for a while, though not asked */
    int number;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    char pad[64];
};

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct worker *workers[MOST_WORKERS];
static int nworkers;
static int forked;

/* Of short work, under in_use. */
enum { SHORT = 1000000, PREEMPTED = 100000 /* nanoseconds */, REST = 8 };
enum { MOST_MISSES = 4, REST_AFTER_MISSES = 256 };
static int64_t last_end; /* when the last work ended */
static int64_t rest;     /* calls that the caller still does alone */
static int misses;       /* calls, one after another, in which no worker began in time */

/* Each kind of work, by its function, and the nanoseconds that all threads took for it last. */
enum { KINDS = 16 };
struct kind {
    void (*work)(void);
    int64_t worked;
};
static struct kind kinds[KINDS];
static int oldest_kind;
/* Nanoseconds of work for which it is worth to wake threads: the caller takes some microseconds to
 * wake each, and they begin some ten later, on a virtual machine up to a hundred. */
enum { WORTH_WAKING = 150000 };

static void (*current_work)(void *);
static void *current_argument;
static int current_flush; /* workers use the flush-to-zero mode of the caller */

static int is_asked(struct worker *w)
{
    return atomic_load_explicit(&w->state, memory_order_acquire) == ASKED;
}

/* Workers before `to_wake` were woken if they slept; the others up to `wake_end` are to be. */
enum { EACH_WAKES = 3 };
static _Atomic int to_wake, wake_end;

static void wake_some(void)
{
    for (int woken = 0; woken < EACH_WAKES && atomic_load(&to_wake) < atomic_load(&wake_end);) {
        const int k = atomic_fetch_add(&to_wake, 1);
        if (k >= atomic_load(&wake_end)) return;
        struct worker *w = workers[k];
        if (!atomic_load(&w->asleep) || (!is_asked(w) && !atomic_load(&w->called))) continue;
        (void)pthread_mutex_lock(&w->mutex);
        (void)pthread_cond_signal(&w->wake);
        (void)pthread_mutex_unlock(&w->mutex);
        woken++;
    }
}

static void begin_to_wake(int n)
{
    atomic_store(&wake_end, 0);
    atomic_store(&to_wake, 0);
    atomic_store(&wake_end, n);
    wake_some();
}

/* Waits until the state is ASKED, and makes it WORKING. wait_for may cancel the request first. */
static void wait_to_be_asked(struct worker *w)
{
    int64_t start = clock_nanoseconds();
    const int lingers = w->number + 1 < THREADS_AT_HAND;
    for (int expected = ASKED; !atomic_compare_exchange_strong(&w->state, &expected, WORKING);
         expected = ASKED) {
        for (int k = 0; k < 32 && !is_asked(w); k++) threads_pause();
        if (is_asked(w) || clock_nanoseconds() - start < (lingers ? spin : SPIN_NANOSECONDS))
            continue;
        (void)pthread_mutex_lock(&w->mutex);
        atomic_store(&w->asleep, 1);
        while (atomic_load(&w->state) != ASKED && !atomic_load(&w->called))
            (void)pthread_cond_wait(&w->wake, &w->mutex);
        atomic_store(&w->asleep, 0);
        atomic_store(&w->called, 0);
        (void)pthread_mutex_unlock(&w->mutex);
        wake_some();
        start = clock_nanoseconds();
    }
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct fpenv host;
    fpenv_enter(&host);
    for (;;) {
        wait_to_be_asked(w);
        fpenv_flush(current_flush);
        current_work(current_argument);
        atomic_store_explicit(&w->state, IDLE, memory_order_release);
    }
    return NULL;
}

/* Waits for a worker that has begun; cancels the request of one that has not, and returns 0. */
static int wait_for(struct worker *w)
{
    int expected = ASKED;
    if (atomic_compare_exchange_strong(&w->state, &expected, IDLE)) return 0;
    for (int spins = 0; atomic_load_explicit(&w->state, memory_order_acquire) != IDLE; spins++) {
        threads_pause();
        if (spins > 10000) (void)sched_yield();
    }
    return 1;
}

int threads_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    sigset_t all, hosts;
    (void)sigfillset(&all);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, stack);
    (void)pthread_sigmask(SIG_SETMASK, &all, &hosts);
    const int failed = pthread_create(thread, &attributes, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &hosts, NULL);
    (void)pthread_attr_destroy(&attributes);
    return failed;
}

static int add_worker(void)
{
    pthread_t thread;
    struct worker *w = memory_zeroed(sizeof *w);
    if (!w) return 0;
    w->number = nworkers;
    (void)pthread_mutex_init(&w->mutex, NULL);
    (void)pthread_cond_init(&w->wake, NULL);
    if (threads_start(&thread, STACK, worker_main, w)) {
        memory_free(w);
        return 0;
    }
    (void)pthread_detach(thread);
    workers[nworkers++] = w;
    return 1;
}

/* A kind that is new counts as long work. */
static struct kind *kind_of(void (*work)(void))
{
    for (int k = 0; k < KINDS; k++)
        if (kinds[k].work == work) return &kinds[k];
    struct kind *kind = &kinds[oldest_kind++ % KINDS];
    *kind = (struct kind){work, SHORT};
    return kind;
}

/* Notes how many workers were asked and how many began, how long the caller worked, and then waited
 * for them. On a busy machine they do not begin, or are preempted, in the next calls, too: then the
 * caller works alone for a while. */
static void note(struct kind *kind, int asked, int begun, int64_t worked, int64_t waited)
{
    kind->worked = worked * (begun + 1);
    if (worked >= SHORT) return;
    misses = asked && !begun ? misses + 1 : 0;
    if (misses >= MOST_MISSES) rest = REST_AFTER_MISSES;
    if (waited > PREEMPTED && waited > worked) rest = REST * waited / (worked + 1);
}

static void after_fork(void) { forked = 1; }
static void prepare(void) { (void)pthread_atfork(NULL, NULL, after_fork); }

static void run(int n, void (*work)(void *argument), void *argument, void (*kind_of_work)(void))
{
    (void)pthread_once(&once, prepare);
    if (n <= 1 || forked || pthread_mutex_trylock(&in_use) != 0) {
        work(argument);
        return;
    }
    struct kind *kind = kind_of(kind_of_work);
    if (rest > 0 && kind->worked < SHORT) {
        rest--;
        (void)pthread_mutex_unlock(&in_use);
        work(argument);
        return;
    }
    while (nworkers < n - 1 && nworkers < MOST_WORKERS && add_worker());
    const int helpers = n - 1 < nworkers ? n - 1 : nworkers;
    const int64_t start = clock_nanoseconds();
    const int wake = start - last_end < SPIN_NANOSECONDS || kind->worked > WORTH_WAKING;
    current_work = work;
    current_argument = argument;
    current_flush = fpenv_flushes();
    int asked = 0, begun = 0;
    for (int k = 0; k < helpers; k++)
        if (wake || !atomic_load(&workers[k]->asleep)) {
            atomic_store(&workers[k]->state, ASKED);
            asked++;
        }
    begin_to_wake(asked ? helpers : 0);
    work(argument);
    const int64_t done = clock_nanoseconds();
    for (int k = 0; k < helpers; k++) begun += wait_for(workers[k]);
    last_end = clock_nanoseconds();
    note(kind, asked, begun, done - start, last_end - done);
    (void)pthread_mutex_unlock(&in_use);
}

void threads_wake(int n)
{
    if (forked || pthread_mutex_trylock(&in_use) != 0) return;
    const int helpers = n - 1 < nworkers ? n - 1 : nworkers;
    for (int k = 0; k < helpers; k++) atomic_store(&workers[k]->called, 1);
    begin_to_wake(helpers);
    (void)pthread_mutex_unlock(&in_use);
}

void threads_run(int n, void (*work)(void *argument), void *argument)
{
    run(n, work, argument, (void (*)(void))work);
}

/* By default Linux may extend a sleep by 50 us (timer slack). Sets the slack to 1 ns, and restores
 * the old value afterwards. */
void threads_nap(int64_t nanoseconds)
{
    const struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    const int slack = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)nanosleep(&t, NULL);
    if (slack > 0) (void)prctl(PR_SET_TIMERSLACK, slack);
}

struct each {
    _Atomic int64_t next;
    int64_t n, grain;
    void (*work)(void *context, int64_t first, int64_t end);
    void *context;
};

static void take_pieces(void *argument)
{
    struct each *e = argument;
    for (int64_t k; (k = atomic_fetch_add(&e->next, e->grain)) < e->n;)
        e->work(e->context, k, k + e->grain < e->n ? k + e->grain : e->n);
}

void threads_each(int threads, int64_t n, int64_t grain,
                  void (*work)(void *context, int64_t first, int64_t end), void *context)
{
    struct each e = {.n = n, .grain = grain, .work = work, .context = context};
    const int64_t pieces = ceil_div(n, grain);
    if (threads <= 1 || pieces <= 1) { /* without the locked additions of `next` */
        for (int64_t k = 0; k < n; k += grain) work(context, k, k + grain < n ? k + grain : n);
        return;
    }
    run(pieces < threads ? (int)pieces : threads, take_pieces, &e, (void (*)(void))work);
}
