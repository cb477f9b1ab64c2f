/* jmemory_settle.c - see jmemory.h: notes, histograms and origin of the j particles. */
#include <string.h>

#include "core/jmemory.h"
#include "util/threads.h"

/* ---- notes ---------------------------------------------------------------------- */

static void count(struct histogram *h, int exponent, int by)
{
    if (exponent == EXPONENT_NONE) return;
    const int at = exponent + HISTOGRAM_ZERO;
    h->count[at] += by;
    h->total += by;
    if (by > 0 && at > h->highest) h->highest = at;
}

static void count_slot(struct jmemory *j, const struct slot_note *n, int by)
{
    if (n->state != SLOT_SET) return;
    count(&j->x, n->x, by);
    count(&j->mass, n->mass, by);
    count(&j->v, n->v, by);
}

/* Exponent of the largest component of a - origin. */
static int largest_exponent(const double a[3], const double origin[3])
{
    const uint64_t u = bits_of(a[0] - origin[0]) << 1, v = bits_of(a[1] - origin[1]) << 1,
                   w = bits_of(a[2] - origin[2]) << 1;
    const uint64_t most = u > v ? (u > w ? u : w) : (v > w ? v : w);
    return exponent_of(from_bits(most >> 1));
}

static struct slot_note note_of(const struct jmemory *j, const struct jparticle *p)
{
    struct slot_note n = {.index = p->index, .state = (int16_t)p->state};
    if (p->state == SLOT_SET) {
        n.x = (int16_t)largest_exponent(p->x, j->origin);
        n.mass = (int16_t)exponent_of(p->mass);
        n.v = (int16_t)largest_exponent(p->v, j->drift);
    }
    return n;
}

/* Marks a changed slot for all mirrors. */
static void mark_changed(struct jmemory *j, int64_t a)
{
    const int mirrors = atomic_load_explicit(&j->mirrors, memory_order_relaxed);
    jmemory_stale_chunk(j, a / CHUNK);
    for (struct dirty_list *f = j->dirty; f < j->dirty + mirrors; f++)
        if (f->slot && f->count < DIRTY_SLOTS)
            f->slot[f->count++] = (int32_t)a;
        else
            f->overflow = 1;
}

/* Moves a counted slot from one bin of the histograms to another. */
static void recount(struct jmemory *j, const struct slot_note *old, const struct slot_note *now)
{
    if (old->x == now->x && old->mass == now->mass && old->v == now->v && old->state == now->state)
        return;
    count_slot(j, old, -1);
    count_slot(j, now, 1);
}

/* If this is true, the index map is not updated but rebuilt when needed. */
static int is_much(const struct jmemory *j, int64_t slots) { return 8 * slots >= j->capacity; }

static void note_slot(struct jmemory *j, int64_t a, const struct slot_note *now, int much)
{
    struct slot_note *n = &j->note[a];
    const int moves = n->state == SLOT_EMPTY || n->index != now->index;
    if (a < j->counted) recount(j, n, now);
    j->unmapped |= moves && much;
    if (moves && !j->unmapped && n->state != SLOT_EMPTY) jmemory_unlink(j, a);
    *n = *now;
    if (moves && !j->unmapped) jmemory_link(j, a);
}

/* ---- the origin --------------------------------------------------------------- */

/* Only one sample can have this address. */
static int is_sampled(const struct jmemory *j, int64_t a)
{
    return a < j->sampled && j->sample[(2 * a + 1) * j->samples / (2 * j->sampled)] == a;
}

static int is_changed(const struct jmemory *j, int64_t a)
{
    if (a >= j->rest.changed_first && a < j->rest.changed_end) return 1;
    return j->changed[a / 64] >> (a % 64) & 1;
}

static const double at_rest[3];

/* Recomputes a note for a new origin. A slot that has changed since will be settled later. */
static void note_from_origin(struct jmemory *j, int64_t a)
{
    struct slot_note *n = &j->note[a];
    struct jmemory_seen seen;
    const int is_sound = jmemory_look(j, a, &seen);
    if (n->state != SLOT_SET) return;
    n->x = (int16_t)(is_sound ? largest_exponent(seen.x, j->origin) : EXPONENT_NONE);
    n->v = (int16_t)(is_sound ? largest_exponent(seen.v, j->drift) : EXPONENT_NONE);
}

void jmemory_choose_origin(struct jmemory *j, int n)
{
    double origin[3], drift[3];
    j->inner = origin_choose(j->columns, n, origin, &j->origin_hint);
    (void)origin_choose(j->columns + 3, n, drift, &j->drift_hint);
    if (!memcmp(origin, j->origin, sizeof origin) && !memcmp(drift, j->drift, sizeof drift)) return;
    memcpy(j->origin, origin, sizeof origin);
    memcpy(j->drift, drift, sizeof drift);
    for (int64_t a = 0; a < j->counted; a++) { /* others are noted when they are counted */
        const struct slot_note old = j->note[a];
        note_from_origin(j, a);
        recount(j, &old, &j->note[a]);
    }
    j->noted = j->counted;
}

