/* jmemory.c - see jmemory.h. */
#include "core/jmemory.h"

#include <stddef.h>
#include <string.h>

#include "core/error.h"
#include "util/memory.h"
#include "shared/predictor.h"

enum { AHEAD = 16 }; /* slots that are loaded before their turn, when all are written */
enum { SMALLEST_CAPACITY = BLOCK, MOST_SLOTS = 0x7ffffc00 };

#define BY_SLOT(j, slots)                                                                          \
    MEMORY_ARRAY((j)->body, slots), MEMORY_ARRAY((j)->note, slots),                                \
        MEMORY_ARRAY((j)->next, slots), MEMORY_ARRAY((j)->previous, slots),                        \
        MEMORY_ARRAY((j)->changed, (slots) / 64),                                                  \
        MEMORY_ARRAY((j)->changed_words, (slots) / (64 * 64) + 1),                                 \
        MEMORY_ARRAY((j)->stale[0], (slots) / BLOCK), MEMORY_ARRAY((j)->stale[1], (slots) / BLOCK)
#define AT_REST(r, slots) MEMORY_ARRAY((r)->xm, slots), MEMORY_ARRAY((r)->index, slots)

void jmemory_free(struct jmemory *j)
{
    const struct memory_array all[] = {BY_SLOT(j, 0),
                                       AT_REST(&j->rest, 0),
                                       MEMORY_ARRAY(j->k18, 0),
                                       MEMORY_ARRAY(j->head, 0),
                                       {0}};
    memory_free_all(all);
    memory_free(j->all);
    for (int k = 0; k < MOST_MIRRORS; k++) memory_free(j->dirty[k].slot);
    memset(j, 0, sizeof *j);
}

/* ---- growth ------------------------------------------------------------------ */

static int grow_to(struct jmemory *j, int64_t capacity)
{
    const struct memory_array by_slot[] = {BY_SLOT(j, capacity), {0}};
    const struct memory_array k18[] = {MEMORY_ARRAY(j->k18, capacity), {0}};
    const size_t slots = (size_t)capacity, blocks = slots / BLOCK;
    uint32_t buckets = SMALLEST_CAPACITY;
    while (buckets < slots && buckets < 0x40000000u) buckets *= 2;
    int32_t *head = NULL;
    if (memory_grow_all(by_slot) || (j->k18 && memory_grow_all(k18))) return G6X_E_MEMORY;
    if (buckets - 1 != j->head_mask) {
        head = memory_zeroed(buckets * sizeof *head);
        if (!head) return G6X_E_MEMORY;
        memory_free(j->head);
        j->head = head;
        j->head_mask = buckets - 1;
        j->unmapped = 1; /* rebuilt at the next jmemory_map */
    }
    for (int k = 0; k < PACKINGS; k++)
        memset(j->stale[k] + j->capacity / BLOCK, 0xff,
               (blocks - (size_t)(j->capacity / BLOCK)) * sizeof *j->stale[k]);
    j->capacity = capacity;
    return 0;
}

static int grow(struct jmemory *j, int64_t address)
{
    const int64_t needed = (address / BLOCK + 1) * BLOCK;
    int64_t requested = ceil_div(j->capacity + j->capacity / 2, BLOCK) * BLOCK;
    if (requested > MOST_SLOTS) requested = MOST_SLOTS;
    if (requested < needed) requested = needed;
    if (grow_to(j, requested) && (requested == needed || grow_to(j, needed))) return G6X_E_MEMORY;
    const int lost = j->nlost;
    j->nlost = 0;
    for (int k = 0; k < lost; k++) { /* some of them have slots now */
        const struct lost l = j->lost[k];
        jmemory_lose(j, l.first, l.end);
    }
    return 0;
}

/* ---- writing ----------------------------------------------------------------- */

static inline void mark_changed(struct jmemory *j, int32_t address)
{
    const int32_t word = address / 64;
    const uint64_t old = j->changed[word], bit = (uint64_t)1 << (address % 64);
    if (old & bit) return;
    j->changed[word] = old | bit;
    j->changed_words[word / 64] |= (uint64_t)1 << (word % 64);
    j->changes++;
}

static int is_unusable(const struct jparticle *p) { return p->state >= SLOT_BAD; }

void jmemory_commit_queue(struct jmemory *j)
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

/* No slot is bad and there is no k18; otherwise take_at_rest would have stored nothing. */
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
    jmemory_commit_queue(j);
    if (at_rest_any(&j->rest)) commit_at_rest(j);
}

/* The old particles must not act any more. Fills them with NaN, so that the other half of a GRAPE-5
 * particle, sent later, cannot make it valid. */
void jmemory_lose(struct jmemory *j, int64_t first, int64_t end)
{
    jmemory_commit(j);
    for (; first < end && first < j->capacity; first++) {
        struct jparticle *p = &j->body[first];
        j->bad += !is_unusable(p);
        p->state = SLOT_LOST;
        p->x[0] = p->x[1] = p->x[2] = p->mass = from_bits(0x7ff8000000000000u);
        mark_changed(j, (int32_t)first);
    }
    if (first < end) lost_note(j->lost, &j->nlost, first, end);
}

static int make_k18(struct jmemory *j)
{
    if (!j->k18) j->k18 = memory_zeroed((size_t)j->capacity * sizeof *j->k18);
    return j->k18 ? 0 : G6X_E_MEMORY;
}

int jmemory_reserve(struct jmemory *j, int64_t address, int k18)
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

/* Stores a particle at rest that begins a list, if it has no NaN or Inf. Returns 0 if it must go to
 * its slot. Not inlined in jmemory_set, since most particles are not such. */
