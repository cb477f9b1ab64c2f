/* search_kernel.c - nearest particles for one instruction set: compiled once for each, with double
 * precision. Targets are particles that follow each other along the curve. Those beside them along
 * the curve give each a first list and, with it, a distance beyond which nobody is one of the k
 * nearest; the tree is then searched for particles that are within it of one of the targets. */
#include "tree/search_kernel.h"

#include "simd/dispatch.h"

#include <math.h>
#include <string.h>

#include OPS_HEADER

enum {
    STACK = 8 * 24, /* cells: a level adds 7 at most */
    BESIDE = 8      /* places on either side that are looked at first, and k more */
};

/* How many of n numbers, behind which infinite ones follow, are below a limit. */
static int count_below(const double *a, int n, double limit)
{
    const vec most = v_set1(limit);
    int count = 0;
    for (int first = 0; first < n; first += VL)
        count += __builtin_popcount(vmask_bits(v_lt(v_load(a + first), most)));
    return count;
}

static void close_with_infinity(struct tree_near *near)
{
    for (int l = 0; l < VL; l++) near->r2[near->count + l] = INFINITY;
}

/* A limit with k numbers or a few more below it, if `high` has at least k; infinite ones follow. */
static double limit_of(const struct tree_near *near, int k, double high)
{
    double low = 0.0;
    for (int turn = 0; turn < 8; turn++) {
        const double middle = 0.5 * (low + high);
        const int count = count_below(near->r2, near->count, middle);
        if (count < k)
            low = middle;
        else
            high = middle;
        if (count >= k && count <= k + k / 8) break;
    }
    return high;
}

/* Squared distances of a vector of particles. */
HOST_DEVICE vec distances2(const double *x, const double *y, const double *z, const vec at[3])
{
    const vec dx = v_sub(v_load(x), at[0]), dy = v_sub(v_load(y), at[1]);
    const vec dz = v_sub(v_load(z), at[2]);
    return v_add(v_add(v_mul(dx, dx), v_mul(dy, dy)), v_mul(dz, dz));
}

/* Which of a vector of leaves may have particles within a limit: rounded as distances of particles
 * are, that of a box is not above any of them. */
HOST_DEVICE unsigned leaves_within(const struct tree_candidates *c, int first, const vec at[3],
                                   vec most)
{
    vec square[3];
    for (int q = 0; q < 3; q++) {
        const vec below = v_sub(v_load(c->low[q] + first), at[q]);
        const vec above = v_sub(at[q], v_load(c->high[q] + first));
        const vec apart = v_max(v_max(below, above), v_set1(0));
        square[q] = v_mul(apart, apart);
    }
    return ~vmask_bits(v_lt(most, v_add(v_add(square[0], square[1]), square[2])));
}

/* Numbers of the lanes whose bit is set, and theirs places, one after another; up to VL of each may
 * be written. */
HOST_DEVICE void put_within(unsigned which, vec r2, const int32_t *place, double *to_r2,
                            int32_t *to_place)
{
#if VL == 8 /* of the instruction sets AVX-512 alone, whatever else the compiler may use */
    _mm512_storeu_pd(to_r2, _mm512_maskz_compress_pd((__mmask8)which, r2));
    const __m256i all = _mm256_loadu_si256((const void *)place);
    _mm256_storeu_si256((void *)to_place, _mm256_maskz_compress_epi32((__mmask8)which, all));
#else
    real lanes[VL];
    v_store(lanes, r2);
    for (; which; which &= which - 1) {
        const int lane = __builtin_ctz(which);
        *to_r2++ = lanes[lane];
        *to_place++ = place[lane];
    }
#endif
}