/* Updates the origin from the sample, before the changed slots are settled. */
static void settle_origin(struct jmemory *j, int64_t nj)
{
    int64_t end = nj; /* of those written: later ones, and the capacity, must not move the origin */
    while (end > 0 && j->body[end - 1].state == SLOT_EMPTY &&
           !(end - 1 >= j->rest.first && end - 1 < j->rest.end))
        end--;
    int n = 0, all = j->sample_moved || end != j->sampled, moved = all;
    if (j->is_share) return; /* jmemory_share_set_sample sets it */
    if (end != j->sampled) {
        j->sampled = end;
        j->samples = end < ORIGIN_SAMPLE ? (int)end : ORIGIN_SAMPLE;
        for (int k = 0; k < j->samples; k++)
            j->sample[k] = (int32_t)origin_address(end, j->samples, k);
    }
    if (all) origin_clear(j->columns, 6);
    for (int k = 0; k < j->samples; k++) {
        struct jmemory_seen seen;
        if (!all && !is_changed(j, j->sample[k])) continue;
        const int there = jmemory_look(j, j->sample[k], &seen);
        for (int c = 0; c < 6; c++)
            j->columns[c][k] = !there ? INFINITY : c < 3 ? seen.x[c] : seen.v[c - 3];
        moved = 1;
    }
    j->sample_moved = 0;
    if (!moved) return;
    for (int k = 0; k < j->samples; k++) n += is_finite(j->columns[0][k]);
    jmemory_choose_origin(j, n);
}

/* ---- settling particles at rest ------------------------------------------------ */

static struct slot_note note_at_rest(const struct jmemory *j, int64_t a, int v)
{
    const struct at_rest *r = &j->rest;
    return (struct slot_note){.index = r->index[a],
                              .x = (int16_t)largest_exponent(r->xm[a], j->origin),
                              .mass = (int16_t)exponent_of(r->xm[a][3]),
                              .v = (int16_t)v,
                              .state = SLOT_SET};
}

/* Whether a new list replaces all counted slots and much of the index map. Its notes are then
 * counted from zero. */
static int is_new_list(const struct jmemory *j, int64_t nj)
{
    const struct at_rest *r = &j->rest;
    return at_rest_changed(r) && !r->changed_first &&
           (r->changed_end >= j->counted || r->changed_end >= nj) &&
           (j->unmapped || is_much(j, r->changed_end));
}

/* Counts an exponent. `most` is the highest so far; end_count sets the total. */
static inline void count_one(struct histogram *h, int exponent, int *most, int64_t *none)
{
    if (exponent > *most) *most = exponent;
    if (exponent == EXPONENT_NONE)
        ++*none;
    else
        h->count[exponent + HISTOGRAM_ZERO]++;
}

static void end_count(struct histogram *h, int64_t slots, int most, int64_t none)
{
    h->total = slots - none;
    if (h->total) h->highest = most + HISTOGRAM_ZERO;
}

/* Settles a list that begins at address 0 when nothing is counted; counts its slots below nj. */
static void settle_list(struct jmemory *j, int64_t nj, int v)
{
    struct slot_note *note = j->note;
    const int64_t changed = j->rest.changed_end, end = nj < changed ? nj : changed;
    int moves = 0, most_x = EXPONENT_NONE, most_mass = EXPONENT_NONE;
    int64_t no_x = 0, no_mass = 0;
    for (int64_t a = 0; a < changed; a++) {
        const struct slot_note now = note_at_rest(j, a, v);
        moves |= (note[a].index ^ now.index) | (note[a].state == SLOT_EMPTY);
        note[a] = now;
        if (a >= end) continue;
        count_one(&j->x, now.x, &most_x, &no_x);
        count_one(&j->mass, now.mass, &most_mass, &no_mass);
    }
    end_count(&j->x, end, most_x, no_x);
    end_count(&j->mass, end, most_mass, no_mass);
    if (v != EXPONENT_NONE) {
        j->v.count[v + HISTOGRAM_ZERO] = (int32_t)end;
        end_count(&j->v, end, v, 0);
    }
    j->unmapped |= moves != 0;
    j->counted = end;
    if (j->noted < changed) j->noted = changed;
}

