/* closed_ids.c - see closed_ids.h: a hash table with linear probing, at most half full. */
#include "session/closed_ids.h"

#include <string.h>

#include "core/error.h"
#include "util/memory.h"

/* No id is INT64_MIN, so no key is 0; 0 marks an empty place. */
static uint64_t *table;
static int64_t places, count;

static uint64_t key_of(int64_t id) { return (uint64_t)id ^ (uint64_t)1 << 63; }

/* Where a key is, or would be. */
static uint64_t *place_of(uint64_t key)
{
    int64_t at = (int64_t)(key * 0x9e3779b97f4a7c15u >> 20) & (places - 1);
    while (table[at] && table[at] != key) at = (at + 1) & (places - 1);
    return &table[at];
}

int session_closed_ids_reserve(int64_t ids)
{
    uint64_t *const old = table;
    const int64_t old_places = places;
    int64_t requested = 64;
    while (requested < 2 * ids) requested *= 2;
    if (requested <= places) return 0;
    uint64_t *more = memory_zeroed((size_t)requested * sizeof *more);
    if (!more) return G6X_E_MEMORY;
    table = more;
    places = requested;
    for (int64_t k = 0; k < old_places; k++)
        if (old[k]) *place_of(old[k]) = old[k];
    memory_free(old);
    return 0;
}

void session_closed_ids_add(int64_t id)
{
    uint64_t *place = place_of(key_of(id));
    count += !*place;
    *place = key_of(id);
}

int session_closed_ids_has(int64_t id) { return places && *place_of(key_of(id)) != 0; }
int64_t session_closed_ids_count(void) { return count; }

void session_closed_ids_clear(void)
{
    if (count) memset(table, 0, (size_t)places * sizeof *table);
    count = 0;
}
