/* jmemory.c - see jmemory.h. */
#include "jmemory.h"

#include <stddef.h>
#include <string.h>

#include "error.h"
#include "memory.h"
#include "mistakes.h"
#include "predictor.h"

enum { SMALLEST_CAPACITY = 1024, MOST_SLOTS = 0x7ffffc00 };

void jmemory_free(struct jmemory *j)
{
    memory_free(j->body);
    memory_free(j->k18);
    memory_free(j->rest.xm);
    memory_free(j->rest.index);
    memory_free(j->changed);
    for (int k = 0; k < MOST_FOLLOWERS; k++) memory_free(j->fresh[k].slot);
    memory_free(j->stale);
    memory_free(j->note);
    memory_free(j->head);
    memory_free(j->next);
    memory_free(j->previous);
    memset(j, 0, sizeof *j);
}

/* ---- growth ------------------------------------------------------------------ */

static uint32_t bucket_of(const struct jmemory *j, int32_t index)
{
    /* Neighbouring labels stay neighbours; multiples of large powers of two spread. */
    const uint32_t u = (uint32_t)index;
    return (u + (u >> 10) * 0x9e3779b1u + (u >> 20) * 0x85ebca77u) & j->head_mask;
}

static void link_slot(struct jmemory *j, int64_t a)
{
    int32_t *head = &j->head[bucket_of(j, j->note[a].index)];
    if (*head) j->previous[*head - 1] = (int32_t)(a + 1);
    j->previous[a] = 0;
    j->next[a] = *head;
    *head = (int32_t)(a + 1);
}

static void unlink_slot(struct jmemory *j, int64_t a)
{
    const int32_t next = j->next[a], previous = j->previous[a];
    if (next) j->previous[next - 1] = previous;
    if (previous)
        j->next[previous - 1] = next;
    else
        j->head[bucket_of(j, j->note[a].index)] = next;
}

static int grow_piece(void *piece, size_t bytes)
{
    void *more = memory_grown(*(void **)piece, bytes);
    if (more) *(void **)piece = more;
    return more != NULL;
}

/* Each piece grows by itself, so what there was is intact whichever fails. */
static int grow_to(struct jmemory *j, int64_t capacity)
{
    const size_t slots = (size_t)capacity, blocks = slots / 1024;
    uint32_t buckets = SMALLEST_CAPACITY;
    while (buckets < slots && buckets < 0x40000000u) buckets *= 2;
    int32_t *head = NULL;
    if (!grow_piece(&j->body, slots * sizeof *j->body) ||
        (j->k18 && !grow_piece(&j->k18, slots * sizeof *j->k18)) ||
        !grow_piece(&j->changed, slots / 8) || !grow_piece(&j->stale, blocks * sizeof *j->stale) ||
        !grow_piece(&j->note, slots * sizeof *j->note) ||
        !grow_piece(&j->next, slots * sizeof *j->next) ||
        !grow_piece(&j->previous, slots * sizeof *j->previous))
        return G6X_E_MEMORY;
    if (buckets - 1 != j->head_mask) {
        head = memory_zeroed(buckets * sizeof *head);
        if (!head) return G6X_E_MEMORY;
        memory_free(j->head);
        j->head = head;
        j->head_mask = buckets - 1;
        j->unmapped = 1; /* until it is asked */
    }
    memset(j->stale + j->capacity / 1024, 0xff,
           (blocks - (size_t)(j->capacity / 1024)) * sizeof *j->stale);
    j->capacity = capacity;
    return 0;
}

static int grow(struct jmemory *j, int64_t address)
{
    const int64_t needed = (address / 1024 + 1) * 1024;
    int64_t wanted = (j->capacity + j->capacity / 2 + 1023) / 1024 * 1024;
    if (wanted > MOST_SLOTS) wanted = MOST_SLOTS;
    if (wanted < needed) wanted = needed;
    if (grow_to(j, wanted) && (wanted == needed || grow_to(j, needed))) return G6X_E_MEMORY;
    const int lost = j->nlost;
    j->nlost = 0;
    for (int k = 0; k < lost; k++) { /* some of them have slots now */
        const struct lost l = j->lost[k];
        jmemory_lose(j, l.first, l.end);
    }
    return 0;
}

