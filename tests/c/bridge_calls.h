/* bridge_calls.h - see bridge_calls.c. */
#pragma once

#include "core/device.h"
#include "core/error.h"

/* Opens a device, uses all of it, closes it; 0 or what failed first, with its text. */
int bridge_calls(int wanted, char *text);
/* The same as Fortran calls it; the text goes to stderr. */
int bridge_calls_(void);