/* The candidates within a limit. 0 if there are too many. */
static int find_near(const struct tree_candidates *c, const double place[3], double limit,
                     struct tree_near *near)
{
    const vec at[3] = {v_set1(place[0]), v_set1(place[1]), v_set1(place[2])};
    const vec most = v_set1(limit);
    int count = 0;
    for (int leaf = 0; leaf < c->leaves; leaf += VL) {
        const int left = c->leaves - leaf < VL ? c->leaves - leaf : VL;
        unsigned which = leaves_within(c, leaf, at, most) & ((1u << left) - 1);
        for (; which; which &= which - 1) {
            const int l = leaf + __builtin_ctz(which);
            for (int k = c->first[l]; k < c->first[l + 1]; k += VL) {
                const vec r2 = distances2(c->x[0] + k, c->x[1] + k, c->x[2] + k, at);
                unsigned within = ((1u << VL) - 1) & ~vmask_bits(v_lt(most, r2));
                if (!within) continue;
                if (count + VL > SEARCH_NEAR) return 0;
                put_within(within, r2, c->place + k, near->r2 + count, near->place + count);
                count += __builtin_popcount(within);
            }
        }
    }
    near->count = count;
    return 1;
}

/* The target itself; 0 if it is not among them. */
static int leave_out(struct tree_near *near, int32_t place)
{
    int j = 0;
    while (j < near->count && near->place[j] != place) j++;
    if (j == near->count) return 0;
    near->count--;
    near->place[j] = near->place[near->count], near->r2[j] = near->r2[near->count];
    close_with_infinity(near);
    return 1;
}

static void keep_within(struct tree_near *near, double limit)
{
    int count = 0;
    for (int j = 0; j < near->count; j++) {
        const double r2 = near->r2[j];
        near->place[count] = near->place[j], near->r2[count] = r2;
        count += r2 <= limit;
    }
    near->count = count;
    close_with_infinity(near);
}

/* Puts a particle where it belongs in a row of k: nearest first, of equally near ones the lowest
 * number first. */
static void insert(int32_t *number, double *r2, int *count, int k, int32_t one, double its_r2)
{
    int to = *count < k ? (*count)++ : k;
    for (; to > 0; to--) {
        const double before = r2[to - 1];
        if (before < its_r2 || (before == its_r2 && number[to - 1] < one)) break;
        if (to < k) r2[to] = before, number[to] = number[to - 1];
    }
    if (to < k) r2[to] = its_r2, number[to] = one;
}

/* The first k. Where no two are equally far, a particle's place is how many are nearer. */
static void put_in_order(const struct tree_near *near, const int32_t *order, int k, int32_t *number,
                         double *r2)
{
    int32_t at[SEARCH_K];
    uint64_t taken = 0, equal = 0; /* a bit for each place */
    for (int j = 0; j < near->count; j++) {
        const int to = count_below(near->r2, near->count, near->r2[j]);
        if (to >= k) continue;
        equal |= taken & (uint64_t)1 << to;
        taken |= (uint64_t)1 << to;
        at[to] = j;
    }
    if (!equal) {
        for (int j = 0; j < k; j++) number[j] = order[near->place[at[j]]], r2[j] = near->r2[at[j]];
        return;
    }
    int count = 0;
    for (int j = 0; j < near->count; j++)
        insert(number, r2, &count, k, order[near->place[j]], near->r2[j]);
}

/* Squared distance of a cell's box from that of the targets: rounded as distances of particles are,
 * it is not above any of them. */
static double apart2(const struct tree_search_cell *c, const double low[3], const double high[3])
{
    double d[3];
    for (int k = 0; k < 3; k++) {
        const double below = c->low[k] - high[k], above = low[k] - c->high[k];
        const double farther = below > above ? below : above;
        d[k] = farther > 0.0 ? farther : 0.0;
    }
    return (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2];
}

