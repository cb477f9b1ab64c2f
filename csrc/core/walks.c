/* walks.c - see walks.h: the first and last steps that all backends share. */
#include "core/walks.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "util/numbers.h"

void walks_note(_Atomic int64_t *lowest, int64_t walk)
{
    int64_t seen = atomic_load(lowest);
    while (walk < seen && !atomic_compare_exchange_weak(lowest, &seen, walk)) continue;
}

void walks_box(const double (*x)[3], int64_t count, double centre[3], double *radius)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    double half[3], most = 0.0, sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (!all_finite(x[i], 3)) continue;
        for (int c = 0; c < 3; c++) {
            low[c] = x[i][c] < low[c] ? x[i][c] : low[c];
            high[c] = x[i][c] > high[c] ? x[i][c] : high[c];
        }
    }
    for (int c = 0; c < 3; c++) {
        const int any = low[c] <= high[c];
        centre[c] = any ? 0.5 * low[c] + 0.5 * high[c] : 0.0;
        /* the larger half, since the centre was rounded */
        half[c] = any ? fmax(high[c] - centre[c], centre[c] - low[c]) : 0.0;
        most = half[c] > most ? half[c] : most;
    }
    for (int c = 0; c < 3 && most > 0.0; c++) sum += half[c] / most * (half[c] / most);
    *radius = fmin(most * sqrt(sum), DBL_MAX); /* squares of ratios cannot overflow */
}

void walks_output(struct walks *w, int64_t walk, int64_t i, const double acc[3], double pot)
{
    const struct walk_group *g = &w->group[walk];
    const int acc_fits = all_finite(acc, 3), pot_fits = all_finite(&pot, 1);
    memcpy(g->acc[i], acc, sizeof g->acc[i]);
    g->pot[i] = pot;
    if (acc_fits && pot_fits) return;
    walks_note(isnan(pot) ? &w->bad_target : &w->out_of_range, walk);
    for (int c = 0; c < 3 && !acc_fits; c++) g->acc[i][c] = NAN;
    if (!pot_fits) g->pot[i] = NAN;
}
