/* g6x_tree.c - the g6x_tree_ calls that build trees, independent of clusters.
 * A tree does not change once built, so any number of threads may use it at once. */
#include "api/g6x_tree.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "core/options.h"
#include "g6lib.h"
#include "session/registry.h"
#include "shared/tree_few.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/numbers.h"

_Static_assert((int)G6X_TREE_FMM == (int)TREE_FMM, "the names of the methods");
_Static_assert((int)G6X_TREE_BARNES_HUT == (int)TREE_BARNES_HUT, "the names of the methods");

/* ---- the trees that are open ------------------------------------------------------------ */

/* The list is locked for no longer than a look at it. */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tree_handle *trees;
static int last_handle;

/* In a forked child no other thread lives that could hold the lock. */
static void after_fork(void) { (void)pthread_mutex_init(&registry, NULL); }
static void prepare_forks(void) { (void)pthread_atfork(NULL, NULL, after_fork); }

static void lock(void)
{
    (void)pthread_once(&once, prepare_forks);
    (void)pthread_mutex_lock(&registry);
}

static void unlock(void) { (void)pthread_mutex_unlock(&registry); }

/* Where the pointer to the tree of a handle is; the registry is locked. */
static struct tree_handle **find(int handle)
{
    struct tree_handle **at = &trees;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    return at;
}

static void free_tree(struct tree_handle *p)
{
    tree_boxes_free(&p->tree);
    memory_free(p->x);
    memory_free(p->mass);
    memory_free(p);
}

/* The number that a tree gets: no open tree has it, and no closed one had it lately. */
static int add(struct tree_handle *p)
{
    lock();
    do last_handle = last_handle < INT_MAX ? last_handle + 1 : 1;
    while (*find(last_handle));
    const int handle = p->handle = last_handle;
    p->next = trees;
    trees = p;
    unlock();
    return handle;
}

struct tree_handle *api_g6x_tree_acquire(int handle, int *code)
{
    lock();
    struct tree_handle *p = *find(handle);
    if (p) p->users++;
    unlock();
    *code = p ? 0 : session_registry_refuse(G6X_E_NOT_OPEN, "there is no open tree %d", handle);
    return p;
}

void api_g6x_tree_release(struct tree_handle *const *p)
{
    if (!*p) return;
    lock();
    const int last = --(*p)->users == 0 && (*p)->closed;
    unlock();
    if (last) free_tree(*p);
}

/* ----------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct tree_whole) == G6X_TREE_WHOLE * sizeof(double), "numbers of a whole");

int api_g6x_tree_whole(const double whole[], struct tree_whole *to)
{
    if (!whole) return session_registry_refuse(G6X_E_NULL, "whole is a null pointer");
    memcpy(to, whole, sizeof *to);
    int good = all_finite(whole, G6X_TREE_WHOLE) && to->mass >= 0.0 && to->count >= 1.0 &&
               to->total >= 0.0;
    for (int c = 0; c < 3; c++) good &= to->low[c] <= to->high[c];
    if (!good) return session_registry_refuse(G6X_E_ARGUMENT, "whole describes no particles");
    return 0;
}

/* ---- making and closing ----------------------------------------------------------------- */

int api_g6x_tree_first_bad(int n, const double *a, int columns)
{
    if (!a || all_finite(a, (size_t)n * (size_t)columns)) return n;
    int i = 0;
    while (all_finite(a + (size_t)i * (size_t)columns, (size_t)columns)) i++;
    return i;
}

