/* grape5_points.h - the j particles of a GRAPE-5 cluster on the CPU, as they were sent, and packed
 * for cpu/grape5_kernel.h: without index, time, velocity, or any other record per particle.
 *
 * Three different NaNs mark invalid data: an address that was never written; one to which a write
 * failed for lack of memory; a half that was never sent or was not finite.
 */
#pragma once

#include "cpu/grape5_kernel.h"
#include "core/error.h"
#include "core/lost.h"

struct grape5_points {
    int64_t capacity; /* a multiple of BLOCK */
    double (*x)[3];
    double *m;
    int64_t finite;              /* all points below this address are finite */
    struct lost lost[MOST_LOST]; /* addresses beyond the capacity */
    int nlost;

    struct acc_chunk *chunk;
    struct acc_unpacked *unpacked; /* per block */
    unsigned char *stale;          /* per block: must be packed again */
    int64_t packed;                /* number of points packed last */
    struct acc_units units;
    struct scale scale; /* from which the units is made */
    const struct grape5_kernel *kernel;
    double correction; /* the kernel's */
};

/* Which halves of particles are sent. */
enum { GRAPE5_POSITIONS = 1, GRAPE5_MASSES = 2, GRAPE5_BOTH = 3 };

void cpu_grape5_points_free(struct grape5_points *p);
/* Writes n particles, or halves of them. Returns 0, or G6X_E_MEMORY or G6X_E_J_NAN and the first
 * address affected. */
int cpu_grape5_points_set(struct grape5_points *p, int halves, int64_t address, int64_t n,
                          const double (*x)[3], const double *m, int64_t *which);
/* Records that particles first .. end - 1 were sent but could not be stored. */
void cpu_grape5_points_lose(struct grape5_points *p, int64_t first, int64_t end);
/* The first address below n that no force may use, or -1. *was_lost: whether it was lost. */
int64_t cpu_grape5_points_first_bad(struct grape5_points *p, int64_t n, int *was_lost);
/* Updates the packed form of the first n points, which must be valid. given: exponents of length
 * and mass, or G6X_AUTO. */
void cpu_grape5_points_pack(struct grape5_points *p, int64_t n, const int given[3]);