/* ---- writing ----------------------------------------------------------------- */

static inline uint64_t not_zero3(const double *a)
{
    return (bits_of(a[0]) | bits_of(a[1]) | bits_of(a[2])) << 1;
}

static inline void mark_changed(struct jmemory *j, int32_t address)
{
    const int64_t word = address / 64;
    j->changed[word] |= (uint64_t)1 << (address % 64);
    j->changes++;
    if (j->changed_low == j->changed_high) j->changed_low = j->changed_high = word;
    if (word < j->changed_low) j->changed_low = word;
    if (word >= j->changed_high) j->changed_high = word + 1;
}

static int is_unusable(const struct jparticle *p) { return p->state >= SLOT_BAD; }

static void commit_queue(struct jmemory *j)
{
    if (!j->queued) return;
    for (int k = 0; k < j->queued; k++) {
        const struct queued *q = &j->queue[k];
        struct jparticle *p = &j->body[q->address];
        j->bad += is_unusable(&q->body) - is_unusable(p);
        memcpy(p, &q->body, sizeof *p);
        if (j->k18) memcpy(j->k18[q->address], q->k18, 3 * sizeof(double));
        mark_changed(j, q->address);
    }
    j->queued = 0;
}

/* None of the slots is bad, and there is no k18: else nothing would have come here. */
static void commit_at_rest(struct jmemory *j)
{
    struct at_rest *r = &j->rest;
    for (int32_t a = r->first; a < r->end; a++) {
        struct jparticle *p = &j->body[a];
        j->bad -= is_unusable(p);
        memcpy(p->x, r->xm[a], 4 * sizeof(double)); /* and the mass */
        memset(p->v, 0, sizeof p->v);
        p->time = r->time;
        memset(p->a2, 0, sizeof p->a2);
        p->index = r->index[a];
        p->state = SLOT_SET;
        memset(p->j6, 0, sizeof p->j6);
    }
    for (int32_t a = r->changed_first; a < r->changed_end; a++) mark_changed(j, a);
    r->first = r->end = r->changed_first = r->changed_end = 0;
}

void jmemory_commit(struct jmemory *j)
{
    commit_queue(j);
    if (at_rest_any(&j->rest)) commit_at_rest(j);
}

/* What it had may not pull on unseen; GRAPE-5's later half of it must not make it whole. */
static void lose_slot(struct jmemory *j, int64_t a)
{
    struct jparticle *p = &j->body[a];
    j->bad += !is_unusable(p);
    p->state = SLOT_LOST;
    p->x[0] = p->x[1] = p->x[2] = p->mass = from_bits(0x7ff8000000000000u);
    mark_changed(j, (int32_t)a);
}

void jmemory_lose(struct jmemory *j, int64_t first, int64_t end)
{
    jmemory_commit(j);
    for (; first < end && first < j->capacity; first++) lose_slot(j, first);
    if (first >= end) return;
    int k = 0;
    while (k < j->nlost && (first > j->lost[k].end || end < j->lost[k].first)) k++;
    if (k == j->nlost && k < MOST_LOST) {
        j->lost[j->nlost++] = (struct lost){first, end};
        return;
    }
    struct lost *l = &j->lost[k < j->nlost ? k : k - 1];
    if (first < l->first) l->first = first;
    if (end > l->end) l->end = end;
}

static int make_k18(struct jmemory *j)
{
    if (!j->k18) j->k18 = memory_zeroed((size_t)j->capacity * sizeof *j->k18);
    return j->k18 ? 0 : G6X_E_MEMORY;
}

int jmemory_make_room(struct jmemory *j, int64_t address, int k18)
{
    if (address > MOST_SLOTS - 1) return G6X_E_MEMORY;
    const int code = address < j->capacity ? 0 : grow(j, address);
    return code || !k18 || !j->capacity ? code : make_k18(j);
}

static int refused(struct jmemory *j, int address)
{
    jmemory_lose(j, address, (int64_t)address + 1);
    return G6X_E_MEMORY;
}

