/* tree_moments.h - the mass, centre and moments of a cell, in double precision with a fixed order
 * of additions, so that cells are the same on every machine; and their single precision form. Also
 * compiled for GPUs. */
#ifndef GRAPE6_TREE_MOMENTS_H
#define GRAPE6_TREE_MOMENTS_H

#include "shared/host_device.h"

/* Most particles of a leaf; only particles with equal keys may exceed it. */
enum { TREE_LEAF = 32 };
/* If this many particles of one leaf are within TREE_UNRESOLVED, the box does not resolve them. A
 * smallest cell may have as many as a crowd: summed pair by pair, more take long. */
enum { TREE_CLUMP = 8, TREE_CROWD = 2048 };
/* A radius in units of the box: 2^22 times the resolution of coordinates. */
#define TREE_UNRESOLVED 0x1p-26

/* A cell: particles first..end-1 in the order of the keys, and cells child..child_end-1 of the next
 * level (child < 0: a leaf). Cells are stored level by level, in the order of the keys. */
struct tree_cell {
    int32_t first, end, child, child_end;
};

/* Bodies of a cell, as a part of a tree tells them: of very many, fewer, so that numbers of
 * particles and these together are in range; the cell then counts as heavier than it is. */
enum { TREE_PART_BODIES = 1 << 24 };
HOST_DEVICE int32_t subtree_bodies(const struct tree_cell *c)
{
    return c->end - c->first < TREE_PART_BODIES ? c->end - c->first : TREE_PART_BODIES;
}

/* Moments about the centre of mass, including traces: xx xy xz yy yz zz; xxx xxy xxz xyy xyz xzz
 * yyy yyz yzz zzz. Until tree_centre, x is the sum of m (x - origin). */
struct tree_moments {
    double m, total, x[3], second[6], third[10]; /* total: of |m| */
    double radius; /* of a sphere about x that contains all particles */
    double low[3], high[3];
};

/* The same in single precision: position in two parts; traces apart (shared/tree_expansion.h). */
struct tree_cell_multipole {
    float x, y, z, m;
    float xl, yl, zl, spread;
    float xx, xy, xz, yy;
    float yz, xxx, xxy, xxz;
    float xyy, xyz, yyy, yyz;
    float tx, ty, tz, eps2; /* eps2: the mean of the particles' own, if they have any */
};

/* Position and size of a cell for the MAC. The size of a mixed cell is infinite. */
struct tree_cell_centre {
    float x, y, z, size;
};

/* Time derivatives of a cell: the velocity of its centre, and the derivatives of its moments about
 * the centre. Until tree_motion_centre, v is the momentum. */
struct tree_rates {
    double v[3], second[6], third[10];
};

/* The same in single precision, as in tree_cell_multipole. */
struct tree_motion {
    float vx, vy, vz, spread;
    float xx, xy, xz, yy;
    float yz, xxx, xxy, xxz;
    float xyy, xyz, yyy, yyz;
    float tx, ty, tz, unused;
};

/* Masses of both signs: there is no centre to expand about. */
HOST_DEVICE int tree_is_mixed(const struct tree_moments *c) { return c->total != fabs(c->m); }

/* The mean square of the distances of a cell's mass from its centre; of masses of both signs, what
 * it can be. */
HOST_DEVICE double tree_spread2(const struct tree_moments *c)
{
    const double trace = c->second[0] + c->second[3] + c->second[5];
    return tree_is_mixed(c) || c->m == 0.0 ? c->radius * c->radius : trace / c->m;
}

HOST_DEVICE void tree_begin(struct tree_moments *c)
{
    c->m = c->total = c->radius = 0.0;
    for (int k = 0; k < 3; k++) c->x[k] = 0.0, c->low[k] = 1e300, c->high[k] = -1e300;
    for (int k = 0; k < 6; k++) c->second[k] = 0.0;
    for (int k = 0; k < 10; k++) c->third[k] = 0.0;
}

/* First pass: adds the mass and box of a particle or a cell. */
HOST_DEVICE void tree_add_mass(struct tree_moments *c, double m, double total, const double x[3],
                               const double origin[3], const double low[3], const double high[3])
{
    c->m += m;
    c->total += total;
    for (int k = 0; k < 3; k++) {
        c->x[k] += m * (x[k] - origin[k]);
        if (low[k] < c->low[k]) c->low[k] = low[k];
        if (high[k] > c->high[k]) c->high[k] = high[k];
    }
}

