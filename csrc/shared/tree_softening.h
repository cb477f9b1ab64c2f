/* tree_softening.h - cells of particles that have their own softening, or splines: where they may
 * act as wholes. Also compiled for GPUs.
 *
 * Terms of cells have the mean eps^2 of their particles, and those of the splines none: a cell acts
 * where it is farther away than this lets errors be. */
#ifndef GRAPE6_TREE_SOFTENING_H
#define GRAPE6_TREE_SOFTENING_H

#include "shared/pair_terms.h"
#include "shared/tree_moments.h"
#include "shared/tree_opening.h"

/* eps^2 of a cell's particles, in units of the box: their mean, weighted with |m|; the least and
 * the largest. */
struct tree_cell_eps2 {
    float mean, least, most;
};

/* While it is summed: weights, and these times eps^2. */
struct tree_eps2_sum {
    double weight, weighted;
    float least, most;
};

HOST_DEVICE struct tree_eps2_sum tree_eps2_begin(void)
{
    const struct tree_eps2_sum none = {0.0, 0.0, INFINITY, 0.0f};
    return none;
}

HOST_DEVICE void tree_eps2_add(struct tree_eps2_sum *s, double weight,
                               const struct tree_cell_eps2 *e)
{
    s->weight += weight, s->weighted += weight * (double)e->mean;
    s->least = e->least < s->least ? e->least : s->least;
    s->most = e->most > s->most ? e->most : s->most;
}

HOST_DEVICE struct tree_cell_eps2 tree_eps2_of(const struct tree_eps2_sum *s)
{
    const float mean = s->weight > 0.0 ? (float)(s->weighted / s->weight) : s->most; /* no pull */
    const struct tree_cell_eps2 e = {mean, s->least, s->most};
    return e;
}

/* h of a spline of this eps^2. */
HOST_DEVICE float tree_spline_reach(float eps2) { return sqrtf((float)PAIR_SPLINE_H2 * eps2); }

/* What terms of cells have for all targets of a group, whose least eps^2 and spread it has. */
HOST_DEVICE void tree_own_group(struct tree_group *g, int term)
{
    const float half = 0.5f * g->eps2_spread;
    const int spline = term & PAIR_SPLINE;
    g->reach = spline ? tree_spline_reach(g->eps2 + g->eps2_spread) : 0.0f;
    g->eps2 = spline ? 0.0f : g->eps2 + half;
    g->eps2_spread = spline ? 0.0f : half;
}

/* What a mean for all lacks falls with its share of the squared distance: found by experiment. */
#define TREE_OWN_MEAN 8.0f
#define TREE_OWN_MEAN_OF_JERKS 128.0f /* tree_least_distance2 */
#define TREE_OWN_SPREAD 25.0f

/* How far away from its surface a cell's particles act as they do in a term of the cell; jerk:
 * whether expansions are to have jerks. */
HOST_DEVICE float tree_own_reach(const struct tree_cell_eps2 *e, int term, int soft, int jerk,
                                 float bound)
{
    if (term & PAIR_SPLINE) return tree_spline_reach(e->most);
    const float above = e->most - e->mean, below = e->mean - e->least;
    const float by =
        bound > 0.0f && bound < 1e-3f ? TREE_OWN_SPREAD * 1e-3f / bound : TREE_OWN_SPREAD;
    const float times = jerk ? TREE_OWN_MEAN_OF_JERKS : TREE_OWN_MEAN;
    const float mean = soft ? 0.0f : times * sqrtf(e->mean); /* soft terms have it all */
    const float spread = sqrtf(by * (above > below ? above : below));
    return mean > spread ? mean : spread;
}

#endif
