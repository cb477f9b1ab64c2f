/* walks.h - sums of walks on the CPU's threads. */
#pragma once

#include "core/walks.h"

int cpu_walks_sum(struct walks *w, struct error *err);
