/* tree_mac.h - the multipole acceptance criterion (MAC): compares the distance of a cell from a
 * group of targets with its size, over the named operations of pair.h. C and CUDA use the same
 * steps, so that both accept the same cells. */
#ifndef GRAPE6_TREE_MAC_H
#define GRAPE6_TREE_MAC_H

#include "shared/tree_moments.h"
#include "shared/tree_opening.h"

/* Length unit of the expansions of a group. At least 2^-13 of the box: expansions compute s^-13 for
 * distances s from the guard to the width of the box, which must fit single precision. For the same
 * reason at least 2^-22 of the distance of targets far outside the box, and of a large eps. */
HOST_DEVICE float tree_unit(const struct tree_opening *o, const struct tree_group *g)
{
    const float far =
        0x1p-22f * (fabsf(g->x) + fabsf(g->y) + fabsf(g->z) + (o->soft ? sqrtf(g->eps2) : 0.0f));
    float length = 256.0f * o->guard;
    if (length < g->radius) length = g->radius;
    if (length < far) length = far;
    return ldexpf(1.0f, ilogbf(length));
}

/* Squared distances of a cell's centre from the group's centre and from its box, softened if terms
 * are soft. */
struct tree_distance {
    vec centre, box;
};

/* Least squared distance of cell-cell terms because of softening: those that are not soft assume
 * harmonic functions, and if the targets' eps differ, the group's eps is used for all. */
HOST_DEVICE float tree_reach_soft(const struct tree_opening *o, const struct tree_group *g)
{
    const float share = o->bound > 0.0f ? fminf(1e-3f, o->bound) : 1e-3f; /* of a cell's pull */
    const float by = o->own ? 1.5f / share : 6400.0f;
    return o->least_distance2 * (o->soft ? 0.0f : g->eps2) + by * g->eps2_spread;
}

/* What the squares of distances are softened by, where soft terms converge as at a distance s. */
HOST_DEVICE float tree_softening(const struct tree_opening *o, const struct tree_group *g)
{
    if (!o->soft) return 0.0f;
    const float least = o->own ? g->eps2 - g->eps2_spread : g->eps2;
    return o->bound > 0.0f ? least : o->soft_share * fminf(least, o->most_eps2);
}

HOST_DEVICE struct tree_distance tree_distance_of(const struct tree_opening *o,
                                                  const struct tree_group *g, vec x, vec y, vec z)
{
    const vec dx = v_abs(v_sub(x, v_set1(g->x))), dy = v_abs(v_sub(y, v_set1(g->y)));
    const vec dz = v_abs(v_sub(z, v_set1(g->z))), zero = v_set1(0);
    const vec bx = v_max(v_sub(dx, v_set1(g->half_x)), zero);
    const vec by = v_max(v_sub(dy, v_set1(g->half_y)), zero);
    const vec bz = v_max(v_sub(dz, v_set1(g->half_z)), zero), soft = v_set1(tree_softening(o, g));
    struct tree_distance d;
    d.centre = v_fma(dz, dz, v_fma(dy, dy, v_mul(dx, dx)));
    d.box = v_fma(bz, bz, v_fma(by, by, v_mul(bx, bx)));
    d.centre = v_add(d.centre, soft), d.box = v_add(d.box, soft);
    return d;
}

/* Least squared distance from the group's box at which a cell of this size may act on a point
 * (M2P). Includes the error of single precision positions relative to the group's centre. `apart`:
 * what no particle of the cell is nearer than, if particles have their own softening. */
HOST_DEVICE vec tree_reach_point(const struct tree_opening *o, const struct tree_group *g, vec size,
                                 vec apart)
{
    const vec guard = v_set1(o->guard + 0x1p-6f * g->radius);
    vec r = v_fma(size, v_set1(o->by_theta_point), guard);
    if (o->own) r = v_max(r, v_add(v_add(size, guard), apart));
    return v_mul(r, r);
}

/* Least squared distance between centres for an expansion of the cell about the group's centre
 * (M2L). The two never overlap. */
HOST_DEVICE vec tree_reach_local(const struct tree_opening *o, int level,
                                 const struct tree_group *g, vec size, vec apart)
{
    const vec radius = v_set1(g->radius), both = v_fma(size, v_set1(o->size_weight), radius);
    const vec r = v_fma(both, v_set1(o->by_theta_local[level]), v_set1(o->guard));
    vec sum = v_add(size, radius);
    if (o->own) sum = v_add(sum, apart);
    const vec least = v_max(v_max(r, sum), v_mul(v_set1(o->least_radii), radius));
    return v_mul(least, least);
}

