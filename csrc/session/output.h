/* output.h - results on their way to the caller's arrays. */
#pragma once

#include "cpu/direct_kernel.h"
#include "session/session.h"

/* Where results go, and the tasks of writing them; out_of_range is the first row that does
 * not fit a double, INT_MAX if all do. */
struct outputs {
    const struct force_call *call;
    double (*acc)[3], (*jerk)[3], *pot;
    int *nearest;
    float *distance;
    int end;
    _Atomic int next, out_of_range;
};

/* Fills the outputs of n particles with quiet NaN, and nearest neighbours with -1, which its hosts
 * take for a hardware error. Each pointer may be NULL. */
void session_output_nan(int n, double (*acc)[3], double (*jerk)[3], double *pot, int *nearest,
                        float *distance);
/* Makes NaN of the jerk unless it was computed, and of what does not fit a double, in which case 0
 * is returned. */
int session_output_fit(double sum[NSUM], int jerk);
/* Writes rows while later ones are still being computed, if the backend can do that and there are
 * enough of them, with WANT_DISTANCE after finding it by the call's `job`; how many rows are
 * written. An error will come again when all are asked for. */
int session_output_early(struct session *s, struct outputs *o, unsigned want,
                         const struct direct_job *job);
/* Writes rows first to end - 1 of the call's results. */
void session_output_rows(struct session *s, struct outputs *o, int first, int end);
/* The code of a call whose rows were all written. */
int session_output_verdict(struct session *s, const struct outputs *o);
