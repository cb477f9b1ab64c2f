/* tree_expansion.h - multipoles and local expansions of 1/s, s^2 = r^2 + eps^2, in Cartesian
 * coordinates, over the named operations of pair.h. Also compiled for GPUs.
 *
 * 1/r is harmonic, so that of the derivatives of order n only 2 n + 1 are independent: those with
 * at most one z. A set of all orders up to p is an array in which term (a, b, c), c = 0 or 1,
 * is at TREE_TERM(a, b, c); terms with more z follow from the zero traces.
 *
 *   potential of a cell:   m D + Q_ij D_ij / 2 - O_ijk D_ijk / 6,      D_n = d^n/dx^n (1/s)
 *   local expansion:       phi(y) = sum over n of L_n y^n / n!
 *
 * (Warren and Salmon 1995; Dehnen 2002, J. Comput. Phys. 179, 27). phi = -pot, acc = grad phi.
 * Softening makes 1/s not quite harmonic: near pairs of cells are not expanded (shared/tree_mac.h),
 * and particle-cell terms carry the trace of the second moments.
 *
 * Jerks: the target moves with velocity v and each cell, rigidly, with its velocity u, so grad phi
 * changes at the rate grad ((v - u) . grad phi). All velocities are in one frame: the expansion psi
 * of the sum of -u . grad phi is translated like that of phi, and the rate at a target is
 * grad (psi + v . grad phi). psi has one order less. The choice of the frame does not change the
 * truncated terms.
 */
#ifndef GRAPE6_TREE_EXPANSION_H
#define GRAPE6_TREE_EXPANSION_H

enum { TREE_ORDERS = 6, TREE_TERMS = (TREE_ORDERS + 1) * (TREE_ORDERS + 1) };

/* (int)(...): a constant once the loops around it are unrolled */
#define TREE_TERM(a, b, c)                                                                         \
    (((a) + (b) + (c)) * ((a) + (b) + (c)) + ((c) ? (a) + (b) + (c) + 1 + (b) : (b)))

/* Multipole of a cell: its position and moments without traces. */
struct tree_multipole {
    vec x, y, z, m;
    vec spread;                            /* -3/2 of a third of the trace of the second moments */
    vec xx, xy, xz, yy, yz;                /* Q */
    vec xxx, xxy, xxz, xyy, xyz, yyy, yyz; /* O */
};

/* Term (a, b, c) of a set, c up to 2. */
HOST_DEVICE vec tree_term(const vec *t, int a, int b, int c)
{
    return c < 2 ? t[TREE_TERM(a, b, c)]
                 : v_sub(v_sub(v_set1(0), t[TREE_TERM(a + 2, b, 0)]), t[TREE_TERM(a, b + 2, 0)]);
}

/* All derivatives of 1/s up to an order, by recursion over the derivatives g of 1/s for s^2/2:
 * D(g_m)_{n + e_x} = x D(g_{m+1})_n + n_x D(g_{m+1})_{n - e_x}. */
HOST_DEVICE void tree_derivatives(const int order, vec x, vec y, vec z, vec eps2, vec d[TREE_TERMS])
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
            for (int c = 0; c <= 1; c++) {
                TREE_UNROLL
                for (int b = 0; b <= n - c; b++) {
                    const int a = n - b - c;
                    vec v;
                    if (a > 1)
                        v = v_fma(x, d[TREE_TERM(a - 1, b, c)],
                                  v_mul(v_set1(a - 1), d[TREE_TERM(a > 1 ? a - 2 : 0, b, c)]));
                    else if (a > 0)
                        v = v_mul(x, d[TREE_TERM(0, b, c)]);
                    else if (b > 1)
                        v = v_fma(y, d[TREE_TERM(0, b > 0 ? b - 1 : 0, c)],
                                  v_mul(v_set1(b - 1), d[TREE_TERM(0, b > 1 ? b - 2 : 0, c)]));
                    else if (b > 0)
                        v = v_mul(y, d[TREE_TERM(0, 0, c)]);
                    else
                        v = v_mul(z, d[0]);
                    d[TREE_TERM(a, b, c)] = v;
                }
            }
        }
        d[0] = g[m];
    }
}

