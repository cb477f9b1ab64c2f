/* tree_expansion.h - multipoles and local expansions of 1/s, s^2 = r^2 + eps^2, in Cartesian
 * coordinates, over the named operations of pair.h. Also compiled for GPUs.
 *
 *   potential of a cell:   m D + M_ij D_ij / 2 - M_ijk D_ijk / 6,      D_n = d^n/dx^n (1/s)
 *   local expansion:       phi(y) = sum over n of L_n y^n / n!
 *
 * (Warren and Salmon 1995; Dehnen 2002, J. Comput. Phys. 179, 27). phi = -pot, acc = grad phi.
 *
 * `soft`, a constant: a set has all derivatives, and moments have their traces. Along any direction
 * the series are then those of Legendre at a distance s: they converge within eps, too. Else, where
 * eps is small, 1/s is taken for harmonic: traces vanish, and of the derivatives of order n only
 * 2 n + 1 are independent, those with at most one z. Near pairs of cells are then not expanded
 * (shared/tree_mac.h), and particle-cell terms carry the trace of the second moments alone.
 *
 * A set of all orders up to p is an array in which term (a, b, c) of degree n = a + b + c is at
 * TREE_TERM(soft, a, b, c).
 *
 * Jerks: the target moves with velocity v and each cell, rigidly, with its velocity u, so grad phi
 * changes at the rate grad ((v - u) . grad phi). All velocities are in one frame: the expansion psi
 * of the sum of -u . grad phi is translated like that of phi, and the rate at a target is
 * grad (psi + v . grad phi). psi has one order less. The choice of the frame does not change the
 * truncated terms.
 */
#ifndef GRAPE6_TREE_EXPANSION_H
#define GRAPE6_TREE_EXPANSION_H

/* Terms of degrees up to n, and where one of degree n is among those of its degree. (int)(...): a
 * constant once the loops around it are unrolled. */
#define TREE_COUNT(soft, n) ((soft) ? ((n) + 1) * ((n) + 2) * ((n) + 3) / 6 : ((n) + 1) * ((n) + 1))
#define TREE_AT(n, b, c) ((c) * ((n) + 1) - (c) * ((c) - 1) / 2 + (b))
#define TREE_TERM(soft, a, b, c)                                                                   \
    ((int)(TREE_COUNT(soft, (a) + (b) + (c) - 1) + TREE_AT((a) + (b) + (c), b, c)))

enum { TREE_ORDERS = 6, TREE_TERMS = TREE_COUNT(1, TREE_ORDERS) };

/* Multipole of a cell: its position and moments without traces, and of these what `soft` needs. */
struct tree_multipole {
    vec x, y, z, m;
    vec spread;                            /* -3/2 of a third of the trace of the second moments */
    vec xx, xy, xz, yy, yz;                /* Q */
    vec xxx, xxy, xxz, xyy, xyz, yyy, yyz; /* O */
    vec tx, ty, tz;                        /* a fifth of the traces of the third moments */
    vec eps2;                              /* of the particles, in the mean, if it is used */
};

/* The most z of a term of degree n. */
HOST_DEVICE int tree_most_z(const int soft, const int n) { return soft || n < 1 ? n : 1; }

/* Term (a, b, c) of a set; if it is not `soft`, c up to 2. */
HOST_DEVICE vec tree_term(const int soft, const vec *t, int a, int b, int c)
{
    return soft || c < 2 ? t[TREE_TERM(soft, a, b, c)]
                         : v_sub(v_sub(v_set1(0), t[TREE_TERM(soft, a + 2, b, c < 2 ? 0 : c - 2)]),
                                 t[TREE_TERM(soft, a, b + 2, c < 2 ? 0 : c - 2)]);
}

/* All derivatives of 1/s up to an order, by recursion over the derivatives g of 1/s for s^2/2:
 * D(g_m)_{n + e_x} = x D(g_{m+1})_n + n_x D(g_{m+1})_{n - e_x}. */