/* Marks a range of changed slots for all mirrors. */
static void tell_of_run(struct jmemory *j, int32_t first, int32_t end)
{
    const int mirrors = atomic_load_explicit(&j->mirrors, memory_order_relaxed);
    for (int32_t chunk = first / CHUNK; chunk <= (end - 1) / CHUNK; chunk++)
        jmemory_stale_chunk(j, chunk);
    for (struct dirty_list *f = j->dirty; f < j->dirty + mirrors; f++) {
        const int any = f->first < f->end;
        if (!any || first < f->first) f->first = first;
        if (!any || end > f->end) f->end = end;
    }
}

static void settle_at_rest(struct jmemory *j, int64_t nj, int new_list)
{
    struct at_rest *r = &j->rest;
    const int32_t first = r->changed_first, end = r->changed_end;
    const int v = largest_exponent(at_rest, j->drift);
    if (!at_rest_changed(r)) return;
    if (new_list) settle_list(j, nj, v);
    for (int32_t a = first; a < end && !new_list; a++) {
        const struct slot_note now = note_at_rest(j, a, v);
        note_slot(j, a, &now, is_much(j, end - first));
    }
    tell_of_run(j, first, end);
    r->changed_first = r->changed_end = 0;
}

/* ---- settling slots ------------------------------------------------------------ */

/* Loads the changed slots of word `s` of changed_words, and their notes, into the cache. */
static void prefetch_changed(const struct jmemory *j, int64_t s)
{
    for (uint64_t words = j->changed_words[s]; words; words &= words - 1) {
        const int64_t w = 64 * s + __builtin_ctzll(words);
        for (uint64_t bits = j->changed[w]; bits; bits &= bits - 1) {
            const int64_t a = 64 * w + __builtin_ctzll(bits);
            __builtin_prefetch(&j->body[a]);
            __builtin_prefetch(j->body[a].a2);
            __builtin_prefetch(&j->note[a], 1);
        }
    }
}

/* Few of many slots change in a block step: words without changes are not read. */
static void settle_slots(struct jmemory *j)
{
    const int much = is_much(j, j->changes);
    for (int64_t s = 0; j->changes; s++) {
        if (!much) prefetch_changed(j, s);
        for (uint64_t words = j->changed_words[s]; words; words &= words - 1) {
            const int64_t w = 64 * s + __builtin_ctzll(words);
            for (uint64_t bits = j->changed[w]; bits; bits &= bits - 1) {
                const int64_t a = 64 * w + __builtin_ctzll(bits);
                const struct slot_note now = note_of(j, &j->body[a]);
                note_slot(j, a, &now, much);
                mark_changed(j, a);
                j->changes--;
            }
            j->changed[w] = 0;
        }
        j->changed_words[s] = 0;
    }
}

/* ---- many slots ---------------------------------------------------------------- */

enum { MANY = 4096, PIECE_WORDS = 8, PIECES = 64 / PIECE_WORDS }; /* of a word of changed_words */

static int first_bit(uint64_t bits) { return __builtin_ctzll(bits); }
static int last_bit(uint64_t bits) { return 63 - __builtin_clzll(bits); }

/* The first changed slot (last = 0) or the last one, of word `s` of changed_words. */
static int64_t edge_of_word(const struct jmemory *j, int64_t s, int last)
{
    const uint64_t words = j->changed_words[s];
    const int64_t w = 64 * s + (last ? last_bit(words) : first_bit(words));
    return 64 * w + (last ? last_bit(j->changed[w]) : first_bit(j->changed[w]));
}

struct rewritten {
    struct jmemory *j;
    _Atomic int64_t settled;
};

/* Settles slots whose notes do not change. Several threads work on pieces first .. end - 1, each on
 * its own. */
static void settle_rewritten_pieces(void *context, int64_t first, int64_t end)
{
    struct rewritten *r = context;
    struct jmemory *j = r->j;
    int64_t settled = 0;
    for (int64_t piece = first; piece < end; piece++) {
        _Atomic uint64_t *all = (_Atomic uint64_t *)&j->changed_words[piece / PIECES];
        const uint64_t own = (((uint64_t)1 << PIECE_WORDS) - 1) << piece % PIECES * PIECE_WORDS;
        for (uint64_t words = atomic_load_explicit(all, memory_order_relaxed) & own; words;
             words &= words - 1) {
            const int64_t w = piece / PIECES * 64 + first_bit(words);
            uint64_t left = j->changed[w];
            for (uint64_t bits = left; bits; bits &= bits - 1) {
                const int64_t a = 64 * w + first_bit(bits);
                const struct slot_note now = note_of(j, &j->body[a]);
                if (memcmp(&now, &j->note[a], sizeof now) != 0) continue;
                left &= ~((uint64_t)1 << (a % 64));
                settled++;
            }
            j->changed[w] = left;
            if (!left) atomic_fetch_and(all, ~((uint64_t)1 << (w % 64)));
        }
    }
    atomic_fetch_add(&r->settled, settled);
}