static int grow_at_rest(struct jmemory *j)
{
    struct at_rest *r = &j->rest;
    const int64_t room = j->capacity < AT_REST_SLOTS ? j->capacity : AT_REST_SLOTS;
    if (!grow_piece(&r->xm, (size_t)room * sizeof *r->xm) ||
        !grow_piece(&r->index, (size_t)room * sizeof *r->index))
        return 0;
    r->room = (int32_t)room;
    return 1;
}

/* Takes a particle that begins a list or goes on with it, if it is sound and at rest. 0: it has to
 * go to its slot. Not part of jmemory_set, most of whose particles do neither. */
static __attribute__((noinline)) int take_at_rest(struct jmemory *j, int address, int index,
                                                  double time, double mass, const double *x)
{
    struct at_rest *r = &j->rest;
    commit_queue(j); /* a slot may be bad by what waits there */
    if (address >= AT_REST_SLOTS || j->bad || j->k18) return 0;
    if ((not_finite(time) | not_finite(mass) | not_finite3(x)) >> 63) return 0;
    if (at_rest_any(r) &&
        (address < r->first || address > r->end || bits_of(time) != bits_of(r->time)))
        commit_at_rest(j);
    if (address >= r->room && !grow_at_rest(j)) return 0;
    if (!at_rest_any(r)) {
        r->first = r->end = address;
        r->time = time;
    }
    (void)at_rest_store(r->xm[address], x, mass);
    r->index[address] = index;
    at_rest_wrote(r, address, address + 1);
    j->last = address;
    return 1;
}

int jmemory_set(struct jmemory *j, int address, int index, double time, double mass,
                const double *k18, const double *j6, const double *a2, const double *v,
                const double *x)
{
    static const double zero[3];
    if (address < 0) return G6X_E_ADDRESS;
    if (address >= j->capacity && jmemory_make_room(j, address, 0)) return refused(j, address);
    if (!k18) k18 = zero;
    if (!j6) j6 = zero;
    if (!a2) a2 = zero;
    if (!v) v = zero;
    if ((address == j->last + 1 || !address) && is_at_rest(k18, j6, a2, v) &&
        take_at_rest(j, address, index, time, mass, x))
        return 0;
    if (address >= j->rest.first && address < j->rest.end) commit_at_rest(j);
    if (not_zero3(k18) && make_k18(j)) return refused(j, address);
    const uint64_t bad = (not_finite(time) | not_finite(mass) | not_finite3(k18) | not_finite3(j6) |
                          not_finite3(a2) | not_finite3(v) | not_finite3(x)) >>
                         63;
    const int near = (uint32_t)address - (uint32_t)j->last + 4 < 8;
    struct queued *q = &j->queue[j->queued];
    struct jparticle *p = &q->body;
    j->last = address;
    if (near) { /* to its slot, which is in the cache */
        if (j->queued) commit_queue(j);
        p = &j->body[address];
        j->bad += (int)bad - is_unusable(p);
        if (j->k18) memcpy(j->k18[address], k18, 3 * sizeof *k18);
        mark_changed(j, address);
    }
    memcpy(p->x, x, sizeof p->x);
    p->mass = mass;
    memcpy(p->v, v, sizeof p->v);
    p->time = time;
    memcpy(p->a2, a2, sizeof p->a2);
    p->index = index;
    p->state = bad ? SLOT_BAD : SLOT_SET;
    memcpy(p->j6, j6, sizeof p->j6);
    if (!near) {
        memcpy(q->k18, k18, 3 * sizeof *k18);
        q->address = address;
        __builtin_prefetch(&j->body[address], 1);
        __builtin_prefetch(j->body[address].a2, 1);
        if (++j->queued == QUEUE) commit_queue(j);
    }
    return bad ? G6X_E_J_NAN : 0;
}

/* ---- settling ---------------------------------------------------------------- */

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

/* The largest of a component's distance from the origin. */
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

