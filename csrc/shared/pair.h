/* pair.h - the pair interaction, written once over named operations.
 *
 * Included after a header that supplies, for a type `vec` of one or more lanes:
 *   v_set1 v_add v_sub v_mul v_fma (a b + c) v_fnma (c - a b) v_lt v_select v_rsqrt
 *
 * Gives, for r = x_i - x_j, v = v_i - v_j, s^2 = r^2 + eps^2 (Makino and Aarseth
 * 1992, eqs. 1 and 2):
 *   acc -= m r / s^3    jerk -= m (v - 3 (r.v) r / s^2) / s^3    pot += m / s
 */
#ifndef GRAPE6_PAIR_H
#define GRAPE6_PAIR_H

#include "shared/pair_terms.h"
#ifndef PAIR_LEAST_H2
/* The least h^2 of a spline, below which there is none: powers of h have to be in range. */
#define PAIR_LEAST_H2 0
#endif

/* A position is hi + lo (lo only if `split`); see scale.h for the grid of hi. */
struct pair_i {
    vec x, y, z, xl, yl, zl, vx, vy, vz, eps2;
};
struct pair_j {
    vec x, y, z, m, vx, vy, vz, xl, yl, zl, eps2; /* eps2: of terms that take it */
};
struct pair_sep {
    vec x, y, z;
};
struct pair_sum {
    vec ax, ay, az, jx, jy, jz, pot;
};

/* Separation x_i - x_j; j is the operand that may be broadcast from memory to all lanes. The
 * difference of the high halves is exact on the grid, so the sum rounds once. */
HOST_DEVICE struct pair_sep pair_separation(const int split, const struct pair_i *i,
                                            const struct pair_j *j)
{
    struct pair_sep r;
    if (split) {
        r.x = v_add(v_sub(i->x, j->x), v_sub(i->xl, j->xl));
        r.y = v_add(v_sub(i->y, j->y), v_sub(i->yl, j->yl));
        r.z = v_add(v_sub(i->z, j->z), v_sub(i->zl, j->zl));
    } else {
        r.x = v_sub(i->x, j->x);
        r.y = v_sub(i->y, j->y);
        r.z = v_sub(i->z, j->z);
    }
    return r;
}

/* r^2 + eps2 */
HOST_DEVICE vec pair_distance2(const struct pair_sep *r, vec eps2)
{
    return v_fma(r->z, r->z, v_fma(r->y, r->y, v_fma(r->x, r->x, eps2)));
}

/* The eps^2 of a pair. */
HOST_DEVICE vec pair_softening(const int term, const struct pair_i *i, const struct pair_j *j)
{
    if (term & PAIR_SPLINE) return v_select(v_lt(i->eps2, j->eps2), j->eps2, i->eps2);
    return term & PAIR_OWN ? v_add(i->eps2, j->eps2) : i->eps2;
}

/* The s^2 of which pair_add has 1/s; of the spline, which needs none at r = 0, the r^2. */
HOST_DEVICE vec pair_softened2(const int term, const struct pair_sep *r, vec eps2)
{
    if (!(term & PAIR_SPLINE)) return pair_distance2(r, eps2);
    const vec r2 = pair_distance2(r, v_set1(0));
    return v_select(v_lt(v_set1(0), r2), r2, v_set1(1));
}

HOST_DEVICE vec pair_inverse(vec x)
{
    const vec y = v_rsqrt(x);
    return v_mul(y, y);
}

/* The spline of Monaghan & Lattanzio 1985 as Gadget has it (Springel, Yoshida & White 2001, New
 * Astronomy 6, 79): with u = r/h and w = 1 - u, from u = 1/2 on the mass within r is
 * 1 - w^4 (16 - 128/5 w + 32/3 w^2). */