static int open_tree(const struct tree_whole *whole, int n, const double (*x)[3],
                     const double (*v)[3], const double mass[])
{
    const struct options o = session_registry_initial();
    const struct tree_input in = {n, x, v, mass};
    struct error err = {0};
    if (options_process()->problem[0])
        return session_registry_refuse(G6X_E_ARGUMENT, "%s", options_process()->problem);
    if (n < 0) return session_registry_refuse(G6X_E_ARGUMENT, "a tree of %d particles", n);
    if (n && !(x && mass))
        return session_registry_refuse(G6X_E_NULL, "g6x_tree_open: null pointer");
    const char *const name[] = {"x", "v", "mass"};
    const int bad[] = {n ? api_g6x_tree_first_bad(n, x[0], 3) : n,
                       n && v ? api_g6x_tree_first_bad(n, v[0], 3) : n,
                       api_g6x_tree_first_bad(n, mass, 1)};
    for (int c = 0; c < 3; c++)
        if (bad[c] < n)
            return session_registry_refuse(
                G6X_E_J_NAN, "NaN or Inf in %s[%d] of a tree's particles", name[c], bad[c]);
    struct tree_handle *p = memory_zeroed(sizeof *p);
    if (p) {
        p->x = memory_zeroed((size_t)n * sizeof *p->x);
        p->mass = memory_zeroed((size_t)n * sizeof *p->mass);
    }
    if (!p || !p->x || !p->mass) {
        if (p) free_tree(p);
        return session_registry_refuse(G6X_E_MEMORY, "out of memory for a tree of %d particles", n);
    }
    if (n) memcpy(p->x, x, (size_t)n * sizeof *x);
    if (n) memcpy(p->mass, mass, (size_t)n * sizeof *mass);
    p->of_ranks = whole != NULL;
    p->n = n, p->moving = whole ? whole->fastest >= 0.0 : v != NULL;
    p->threads = o.threads;
    p->isa = o.isa;
    const int threads = n > TREE_FEW ? options_threads(p->threads) : 1; /* not to wake others */
    if ((n || whole) && tree_boxes_build(&p->tree, &in, whole, threads, &err)) {
        free_tree(p);
        return session_registry_refuse(err.code, "%s", err.text);
    }
    return add(p);
}

int g6x_tree_open(int n, const double (*x)[3], const double (*v)[3], const double mass[])
{
    FPENV_FLUSHED_HERE;
    return open_tree(NULL, n, x, v, mass);
}

int g6x_tree_open_in(const double whole[G6X_TREE_WHOLE], int n, const double (*x)[3],
                     const double (*v)[3], const double mass[])
{
    struct tree_whole w;
    int code = api_g6x_tree_whole(whole, &w);
    if (code) return code;
    if (n > 0 && (w.fastest >= 0.0) != (v != NULL))
        return session_registry_refuse(G6X_E_ARGUMENT,
                                       "all ranks' particles have velocities, or none's");
    FPENV_FLUSHED_HERE;
    return open_tree(&w, n, x, v, mass);
}

int g6x_tree_close(int tree)
{
    lock();
    struct tree_handle **at = find(tree), *p = *at;
    if (p) {
        *at = p->next;
        p->closed = 1;
    }
    const int unused = p && !p->users;
    unlock();
    if (unused) free_tree(p);
    return 0;
}

int g6x_tree_particles(int tree, double (*x)[3], double mass[])
{
    int code;
    TREE_HERE(p, tree, &code);
    if (!p || !p->n) return code;
    if (!(x && mass))
        return session_registry_refuse(G6X_E_NULL, "g6x_tree_particles: null pointer");
    memcpy(x, p->x, (size_t)p->n * sizeof *x);
    memcpy(mass, p->mass, (size_t)p->n * sizeof *mass);
    return p->n;
}

int g6x_tree_set_int(int tree, int key, int value)
{
    struct options o = {0};
    struct error err = {0};
    int code;
    TREE_HERE(p, tree, &code);
    if (!p) return code;
    if (key != G6X_THREADS && key != G6X_ISA)
        return session_registry_refuse(G6X_E_ARGUMENT, "option %d: a tree does not have it", key);
    if (options_set_int(&o, key, value, &err))
        return session_registry_refuse(err.code, "%s", err.text);
    *(key == G6X_THREADS ? &p->threads : &p->isa) = value;
    return 0;
}

int g6x_tree_soften(int tree, const double eps[])
{
    int code;
    TREE_HERE(p, tree, &code);
    if (!p) return code;
    if (p->n && !eps) return session_registry_refuse(G6X_E_NULL, "g6x_tree_soften: null pointer");
    if (p->of_ranks || p->tree.own.eps)
        return session_registry_refuse(G6X_E_ARGUMENT, p->of_ranks
                                                           ? "softening of each particle: a tree "
                                                             "of several ranks has one for all"
                                                           : "the particles of tree have their "
                                                             "softening: make a new one");
    for (int i = 0; i < p->n; i++)
        if (!(eps[i] >= 0.0 && eps[i] < INFINITY))
            return session_registry_refuse(G6X_E_ARGUMENT, "eps[%d] = %g is negative, NaN or Inf",
                                           i, eps[i]);
    if (tree_softening_set(&p->tree, p->n, eps))
        return session_registry_refuse(G6X_E_MEMORY, "out of memory for a tree of %d particles",
                                       p->n);
    return 0;
}