HOST_DEVICE void tree_derivatives(const int order, const int soft, vec x, vec y, vec z, vec eps2,
                                  vec d[TREE_TERMS])
{
    const vec s2 = v_fma(z, z, v_fma(y, y, v_fma(x, x, eps2)));
    const vec s = v_rsqrt(s2), i2 = v_mul(s, s);
    vec g[TREE_ORDERS + 1];
    g[0] = s;
    TREE_UNROLL
    for (int m = 1; m <= order; m++) g[m] = v_mul(v_mul(i2, v_set1(1 - 2 * m)), g[m - 1]);
    d[0] = g[order];
    TREE_UNROLL
    for (int m = order - 1; m >= 0; m--) {
        TREE_UNROLL
        for (int n = order - m; n >= 1; n--) {
            TREE_UNROLL
            for (int c = 0; c <= tree_most_z(soft, n); c++) {
                TREE_UNROLL
                for (int b = 0; b <= n - c; b++) {
                    const int a = n - b - c;
                    const vec along = a > 0 ? x : b > 0 ? y : z;
                    const int da = a > 0, db = !da && b > 0, dc = !da && !db;
                    const int times = (da ? a : db ? b : c) - 1;
                    const vec below = d[TREE_TERM(soft, a - da, b - db, c - dc)];
                    d[TREE_TERM(soft, a, b, c)] =
                        times
                            ? v_fma(
                                  along, below,
                                  v_mul(
                                      v_set1(times),
                                      d[TREE_TERM(soft, times ? a - 2 * da : 0,
                                                  times ? b - 2 * db : 0, times ? c - 2 * dc : 0)]))
                            : v_mul(along, below);
                }
            }
        }
        d[0] = g[m];
    }
}

/* The factors of second and third derivatives in a cell's potential, by TREE_AT; of the independent
 * ones, after elimination of the others, if they are not `soft`. */
HOST_DEVICE void tree_factors(const int soft, const struct tree_multipole *c, vec q[6], vec o[10])
{
    const vec half = v_set1(0.5), sixth = v_set1(-1.0 / 6.0), three = v_set1(3), zero = v_set1(0);
    const vec zz = v_sub(v_sub(zero, c->xx), c->yy);
    const vec xzz = v_add(c->xxx, c->xyy), yzz = v_add(c->xxy, c->yyy); /* negative */
    const vec zzz = v_add(c->xxz, c->yyz);
    q[1] = c->xy, q[3] = c->xz, q[4] = c->yz;
    o[5] = v_sub(zero, c->xyz);
    if (!soft) {
        q[0] = v_mul(half, v_sub(c->xx, zz)), q[2] = v_mul(half, v_sub(c->yy, zz));
        o[0] = v_mul(sixth, v_fma(three, xzz, c->xxx));
        o[1] = v_mul(half, v_sub(v_sub(zero, c->xxy), yzz));
        o[2] = v_mul(half, v_sub(v_sub(zero, c->xyy), xzz));
        o[3] = v_mul(sixth, v_fma(three, yzz, c->yyy));
        o[4] = v_mul(sixth, v_fma(three, c->xxz, zzz));
        o[6] = v_mul(sixth, v_fma(three, c->yyz, zzz));
        return;
    }
    const vec trace = v_mul(v_set1(-2.0 / 3.0), c->spread), minus = v_set1(-0.5);
    q[0] = v_mul(half, v_add(c->xx, trace)), q[2] = v_mul(half, v_add(c->yy, trace));
    q[5] = v_mul(half, v_add(zz, trace));
    o[0] = v_mul(sixth, v_fma(three, c->tx, c->xxx));
    o[1] = v_mul(minus, v_add(c->xxy, c->ty)), o[2] = v_mul(minus, v_add(c->xyy, c->tx));
    o[3] = v_mul(sixth, v_fma(three, c->ty, c->yyy));
    o[4] = v_mul(minus, v_add(c->xxz, c->tz)), o[6] = v_mul(minus, v_add(c->yyz, c->tz));
    o[7] = v_mul(minus, v_sub(c->tx, xzz)), o[8] = v_mul(minus, v_sub(c->ty, yzz));
    o[9] = v_mul(sixth, v_fma(three, c->tz, v_sub(zero, zzz)));
}

