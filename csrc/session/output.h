/* output.h - writes results to the caller's arrays, and completes them before: distances of nearest
 * neighbours, and verification (GRAPE6_VERIFY: rows computed on the CPU in extended precision). */
#pragma once

#include "session/session.h"

/* The caller's arrays, and the progress of writing them. */
struct outputs {
    const struct force_call *call;
    double (*acc)[3], (*jerk)[3], *pot;
    int *nearest;
    float *distance;
    int end;
    /* The next row to write; the first row that does not fit a double, INT_MAX if all do. */
    _Atomic int next, out_of_range;
};

/* Fills the outputs of n particles with quiet NaN, and nearest neighbours with -1, which host
 * programs take for a hardware error. Each pointer may be NULL. */
void session_output_nan(int n, double (*acc)[3], double (*jerk)[3], double *pot, int *nearest,
                        float *distance);
/* Sets to NaN the jerk if it was not computed, and what does not fit a double. 0 if something does
 * not fit, else 1. */
int session_output_fit(double sum[NSUM], int jerk);
/* Set the error of a row whose force does not fit a double, or that has a NaN. */
int session_output_unfit(struct session *s, int row, int index);
int session_output_invalid(struct session *s, int row, int index);
/* Writes rows while later ones are still being computed, if the backend supports it and there are
 * enough rows; with WANT_DISTANCE it first computes the distances. Returns how many rows it has
 * written. Errors are left to the call that collects all rows. */
int session_output_early(struct session *s, struct outputs *o, unsigned want);
/* Computes the distances of the call's i particles below `end`. */
void session_output_distances(struct session *s, int end);
/* Compares a fraction of the rows of the call just computed, different ones each time; `want` says
 * whether jerks were computed. 0 or G6X_E_VERIFY. */
int session_output_verify(struct session *s, unsigned want);
/* Writes rows first to end - 1 of the call's results. */
void session_output_rows(struct session *s, struct outputs *o, int first, int end);
/* The code of a call whose rows were all written. */
int session_output_verdict(struct session *s, const struct outputs *o);
