/* gp6util.h - g6lib.h under the name that programs written for Phantom-GRAPE include. */
#ifndef GP6UTIL_H
#define GP6UTIL_H

#include "g6lib.h"

#endif
