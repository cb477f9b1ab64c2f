/* radix_sort.c - see radix_sort.h. */
#include "util/radix_sort.h"

#include <string.h>

#include "g6lib.h"
#include "util/memory.h"
#include "util/threads.h"
#include "util/numbers.h"

enum { DIGIT = 9, DIGITS = 1 << DIGIT, PASSES = 7, MAX_SLICES = 64 };

struct sort {
    int64_t n, slice;
    int slices, shift;
    const uint64_t *key;
    const int32_t *number;
    uint64_t *key_out;
    int32_t *number_out;
    int64_t (*start)[DIGITS]; /* per slice */
};

static void count_digits(void *context, int64_t first, int64_t end)
{
    struct sort *s = context;
    for (int64_t p = first; p < end; p++) {
        int64_t *count = s->start[p];
        memset(count, 0, sizeof s->start[p]);
        const int64_t last = (p + 1) * s->slice < s->n ? (p + 1) * s->slice : s->n;
        for (int64_t k = p * s->slice; k < last; k++) count[s->key[k] >> s->shift & (DIGITS - 1)]++;
    }
}

static void scatter(void *context, int64_t first, int64_t end)
{
    struct sort *s = context;
    for (int64_t p = first; p < end; p++) {
        const int64_t last = (p + 1) * s->slice < s->n ? (p + 1) * s->slice : s->n;
        for (int64_t k = p * s->slice; k < last; k++) {
            const int64_t to = s->start[p][s->key[k] >> s->shift & (DIGITS - 1)]++;
            s->key_out[to] = s->key[k];
            s->number_out[to] = s->number[k];
        }
    }
}

/* Converts counts to start positions, by digit, then by slice. 0 if all keys have one digit. */
static int places_of(struct sort *s)
{
    int64_t place = 0;
    for (int d = 0; d < DIGITS; d++) {
        const int64_t before = place;
        for (int p = 0; p < s->slices; p++) {
            const int64_t count = s->start[p][d];
            s->start[p][d] = place;
            place += count;
        }
        if (place - before == s->n) return 0;
    }
    return 1;
}

int radix_sort(int64_t n, uint64_t *key, int32_t *number, int threads)
{
    struct sort s = {.n = n};
    s.slices = threads < 1 ? 1 : threads > MAX_SLICES ? MAX_SLICES : threads;
    s.slice = ceil_div(n, s.slices);
    uint64_t *spare_key = memory_zeroed((size_t)n * sizeof *spare_key);
    int32_t *spare_number = memory_zeroed((size_t)n * sizeof *spare_number);
    s.start = memory_zeroed((size_t)s.slices * sizeof *s.start);
    const int missing = !spare_key || !spare_number || !s.start;
    uint64_t *from = key, *to = spare_key;
    int32_t *number_from = number, *number_to = spare_number;
    for (int pass = 0; pass < PASSES && !missing && n > 0; pass++) {
        s.shift = pass * DIGIT;
        s.key = from, s.number = number_from, s.key_out = to, s.number_out = number_to;
        threads_each(threads, s.slices, 1, count_digits, &s);
        if (!places_of(&s)) continue;
        threads_each(threads, s.slices, 1, scatter, &s);
        to = from, number_to = number_from;
        from = s.key_out, number_from = s.number_out;
    }
    if (from != key && !missing) {
        memcpy(key, from, (size_t)n * sizeof *key);
        memcpy(number, number_from, (size_t)n * sizeof *number);
    }
    memory_free(spare_key);
    memory_free(spare_number);
    memory_free(s.start);
    return missing ? G6X_E_MEMORY : 0;
}
