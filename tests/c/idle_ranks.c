/* idle_ranks.c - preloaded to ranks of MPI on a few cores (tests/support/legacy.py): where Open
 * MPI, which polls while it waits, would yield its core, it sleeps a little. */
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
    const struct timespec little = {0, 50000};
    return nanosleep(&little, NULL);
}
