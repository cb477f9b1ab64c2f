/* output.h - writes results to the caller's arrays. */
#pragma once

#include "cpu/direct_kernel.h"
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
/* Writes rows while later ones are still being computed, if the backend supports it and there are
 * enough rows. With WANT_DISTANCE it first computes the distances with `job`. Returns how many rows
 * it has written. Errors are left to the call that collects all rows. */
int session_output_early(struct session *s, struct outputs *o, unsigned want,
                         const struct direct_job *job);
/* Writes rows first to end - 1 of the call's results. */
void session_output_rows(struct session *s, struct outputs *o, int first, int end);
/* The code of a call whose rows were all written. */
int session_output_verdict(struct session *s, const struct outputs *o);
