/* gp5util.h - g5lib.h under the name that programs written for Phantom-GRAPE include. */
#ifndef GP5UTIL_H
#define GP5UTIL_H

#ifdef SYMMETRIC
#error "libgrape6 has no symmetric softening: compile without -DSYMMETRIC"
#endif

#include "g5lib.h"

/* j particles for which such programs make their arrays; g5_set_xmj takes more. */
#ifndef JMEMSIZE
#define JMEMSIZE (1 << 16)
#endif

#endif
