/* hermite_watch.h - when, during its step, a particle of a block comes close to another one or
 * leaves a sphere. Between the ends of the step it moves on the cubic that has their positions and
 * velocities. Also compiled for GPUs, with the same bits. */
#ifndef GRAPE6_HERMITE_WATCH_H
#define GRAPE6_HERMITE_WATCH_H

#include "shared/hermite_step.h"

/* A path x(s), 0 <= s <= 1, with the coefficients of s^0 to s^3. */
struct watch_path {
    double c[4][3];
};

HOST_DEVICE void watch_path_between(double h, const double x0[3], const double v0[3],
                                    const double x1[3], const double v1[3], struct watch_path *p)
{
    for (int k = 0; k < 3; k++) {
        const double way = x1[k] - x0[k];
        p->c[0][k] = x0[k];
        p->c[1][k] = h * v0[k];
        p->c[2][k] = 3.0 * way - h * (2.0 * v0[k] + v1[k]);
        p->c[3][k] = h * (v0[k] + v1[k]) - 2.0 * way;
    }
}

HOST_DEVICE double watch_place(const struct watch_path *p, double s, int k)
{
    return p->c[0][k] + s * (p->c[1][k] + s * (p->c[2][k] + s * p->c[3][k]));
}

/* The square of the distance from the origin. */
HOST_DEVICE double watch_distance2(const struct watch_path *p, double s)
{
    double d2 = 0.0;
    for (int k = 0; k < 3; k++) d2 += watch_place(p, s, k) * watch_place(p, s, k);
    return d2;
}

/* Half its derivative. */
HOST_DEVICE double watch_rate(const struct watch_path *p, double s)
{
    double rate = 0.0;
    for (int k = 0; k < 3; k++)
        rate += watch_place(p, s, k) * (p->c[1][k] + s * (2.0 * p->c[2][k] + 3.0 * s * p->c[3][k]));
    return rate;
}

enum { WATCH_HALVINGS = 52 };

/* Up to `high`, the s at which the path comes inside the radius (square r2), or outside. */
HOST_DEVICE double watch_crossing(const struct watch_path *p, double r2, int inside, double high)
{
    double low = 0.0;
    for (int i = 0; i < WATCH_HALVINGS; i++) {
        const double middle = 0.5 * (low + high), d2 = watch_distance2(p, middle);
        if (inside ? d2 <= r2 : d2 > r2)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* The first s at which the path is inside the radius (square r2); 2: it never is. A step resolves
 * the path: it has one pericentre at most. */
HOST_DEVICE double watch_first_inside(const struct watch_path *p, double r2)
{
    double low = 0.0, high = 1.0;
    if (watch_distance2(p, 0.0) <= r2) return 0.0;
    if (watch_rate(p, 0.0) < 0.0 && watch_rate(p, 1.0) > 0.0) {
        for (int i = 0; i < WATCH_HALVINGS; i++) {
            const double middle = 0.5 * (low + high);
            if (watch_rate(p, middle) < 0.0)
                low = middle;
            else
                high = middle;
        }
        if (watch_distance2(p, high) > r2) return 2.0;
    } else if (!(watch_distance2(p, 1.0) <= r2)) {
        return 2.0;
    }
    return watch_crossing(p, r2, 1, high);
}

/* The first s at which the path is outside the radius; 2: at its end it is not. */
HOST_DEVICE double watch_first_outside(const struct watch_path *p, double r2)
{
    if (!(watch_distance2(p, 1.0) > r2)) return 2.0;
    if (watch_distance2(p, 0.0) > r2) return 0.0;
    return watch_crossing(p, r2, 0, 1.0);
}

/* What a particle p of a block at `time` is watched for, and its state there. */
struct watch_row {
    double closer, farther, centre[3]; /* radii; 0: not watched */
    const double *x, *v;
    int p, nearest; /* nearest = p: there is none */
};

/* The nearest of some particles, found one after another; ties go to the lowest number. At first
 * r2 is infinite. */
struct watch_nearest {
    double r2;
    int p;
};

HOST_DEVICE void watch_add_near(struct watch_nearest *n, const double x[3], int q,
                                const double at[3])
{
    double r2 = 0.0;
    for (int k = 0; k < 3; k++) r2 += (at[k] - x[k]) * (at[k] - x[k]);
    if (r2 < n->r2 || (r2 == n->r2 && q < n->p)) n->r2 = r2, n->p = q;
}

/* Sets the times at which it comes close, or leaves; `never` if it does not. Returns whether it
 * does either. The particles are still at the beginnings of their steps. */
HOST_DEVICE int watch_step(const struct hermite_state *s, const struct watch_row *row, double time,
                           double never, double *close, double *left)
{
    const int p = row->p;
    const double begin = s->t[p], h = time - begin;
    struct watch_path path;
    double a[3], va[3], b[3], vb[3], when = 2.0;
    *close = *left = never;
    if (row->closer > 0.0 && row->nearest != p) {
        hermite_predict_one(s, row->nearest, begin, a, va);
        hermite_predict_one(s, row->nearest, time, b, vb);
        for (int k = 0; k < 3; k++) {
            a[k] = s->x[p][k] - a[k], va[k] = s->v[p][k] - va[k];
            b[k] = row->x[k] - b[k], vb[k] = row->v[k] - vb[k];
        }
        watch_path_between(h, a, va, b, vb, &path);
        when = watch_first_inside(&path, row->closer * row->closer);
        if (when <= 1.0) *close = begin + when * h;
    }
    if (row->farther > 0.0) {
        for (int k = 0; k < 3; k++) {
            a[k] = s->x[p][k] - row->centre[k];
            b[k] = row->x[k] - row->centre[k];
        }
        watch_path_between(h, a, s->v[p], b, row->v, &path);
        when = watch_first_outside(&path, row->farther * row->farther);
        if (when <= 1.0) *left = begin + when * h;
    }
    return *close < never || *left < never;
}

#endif