/* Adds the factors of degree n to the derivatives that are n above term (a, b, c). */
HOST_DEVICE vec tree_add_moments(const int soft, const int n, const vec *factor, const vec *d,
                                 const int a, const int b, const int c, vec sum)
{
    TREE_UNROLL
    for (int dc = 0; dc <= tree_most_z(soft, n); dc++) {
        TREE_UNROLL
        for (int db = 0; db <= n - dc; db++)
            sum = v_fma(factor[TREE_AT(n, db, dc)],
                        tree_term(soft, d, a + n - db - dc, b + db, c + dc), sum);
    }
    return sum;
}

/* M2L: adds a cell to the local expansion at offset x, y, z from it. */
HOST_DEVICE void tree_cell_to_local(const int order, const int soft, vec x, vec y, vec z, vec eps2,
                                    const struct tree_multipole *cell, vec local[TREE_TERMS])
{
    vec d[TREE_TERMS], q[6], o[10];
    tree_derivatives(order, soft, x, y, z, eps2, d);
    tree_factors(soft, cell, q, o);
    TREE_UNROLL
    for (int n = 0; n <= order; n++) {
        TREE_UNROLL
        for (int c = 0; c <= tree_most_z(soft, n); c++) {
            TREE_UNROLL
            for (int b = 0; b <= n - c; b++) {
                const int a = n - b - c, k = TREE_TERM(soft, a, b, c);
                vec v = v_fma(cell->m, d[k], local[k]);
                if (n + 2 <= order) v = tree_add_moments(soft, 2, q, d, a, b, c, v);
                if (n + 3 <= order) v = tree_add_moments(soft, 3, o, d, a, b, c, v);
                local[k] = v;
            }
        }
    }
}

/* Terms of order n: t = local + f (y . of_{n+1}). */
HOST_DEVICE void tree_contract(const int n, const int soft, vec f, const vec *local, const vec *of,
                               vec x, vec y, vec z, vec *t)
{
    const vec fx = v_mul(f, x), fy = v_mul(f, y), fz = v_mul(f, z);
    TREE_UNROLL
    for (int c = 0; c <= tree_most_z(soft, n); c++) {
        TREE_UNROLL
        for (int b = 0; b <= n - c; b++) {
            const int a = n - b - c, k = TREE_TERM(soft, a, b, c);
            t[k] = v_fma(fx, of[TREE_TERM(soft, a + 1, b, c)],
                         v_fma(fy, of[TREE_TERM(soft, a, b + 1, c)],
                               v_fma(fz, tree_term(soft, of, a, b, c + 1), local[k])));
        }
    }
}

/* L2P: adds phi and its gradient at offset x, y, z from the centre of a local expansion. */
HOST_DEVICE void tree_local_to_point(const int order, const int soft, const vec *local, vec x,
                                     vec y, vec z, vec *phi, vec acc[3])
{
    const int last = TREE_COUNT(soft, order - 1), all = TREE_COUNT(soft, order);
    vec t[TREE_TERMS];
    TREE_UNROLL
    for (int chain = 0; chain < 2; chain++) { /* factors 1/(n-1)! for the gradient, 1/n! for phi */
        TREE_UNROLL
        for (int k = last; k < all; k++) t[k] = local[k];
        TREE_UNROLL
        for (int n = order - 1; n >= 1; n--)
            tree_contract(n, soft, v_set1(1.0 / (n + chain)), local, t, x, y, z, t);
        if (chain == 0) {
            acc[0] = v_add(acc[0], t[TREE_TERM(soft, 1, 0, 0)]);
            acc[1] = v_add(acc[1], t[TREE_TERM(soft, 0, 1, 0)]);
            acc[2] = v_add(acc[2], t[TREE_TERM(soft, 0, 0, 1)]);
        } else {
            tree_contract(0, soft, v_set1(1), local, t, x, y, z, t);
            *phi = v_add(*phi, t[0]);
        }
    }
}

