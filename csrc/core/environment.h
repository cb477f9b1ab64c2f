/* environment.h - finds variables GRAPE6_* that the library does not know. */
#pragma once

/* Prints a warning for each variable GRAPE6_* that is set and is not an option, a test hook or a
 * makefile variable. */
void environment_check(void);
