/* mutants.h - the longer mistakes of builds for tests, and which is made: tests/support/mutants.py.
 */
#pragma once

#include <stdint.h>

#define MUTANT(name) mutants_made(#name)
int mutants_made(const char *name);
/* From now on makes the sum of i particle `row` wrong in a high bit (-1: of none). */
void mutants_wrong_row(int row);
void mutants_spoil_row(const double *sums, int ni);
struct jmemory;
struct direct_job;
/* Keeps a particle just written at its position until the next g6_set_ti. */
void mutants_hold(struct jmemory *j, int64_t address, double time);
void mutants_let_go(struct jmemory *j);
/* Replace the index of each i particle by that of the j particle at the same position, or at the
 * address equal to the index, so that only this j particle is left out. */
void mutants_self_by_distance(const struct direct_job *job, int32_t *index);
void mutants_self_by_address(const struct direct_job *job, int32_t *index);
int g6_open(int clusterid); /* the exported function, or one of the host program */