/* After the first pass: computes the centre of mass. */
HOST_DEVICE void tree_centre(struct tree_moments *c, const double origin[3])
{
    for (int k = 0; k < 3; k++)
        c->x[k] = c->m != 0.0 && !tree_is_mixed(c) ? origin[k] + c->x[k] / c->m
                                                   : 0.5 * (c->low[k] + c->high[k]);
}

HOST_DEVICE double tree_larger(double a, double b) { return a > b ? a : b; }

HOST_DEVICE double tree_square(const double d[3])
{
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

/* Second pass: adds the moments of a mass m at offset d. The caller finds the radius. */
HOST_DEVICE void tree_add_particle(struct tree_moments *c, double m, const double d[3])
{
    const double x = m * d[0], y = m * d[1], z = m * d[2];
    const double xx = x * d[0], xy = x * d[1], xz = x * d[2], yy = y * d[1], yz = y * d[2];
    const double zz = z * d[2];
    c->second[0] += xx, c->second[1] += xy, c->second[2] += xz;
    c->second[3] += yy, c->second[4] += yz, c->second[5] += zz;
    c->third[0] += xx * d[0], c->third[1] += xx * d[1], c->third[2] += xx * d[2];
    c->third[3] += xy * d[1], c->third[4] += xy * d[2], c->third[5] += xz * d[2];
    c->third[6] += yy * d[1], c->third[7] += yy * d[2], c->third[8] += yz * d[2];
    c->third[9] += zz * d[2];
}

/* Second pass: adds the moments of a child cell with its centre at offset d; updates the radius. */
HOST_DEVICE void tree_add_cell(struct tree_moments *c, const struct tree_moments *child,
                               const double d[3])
{
    const double *q = child->second, *o = child->third, x = d[0], y = d[1], z = d[2];
    tree_add_particle(c, child->m, d);
    for (int k = 0; k < 6; k++) c->second[k] += q[k];
    c->third[0] += o[0] + 3.0 * (x * q[0]);
    c->third[1] += o[1] + 2.0 * (x * q[1]) + y * q[0];
    c->third[2] += o[2] + 2.0 * (x * q[2]) + z * q[0];
    c->third[3] += o[3] + x * q[3] + 2.0 * (y * q[1]);
    c->third[4] += o[4] + x * q[4] + y * q[2] + z * q[1];
    c->third[5] += o[5] + x * q[5] + 2.0 * (z * q[2]);
    c->third[6] += o[6] + 3.0 * (y * q[3]);
    c->third[7] += o[7] + 2.0 * (y * q[4]) + z * q[3];
    c->third[8] += o[8] + y * q[5] + 2.0 * (z * q[4]);
    c->third[9] += o[9] + 3.0 * (z * q[5]);
    c->radius = tree_larger(c->radius, sqrt(tree_square(d)) + child->radius);
}

/* Limits the radius to the distance of the farthest corner of the box. */
HOST_DEVICE void tree_close(struct tree_moments *c)
{
    double r2 = 0.0;
    for (int k = 0; k < 3; k++) {
        const double below = c->x[k] - c->low[k], above = c->high[k] - c->x[k];
        const double farther = below > above ? below : above;
        r2 += farther * farther;
    }
    const double corner = sqrt(r2);
    if (corner < c->radius) c->radius = corner;
}

/* The least single precision number that is not below a. */
HOST_DEVICE float tree_above(double a)
{
    const float f = (float)a;
    return (double)f < a ? f * (1.0f + 0x1p-23f) : f;
}

HOST_DEVICE void tree_single(const struct tree_moments *c, struct tree_cell_multipole *f,
                             struct tree_cell_centre *p)
{
    const double *q = c->second, *o = c->third, third = 1.0 / 3.0, fifth = 0.2;
    const double trace = (q[0] + q[3] + q[5]) * third;
    const double tx = (o[0] + o[3] + o[5]) * fifth, ty = (o[1] + o[6] + o[8]) * fifth;
    const double tz = (o[2] + o[7] + o[9]) * fifth;
    f->x = (float)c->x[0], f->y = (float)c->x[1], f->z = (float)c->x[2];
    f->xl = (float)(c->x[0] - (double)f->x), f->yl = (float)(c->x[1] - (double)f->y);
    f->zl = (float)(c->x[2] - (double)f->z);
    f->m = (float)c->m;
    f->spread = (float)(-1.5 * trace);
    f->xx = (float)(q[0] - trace), f->yy = (float)(q[3] - trace);
    f->xy = (float)q[1], f->xz = (float)q[2], f->yz = (float)q[4];
    f->xxx = (float)(o[0] - 3.0 * tx), f->xxy = (float)(o[1] - ty), f->xxz = (float)(o[2] - tz);
    f->xyy = (float)(o[3] - tx), f->xyz = (float)o[4];
    f->yyy = (float)(o[6] - 3.0 * ty), f->yyz = (float)(o[7] - tz);
    f->tx = (float)tx, f->ty = (float)ty, f->tz = (float)tz, f->eps2 = 0.0f;
    p->x = f->x, p->y = f->y, p->z = f->z;
    p->size = tree_is_mixed(c) ? (float)INFINITY : tree_above(c->radius);
}

/* After all momenta are summed: computes the velocity of the centre of mass. */
HOST_DEVICE void tree_motion_centre(const struct tree_moments *c, struct tree_rates *r)
{
    for (int k = 0; k < 3; k++) r->v[k] = c->m != 0.0 && !tree_is_mixed(c) ? r->v[k] / c->m : 0.0;
}

/* Adds the time derivatives of the moments of a mass m at offset d, with velocity w relative to the
 * centre. For a child cell, `cell` and `own` are its moments and derivatives; for a particle `cell`
 * is NULL. */
HOST_DEVICE void tree_add_rates(struct tree_rates *r, double m, const struct tree_moments *cell,
                                const struct tree_rates *own, const double d[3], const double w[3])
{
    static const int pair[6][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};
    static const int at[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
    static const int triple[10][3] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 1, 1}, {0, 1, 2},
                                      {0, 2, 2}, {1, 1, 1}, {1, 1, 2}, {1, 2, 2}, {2, 2, 2}};
    double second[6];
    for (int k = 0; k < 6; k++) {
        const int a = pair[k][0], b = pair[k][1];
        second[k] = m * (w[a] * d[b] + d[a] * w[b]);
        r->second[k] += cell ? second[k] + own->second[k] : second[k];
    }
    for (int k = 0; k < 10; k++) {
        const int a = triple[k][0], b = triple[k][1], c = triple[k][2];
        double sum = second[at[a][b]] * d[c] + m * (d[a] * d[b]) * w[c];
        if (cell) {
            const double *q = cell->second, *rate = own->second;
            sum += own->third[k] + (w[a] * q[at[b][c]] + d[a] * rate[at[b][c]]) +
                   (w[b] * q[at[a][c]] + d[b] * rate[at[a][c]]) +
                   (w[c] * q[at[a][b]] + d[c] * rate[at[a][b]]);
        }
        r->third[k] += sum;
    }
}