/* For those that have copies. */
static void tell_of(struct jmemory *j, int64_t a)
{
    const int followers = atomic_load_explicit(&j->followers, memory_order_relaxed);
    j->stale[a / 1024] |= (uint64_t)1 << (a / 16 % 64);
    for (struct fresh *f = j->fresh; f < j->fresh + followers; f++)
        if (f->slot && f->count < FRESH_SLOTS)
            f->slot[f->count++] = (int32_t)a;
        else
            f->lost = 1;
}

/* What is told by a slot that is counted moves from one place of the histograms to another. */
static void recount(struct jmemory *j, const struct slot_note *old, const struct slot_note *now)
{
    if (old->x == now->x && old->mass == now->mass && old->v == now->v && old->state == now->state)
        return;
    count_slot(j, old, -1);
    count_slot(j, now, 1);
}

/* An index map of which much changes is made anew when it is wanted. */
static int is_much(const struct jmemory *j, int64_t slots) { return 8 * slots >= j->capacity; }

static void note_slot(struct jmemory *j, int64_t a, const struct slot_note *now, int much)
{
    struct slot_note *n = &j->note[a];
    const int moves = n->state == SLOT_EMPTY || n->index != now->index;
    if (a < j->counted) recount(j, n, now);
    j->unmapped |= moves && much;
    if (moves && !j->unmapped && n->state != SLOT_EMPTY) unlink_slot(j, a);
    *n = *now;
    if (moves && !j->unmapped) link_slot(j, a);
}

void jmemory_map(struct jmemory *j)
{
    if (!j->unmapped) return;
    memset(j->head, 0, ((size_t)j->head_mask + 1) * sizeof *j->head);
    for (int64_t a = 0; a < j->capacity; a++)
        if (j->note[a].state != SLOT_EMPTY) link_slot(j, a);
    j->unmapped = 0;
}

/* ---- the origin --------------------------------------------------------------- */

/* Of all addresses, one sample alone can be this one. */
static int is_sampled(const struct jmemory *j, int64_t a)
{
    return a < j->sampled && j->sample[(2 * a + 1) * j->samples / (2 * j->sampled)] == a;
}

static int is_changed(const struct jmemory *j, int64_t a)
{
    const int64_t word = a / 64;
    if (a >= j->rest.changed_first && a < j->rest.changed_end) return 1;
    return word >= j->changed_low && word < j->changed_high && j->changed[word] >> (a % 64) & 1;
}

static const double at_rest[3];

/* Where a sound particle is and how it moves; 0 if there is none. */
static int find_place(const struct jmemory *j, int64_t a, const double **x, const double **v)
{
    const struct jparticle *p = &j->body[a];
    const int rests = a >= j->rest.first && a < j->rest.end;
    *x = rests ? j->rest.xm[a] : p->x;
    *v = rests ? at_rest : p->v;
    return rests || p->state == SLOT_SET;
}

/* A settled note from a new origin; if the slot has changed since, it will be settled. */
static void note_from_origin(struct jmemory *j, int64_t a)
{
    struct slot_note *n = &j->note[a];
    const double *x, *v;
    const int is_sound = find_place(j, a, &x, &v);
    if (n->state != SLOT_SET) return;
    n->x = (int16_t)(is_sound ? largest_exponent(x, j->origin) : EXPONENT_NONE);
    n->v = (int16_t)(is_sound ? largest_exponent(v, j->drift) : EXPONENT_NONE);
}

/* All notes that count; the others when they do. */
static void note_again(struct jmemory *j)
{
    for (int64_t a = 0; a < j->counted; a++) {
        const struct slot_note old = j->note[a];
        note_from_origin(j, a);
        recount(j, &old, &j->note[a]);
    }
    j->noted = j->counted;
}

/* Beyond the last address below `end` that has been written: whatever lies farther, or how much
 * room there is, decides nothing. */
static int64_t end_of_written(const struct jmemory *j, int64_t end)
{
    while (end > 0 && j->body[end - 1].state == SLOT_EMPTY &&
           !(end - 1 >= j->rest.first && end - 1 < j->rest.end))
        end--;
    return end;
}

