/* environment.h - variables that look as if they were the library's, and are not. */
#pragma once

/* Prints a warning for each variable GRAPE6_* that is set and is neither an option, nor a test
 * hook, nor one of makefiles. */
void environment_check(void);
