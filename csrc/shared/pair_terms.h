/* pair_terms.h - what a pair may add (shared/pair.h). */
#ifndef GRAPE6_PAIR_TERMS_H
#define GRAPE6_PAIR_TERMS_H

/* What a pair adds: bits, which are constants where a kernel is compiled, so that each kernel holds
 * what it uses. Another law of force (a cut-off, a changeover) is a further bit, whose factors
 * stand in pair_factors alone. */
enum {
    PAIR_FORCE = 0,
    PAIR_JERK = 1,
    PAIR_OWN = 2,   /* eps^2 is the sum of both particles' */
    PAIR_SPLINE = 4 /* compact: eps^2 is the larger one; Newtonian from h = 2.8 eps on */
};
#define PAIR_SPLINE_H2 7.84 /* h^2 of eps^2 = 1: where the potential at the centre is m / eps */

#endif
