/* jmemory_share.c - the j particles of a session as a share of more, whose scale and origin they
 * have. See jmemory.h. */
#include <string.h>

#include "core/jmemory.h"
#include "g6lib.h"
#include "util/memory.h"

void jmemory_share_sample(const struct jmemory *j, int64_t nj, int64_t first, long long *words)
{
    const int samples = nj < ORIGIN_SAMPLE ? (int)nj : ORIGIN_SAMPLE;
    memset(words, 0, SHARE_SAMPLE_WORDS * sizeof *words);
    for (int k = 0; k < samples; k++) {
        struct jmemory_seen seen;
        const int64_t address = origin_address(nj, samples, k) - first;
        if (address < 0 || address >= j->counted || !jmemory_look(j, address, &seen)) continue;
        long long *w = words + SHARE_SAMPLE * k;
        w[0] = 1;
        memcpy(w + 1, seen.x, 3 * sizeof *w);
        memcpy(w + 4, seen.v, 3 * sizeof *w);
    }
}

void jmemory_share_set_sample(struct jmemory *j, const long long *words)
{
    int n = 0;
    origin_clear(j->columns, 6);
    for (const long long *w = words; w < words + SHARE_SAMPLE_WORDS; w += SHARE_SAMPLE) {
        double seen[6];
        if (!w[0]) continue;
        memcpy(seen, w + 1, sizeof seen);
        for (int c = 0; c < 6; c++) j->columns[c][n] = seen[c];
        n++;
    }
    j->is_share = 1;
    jmemory_choose_origin(j, n);
}

void jmemory_share_counts(const struct jmemory *j, long long *words)
{
    const struct histogram *own[3] = {&j->x, &j->mass, &j->v};
    for (int h = 0; h < 3; h++)
        for (int k = 0; k < HISTOGRAM_SIZE; k++) *words++ = own[h]->count[k];
}

int jmemory_share_set_counts(struct jmemory *j, const long long *words)
{
    if (!j->all) j->all = memory_zeroed(3 * sizeof *j->all);
    if (!j->all) return G6X_E_MEMORY;
    for (struct histogram *h = j->all; h < j->all + 3; h++) {
        *h = (struct histogram){0};
        for (int k = 0; k < HISTOGRAM_SIZE; k++, words++) {
            h->count[k] = (int32_t)*words;
            h->total += *words;
            if (*words) h->highest = k;
        }
    }
    return 0;
}

void jmemory_share_end(struct jmemory *j)
{
    memory_free(j->all);
    j->all = NULL;
    j->is_share = j->share_code = 0;
    j->sample_moved = 1;
}