static __attribute__((noinline)) int take_at_rest(struct jmemory *j, int address, int index,
                                                  double time, double mass, const double *x)
{
    struct at_rest *r = &j->rest;
    jmemory_commit_queue(j); /* a queued particle may make a slot bad */
    if (address >= AT_REST_SLOTS || j->bad || j->k18) return 0;
    if (not_finite(time) >> 63) return 0;
    if (at_rest_any(r) &&
        (address < r->first || address > r->end || bits_of(time) != bits_of(r->time)))
        commit_at_rest(j);
    if (address >= r->capacity) {
        const int64_t capacity = j->capacity < AT_REST_SLOTS ? j->capacity : AT_REST_SLOTS;
        const struct memory_array at_rest[] = {AT_REST(r, capacity), {0}};
        if (memory_grow_all(at_rest)) return 0;
        r->capacity = (int32_t)capacity;
    }
    if (!at_rest_any(r)) {
        r->first = r->end = address;
        r->time = time;
    }
    return jmemory_store_at_rest(j, address, index, mass, x);
}

/* Loads a slot into the cache to be written. Another thread may have read it (as several do that
 * settle and send particles): without prefetchw, which compilers use for few processors only, each
 * write would wait for the other core. */
static inline void prefetch_slot(const struct jparticle *p)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0\n\tprefetchw %1" : : "m"(p->x[0]), "m"(p->a2[0]));
#else
    __builtin_prefetch(p, 1);
    __builtin_prefetch(p->a2, 1);
#endif
}

int jmemory_set(struct jmemory *j, int address, int index, double time, double mass,
                const double *k18, const double *j6, const double *a2, const double *v,
                const double *x)
{
    static const double zero[3];
    if (address < 0) return G6X_E_ADDRESS;
    if (address >= j->capacity && jmemory_reserve(j, address, 0)) return refused(j, address);
    if (!k18) k18 = zero;
    if (!j6) j6 = zero;
    if (!a2) a2 = zero;
    if (!v) v = zero;
    if ((address == j->last + 1 || !address) && is_at_rest(k18, j6, a2, v) &&
        take_at_rest(j, address, index, time, mass, x))
        return 0;
    if (address >= j->rest.first && address < j->rest.end) commit_at_rest(j);
    const uint64_t any_k18 = (bits_of(k18[0]) | bits_of(k18[1]) | bits_of(k18[2])) << 1;
    if (any_k18 && make_k18(j)) return refused(j, address);
    const int near = (uint32_t)address - (uint32_t)j->last + 4 < 8;
    struct queued *q = &j->queue[j->queued];
    struct jparticle *p = &q->body;
    j->last = address;
    if (near) { /* directly to its slot, which is in the cache */
        if (j->queued) jmemory_commit_queue(j);
        p = &j->body[address];
        prefetch_slot(p + AHEAD);
        j->bad -= is_unusable(p);
        if (j->k18) memcpy(j->k18[address], k18, 3 * sizeof *k18);
        mark_changed(j, address);
    }
    const uint64_t label = (uint64_t)SLOT_SET << 32 | (uint32_t)index;
    const bit_pair exponents =
        store_four((double *)p, x, mass) | store_four((double *)p + 4, v, time) |
        store_four((double *)p + 8, a2, from_bits(label)) | store_four((double *)p + 12, j6, 0.0);
    const int bad = (int)((exponents[0] | exponents[1] | (any_k18 ? not_finite3(k18) : 0)) >> 63);
    if (bad) p->state = SLOT_BAD;
    if (near) j->bad += bad;
    if (!near) {
        memcpy(q->k18, k18, 3 * sizeof *k18);
        q->address = address;
        prefetch_slot(&j->body[address]);
        if (++j->queued == QUEUE) jmemory_commit_queue(j);
    }
    return bad ? G6X_E_J_NAN : 0;
}

/* ---- mirrors -------------------------------------------------------------------- */

int jmemory_follow(struct jmemory *j, int mirror)
{
    struct dirty_list *f = &j->dirty[mirror];
    if (f->slot) return 0;
    *f = (struct dirty_list){.slot = memory_zeroed(DIRTY_SLOTS * sizeof *f->slot), .overflow = 1};
    int mirrors = atomic_load(&j->mirrors);
    while (mirrors <= mirror && !atomic_compare_exchange_weak(&j->mirrors, &mirrors, mirror + 1))
        continue;
    return f->slot ? 0 : G6X_E_MEMORY;
}

void jmemory_stale_all(struct jmemory *j, int packing)
{
    const size_t blocks = (size_t)(j->capacity / BLOCK);
    if (blocks) memset(j->stale[packing], 0xff, blocks * sizeof *j->stale[packing]);
}

void jmemory_stale_slots(struct jmemory *j, int64_t first, int64_t last)
{
    const int64_t at[2] = {first, last};
    for (int k = 0; k < 2; k++)
        if (at[k] >= 0 && at[k] < j->capacity) jmemory_stale_chunk(j, at[k] / CHUNK);
}

/* ---- queries ----------------------------------------------------------------- */

int64_t jmemory_first_bad(struct jmemory *j, int64_t nj, int *state)
{
    int64_t first = nj;
    jmemory_commit_queue(j); /* particles at rest are never bad */
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

static inline __attribute__((always_inline)) void
predict(const struct jparticle *p, const double k18[3], double time, double x[3], double v[3])
{
    const double dt = time - p->time;
    for (int k = 0; k < 3; k++)
        predict_component(dt, k18[k], p->j6[k], p->a2[k], p->v[k], p->x[k], &x[k], &v[k]);
}

#ifdef __x86_64__
/* The same function for processors where fma is an instruction instead of a call. */
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