/* L2L: adds an expansion to that about a centre at offset x, y, z. Exact except for rounding. */
HOST_DEVICE void tree_local_to_local(const int order, const int soft, const vec *from, vec x, vec y,
                                     vec z, vec *to)
{
    const int last = TREE_COUNT(soft, order - 1), all = TREE_COUNT(soft, order);
    TREE_UNROLL
    for (int n = 0; n <= order; n++) {
        const int first = TREE_COUNT(soft, n - 1), end = TREE_COUNT(soft, n);
        vec t[TREE_TERMS];
        TREE_UNROLL
        for (int k = last; k < all; k++) t[k] = from[k];
        TREE_UNROLL
        for (int m = order - 1; m >= n; m--)
            tree_contract(m, soft, v_set1(1.0 / (m + 1 - n)), from, t, x, y, z, t);
        TREE_UNROLL
        for (int k = first; k < end; k++) to[k] = v_add(to[k], t[k]);
    }
}

/* M2P: adds phi and its gradient at offset x, y, z from a cell. `octupole`: use third moments, and,
 * if `soft`, their traces. */
HOST_DEVICE void tree_cell_to_point(const int octupole, const int soft, vec x, vec y, vec z,
                                    vec eps2, const struct tree_multipole *c, vec *phi, vec acc[3])
{
    const vec s2 = v_fma(z, z, v_fma(y, y, v_fma(x, x, eps2)));
    const vec s = v_rsqrt(s2), i2 = v_mul(s, s), s3 = v_mul(s, i2);
    const vec zz = v_add(c->xx, c->yy); /* negative */
    vec ux = v_fma(c->xx, x, v_fma(c->xy, y, v_mul(c->xz, z)));
    vec uy = v_fma(c->xy, x, v_fma(c->yy, y, v_mul(c->yz, z)));
    vec uz = v_fnma(zz, z, v_fma(c->xz, x, v_mul(c->yz, y)));
    const vec q = v_fma(ux, x, v_fma(uy, y, v_mul(uz, z)));
    const vec trace = v_mul(c->spread, eps2);
    vec inner = v_fma(v_set1(-7.5), q, v_mul(v_set1(-5), trace));
    vec both = v_fma(v_set1(0.5), q, v_mul(v_set1(1.0 / 3.0), trace));
    if (octupole) {
        const vec z2 = v_mul(z, z), a = v_fma(x, x, v_sub(v_set1(0), z2));
        const vec b = v_fma(y, y, v_sub(v_set1(0), z2)), x2 = v_add(x, x);
        const vec xy = v_mul(x2, y), xz = v_mul(x2, z), yz = v_mul(v_add(y, y), z);
        const vec xzz = v_add(c->xxx, c->xyy), yzz = v_add(c->xxy, c->yyy); /* negative */
        const vec wx = v_fma(
            c->xxx, a, v_fma(c->xyy, b, v_fma(c->xxy, xy, v_fma(c->xxz, xz, v_mul(c->xyz, yz)))));
        const vec wy = v_fma(
            c->xxy, a, v_fma(c->yyy, b, v_fma(c->xyy, xy, v_fma(c->xyz, xz, v_mul(c->yyz, yz)))));
        const vec wz =
            v_fnma(xzz, xz, v_fnma(yzz, yz, v_fma(c->xxz, a, v_fma(c->yyz, b, v_mul(c->xyz, xy)))));
        const vec o = v_mul(i2, v_fma(wx, x, v_fma(wy, y, v_mul(wz, z))));
        const vec f = v_mul(v_set1(2.5), i2);
        inner = v_fma(v_set1(-17.5), o, inner);
        both = v_fma(v_set1(2.5 / 3.0), o, both);
        ux = v_fma(f, wx, ux), uy = v_fma(f, wy, uy), uz = v_fma(f, wz, uz);
    }
    if (octupole && soft) {
        const vec f = v_mul(v_set1(-2.5), v_mul(eps2, i2));
        const vec t = v_mul(f, v_fma(c->tx, x, v_fma(c->ty, y, v_mul(c->tz, z))));
        inner = v_fma(v_set1(-21), t, inner);
        both = v_add(both, t);
        ux = v_fma(f, c->tx, ux), uy = v_fma(f, c->ty, uy), uz = v_fma(f, c->tz, uz);
    }
    const vec along = v_mul(s3, v_fma(v_mul(i2, i2), inner, v_sub(v_set1(0), c->m)));
    const vec k5 = v_mul(v_mul(v_set1(3), i2), s3);
    acc[0] = v_fma(along, x, v_fma(k5, ux, acc[0]));
    acc[1] = v_fma(along, y, v_fma(k5, uy, acc[1]));
    acc[2] = v_fma(along, z, v_fma(k5, uz, acc[2]));
    *phi = v_fma(c->m, s, v_fma(k5, both, *phi));
}

