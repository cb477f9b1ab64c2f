/* grape6.h - g6lib.h under the name that the GRAPE-6A's library had. */
#include "g6lib.h"
