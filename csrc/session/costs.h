/* costs.h - estimates of what force calls take, in seconds. A pair and a prediction on the CPU are
 * timed when a process first asks, for each mode and instruction set, in some milliseconds. Call
 * these functions in the floating-point environment of util/fpenv.h. */
#pragma once

#include "core/options.h"

/* A call of ni i and nj j particles; these are predicted once in 1 / `predictions` calls. */
double session_costs_cpu(const struct options *o, double ni, double nj, double predictions);
double session_costs_gpu(double ni, double nj);
/* To open a GPU: nothing, if the process has opened one. */
double session_costs_start(void);
