/* grape5_points.h - the j particles of a GRAPE-5 cluster on the CPU, as they were sent, and packed
 * for cpu/grape5_kernel.h: no index, time or velocity, and nothing to keep count of by particle.
 *
 * What is no number says what is the matter: a place that was never written, or to which a write
 * was refused for lack of memory, holds NaNs of its own; a half that was never sent, or was no
 * number, a third.
 */
#pragma once

#include "cpu/grape5_kernel.h"
#include "core/error.h"
#include "core/lost.h"

struct grape5_points {
    int64_t capacity; /* a multiple of BLOCK */
    double (*x)[3];
    double *m;
    int64_t sound;               /* all below this address are numbers */
    struct lost lost[MOST_LOST]; /* beyond the capacity */
    int nlost;

    struct acc_chunk *chunk;
    struct acc_low *low;
    struct acc_odd *odd;  /* per block */
    unsigned char *stale; /* per block: to be packed again */
    int64_t packed;       /* points that were packed the last time */
    struct acc_frame frame;
    struct scale scale; /* behind the frame */
    const struct grape5_kernel *kernel;
    double correction; /* the kernel's */
};

/* Which halves of particles come. */
enum { GRAPE5_POSITIONS = 1, GRAPE5_MASSES = 2, GRAPE5_BOTH = 3 };

void cpu_grape5_points_free(struct grape5_points *p);
/* Writes n particles, or halves of them. 0 or G6X_E_MEMORY or G6X_E_J_NAN, then with the first
 * address that it is about. */
int cpu_grape5_points_set(struct grape5_points *p, int halves, int64_t address, int64_t n,
                          const double (*x)[3], const double *m, int64_t *which);
/* Notes that particles first .. end - 1 were sent and are not here. */
void cpu_grape5_points_lose(struct grape5_points *p, int64_t first, int64_t end);
/* The first address below n that no force may use, or -1; whether it is because it was lost. */
int64_t cpu_grape5_points_first_bad(struct grape5_points *p, int64_t n, int *was_lost);
/* Brings the packed form up to date for the first n; they are sound. Exponents that are not
 * G6X_AUTO are given. */
void cpu_grape5_points_pack(struct grape5_points *p, int64_t n, const int given[3]);
