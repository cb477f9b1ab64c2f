/* costs.h - what forces cost on this machine, on its CPU and on its GPU. Measured once and kept in
 * files of the user's cache folder, for each mode, instruction set and number of threads; what is
 * not known yet is that of a large GPU. The calls compute: in the environment of util/fpenv.h. */
#pragma once

#include "core/backend.h"

/* In seconds, but for cpu_thread. */
struct costs {
    double cpu_call, cpu_pair, cpu_j; /* a call, a pair, a prediction of a j particle: one thread */
    double cpu_fork;                  /* to share a call among threads */
    double cpu_thread;                /* what a further thread brings: 1 as much as the first */
    double gpu_start;                 /* the first session of a process */
    double gpu_call, gpu_pair;
};

/* Those that are known for such sessions, the CPU's measured now if they are not. */
struct costs session_costs_get(const struct options *o);
/* By how much `threads` make work faster that can be cut into shares that are large enough. */
double session_costs_speedup(const struct costs *c, double threads, double shares);
/* To be called in a forked child: another thread may have been at it. */
void session_costs_after_fork(void);
/* A GPU, of that number, has been opened, which took so long: if its costs are not known, they are
 * measured. */
void session_costs_learn(const struct backend *gpu, const struct options *o, int number,
                         double start);
