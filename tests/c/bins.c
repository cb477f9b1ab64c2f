/* The binned accumulator alone: reads block sums, adds them in many cuts and orders, and checks
 * that all give the same bits.
 * usage: bins FILE LIMBS COLUMNS ROUNDS; FILE: doubles [n][COLUMNS], COLUMNS 7, or 1: x stands for
 * the block sums x, -x, x / 2, x, -x, x / 2, x. Prints tops, the invalid bits, then per sum its
 * value and its limbs. */
#include "core/partial.h"

#include <stdio.h>
#include <stdlib.h>

static double *data;
static size_t n, columns;
static int limbs;
static uint64_t state = 88172645463325252u;

static size_t below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % limit);
}

static void add(struct partial_row *row, size_t block)
{
    double sum[NSUM];
    const double *d = data + block * columns;
    const double spread[NSUM] = {1, -1, 0.5, 1, -1, 0.5, 1};
    for (size_t k = 0; k < NSUM; k++) sum[k] = columns == 1 ? d[0] * spread[k] : d[k];
    partial_add_block(row, sum, limbs);
}

/* Shuffled blocks, cut into pieces that are merged pairwise in random order. */
static struct partial_row shuffled(size_t *order, size_t most)
{
    const size_t pieces = 1 + below(most);
    struct partial_row *piece = malloc(pieces * sizeof *piece), whole;
    for (size_t p = 0; p < pieces; p++) partial_clear(&piece[p]);
    for (size_t k = n; k > 1; k--) {
        const size_t other = below(k), kept = order[k - 1];
        order[k - 1] = order[other];
        order[other] = kept;
    }
    for (size_t k = 0; k < n; k++) add(&piece[below(pieces)], order[k]);
    for (size_t left = pieces; left > 1; left--) {
        const size_t a = below(left);
        const struct partial_row kept = piece[left - 1];
        piece[left - 1] = piece[a];
        piece[a] = kept;
        partial_merge(&piece[below(left - 1)], &piece[left - 1], limbs);
    }
    whole = piece[0];
    free(piece);
    return whole;
}

/* The same bits of all windows that are valid, and the same of them invalid. */
static int differ(const struct partial_row *a, const struct partial_row *b)
{
    if (a->invalid != b->invalid) return 1;
    for (int k = 0; k < NSUM; k++) {
        const int w = window_of(k);
        if (a->invalid >> w & 1) continue;
        if (a->top[w] != b->top[w]) return 1;
        if (memcmp(a->limb[k], b->limb[k], sizeof a->limb[k]) != 0) return 1;
    }
    return 0;
}

static void read_data(const char *path)
{
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    data = malloc(bytes + 1);
    n = fread(data, 1, bytes, file) / sizeof *data / columns;
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    limbs = atoi(argv[2]);
    columns = (size_t)atoi(argv[3]);
    read_data(argv[1]);
    size_t *order = malloc((n + 1) * sizeof *order);
    struct partial_row row;
    double value[NSUM];
    partial_clear(&row);
    for (size_t k = 0; k < n; k++) {
        order[k] = k;
        add(&row, k);
    }
    for (int round = atoi(argv[4]); round > 0; round--) {
        const struct partial_row other = shuffled(order, n < 40 ? n + 2 : 40);
        if (differ(&row, &other)) {
            fprintf(stderr, "other bits, %d rounds before the end\n", round);
            return 1;
        }
    }
    partial_value(&row, value);
    printf("%d %d %d %u\n", row.top[0], row.top[1], row.top[2], row.invalid);
    for (int k = 0; k < NSUM; k++)
        printf("%a %lld %lld %lld\n", value[k], (long long)row.limb[k][0],
               (long long)row.limb[k][1], (long long)row.limb[k][2]);
    free(order);
    free(data);
    return 0;
}
