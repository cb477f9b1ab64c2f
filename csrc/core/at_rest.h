/* at_rest.h - compact store of j particles at rest, written in sequence from address 0: the list of
 * a treecode.
 *
 * Each takes 36 bytes instead of the 128 of a slot, because such a list is rewritten for each group
 * of particles, often only to be sent to a device. A particle in this store is not in its slot
 * until jmemory_commit copies it there for code that reads slots.
 */
#pragma once

#include <stdint.h>

#include "core/partial.h"

enum { AT_REST_SLOTS = 65536 }; /* at most: addresses below this */

struct at_rest {
    double (*xm)[4]; /* [capacity], by address: x, y, z, mass */
    int32_t *index;  /* [capacity] */
    int32_t capacity;
    int32_t first, end;                 /* addresses in this store: first .. end - 1 */
    int32_t changed_first, changed_end; /* of these, written since the last settle */
    double time;                        /* the same for all of them */
};

static inline int at_rest_any(const struct at_rest *r) { return r->first < r->end; }

static inline int at_rest_changed(const struct at_rest *r)
{
    return r->changed_first < r->changed_end;
}

/* Records that first .. end - 1 were written, of which `first` is in the store or just after it. */
static inline void at_rest_wrote(struct at_rest *r, int32_t first, int32_t end)
{
    const int any = at_rest_changed(r);
    if (end > r->end) r->end = end;
    if (!any || first < r->changed_first) r->changed_first = first;
    if (!any || end > r->changed_end) r->changed_end = end;
}

/* Whether all bits of a velocity or derivative are zero. -0 is not: it must be kept. */
static inline int is_all_zero3(const double *a)
{
    return !(bits_of(a[0]) | bits_of(a[1]) | bits_of(a[2]));
}

/* Whether a particle is at rest. Callers often pass one array of zeros for all four. */
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

/* Stores a vector and a number. A top bit of the result is set if one of them is NaN or Inf. Works
 * on pairs of numbers, which the compiler keeps in vector registers. */
typedef uint64_t bit_pair __attribute__((vector_size(16)));
static inline bit_pair store_four(double to[4], const double a[3], double b)
{
    const bit_pair exponent = {0x7ff0000000000000u, 0x7ff0000000000000u};
    const bit_pair one = {0x0010000000000000u, 0x0010000000000000u};
    bit_pair first, second = {bits_of(a[2]), bits_of(b)};
    memcpy(&first, a, sizeof first);
    memcpy(to, &first, sizeof first);
    memcpy(to + 2, &second, sizeof second);
    return ((first & exponent) + one) | ((second & exponent) + one);
}
