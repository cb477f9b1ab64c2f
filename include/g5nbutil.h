/* g5nbutil.h - g5lib.h under the name that programs written for GRAPE-7 include. */
#ifndef G5NBUTIL_H
#define G5NBUTIL_H

#include "g5lib.h"

#endif