HOST_DEVICE void tree_motion_single(const struct tree_rates *r, struct tree_motion *s)
{
    struct tree_moments c = {0}; /* removes traces of derivatives like those of moments */
    struct tree_cell_multipole f;
    struct tree_cell_centre p;
    for (int k = 0; k < 6; k++) c.second[k] = r->second[k];
    for (int k = 0; k < 10; k++) c.third[k] = r->third[k];
    tree_single(&c, &f, &p);
    s->vx = (float)r->v[0], s->vy = (float)r->v[1], s->vz = (float)r->v[2];
    s->spread = f.spread, s->xx = f.xx, s->xy = f.xy, s->xz = f.xz, s->yy = f.yy, s->yz = f.yz;
    s->xxx = f.xxx, s->xxy = f.xxy, s->xxz = f.xxz, s->xyy = f.xyy, s->xyz = f.xyz;
    s->yyy = f.yyy, s->yyz = f.yyz;
    s->tx = f.tx, s->ty = f.ty, s->tz = f.tz, s->unused = 0.0f;
}

/* Size of a cell of side l for the Barnes-Hut criterion d > l/theta + delta. delta is the distance
 * of the centre of mass from the cube's centre (Bedorf, Gaburov and Portegies Zwart 2012). low: low
 * corner of the box. */
HOST_DEVICE float tree_barnes_hut_size(const struct tree_moments *c, const double low[3],
                                       double side, double theta)
{
    double delta2 = 0.0;
    for (int k = 0; k < 3; k++) {
        const double inside = 0.5 * (c->low[k] + c->high[k]) - low[k];
        const double centre = (floor(inside / side) + 0.5) * side + low[k];
        delta2 += (c->x[k] - centre) * (c->x[k] - centre);
    }
    return tree_is_mixed(c) ? (float)INFINITY : tree_above(side + theta * sqrt(delta2));
}

#endif
