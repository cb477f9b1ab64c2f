/* mutants.h - what a build for tests (-DGRAPE6_TEST_HOOKS) does and no other: it reads some
 * variables, and makes the mistake that GRAPE6_TEST_MISTAKE names, one that libraries of this API
 * have made or may well make, to see that a test notices it (tests/api/test_mistakes.py).
 *
 * In every other build MUTANT(...) is 0, and of the lines that ask for it no code is left.
 */
#pragma once

#include <stdint.h>

#ifdef GRAPE6_TEST_HOOKS
#define MUTANT(name) mutants_made(#name)
#define TEST_VARIABLE(name) options_variable("GRAPE6_TEST_" #name)
int mutants_made(const char *name);
#else
#define MUTANT(name) 0
#define TEST_VARIABLE(name) ((const char *)0)
#endif

/* The longer ones; defined in test builds only. */
struct jmemory;
/* A particle just written stays where it is until the next g6_set_ti. */
void mutants_hold(struct jmemory *j, int64_t address, double time);
/* Lets go what mutants_hold held. */
void mutants_let_go(struct jmemory *j);
int g6_open(int clusterid); /* the exported one, or the host's */
