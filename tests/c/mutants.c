/* mutants.c - see mutants.h. */
#include "mutants.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/jmemory.h"
#include "core/options.h"
#include "cpu/direct_kernel.h"

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

static int wrong_row = -1;

void mutants_wrong_row(int row) { wrong_row = row; }

void mutants_spoil_row(const double *sums, int ni)
{
    if (wrong_row >= 0 && wrong_row < ni) ((double *)(uintptr_t)sums)[wrong_row] *= 1.5;
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

static int32_t index_of_nobody(const struct direct_job *job)
{
    int32_t index = INT_MIN;
    while (jmemory_find(job->memory, index, job->nj, 0, NULL)) index++;
    return index;
}

static int at_one_place(const struct direct_job *job, int i, int64_t address)
{
    double x[3], v[3];
    if (job->memory->body[address].state != SLOT_SET) return 0;
    jmemory_predict(job->memory, address, job->time, job->snap, x, v);
    return x[0] == job->x[i][0] && x[1] == job->x[i][1] && x[2] == job->x[i][2];
}

void mutants_self_by_distance(const struct direct_job *job, int32_t *index)
{
    for (int i = 0; i < job->ni; i++) {
        int64_t a = 0;
        while (a < job->nj && !at_one_place(job, i, a)) a++;
        index[i] = a < job->nj ? job->memory->body[a].index : index_of_nobody(job);
    }
}

void mutants_self_by_address(const struct direct_job *job, int32_t *index)
{
    for (int i = 0; i < job->ni; i++) {
        const int32_t a = index[i];
        index[i] = a >= 0 && a < job->nj ? job->memory->body[a].index : index_of_nobody(job);
    }
}