/* Adds the derivative of an expansion along the vector x, y, z, for orders up to order - 1. */
HOST_DEVICE void tree_local_along(const int order, const int soft, const vec *local, vec x, vec y,
                                  vec z, vec *along)
{
    TREE_UNROLL
    for (int n = 0; n < order; n++) tree_contract(n, soft, v_set1(1), along, local, x, y, z, along);
}

/* Adds the time derivative of the gradient of phi at offset x, y, z from a cell. The offset changes
 * with velocity vx, vy, vz; the moments are constant. */
HOST_DEVICE void tree_cell_to_jerk(const int octupole, const int soft, vec x, vec y, vec z, vec vx,
                                   vec vy, vec vz, vec eps2, const struct tree_multipole *c,
                                   vec jerk[3])
{
    const vec s2 = v_fma(z, z, v_fma(y, y, v_fma(x, x, eps2)));
    const vec s = v_rsqrt(s2), i2 = v_mul(s, s), s3 = v_mul(s, i2), i4 = v_mul(i2, i2);
    const vec k5 = v_mul(v_mul(v_set1(3), i2), s3);
    const vec rv = v_mul(i2, v_fma(x, vx, v_fma(y, vy, v_mul(z, vz))));
    const vec zz = v_add(c->xx, c->yy); /* negative */
    /* u = Q x and w = Q v; the gradient is -(m + i4 inner) s3 x + k5 u */
    vec ux = v_fma(c->xx, x, v_fma(c->xy, y, v_mul(c->xz, z)));
    vec uy = v_fma(c->xy, x, v_fma(c->yy, y, v_mul(c->yz, z)));
    vec uz = v_fnma(zz, z, v_fma(c->xz, x, v_mul(c->yz, y)));
    vec wx = v_fma(c->xx, vx, v_fma(c->xy, vy, v_mul(c->xz, vz)));
    vec wy = v_fma(c->xy, vx, v_fma(c->yy, vy, v_mul(c->yz, vz)));
    vec wz = v_fnma(zz, vz, v_fma(c->xz, vx, v_mul(c->yz, vy)));
    const vec q = v_fma(ux, x, v_fma(uy, y, v_mul(uz, z)));
    const vec q_rate = v_fma(ux, vx, v_fma(uy, vy, v_mul(uz, vz))); /* half the rate of q */
    vec inner = v_fma(v_set1(7.5), q, v_mul(v_mul(v_set1(5), c->spread), eps2));
    vec rate = v_fma(v_set1(-15), q_rate, v_mul(v_mul(v_set1(7), rv), inner));
    vec by_u = v_mul(v_set1(-5), rv);
    ux = v_mul(by_u, ux), uy = v_mul(by_u, uy), uz = v_mul(by_u, uz);
    if (octupole) {
        /* matrix n = O x; adds n x and n v to the vectors, times 5/2 / s^2 and its derivative */
        const vec nxx = v_fma(c->xxx, x, v_fma(c->xxy, y, v_mul(c->xxz, z)));
        const vec nxy = v_fma(c->xxy, x, v_fma(c->xyy, y, v_mul(c->xyz, z)));
        const vec nyy = v_fma(c->xyy, x, v_fma(c->yyy, y, v_mul(c->yyz, z)));
        const vec xzz = v_add(c->xxx, c->xyy), yzz = v_add(c->xxy, c->yyy); /* negative */
        const vec nxz = v_fnma(xzz, z, v_fma(c->xxz, x, v_mul(c->xyz, y)));
        const vec nyz = v_fnma(yzz, z, v_fma(c->xyz, x, v_mul(c->yyz, y)));
        const vec nzz = v_add(nxx, nyy); /* negative */
        const vec ox = v_fma(nxx, x, v_fma(nxy, y, v_mul(nxz, z)));
        const vec oy = v_fma(nxy, x, v_fma(nyy, y, v_mul(nyz, z)));
        const vec oz = v_fnma(nzz, z, v_fma(nxz, x, v_mul(nyz, y)));
        const vec px = v_fma(nxx, vx, v_fma(nxy, vy, v_mul(nxz, vz)));
        const vec py = v_fma(nxy, vx, v_fma(nyy, vy, v_mul(nyz, vz)));
        const vec pz = v_fnma(nzz, vz, v_fma(nxz, vx, v_mul(nyz, vy)));
        const vec o = v_mul(i2, v_fma(ox, x, v_fma(oy, y, v_mul(oz, z))));
        const vec o_rate = v_mul(i2, v_fma(ox, vx, v_fma(oy, vy, v_mul(oz, vz)))); /* a third */
        const vec f = v_mul(v_set1(5), i2), by_o = v_mul(v_mul(v_set1(-17.5), rv), i2);
        inner = v_fma(v_set1(17.5), o, inner);
        rate = v_fma(v_set1(-52.5), o_rate, v_fma(v_mul(v_set1(157.5), rv), o, rate));
        wx = v_fma(f, px, wx), wy = v_fma(f, py, wy), wz = v_fma(f, pz, wz);
        ux = v_fma(by_o, ox, ux), uy = v_fma(by_o, oy, uy), uz = v_fma(by_o, oz, uz);
    }
    if (octupole && soft) {
        const vec f = v_mul(v_set1(17.5), v_mul(eps2, i2)), by_t = v_mul(f, rv);
        const vec t = v_mul(f, v_fma(c->tx, x, v_fma(c->ty, y, v_mul(c->tz, z))));
        const vec t_rate = v_mul(f, v_fma(c->tx, vx, v_fma(c->ty, vy, v_mul(c->tz, vz))));
        inner = v_fma(v_set1(-3), t, inner);
        rate = v_fma(v_set1(3), t_rate, v_fma(v_mul(v_set1(-27), rv), t, rate));
        ux = v_fma(by_t, c->tx, ux), uy = v_fma(by_t, c->ty, uy), uz = v_fma(by_t, c->tz, uz);
    }
    const vec along_v = v_mul(s3, v_fma(i4, inner, c->m));
    const vec along = v_mul(s3, v_fma(i4, rate, v_mul(v_mul(v_set1(3), rv), c->m)));
    jerk[0] = v_fma(along, x, v_fnma(along_v, vx, v_fma(k5, v_add(wx, ux), jerk[0])));
    jerk[1] = v_fma(along, y, v_fnma(along_v, vy, v_fma(k5, v_add(wy, uy), jerk[1])));
    jerk[2] = v_fma(along, z, v_fnma(along_v, vz, v_fma(k5, v_add(wz, uz), jerk[2])));
}

#endif
