/* tree_pull.h - how strong the field is at a group of targets, at least: of it the errors of terms
 * are to be small shares. Over the named operations of pair.h; also compiled for GPUs. */
#ifndef GRAPE6_TREE_PULL_H
#define GRAPE6_TREE_PULL_H

#include "shared/pair_terms.h"
#include "shared/tree_opening.h"

/* Distance over the sizes of cell and group, from which on a cell is far; and the share of a
 * group's radius below which a cell's size does not matter to it: scattered targets would else have
 * all cells opened. */
#define TREE_PULL_FAR 0.8f
#define TREE_PULL_SMALL 0.25f
/* An acceleration that is a smaller share of the sum of absolute values counts as this share: near
 * points of balance (Dehnen 2014, section 3.3, has the sum itself). */
#define TREE_PULL_SHARE 0.05f

struct tree_pull {
    vec of[4], varies; /* the vector and the sum of absolute values; the largest variation */
};

HOST_DEVICE struct tree_pull tree_pull_none(void)
{
    struct tree_pull sum;
    for (int k = 0; k < 4; k++) sum.of[k] = v_set1(0);
    sum.varies = v_set1(0);
    return sum;
}

/* Whether cells at some places (x, y, z, size) are farther than `reach`. */
HOST_DEVICE vmask tree_pull_is_beyond(const struct tree_group *g, const vec place[4], vec reach)
{
    const vec x = v_sub(place[0], v_set1(g->x)), y = v_sub(place[1], v_set1(g->y));
    const vec z = v_sub(place[2], v_set1(g->z));
    return v_lt(v_mul(reach, v_abs(reach)), v_fma(z, z, v_fma(y, y, v_mul(x, x))));
}

HOST_DEVICE vec tree_pull_reach(const struct tree_group *g, vec size)
{
    return v_mul(v_set1(TREE_PULL_FAR), v_add(size, v_set1(g->radius)));
}

/* Whether cells at some places act as wholes. */
HOST_DEVICE vmask tree_pull_is_whole(const struct tree_group *g, const vec place[4])
{
    const vmask small = v_lt(place[3], v_set1(TREE_PULL_SMALL * g->radius));
    const vec reach = v_select(small, v_set1(-1), tree_pull_reach(g, place[3]));
    return tree_pull_is_beyond(g, place, reach);
}

/* Adds cells. Near ones are softened by both sizes, all by the largest eps^2 of a target; the sum
 * of absolute values is that at the farthest target. */
HOST_DEVICE void tree_pull_add(struct tree_pull *sum, const struct tree_group *g,
                               const vec place[4], vec mass)
{
    const vec x = v_sub(place[0], v_set1(g->x)), y = v_sub(place[1], v_set1(g->y));
    const vec z = v_sub(place[2], v_set1(g->z)), radius = v_set1(g->radius);
    const vec d2 = v_fma(z, z, v_fma(y, y, v_mul(x, x))), both = v_add(place[3], radius);
    const vmask far = tree_pull_is_beyond(g, place, tree_pull_reach(g, place[3]));
    const vec near = v_select(far, v_set1(0), v_mul(both, both));
    const float of_spline = g->reach * g->reach * (float)(1.0 / PAIR_SPLINE_H2);
    const vec soft = v_add(v_set1(g->eps2 + g->eps2_spread + of_spline + 1e-30f), near);
    const vec i = v_rsqrt(v_add(d2, soft)), i3 = v_mul(mass, v_mul(i, v_mul(i, i)));
    const vec d = v_mul(d2, v_rsqrt(v_add(d2, v_set1(1e-30f)))), most = v_add(d, both);
    const vec j = v_rsqrt(v_fma(most, most, soft)), whole = v_abs(v_mul(i3, d));
    sum->of[0] = v_fma(i3, x, sum->of[0]);
    sum->of[1] = v_fma(i3, y, sum->of[1]);
    sum->of[2] = v_fma(i3, z, sum->of[2]);
    sum->of[3] = v_fma(v_abs(mass), v_mul(d, v_mul(j, v_mul(j, j))), sum->of[3]);
    sum->varies =
        v_max(sum->varies, v_mul(whole, v_min(v_set1(1), v_mul(v_mul(v_set1(2), radius), i))));
}

/* From the sums over all lanes, and their largest variation. */
HOST_DEVICE float tree_pull_of(const float sum[5])
{
    const float all = sqrtf(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
    const float left = all - 2.0f * sum[4], least = TREE_PULL_SHARE * sum[3];
    return left > least ? left : least;
}

#endif