/* The particles of a leaf. 0 if there are too many. */
static int take(const struct tree_search *s, const struct tree_search_cell *leaf,
                struct tree_candidates *c)
{
    const int32_t first = leaf->first, n = leaf->end - first;
    int32_t to = c->first[c->leaves];
    if (to + n > SEARCH_CANDIDATES || c->leaves == SEARCH_LEAVES) return 0;
    for (int k = 0; k < n; k += VL)
        for (int q = 0; q < 3; q++) v_store(c->x[q] + to + k, v_load(s->x[q] + first + k));
    for (int k = 0; k < n; k++) c->place[to + k] = first + k;
    for (to += n; to % VL; to++)
        for (int q = 0; q < 3; q++) c->x[q][to] = INFINITY;
    for (int q = 0; q < 3; q++)
        c->low[q][c->leaves] = leaf->low[q], c->high[q][c->leaves] = leaf->high[q];
    c->first[++c->leaves] = to;
    return 1;
}

static int find_candidates(const struct tree_search *s, const double low[3], const double high[3],
                           double limit, struct tree_candidates *c)
{
    int32_t stack[STACK];
    int left = 0;
    stack[left++] = 0;
    c->first[0] = c->leaves = 0;
    while (left) {
        const struct tree_search_cell *cell = &s->cell[stack[--left]];
        if (cell->end >= 0) {
            if (!take(s, cell, c)) return 0;
            continue;
        }
        for (int32_t child = -cell->end; child-- > cell->first;)
            if (apart2(&s->cell[child], low, high) <= limit) stack[left++] = child;
    }
    return 1;
}

/* A limit that has k others within it, from distances of those beside a target along the curve. */
static double first_limit(const struct tree_search *s, int64_t from, int64_t to, int64_t own,
                          const double at[3], int k, struct tree_near *near)
{
    const vec place[3] = {v_set1(at[0]), v_set1(at[1]), v_set1(at[2])};
    near->count = (int)(to - from);
    for (int64_t j = from; j < to; j += VL)
        v_store(near->r2 + (j - from), distances2(s->x[0] + j, s->x[1] + j, s->x[2] + j, place));
    close_with_infinity(near);
    /* The target and k beside it */
    int next = (int)(own - from) - k / 2;
    if (next + k >= near->count) next = near->count - k - 1;
    if (next < 0) next = 0;
    double high = 0.0;
    for (int j = next; j <= next + k; j++) high = near->r2[j] > high ? near->r2[j] : high;
    return limit_of(near, k + 1, high);
}

static int nearest(const struct tree_search *s, int64_t first, int count, int k, int32_t *number,
                   double *r2, struct tree_search_work *w)
{
    const struct tree_points *p = &s->tree->points;
    const int64_t beside = BESIDE + k;
    const int64_t from = first > beside ? first - beside : 0;
    const int64_t to = first + count + beside < p->n ? first + count + beside : p->n;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    double at[SEARCH_TARGETS][3], limit[SEARCH_TARGETS], most = 0.0;
    if (to - from <= k) return 0;
    for (int t = 0; t < count; t++) {
        for (int q = 0; q < 3; q++) {
            const double x = at[t][q] = s->x[q][first + t];
            low[q] = x < low[q] ? x : low[q];
            high[q] = x > high[q] ? x : high[q];
        }
        limit[t] = first_limit(s, from, to, first + t, at[t], k, &w->near);
        most = limit[t] > most ? limit[t] : most;
    }
    if (!(most < INFINITY) || !find_candidates(s, low, high, most, &w->candidates)) return 0;
    for (int t = 0; t < count; t++) {
        const int64_t row = (int64_t)p->order[first + t] * k;
        if (!find_near(&w->candidates, at[t], limit[t], &w->near)) return 0;
        if (!leave_out(&w->near, (int32_t)first + t)) return 0;
        if (w->near.count > k + k / 4 + 4) keep_within(&w->near, limit_of(&w->near, k, limit[t]));
        put_in_order(&w->near, p->order, k, number + row, r2 + row);
    }
    return 1;
}

extern const struct tree_search_kernel SIMD_NAME_OF_SET(tree_search_kernel);
const struct tree_search_kernel SIMD_NAME_OF_SET(tree_search_kernel) = {nearest};