/* Brings the origin up to date with the sample, before the changed slots are settled. */
static void settle_origin(struct jmemory *j, int64_t nj)
{
    const int64_t end = end_of_written(j, nj);
    double x[ORIGIN_SAMPLE][3], v[ORIGIN_SAMPLE][3], origin[3], drift[3];
    int n = 0, moved = j->sample_moved || end != j->sampled;
    for (int k = 0; k < j->samples; k++) moved |= is_changed(j, j->sample[k]);
    if (!moved) return;
    j->sample_moved = 0;
    j->sampled = end;
    j->samples = end < ORIGIN_SAMPLE ? (int)end : ORIGIN_SAMPLE;
    for (int k = 0; k < j->samples; k++) {
        j->sample[k] = (int32_t)origin_address(end, j->samples, k);
        const double *place, *moves;
        if (!find_place(j, j->sample[k], &place, &moves)) continue;
        memcpy(x[n], place, sizeof *x);
        memcpy(v[n++], moves, sizeof *v);
    }
    j->inner = origin_choose((const double (*)[3])x, n, origin);
    (void)origin_choose((const double (*)[3])v, n, drift);
    if (!memcmp(origin, j->origin, sizeof origin) && !memcmp(drift, j->drift, sizeof drift)) return;
    memcpy(j->origin, origin, sizeof origin);
    memcpy(j->drift, drift, sizeof drift);
    note_again(j);
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

/* Whether a new list has replaced all that counts, and much of the index map, too: then its notes
 * are counted from nothing. */
static int is_new_list(const struct jmemory *j, int64_t nj)
{
    const struct at_rest *r = &j->rest;
    return at_rest_changed(r) && !r->changed_first &&
           (r->changed_end >= j->counted || r->changed_end >= nj) &&
           (j->unmapped || is_much(j, r->changed_end));
}

static void count_nothing(struct jmemory *j)
{
    memset(&j->x, 0, sizeof j->x);
    memset(&j->mass, 0, sizeof j->mass);
    memset(&j->v, 0, sizeof j->v);
    j->counted = 0;
}

/* Counts an exponent; `most` is the highest so far, the total is found at the end. */
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

/* A list from address 0 on, when nothing is counted: all that is below nj is. */
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

/* For those that have copies. */
static void tell_of_run(struct jmemory *j, int32_t first, int32_t end)
{
    const int followers = atomic_load_explicit(&j->followers, memory_order_relaxed);
    for (int32_t chunk = first / 16; chunk <= (end - 1) / 16; chunk++)
        j->stale[chunk / 64] |= (uint64_t)1 << chunk % 64;
    for (struct fresh *f = j->fresh; f < j->fresh + followers; f++) {
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

static void settle_slots(struct jmemory *j)
{
    const int much = is_much(j, j->changes);
    for (int64_t w = j->changed_low; w < j->changed_high; w++) {
        for (uint64_t bits = j->changed[w]; bits; bits &= bits - 1) {
            const int64_t a = 64 * w + __builtin_ctzll(bits);
            const struct slot_note now = note_of(j, &j->body[a]);
            note_slot(j, a, &now, much);
            tell_of(j, a);
        }
        j->changed[w] = 0;
    }
    j->changed_low = j->changed_high = j->changes = 0;
}

/* ---- settling ----------------------------------------------------------------- */

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
    tell_of(j, a);
    return 1;
}

int jmemory_follow(struct jmemory *j, int follower)
{
    struct fresh *f = &j->fresh[follower];
    if (f->slot) return 0;
    *f = (struct fresh){.slot = memory_zeroed(FRESH_SLOTS * sizeof *f->slot), .lost = 1};
    int followers = atomic_load(&j->followers);
    while (followers <= follower &&
           !atomic_compare_exchange_weak(&j->followers, &followers, follower + 1))
        continue;
    return f->slot ? 0 : G6X_E_MEMORY;
}

void jmemory_settle(struct jmemory *j, int64_t nj)
{
    const int64_t end = nj < j->capacity ? nj : j->capacity;
    commit_queue(j);
    if (end != j->counted) { /* on both sides of either end: the last block's range changes too */
        jmemory_stale_slots(j, end, j->counted);
        jmemory_stale_slots(j, end - 1, j->counted - 1);
    }
    const int new_list = is_new_list(j, end);
    if (new_list) count_nothing(j);
    settle_origin(j, end);
    settle_slots(j);
    settle_at_rest(j, end, new_list); /* newer than what slots have of the same addresses */
    for (; j->counted < end; j->counted++) {
        if (j->counted >= j->noted) {
            note_from_origin(j, j->counted);
            j->noted = j->counted + 1;
        }
        count_slot(j, &j->note[j->counted], 1);
    }
    for (; j->counted > end; j->counted--) count_slot(j, &j->note[j->counted - 1], -1);
}

void jmemory_stale_all(struct jmemory *j)
{
    if (j->capacity) memset(j->stale, 0xff, (size_t)(j->capacity / 1024) * sizeof *j->stale);
}

void jmemory_stale_slots(struct jmemory *j, int64_t first, int64_t last)
{
    const int64_t at[2] = {first, last};
    for (int k = 0; k < 2; k++)
        if (at[k] >= 0 && at[k] < j->capacity)
            j->stale[at[k] / 1024] |= (uint64_t)1 << (at[k] / 16 % 64);
}

/* ---- asking ------------------------------------------------------------------ */

/* Smallest exponent e with at least 7/8 of the values below 2^e. */
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
    struct scale s = {
        exponent_of_most(&j->x), exponent_of_most(&j->mass), exponent_of_most(&j->v), 0, {0}, {0}};
    memcpy(s.origin, j->origin, sizeof s.origin);
    memcpy(s.drift, j->drift, sizeof s.drift);
    return s;
}

int jmemory_is_crowded(const struct jmemory *j)
{
    enum { STEPS_EXPONENT = 3 }; /* the grid has 2^3 steps across that half */
    return j->inner != EXPONENT_NONE &&
           jmemory_scale(j).length - length_shift(&(struct scale){0}, MODE_GRAPE) >
               j->inner - STEPS_EXPONENT;
}

int64_t jmemory_first_bad(struct jmemory *j, int64_t nj, int *state)
{
    int64_t first = nj;
    commit_queue(j); /* what is at rest is sound */
    for (int64_t a = 0; j->bad && a < nj && a < j->capacity; a++)
        if (is_unusable(&j->body[a])) {
            *state = j->body[a].state;
            return a;
        }
    *state = SLOT_LOST;
    for (int k = 0; k < j->nlost; k++)
        if (j->lost[k].first < first) first = j->lost[k].first;
    return first < nj ? first : -1;
}

int jmemory_find(const struct jmemory *j, int32_t index, int64_t nj, int max, int32_t *address)
{
    int found = 0;
    if (!j->capacity) return 0;
    for (int32_t at = j->head[bucket_of(j, index)]; at && found <= max; at = j->next[at - 1]) {
        const int32_t a = at - 1;
        if (j->note[a].index != index || a >= nj || j->note[a].state != SLOT_SET) continue;
        if (found < max) address[found] = a;
        found++;
    }
    return found;
}

static inline __attribute__((always_inline)) void
predict(const struct jparticle *p, const double k18[3], double time, double x[3], double v[3])
{
    const double dt = time - p->time;
    for (int k = 0; k < 3; k++)
        predict_component(dt, k18[k], p->j6[k], p->a2[k], p->v[k], p->x[k], &x[k], &v[k]);
}

#ifdef __x86_64__
/* The same steps where fma is an instruction, and not a call. */
__attribute__((target("fma"))) static void predict_by_fma(const struct jparticle *p,
                                                          const double k18[3], double time,
                                                          double x[3], double v[3])
{
    predict(p, k18, time, x, v);
}
#endif

void jmemory_predict(const struct jmemory *j, int64_t address, double time, int snap, double x[3],
                     double v[3])
{
    static const double none[3];
    const double *k18 = snap && j->k18 ? j->k18[address] : none;
#ifdef __x86_64__
    if (__builtin_cpu_supports("fma")) {
        predict_by_fma(&j->body[address], k18, time, x, v);
        return;
    }
#endif
    predict(&j->body[address], k18, time, x, v);
}
