/* mutants.c - see mutants.h. Empty but in a test build. */
#ifdef GRAPE6_TEST_HOOKS
#include "core/mutants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/jmemory.h"
#include "core/options.h"

static const char *chosen = "";
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const char *name = TEST_VARIABLE(MISTAKE);
    if (name) chosen = name;
}

int mutants_made(const char *name)
{
    (void)pthread_once(&once, choose);
    return !strcmp(name, chosen);
}

/* A held particle keeps its true time in the field `unused`. */
void mutants_hold(struct jmemory *j, int64_t address, double time)
{
    jmemory_commit(j);
    j->body[address].unused = j->body[address].time;
    j->body[address].time = time;
}

void mutants_let_go(struct jmemory *j)
{
    jmemory_commit(j);
    for (int64_t a = 0; a < j->capacity; a++) j->body[a].time = j->body[a].unused;
    jmemory_stale_all(j, 0);
}
#endif
