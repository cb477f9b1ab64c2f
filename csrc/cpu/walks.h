/* walks.h - walks summed by the CPU's threads. */
#ifndef GRAPE6_CPU_WALKS_H
#define GRAPE6_CPU_WALKS_H

#include "core/walks.h"

int cpu_walks_sum(struct walks *w, struct fault *f);

#endif
