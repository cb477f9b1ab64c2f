/* grape5_points.c - see grape5_points.h. */
#include "cpu/grape5_points.h"

#include <math.h>
#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "core/origin.h"

enum { MOST_POINTS = 0x7ffffc00 };

/* NaNs that mark invalid data. */
#define EMPTY 0x7ff80000000e3973u
#define MISSING 0x7ff80000000e3974u
#define LOST 0x7ff80000000e3975u

#define ARRAYS(p, n)                                                                               \
    {MEMORY_ARRAY((p)->x, n),                                                                      \
     MEMORY_ARRAY((p)->m, n),                                                                      \
     MEMORY_ARRAY((p)->chunk, (n) / CHUNK),                                                        \
     MEMORY_ARRAY((p)->unpacked, (n) / BLOCK),                                                     \
     MEMORY_ARRAY((p)->stale, (n) / BLOCK),                                                        \
     {0}}

void cpu_grape5_points_free(struct grape5_points *p)
{
    const struct memory_array all[] = ARRAYS(p, 0);
    memory_free_all(all);
    memset(p, 0, sizeof *p);
}

/* ---- growth --------------------------------------------------------------------- */

static void mark(struct grape5_points *p, int64_t first, int64_t end, uint64_t what)
{
    for (int64_t a = first; a < end; a++) p->m[a] = p->x[a][0] = from_bits(what);
    if (first < end && first < p->finite) p->finite = first;
    for (int64_t b = first / BLOCK; first < end && b <= (end - 1) / BLOCK; b++) p->stale[b] = 1;
}

static int grow_to(struct grape5_points *p, int64_t capacity)
{
    const struct memory_array all[] = ARRAYS(p, capacity);
    if (memory_grow_all(all)) return G6X_E_MEMORY;
    const int64_t old = p->capacity;
    p->capacity = capacity;
    mark(p, old, capacity, EMPTY);
    const int nlost = p->nlost;
    p->nlost = 0;
    for (int k = 0; k < nlost; k++) { /* some of these addresses exist now */
        const struct lost l = p->lost[k];
        cpu_grape5_points_lose(p, l.first, l.end);
    }
    return 0;
}

static int reserve(struct grape5_points *p, int64_t end)
{
    if (end <= p->capacity) return 0;
    if (end > MOST_POINTS) return G6X_E_MEMORY;
    const int64_t needed = (end + BLOCK - 1) / BLOCK * BLOCK;
    int64_t requested = (p->capacity + p->capacity / 2 + BLOCK - 1) / BLOCK * BLOCK;
    if (requested > MOST_POINTS) requested = MOST_POINTS;
    if (requested < needed) requested = needed;
    return grow_to(p, requested) && (requested == needed || grow_to(p, needed)) ? G6X_E_MEMORY : 0;
}

void cpu_grape5_points_lose(struct grape5_points *p, int64_t first, int64_t end)
{
    const int64_t here = end < p->capacity ? end : p->capacity;
    mark(p, first, here, LOST);
    if (first < here) first = here;
    if (first < end) lost_note(p->lost, &p->nlost, first, end);
}

/* ---- writing -------------------------------------------------------------------- */

/* Writes a point; it, or the old one unless that `was_finite`, may have invalid numbers. Returns
 * whether the new are valid. */
static int set_one(struct grape5_points *p, int halves, int64_t a, int was_finite, const double *x,
                   const double *m)
{
    const uint64_t was = was_finite ? 0 : bits_of(p->m[a]);
    if (was == EMPTY || was == LOST) p->m[a] = p->x[a][0] = from_bits(MISSING);
    if (halves & GRAPE5_POSITIONS) {
        memcpy(p->x[a], x, sizeof p->x[a]);
        if (!all_finite(x, 3)) p->x[a][0] = from_bits(MISSING);
    }
    if (halves & GRAPE5_MASSES) p->m[a] = is_finite(*m) ? *m : from_bits(MISSING);
    return (!x || all_finite(x, 3)) && (!m || is_finite(*m));
}

int cpu_grape5_points_set(struct grape5_points *p, int halves, int64_t address, int64_t n,
                          const double (*x)[3], const double *m, int64_t *which)
{
    int code = 0;
    if (!n) return 0;
    if (reserve(p, address + n)) {
        code = G6X_E_MEMORY;
        *which = address > p->capacity ? address : p->capacity;
        cpu_grape5_points_lose(p, *which, address + n);
        n = *which - address;
        if (n <= 0) return code;
    }
    const double (*const from)[3] = halves & GRAPE5_POSITIONS ? x : NULL;
    const double *const mass = halves & GRAPE5_MASSES ? m : NULL;
    for (int64_t b = address / BLOCK; b <= (address + n - 1) / BLOCK; b++) p->stale[b] = 1;
    const int64_t finite = p->finite;
    /* If a copy finds NaN or Inf, p->finite is not yet changed: the loop below writes all again. */
    if ((halves == GRAPE5_BOTH ? address <= p->finite : address + n <= p->finite) &&
        (!mass || p->kernel->copy(p->m + address, mass, n)) &&
        (!from || p->kernel->copy(p->x[address], from[0], 3 * n))) {
        if (address + n > p->finite) p->finite = address + n;
        return code;
    }
    if (p->finite > address) p->finite = address;
    for (int64_t k = 0; k < n; k++)
        if (!set_one(p, halves, address + k, address + k < finite, from ? from[k] : NULL,
                     mass ? mass + k : NULL) &&
            code != G6X_E_J_NAN) {
            code = G6X_E_J_NAN; /* report only the first */
            *which = address + k;
        }
    return code;
}

