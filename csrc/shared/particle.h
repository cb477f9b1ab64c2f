/* particle.h - a j particle as the caller wrote it. Also compiled for GPUs. */
#ifndef GRAPE6_PARTICLE_H
#define GRAPE6_PARTICLE_H

#include "shared/host_device.h"

/* Bad: written with a NaN. Lost: a write failed for lack of memory. No force uses either. */
enum slot_state { SLOT_EMPTY = 0, SLOT_SET = 1, SLOT_BAD = 2, SLOT_LOST = 3 };

/* Two cache lines; a2 = a/2, j6 = (da/dt)/6 at time t. The state must be the high half of its eight
 * bytes: read as a double, they are then finite and tiny. */
struct jparticle {
    double x[3], mass;
    double v[3], time;
    double a2[3];
    int32_t index, state;
    double j6[3], unused;
};

#endif
