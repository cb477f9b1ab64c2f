/* gp5util.h - g5lib.h under the name that programs written for Phantom-GRAPE include. */
#ifdef SYMMETRIC
#error "libgrape6 has no symmetric softening: compile without -DSYMMETRIC"
#endif

#include "g5lib.h"

/* Number of j particles in the arrays of such programs; g5_set_xmj accepts more. */
#ifndef JMEMSIZE
#define JMEMSIZE (1 << 16)
#endif