int64_t cpu_grape5_points_first_bad(struct grape5_points *p, int64_t n, int *was_lost)
{
    const int64_t end = n < p->capacity ? n : p->capacity;
    int in_order = 1; /* no empty address yet */
    *was_lost = 0;
    for (int64_t a = p->finite; a < end; a++) {
        const int empty = bits_of(p->m[a]) == EMPTY;
        in_order &= !empty;
        if (!empty && (!is_finite(p->m[a]) || !is_finite(p->x[a][0]))) {
            *was_lost = bits_of(p->m[a]) == LOST;
            return a;
        }
        if (in_order) p->finite = a + 1;
    }
    *was_lost = 1;
    int64_t first = n;
    for (int k = 0; k < p->nlost; k++)
        if (p->lost[k].first < first) first = p->lost[k].first;
    return first < n ? first : -1;
}

/* ---- packing -------------------------------------------------------------------- */

/* Smallest exponent e such that 7/8 of the non-zero magnitudes are below 2^e. */
static int exponent_of_most(const double *a, int n)
{
    _Static_assert(ORIGIN_SAMPLE < 16, "an eighth is one or none");
    int count = 0, most = EXPONENT_NONE, second = EXPONENT_NONE;
    for (int k = 0; k < n; k++) {
        const int e = exponent_of(a[k]), lesser = e < most ? e : most;
        second = lesser > second ? lesser : second;
        most = e > most ? e : most;
        count += a[k] != 0.0;
    }
    return count ? scale_exponent(count < 8 ? most : second) : 0;
}

/* Finds scale and origin from a sample of points; its addresses depend only on n. They must only
 * suit most points: sums of the others are exact. */
static void find_units(const struct grape5_points *p, int64_t n, const int given[3],
                       struct acc_units *f, struct scale *scale)
{
    double x[3][ORIGIN_COLUMN], m[ORIGIN_SAMPLE], far[ORIGIN_SAMPLE];
    int64_t end = n; /* of those sent: later addresses must not influence the units */
    while (end > p->finite && bits_of(p->m[end - 1]) == EMPTY) end--;
    const int samples = end < ORIGIN_SAMPLE ? (int)end : ORIGIN_SAMPLE;
    int count = 0;
    origin_clear(x, 3);
    for (int k = 0; k < samples; k++) {
        const int64_t a = origin_address(end, samples, k);
        if (!is_finite(p->m[a])) continue;
        for (int c = 0; c < 3; c++) x[c][count] = p->x[a][c];
        m[count++] = p->m[a];
    }
    (void)origin_choose(x, count, f->origin, &(struct origin_hint){{0}});
    for (int k = 0; k < count; k++) {
        far[k] = 0.0;
        for (int c = 0; c < 3; c++) {
            const double far_off = fabs(x[c][k] - f->origin[c]);
            far[k] = far_off > far[k] ? far_off : far[k];
        }
    }
    *scale =
        (struct scale){.length = exponent_of_most(far, count), .mass = exponent_of_most(m, count)};
    if (given[0] != G6X_AUTO) scale->length = scale_exponent(given[0]);
    if (given[1] != G6X_AUTO) scale->mass = scale_exponent(given[1]);
    memcpy(scale->origin, f->origin, sizeof scale->origin);
    f->x_unit = scale_power_of_two(length_shift(scale, MODE_GRAPE) + ACC_SHIFT);
    f->m_unit = scale_power_of_two(mass_shift(scale));
}

static void pack_block(struct grape5_points *p, int64_t b, int64_t n)
{
    const struct acc_points points = {CONST3(p->x), p->m};
    const int64_t first = b * BLOCK, end = n - first < BLOCK ? n : first + BLOCK;
    p->kernel->pack(&points, &p->units, first, end, end <= p->finite, p->chunk + first / CHUNK,
                    &p->unpacked[b]);
    p->stale[b] = 0;
}

void cpu_grape5_points_pack(struct grape5_points *p, int64_t n, const int given[3])
{
    struct acc_units units;
    const int64_t end = n < p->capacity ? n : p->capacity;
    find_units(p, end, given, &units, &p->scale);
    if (p->correction == 0.0) p->correction = p->kernel->correction();
    const int moved = memcmp(&units, &p->units, sizeof units) != 0;
    p->units = units;
    if (end != p->packed) /* the last block, old and new, has more or fewer points now */
        for (int k = 0; k < 2; k++) {
            const int64_t last = k ? end : p->packed;
            if (last) p->stale[(last - 1) / BLOCK] = 1;
        }
    if (moved)
        for (int64_t b = 0; b < p->capacity / BLOCK; b++) p->stale[b] = 1;
    for (int64_t b = 0; b * BLOCK < end; b++)
        if (p->stale[b]) pack_block(p, b, end);
    p->packed = end;
}
