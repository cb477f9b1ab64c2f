/* tree_box.h - the cube that contains all particles, and its units, which are powers of two:
 * coordinates are between -1 and 1, the sum of masses is below 1. Also compiled for GPUs. */
#ifndef GRAPE6_TREE_BOX_H
#define GRAPE6_TREE_BOX_H

#include "shared/host_device.h"

/* Exponent of the velocity unit if nothing moves: below that of any velocity. */
#define TREE_AT_REST -1100

/* The units of the box are 2^length, 2^mass and 2^velocity, in the caller's units. */
struct tree_box {
    double centre[3], low[3], side, per_side; /* low and side in units of the box */
    double scale[2], mass_scale[2];           /* to units of the box, as two factors in range */
    double usual_mass;                        /* tree_usual_mass */
    double spread2;  /* mean square of the distances of mass from its centre, in units of the box */
    double frame[3]; /* mean velocity of the particles, in units of the box, if known */
    int length, mass, velocity;
};

HOST_DEVICE void tree_halves(double factor[2], int exponent)
{
    factor[0] = ldexp(1.0, exponent / 2);
    factor[1] = ldexp(1.0, exponent - exponent / 2);
}

/* a 2^exponent, as two factors, since the power alone could overflow. */
HOST_DEVICE double tree_scaled(double a, int exponent)
{
    double factor[2];
    tree_halves(factor, exponent);
    return a * factor[0] * factor[1];
}

/* Box of n particles with coordinates from low to high and masses between -mass and mass. */
HOST_DEVICE void tree_box_of(struct tree_box *box, const double low[3], const double high[3],
                             double mass, double n)
{
    double extent = 0.0;
    for (int c = 0; c < 3; c++) {
        box->centre[c] = 0.5 * low[c] + 0.5 * high[c];
        const double above = high[c] - box->centre[c], below = box->centre[c] - low[c];
        if (above > extent) extent = above;
        if (below > extent) extent = below;
    }
    box->length = extent > 0.0 ? ilogb(extent) + 1 : 0;
    box->mass = mass > 0.0 ? ilogb(mass) + 1 + ilogb(n) + 1 : 0;
    tree_halves(box->scale, -box->length);
    tree_halves(box->mass_scale, -box->mass);
    const double half =
        extent > 0.0 ? extent * box->scale[0] * box->scale[1] * (1.0 + 0x1p-40) : 1.0;
    box->side = 2.0 * half;
    box->per_side = 1.0 / box->side;
    for (int c = 0; c < 3; c++) box->low[c] = -half;
}

/* The mean absolute mass of n bodies with a total, in units of the box; infinite if none can have
 * more than twice as much. (The largest has less than 2^-(ilogb(n) + 1): see tree_box_of.) */
HOST_DEVICE double tree_usual_mass(double total, double n)
{
    const double usual = n > 0.0 ? total / n : INFINITY;
    return ldexp(1.0, -(ilogb(n) + 1)) <= 2.0 * usual ? (double)INFINITY : usual;
}

/* A coordinate in units of the box. */
HOST_DEVICE double tree_in_box(const struct tree_box *box, int c, double x)
{
    return (x - box->centre[c]) * box->scale[0] * box->scale[1];
}

/* Splits such a coordinate into two single precision parts, which the tree uses. */
HOST_DEVICE void tree_split(double at, float *high, float *low)
{
    *high = (float)at;
    *low = (float)(at - (double)*high);
}

HOST_DEVICE double tree_mass_in_box(const struct tree_box *box, double m)
{
    return m * box->mass_scale[0] * box->mass_scale[1];
}

/* Exponent of the unit for velocities up to `largest`. */
HOST_DEVICE int tree_speed_exponent(double largest)
{
    return largest > 0.0 ? ilogb(largest) + 1 : TREE_AT_REST;
}

/* Raises the velocity unit of a box to 2^exponent if that is larger. Returns the old unit in units
 * of the new one. */
HOST_DEVICE float tree_widen(struct tree_box *box, int exponent)
{
    const int own = box->velocity;
    if (exponent <= own) return 1.0f;
    box->velocity = exponent;
    for (int c = 0; c < 3; c++) box->frame[c] = tree_scaled(box->frame[c], own - exponent);
    return (float)tree_scaled(1.0, own - exponent);
}

#endif
