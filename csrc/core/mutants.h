/* mutants.h - hooks of a test build (-DGRAPE6_TEST_HOOKS) only. It reads some variables and makes
 * the mistake named by GRAPE6_TEST_MISTAKE, one that libraries of this API have made or may make,
 * to check that a test detects it (tests/api/test_mistakes.py).
 *
 * In every other build MUTANT(...) is 0, and the compiler removes the code that depends on it.
 */
#pragma once

#include <stdint.h>

#ifdef GRAPE6_TEST_HOOKS
#define MUTANT(name) mutants_made(#name)
#define TEST_VARIABLE(name) options_variable("GRAPE6_TEST_" #name)
int mutants_made(const char *name);
/* From now on makes the sum of i particle `row` wrong in a high bit (-1: of none). */
void mutants_wrong_row(int row);
void mutants_spoil_row(const double *sums, int ni);
#else
#define MUTANT(name) 0
#define TEST_VARIABLE(name) ((const char *)0)
#define mutants_spoil_row(sums, ni) ((void)0)
#endif

/* The longer mutants, which test builds have: tests/c/mutants.c. */
struct jmemory;
struct direct_job;
/* Keeps a particle just written at its position until the next g6_set_ti. */
void mutants_hold(struct jmemory *j, int64_t address, double time);
/* Releases all particles held by mutants_hold. */
void mutants_let_go(struct jmemory *j);
/* Replace the index of each i particle by that of the j particle at the same position, or at the
 * address equal to the index, so that only this j particle is left out. */
void mutants_self_by_distance(const struct direct_job *job, int32_t *index);
void mutants_self_by_address(const struct direct_job *job, int32_t *index);
int g6_open(int clusterid); /* the exported function, or one of the host program */