/* M2L: adds a cell to the local expansion at offset x, y, z from it. */
HOST_DEVICE void tree_cell_to_local(const int order, vec x, vec y, vec z, vec eps2,
                                    const struct tree_multipole *c, vec local[TREE_TERMS])
{
    vec d[TREE_TERMS];
    tree_derivatives(order, x, y, z, eps2, d);
    const vec half = v_set1(0.5), sixth = v_set1(-1.0 / 6.0), three = v_set1(3);
    /* coefficients of the independent terms of D, after elimination of the others */
    const vec zz = v_sub(v_sub(v_set1(0), c->xx), c->yy);
    const vec qxx = v_mul(half, v_sub(c->xx, zz)), qyy = v_mul(half, v_sub(c->yy, zz));
    const vec xzz = v_add(c->xxx, c->xyy), yzz = v_add(c->xxy, c->yyy); /* negative */
    const vec zzz = v_add(c->xxz, c->yyz);
    const vec oxxx = v_mul(sixth, v_fma(three, xzz, c->xxx));
    const vec oxxy = v_mul(half, v_sub(v_sub(v_set1(0), c->xxy), yzz));
    const vec oxxz = v_mul(sixth, v_fma(three, c->xxz, zzz));
    const vec oxyy = v_mul(half, v_sub(v_sub(v_set1(0), c->xyy), xzz));
    const vec oxyz = v_sub(v_set1(0), c->xyz);
    const vec oyyy = v_mul(sixth, v_fma(three, yzz, c->yyy));
    const vec oyyz = v_mul(sixth, v_fma(three, c->yyz, zzz));
    TREE_UNROLL
    for (int n = 0; n <= order; n++) {
        TREE_UNROLL
        for (int k = 0; k <= 1; k++) {
            TREE_UNROLL
            for (int b = 0; b <= n - k; b++) {
                const int a = n - b - k;
                vec v = v_fma(c->m, d[TREE_TERM(a, b, k)], local[TREE_TERM(a, b, k)]);
                if (n + 2 <= order) {
                    v = v_fma(qxx, tree_term(d, a + 2, b, k), v);
                    v = v_fma(qyy, tree_term(d, a, b + 2, k), v);
                    v = v_fma(c->xy, tree_term(d, a + 1, b + 1, k), v);
                    v = v_fma(c->xz, tree_term(d, a + 1, b, k + 1), v);
                    v = v_fma(c->yz, tree_term(d, a, b + 1, k + 1), v);
                }
                if (n + 3 <= order) {
                    v = v_fma(oxxx, tree_term(d, a + 3, b, k), v);
                    v = v_fma(oxxy, tree_term(d, a + 2, b + 1, k), v);
                    v = v_fma(oxxz, tree_term(d, a + 2, b, k + 1), v);
                    v = v_fma(oxyy, tree_term(d, a + 1, b + 2, k), v);
                    v = v_fma(oxyz, tree_term(d, a + 1, b + 1, k + 1), v);
                    v = v_fma(oyyy, tree_term(d, a, b + 3, k), v);
                    v = v_fma(oyyz, tree_term(d, a, b + 2, k + 1), v);
                }
                local[TREE_TERM(a, b, k)] = v;
            }
        }
    }
}

/* Terms of order n: t = local + f (y . t_{n+1}). */
HOST_DEVICE void tree_contract(const int n, vec f, const vec *local, vec x, vec y, vec z, vec *t)
{
    const vec fx = v_mul(f, x), fy = v_mul(f, y), fz = v_mul(f, z);
    TREE_UNROLL
    for (int c = 0; c <= 1; c++) {
        TREE_UNROLL
        for (int b = 0; b <= n - c; b++) {
            const int a = n - b - c;
            t[TREE_TERM(a, b, c)] =
                v_fma(fx, t[TREE_TERM(a + 1, b, c)],
                      v_fma(fy, t[TREE_TERM(a, b + 1, c)],
                            v_fma(fz, tree_term(t, a, b, c + 1), local[TREE_TERM(a, b, c)])));
        }
    }
}

