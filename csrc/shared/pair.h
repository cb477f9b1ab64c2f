/* pair.h - the pair interaction, written once over named operations.
 *
 * Included after a header that supplies, for a type `vec` of one or more lanes:
 *   v_set1 v_add v_sub v_mul v_fma (a b + c) v_fnma (c - a b)
 *
 * Gives, for r = x_i - x_j, v = v_i - v_j, s^2 = r^2 + eps^2 (Makino and Aarseth
 * 1992, eqs. 1 and 2):
 *   acc -= m r / s^3    jerk -= m (v - 3 (r.v) r / s^2) / s^3    pot += m / s
 */
#ifndef GRAPE6_PAIR_H
#define GRAPE6_PAIR_H

/* A position is hi + lo (lo only if `split`); see scale.h for the grid of hi. */
struct pair_i {
    vec x, y, z, xl, yl, zl, vx, vy, vz, eps2;
};
struct pair_j {
    vec x, y, z, m, vx, vy, vz, xl, yl, zl;
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

/* What a pair adds: bits, which are constants where a kernel is compiled, so that each kernel holds
 * what it uses. Another law of force (a softening, a cut-off, a changeover) is a further bit, whose
 * factors stand in pair_factors alone. */
enum { PAIR_FORCE = 0, PAIR_JERK = 1 };

/* The factors of a pair: m / s, m / s^3, and a third of what the jerk has by (r.v) r, 1 / s^2. */
HOST_DEVICE void pair_factors(const int term, vec m, vec y, vec *pot, vec *acc, vec *inverse2)
{
    (void)term;
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
    pair_factors(term, m, y, &pot, &acc, &inverse2);
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