/* A shared step rewrites many particles, of which few change their index or an exponent. Those that
 * do are left to settle_slots. */
static void settle_rewritten(struct jmemory *j, int threads)
{
    const int64_t words = j->capacity / (64 * 64) + 1;
    int64_t low = 0, high = words - 1;
    if (j->changes < MANY) return;
    while (!j->changed_words[low]) low++;
    while (!j->changed_words[high]) high--;
    const int64_t first = edge_of_word(j, low, 0), end = edge_of_word(j, high, 1) + 1;
    if (2 * j->changes < end - first && j->changes <= DIRTY_SLOTS) return;
    struct rewritten r = {.j = j};
    tell_of_run(j, (int32_t)first, (int32_t)end);
    threads_each(threads, words * PIECES, 1, settle_rewritten_pieces, &r);
    j->changes -= r.settled;
}

/* ---- all slots ---------------------------------------------------------------- */

int jmemory_move(struct jmemory *j, int64_t a, const struct jparticle *p)
{
    struct slot_note *n = &j->note[a];
    if (a >= j->capacity || n->state != SLOT_SET || n->index != p->index) return 0;
    jmemory_commit(j);
    const struct slot_note now = note_of(j, p);
    j->sample_moved |= is_sampled(j, a);
    memcpy(&j->body[a], p, sizeof *p);
    if (j->k18) memset(j->k18[a], 0, sizeof j->k18[a]);
    if (a < j->counted) recount(j, n, &now);
    *n = now;
    mark_changed(j, a);
    return 1;
}

int jmemory_rewrite(struct jmemory *j, int64_t a, const struct jparticle *p)
{
    if (a >= j->capacity) return 0;
    const struct slot_note now = note_of(j, p);
    if (memcmp(&now, &j->note[a], sizeof now) != 0) return 0;
    memcpy(&j->body[a], p, sizeof *p);
    if (j->k18) memset(j->k18[a], 0, sizeof j->k18[a]);
    return 1;
}

void jmemory_rewritten(struct jmemory *j, int64_t a)
{
    j->sample_moved |= is_sampled(j, a);
    mark_changed(j, a);
}

void jmemory_settle(struct jmemory *j, int64_t nj, int threads)
{
    const int64_t end = nj < j->capacity ? nj : j->capacity;
    jmemory_commit_queue(j);
    /* Chunks on both sides of the old and the new end: the last block's range changes too. */
    if (end != j->counted) {
        jmemory_stale_slots(j, end, j->counted);
        jmemory_stale_slots(j, end - 1, j->counted - 1);
    }
    const int new_list = is_new_list(j, end);
    if (new_list) {
        memset(&j->x, 0, sizeof j->x);
        memset(&j->mass, 0, sizeof j->mass);
        memset(&j->v, 0, sizeof j->v);
        j->counted = 0;
    }
    settle_origin(j, end);
    settle_rewritten(j, threads);
    settle_slots(j);
    settle_at_rest(j, end, new_list); /* after the slots: these are newer */
    for (; j->counted < end; j->counted++) {
        if (j->counted >= j->noted) {
            note_from_origin(j, j->counted);
            j->noted = j->counted + 1;
        }
        count_slot(j, &j->note[j->counted], 1);
    }
    for (; j->counted > end; j->counted--) count_slot(j, &j->note[j->counted - 1], -1);
}

/* ---- scale ---------------------------------------------------------------------- */

/* Smallest exponent e such that at least 7/8 of the values are below 2^e. */
static int exponent_of_most(const struct histogram *h)
{
    if (h->total == 0) return 0;
    int64_t above = 0;
    int at = h->highest;
    while (above + h->count[at] <= h->total / 8) above += h->count[at--];
    return scale_exponent(at - HISTOGRAM_ZERO);
}

struct scale jmemory_scale(const struct jmemory *j)
{
    const double *o = j->origin, *d = j->drift;
    const struct histogram *all = j->all;
    return (struct scale){exponent_of_most(all ? &all[0] : &j->x),
                          exponent_of_most(all ? &all[1] : &j->mass),
                          exponent_of_most(all ? &all[2] : &j->v),
                          0,
                          {o[0], o[1], o[2]},
                          {d[0], d[1], d[2]}};
}

int jmemory_is_crowded(const struct jmemory *j)
{
    enum { STEPS_EXPONENT = 3 }; /* the grid has 2^3 steps across the inner half */
    const struct scale s = {.length = exponent_of_most(j->all ? j->all : &j->x)};
    return j->inner != EXPONENT_NONE && -length_shift(&s, MODE_GRAPE) > j->inner - STEPS_EXPONENT;
}
