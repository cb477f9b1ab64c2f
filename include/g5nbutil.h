/* g5nbutil.h - g5lib.h under the name that programs written for GRAPE-7 include. */
#include "g5lib.h"