/* ---- errors of terms: what they can come to, after Dehnen 2014, Comput. Astrophys. 1, 1 (section
 * 3), with powers of multipoles P_k <= sum m r^k <= T s^(k - 2), T the sum of m r^2 --------------
 */

/* A cell as the estimates see it, in the unit of a group, in which powers fit single precision. */
struct tree_weight {
    vec mass, second, size, count; /* |m|, T, radius; bodies */
};

HOST_DEVICE struct tree_weight tree_weight_of(const struct tree_group *g, vec mass, vec spread,
                                              vec size, vec count)
{
    const vec u = v_set1(1.0f / g->unit);
    struct tree_weight c;
    c.mass = v_abs(mass); /* of mixed signs: the size is infinite */
    c.second = v_mul(v_abs(spread), v_mul(v_add(u, u), u));
    c.size = v_mul(u, size);
    c.count = count;
    return c;
}

/* Bodies of a cell; another rank's leaf that came without them says how many there are. */
HOST_DEVICE float tree_bodies_of(const struct tree_cell *c)
{
    return (float)(c->end > c->first ? c->end - c->first : c->child_end);
}

/* 1/d in that unit. */
HOST_DEVICE vec tree_inverse_of(const struct tree_group *g, vec distance2)
{
    const vec u = v_set1(1.0f / g->unit);
    return v_rsqrt(v_max(v_mul(v_mul(distance2, u), u), v_set1(1e-30f)));
}

/* The sum over n >= k of (n + 1) q^(n - k), k a constant; infinite from q = 1 on. */
HOST_DEVICE vec tree_series(int k, vec q)
{
    const vec left = v_sub(v_set1(1), q), by = v_rsqrt(v_max(v_mul(left, left), v_set1(1e-30f)));
    const vec sum = v_mul(v_fma(v_set1((float)-k), q, v_set1((float)(k + 1))), v_mul(by, by));
    return v_select(v_lt(q, v_set1(1)), sum, v_set1(INFINITY));
}

/* The multipoles of a cell beyond quadrupoles (known = 2) or octupoles (3), at a distance 1/i: the
 * sum over k > known of (k + 1) P_k / d^(k + 2). */
HOST_DEVICE vec tree_error_of_multipoles(const int known, const struct tree_weight *c, vec i)
{
    const vec q = v_mul(c->size, i), i2 = v_mul(i, i);
    const vec t = v_mul(v_mul(c->second, v_mul(i2, i2)), known == 2 ? q : v_mul(q, q));
    return v_mul(t, tree_series(known + 1, q));
}

/* What an expansion to order p lacks of the mass, quadrupole and octupole of a cell, whose centre
 * is at a distance 1/i from the group's, on targets within a radius: the sum over n > p of
 * n C(n - 1, k) P_k R^(n - 1 - k) / d^(n + 1), with the tail of k = 0 for all. */
HOST_DEVICE vec tree_error_of_order(int order, const struct tree_weight *c, vec radius, vec i)
{
    const float p = (float)order, two = 0.5f * p * (p - 1.0f), three = two * (p - 2.0f) / 3.0f;
    const vec x = v_mul(radius, i), i2 = v_mul(i, i), t = v_mul(c->second, i2);
    const vec octupole = v_mul(t, v_mul(c->size, i)), mass = v_mul(c->mass, v_mul(x, x));
    vec sum;
    if (order == 2)
        sum = v_fma(v_set1(4.0f / 3.0f), octupole, v_add(mass, t));
    else
        sum = v_fma(x, v_fma(v_set1(two), t, mass), v_mul(v_set1(three), octupole));
    for (int n = 3; n < order; n++) sum = v_mul(sum, x);
    return v_mul(v_mul(sum, i2), tree_series(order, x));
}

/* Softened, 1/s is not harmonic, which terms that are not soft take for granted; in those of a cell
 * on points, only the trace of second moments is right. What the trace of third moments comes to,
 * of which a third counts: */
HOST_DEVICE vec tree_error_of_soft_point(const struct tree_group *g, const struct tree_weight *c,
                                         vec distance2)
{
    const vec e2 = v_set1(3.0f * g->eps2 / (g->unit * g->unit));
    const vec i = tree_inverse_of(g, v_add(distance2, v_set1(g->eps2))), i2 = v_mul(i, i);
    const vec third = v_mul(v_mul(c->second, c->size), v_mul(i2, i2));
    return v_mul(v_mul(e2, third), v_mul(i2, i));
}

/* And what expansions lack of mass and second moments, within a radius; with one eps for all
 * targets, too, which is all if they are soft. Such errors of many cells have one sign, and add up:
 * found by experiment, 30 times. */
