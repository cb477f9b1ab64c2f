/* at_rest.h - particles at rest, written one after another from address 0 on: a treecode's list.
 *
 * They are kept in 36 bytes each instead of the 128 of a slot, since such a list is written anew
 * for each group of particles, often only to be sent to a device. What is here is not in its slot,
 * until jmemory_commit puts it there for those who look at slots.
 */
#pragma once

#include <stdint.h>

#include "core/partial.h"

enum { AT_REST_SLOTS = 65536 }; /* at most: addresses below this */

struct at_rest {
    double (*xm)[4]; /* [capacity], by address: x, y, z, mass */
    int32_t *index;  /* [capacity] */
    int32_t capacity;
    int32_t first, end;                 /* addresses that are here */
    int32_t changed_first, changed_end; /* of those, written since the last settle */
    double time;                        /* of all of them */
};

static inline int at_rest_any(const struct at_rest *r) { return r->first < r->end; }

static inline int at_rest_changed(const struct at_rest *r)
{
    return r->changed_first < r->changed_end;
}

/* Notes that addresses first .. end - 1, of which the first is here or follows those that are, have
 * been written. */
static inline void at_rest_wrote(struct at_rest *r, int32_t first, int32_t end)
{
    const int any = at_rest_changed(r);
    if (end > r->end) r->end = end;
    if (!any || first < r->changed_first) r->changed_first = first;
    if (!any || end > r->changed_end) r->changed_end = end;
}

/* Whether a velocity or derivative is zero in all its bits: -0 may not be lost. */
static inline int is_all_zero3(const double *a)
{
    return !(bits_of(a[0]) | bits_of(a[1]) | bits_of(a[2]));
}

/* Whether a particle is at rest. Callers often have one array of zeros for all. */
static inline int is_at_rest(const double *k18, const double *j6, const double *a2, const double *v)
{
    if (!is_all_zero3(v)) return 0;
    if (k18 == v && j6 == v && a2 == v) return 1;
    return is_all_zero3(k18) && is_all_zero3(j6) && is_all_zero3(a2);
}

/* The top bit is set if the exponent of a is all ones: NaN or Inf. Integer arithmetic,
 * since the host may trap floating-point exceptions. */
static inline uint64_t not_finite(double a)
{
    return (bits_of(a) & 0x7ff0000000000000u) + 0x0010000000000000u;
}

static inline uint64_t not_finite3(const double *a)
{
    return not_finite(a[0]) | not_finite(a[1]) | not_finite(a[2]);
}

/* Stores a particle if it is sound. In pairs, which a compiler leaves in vector registers. */
static inline int at_rest_store(double xm[4], const double x[3], double mass)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    const pair exponent = {0x7ff0000000000000u, 0x7ff0000000000000u};
    const pair one = {0x0010000000000000u, 0x0010000000000000u};
    pair a, b = {bits_of(x[2]), bits_of(mass)};
    memcpy(&a, x, sizeof a);
    const pair bad = ((a & exponent) + one) | ((b & exponent) + one);
    if ((bad[0] | bad[1]) >> 63) return 0;
    memcpy(xm, &a, sizeof a);
    memcpy(xm + 2, &b, sizeof b);
    return 1;
}
