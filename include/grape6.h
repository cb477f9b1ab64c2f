/* grape6.h - g6lib.h under the name that the GRAPE-6A's library had. */
#ifndef GRAPE6_H
#define GRAPE6_H

#include "g6lib.h"

#endif