HOST_DEVICE vec tree_error_of_soft_local(const struct tree_opening *o, const struct tree_group *g,
                                         const struct tree_weight *c, vec radius, vec distance2)
{
    const float u = 45.0f / (g->unit * g->unit);
    const vec e2 = v_set1(o->soft ? 0.0f : u * g->eps2);
    const vec spread = v_mul(c->mass, v_set1(u * g->eps2_spread));
    const vec i = tree_inverse_of(g, v_add(distance2, v_set1(g->eps2))), i2 = v_mul(i, i);
    const vec x = v_mul(radius, tree_inverse_of(g, distance2));
    const vec both = v_mul(v_fma(c->mass, x, v_mul(c->second, i2)), tree_series(1, x));
    return v_mul(v_fma(e2, both, spread), v_mul(i2, i2));
}

/* Multipoles that are not known are rarely aligned: this share of what they can come to counts.
 * (With the whole, cells near a group have errors far below all others; with less, two heavy bodies
 * in one cell have larger ones than is asked.) */
#define TREE_ALIGNED 0.1f
/* Without a bound: times the error on points; the share of a term below which no error counts. */
#define TREE_LIKE_POINTS 2.0f
#define TREE_NO_ERROR 1e-6f

HOST_DEVICE vec tree_most_error(const struct tree_opening *o, const struct tree_group *g)
{
    return v_set1(o->bound * g->least_acc * g->unit * g->unit);
}

/* Whether more is asked of a cell than its distance. */
HOST_DEVICE int tree_goes_by_weight(const struct tree_opening *o)
{
    return o->bound > 0.0f || (o->order && o->usual_mass < INFINITY);
}

/* Whether a cell has a heavy body: its bodies have more than twice the usual mass, in the mean. */
HOST_DEVICE vmask tree_is_heavy(const struct tree_opening *o, const struct tree_weight *c)
{
    return v_lt(v_mul(c->count, v_set1(2.0f * o->usual_mass)), c->mass);
}

/* Whether a cell's error on each target of the group is within the bound. Without one, a heavy cell
 * is to be twice as far away as the opening angle says. */
HOST_DEVICE vmask tree_within_point(const struct tree_opening *o, const struct tree_group *g,
                                    const struct tree_weight *c, vec distance2)
{
    if (!(o->bound > 0.0f)) {
        const vec size = v_mul(c->size, v_set1(g->unit));
        const vec reach = v_mul(tree_reach_point(o, g, size, v_set1(0)), v_set1(4));
        return v_lt(v_select(tree_is_heavy(o, c), reach, v_set1(0)), distance2);
    }
    const float eps2 = o->soft ? 0.0f : g->eps2; /* terms on points are softened in any case */
    const vec i = tree_inverse_of(g, v_add(distance2, v_set1(eps2)));
    const vec error =
        o->order ? tree_error_of_multipoles(3, c, i) : tree_error_of_multipoles(2, c, i);
    const vec soft = o->order && !o->soft ? tree_error_of_soft_point(g, c, distance2) : v_set1(0);
    return v_lt(v_fma(v_set1(TREE_ALIGNED), error, soft), tree_most_error(o, g));
}

/* The error of a cell's expansion about the group's centre: of its order, and, where a target is
 * nearest to the cell, of its multipoles. Without a bound the opening angle decides, but for cells
 * of heavy bodies: the error is to be no larger than that of a quadrupole on each target, as in
 * Barnes and Hut's walk; a heavy body then acts on each target itself. */
HOST_DEVICE vmask tree_within_local(const struct tree_opening *o, const struct tree_group *g,
                                    const struct tree_weight *c, vec distance2)
{
    const vec i = tree_inverse_of(g, distance2), radius = v_set1(g->radius / g->unit);
    const vec order = tree_error_of_order(o->order, c, radius, i);
    if (!(o->bound > 0.0f)) {
        const vec least = v_mul(v_set1(TREE_NO_ERROR), v_mul(c->mass, v_mul(i, i)));
        const vec point = tree_error_of_multipoles(2, c, i);
        const vec most = v_fma(v_set1(TREE_LIKE_POINTS), point, least);
        return v_lt(order, v_select(tree_is_heavy(o, c), most, v_set1(INFINITY)));
    }
    const vec nearest = v_mul(i, v_rsqrt(v_max(v_mul(v_sub(v_set1(1), v_mul(radius, i)),
                                                     v_sub(v_set1(1), v_mul(radius, i))),
                                               v_set1(1e-30f))));
    const vec multipoles = tree_error_of_multipoles(3, c, nearest);
    const vec rest = v_add(order, tree_error_of_soft_local(o, g, c, radius, distance2));
    return v_lt(v_fma(v_set1(TREE_ALIGNED), multipoles, rest), tree_most_error(o, g));
}

#endif
