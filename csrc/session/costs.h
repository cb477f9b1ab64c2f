/* costs.h - the costs of forces on this machine's CPU and GPU. They are measured once per mode,
 * instruction set and number of threads, and kept in files in the user's cache folder. GPU costs
 * not yet measured are those of a large GPU. Call these functions in the floating-point environment
 * of util/fpenv.h. */
#pragma once

#include "core/backend.h"

/* Seconds, except cpu_thread. */
struct costs {
    double cpu_call, cpu_pair, cpu_j; /* one thread: per call, per pair, per predicted j particle */
    double cpu_fork;                  /* to distribute a call to threads */
    double cpu_thread;                /* gain of each further thread; 1: as much as the first */
    double gpu_start;                 /* to open the first session of a process */
    double gpu_call, gpu_pair;
};

/* Costs of sessions with these options. Measures those of the CPU if they are unknown. */
struct costs session_costs_get(const struct options *o);
/* Speedup with `threads` threads of work that splits into `shares` large enough parts. */
double session_costs_speedup(const struct costs *c, double threads, double shares);
/* Call it in a forked child: another thread of the parent may have held the lock. */
void session_costs_after_fork(void);
/* Call it after opening GPU number `number` in `start` seconds: measures its costs if they are
 * unknown. */
void session_costs_learn(const struct backend *gpu, const struct options *o, int number,
                         double start);
