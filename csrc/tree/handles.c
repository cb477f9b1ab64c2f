/* handles.c - a list behind a lock, which is held for no longer than a look at it. */
#include "tree/handles.h"

#include <limits.h>
#include <pthread.h>

#include "tree/boxes.h"
#include "util/memory.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tree_handle *trees;
static int last_handle;

/* In a forked child no other thread lives that could hold the lock. */
static void after_fork(void) { (void)pthread_mutex_init(&registry, NULL); }
static void prepare(void) { (void)pthread_atfork(NULL, NULL, after_fork); }

static void lock(void)
{
    (void)pthread_once(&once, prepare);
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

void tree_handles_free(struct tree_handle *p)
{
    tree_boxes_free(&p->tree);
    memory_free(p->x);
    memory_free(p->mass);
    memory_free(p);
}

int tree_handles_add(struct tree_handle *p)
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

struct tree_handle *tree_handles_acquire(int handle)
{
    lock();
    struct tree_handle *p = *find(handle);
    if (p) p->users++;
    unlock();
    return p;
}

void tree_handles_release(struct tree_handle *p)
{
    lock();
    const int last = --p->users == 0 && p->closed;
    unlock();
    if (last) tree_handles_free(p);
}

void tree_handles_remove(int handle)
{
    lock();
    struct tree_handle **at = find(handle), *p = *at;
    if (p) {
        *at = p->next;
        p->closed = 1;
    }
    const int unused = p && !p->users;
    unlock();
    if (unused) tree_handles_free(p);
}