/* L2P: adds phi and its gradient at offset x, y, z from the centre of a local expansion. */
HOST_DEVICE void tree_local_to_point(const int order, const vec *local, vec x, vec y, vec z,
                                     vec *phi, vec acc[3])
{
    vec t[TREE_TERMS];
    TREE_UNROLL
    for (int chain = 0; chain < 2; chain++) { /* factors 1/(n-1)! for the gradient, 1/n! for phi */
        TREE_UNROLL
        for (int k = order * order; k < (order + 1) * (order + 1); k++) t[k] = local[k];
        TREE_UNROLL
        for (int n = order - 1; n >= 1; n--)
            tree_contract(n, v_set1(1.0 / (n + chain)), local, x, y, z, t);
        if (chain == 0) {
            acc[0] = v_add(acc[0], t[TREE_TERM(1, 0, 0)]);
            acc[1] = v_add(acc[1], t[TREE_TERM(0, 1, 0)]);
            acc[2] = v_add(acc[2], t[TREE_TERM(0, 0, 1)]);
        } else {
            tree_contract(0, v_set1(1), local, x, y, z, t);
            *phi = v_add(*phi, t[0]);
        }
    }
}

/* L2L: adds an expansion to that about a centre at offset x, y, z. Exact except for rounding. */
HOST_DEVICE void tree_local_to_local(const int order, const vec *from, vec x, vec y, vec z, vec *to)
{
    TREE_UNROLL
    for (int n = 0; n <= order; n++) {
        vec t[TREE_TERMS];
        TREE_UNROLL
        for (int k = order * order; k < (order + 1) * (order + 1); k++) t[k] = from[k];
        TREE_UNROLL
        for (int m = order - 1; m >= n; m--)
            tree_contract(m, v_set1(1.0 / (m + 1 - n)), from, x, y, z, t);
        TREE_UNROLL
        for (int k = n * n; k < (n + 1) * (n + 1); k++) to[k] = v_add(to[k], t[k]);
    }
}

/* M2P: adds phi and its gradient at offset x, y, z from a cell. `octupole`: use third moments. */
HOST_DEVICE void tree_cell_to_point(const int octupole, vec x, vec y, vec z, vec eps2,
                                    const struct tree_multipole *c, vec *phi, vec acc[3])
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
    const vec along = v_mul(s3, v_fma(v_mul(i2, i2), inner, v_sub(v_set1(0), c->m)));
    const vec k5 = v_mul(v_mul(v_set1(3), i2), s3);
    acc[0] = v_fma(along, x, v_fma(k5, ux, acc[0]));
    acc[1] = v_fma(along, y, v_fma(k5, uy, acc[1]));
    acc[2] = v_fma(along, z, v_fma(k5, uz, acc[2]));
    *phi = v_fma(c->m, s, v_fma(k5, both, *phi));
}

/* Adds the derivative of an expansion along the vector x, y, z, for orders up to order - 1. */
HOST_DEVICE void tree_local_along(const int order, const vec *local, vec x, vec y, vec z,
                                  vec *along)
{
    TREE_UNROLL
    for (int n = 0; n < order; n++) {
        TREE_UNROLL
        for (int c = 0; c <= 1; c++) {
            TREE_UNROLL
            for (int b = 0; b <= n - c; b++) {
                const int a = n - b - c, k = TREE_TERM(a, b, c);
                along[k] = v_fma(x, local[TREE_TERM(a + 1, b, c)],
                                 v_fma(y, local[TREE_TERM(a, b + 1, c)],
                                       v_fma(z, tree_term(local, a, b, c + 1), along[k])));
            }
        }
    }
}

/* Adds the time derivative of the gradient of phi at offset x, y, z from a cell. The offset changes
 * with velocity vx, vy, vz; the moments are constant. */
HOST_DEVICE void tree_cell_to_jerk(const int octupole, vec x, vec y, vec z, vec vx, vec vy, vec vz,
                                   vec eps2, const struct tree_multipole *c, vec jerk[3])
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
    const vec along_v = v_mul(s3, v_fma(i4, inner, c->m));
    const vec along = v_mul(s3, v_fma(i4, rate, v_mul(v_mul(v_set1(3), rv), c->m)));
    jerk[0] = v_fma(along, x, v_fnma(along_v, vx, v_fma(k5, v_add(wx, ux), jerk[0])));
    jerk[1] = v_fma(along, y, v_fnma(along_v, vy, v_fma(k5, v_add(wy, uy), jerk[1])));
    jerk[2] = v_fma(along, z, v_fnma(along_v, vz, v_fma(k5, v_add(wz, uz), jerk[2])));
}

#endif
