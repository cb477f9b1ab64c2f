/* costs.h - what forces cost on this machine, on its CPU and on its GPU. Measured once and kept in
 * a file of the user's cache folder; what is not known yet is that of a large GPU. */
#pragma once

#include "core/backend.h"

/* All in seconds. */
struct costs {
    double cpu_call, cpu_pair,
        cpu_j;         /* a call, a pair, the prediction of a j particle: one thread */
    double cpu_fork;   /* to share a call among threads */
    double cpu_thread; /* threads' worth that a further one is */
    double gpu_start;  /* the first session of a process */
    double gpu_call, gpu_pair;
};

/* Those that are known, the CPU's measured now if they are not. */
struct costs session_costs_get(void);
/* What threads are worth, of work for `worth` further ones and `most` that there are. */
double session_costs_threads(const struct costs *c, double most, double worth);
/* A GPU has been opened, which took so long: if its costs are not known, they are measured. */
void session_costs_learn(const struct backend *gpu, const struct options *o, double start);