HOST_DEVICE void pair_spline(const int term, vec m, vec y, const struct pair_sep *r, vec eps2,
                             vec *pot, vec *acc, vec *inverse2)
{
    const vec one = v_set1(1), h2 = v_mul(eps2, v_set1(PAIR_SPLINE_H2));
    const vmask soft = v_lt(v_set1(PAIR_LEAST_H2), h2);
    const vec by = v_rsqrt(v_select(soft, h2, one)), by2 = v_mul(by, by);
    const vec far = v_mul(v_mul(pair_distance2(r, v_set1(0)), y), by);
    const vec u = v_select(soft, v_select(v_lt(far, one), far, one), one), u2 = v_mul(u, u);
    const vmask inner = v_lt(u, v_set1(0.5));
    const vec w = v_sub(one, u), w2 = v_mul(w, w), w4 = v_mul(w2, w2), y2 = v_mul(y, y);
    const vec lacks = v_fnma(w, v_fnma(w, v_set1(32.0 / 3), v_set1(25.6)), v_set1(16));
    const vec mass = v_select(inner, one, v_fnma(w4, lacks, one));
    const vec core = v_fnma(u2, v_fnma(u, v_set1(32), v_set1(38.4)), v_set1(32.0 / 3));
    const vec shell = v_fnma(v_mul(w4, w), v_fnma(w, v_set1(32.0 / 15), v_set1(3.2)), one);
    const vec within =
        v_fnma(u2, v_fnma(u2, v_fnma(u, v_set1(6.4), v_set1(9.6)), v_set1(16.0 / 3)), v_set1(2.8));
    *pot = v_select(inner, v_mul(v_mul(m, by), within), v_mul(v_mul(m, y), shell));
    *acc =
        v_select(inner, v_mul(v_mul(v_mul(m, by), by2), core), v_mul(v_mul(v_mul(m, y), y2), mass));
    if (!(term & PAIR_JERK)) return;
    const vec steep = v_mul(v_mul(w, w2), v_mul(u, u2)), third = v_set1(64.0 / 3);
    const vec outside = v_mul(y2, v_fnma(v_mul(steep, third), pair_inverse(mass), one));
    const vec inside = v_mul(v_mul(by2, v_fnma(u, v_set1(32), v_set1(25.6))),
                             pair_inverse(v_select(inner, core, one)));
    *inverse2 = v_select(inner, inside, outside);
}

/* The factors of a pair: m / s, m / s^3, and a third of what the jerk has by (r.v) r, 1 / s^2. */
HOST_DEVICE void pair_factors(const int term, vec m, vec y, const struct pair_sep *r, vec eps2,
                              vec *pot, vec *acc, vec *inverse2)
{
    if (term & PAIR_SPLINE) {
        *inverse2 = y;
        pair_spline(term, m, y, r, eps2, pot, acc, inverse2);
        return;
    }
    *pot = v_mul(m, y);
    *inverse2 = v_mul(y, y);
    *acc = v_mul(*pot, *inverse2);
}

/* Adds one pair; y = 1/s. m is separate from j so that a caller can mask it: m = 0 with any finite
 * y adds exact zeros. */
HOST_DEVICE void pair_add(const int term, const struct pair_i *i, const struct pair_j *j, vec m,
                          vec y, const struct pair_sep *r, struct pair_sum *sum)
{
    vec pot, acc, inverse2;
    pair_factors(term, m, y, r, pair_softening(term, i, j), &pot, &acc, &inverse2);
    sum->pot = v_add(sum->pot, pot);
    sum->ax = v_fnma(acc, r->x, sum->ax);
    sum->ay = v_fnma(acc, r->y, sum->ay);
    sum->az = v_fnma(acc, r->z, sum->az);
    if (term & PAIR_JERK) {
        const vec vx = v_sub(i->vx, j->vx);
        const vec vy = v_sub(i->vy, j->vy);
        const vec vz = v_sub(i->vz, j->vz);
        const vec rv = v_fma(r->z, vz, v_fma(r->y, vy, v_mul(r->x, vx)));
        const vec b = v_mul(v_mul(rv, v_set1(3.0)), inverse2);
        sum->jx = v_fnma(acc, v_fnma(b, r->x, vx), sum->jx);
        sum->jy = v_fnma(acc, v_fnma(b, r->y, vy), sum->jy);
        sum->jz = v_fnma(acc, v_fnma(b, r->z, vz), sum->jz);
    }
}

#endif
