/* gp6util.h - g6lib.h under the name that programs written for Phantom-GRAPE include. */
#include "g6lib.h"
