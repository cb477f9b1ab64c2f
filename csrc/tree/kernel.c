/* kernel.c - walks and sums of the tree for one instruction set: compiled once for each, like
 * cpu/direct_kernel.c. Walks look at as many cells at once as a vector holds; expansions are made
 * from as many cells; what acts on targets is in tree/kernel_eval.h. */
#include "tree/kernel.h"
#include "cpu/softened.h"
#include "simd/dispatch.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include OPS_HEADER
#include "shared/rsqrt.h"
#include "util/memory.h"

#define TREE_UNROLL _Pragma("GCC unroll 16")
#include "shared/tree_expansion.h"
#include "shared/tree_hilbert.h"
#include "shared/tree_mac.h"
#include "shared/tree_pull.h"
#define PAIR_LEAST_H2 1e-30
#include "shared/pair.h"

static int reserve(struct tree_list *list, int64_t more, struct tree_work *w)
{
    const int64_t want = list->count + more + VL;
    if (want <= list->capacity) return 1;
    const int64_t capacity = want + want / 2 + 256;
    int32_t *cell =
        capacity < INT32_MAX ? memory_grown(list->cell, (size_t)capacity * sizeof *cell) : NULL;
    w->missing |= !cell;
    if (!cell) return 0;
    list->cell = cell;
    list->capacity = (int32_t)capacity;
    return 1;
}

/* ---- keys ----------------------------------------------------------------------- */

/* Turn by turn for many, which compilers make vectors of. */
static void find_keys(const struct tree_box *box, const double (*x)[3], int64_t n, uint64_t *key)
{
    enum { MANY = 256 };
    uint32_t at[3][MANY];
    for (int64_t first = 0; first < n; first += MANY) {
        const int count = n - first < MANY ? (int)(n - first) : MANY;
        for (int k = 0; k < count; k++)
            for (int c = 0; c < 3; c++) {
                float high, low;
                tree_split(tree_in_box(box, c, x[first + k][c]), &high, &low);
                at[c][k] = tree_place_of(box, c, high, low);
            }
        for (uint32_t bit = TREE_LEVELS - 1; bit > 0; bit--)
            for (int k = 0; k < count; k++) tree_key_turn(bit, &at[0][k], &at[1][k], &at[2][k]);
        for (int k = 0; k < count; k++) key[first + k] = tree_key_end(at[0][k], at[1][k], at[2][k]);
    }
}

/* ---- groups --------------------------------------------------------------------- */

static float largest(vec v)
{
    real lane[VL];
    v_store(lane, v);
    float most = lane[0];
    for (int l = 1; l < VL; l++) most = lane[l] > most ? lane[l] : most;
    return most;
}

HOST_DEVICE float total(vec v)
{
    real lane[VL];
    v_store(lane, v);
    for (int half = VL / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

static float least(vec v) { return -largest(v_sub(v_set1(0), v)); }

static void find_group(const struct tree_job *job, const struct tree_opening *o, int32_t first,
                       int32_t count, struct tree_group *g)
{
    const struct tree_points *p = job->targets;
    const float *column[3] = {p->x + first, p->y + first, p->z + first};
    float centre[3], half[3];
    for (int c = 0; c < 3; c++) {
        vec low = v_set1(column[c][0]), high = low;
        for (int32_t k = 0; k < count; k += VL) { /* behind the last target are copies of it, or */
            const vec x =
                v_load(column[c] + k); /* others, which make the box no worse than loose */
            low = v_min(low, x), high = v_max(high, x);
        }
        const float a = least(low), b = largest(high);
        centre[c] = 0.5f * (a + b);
        half[c] = b - centre[c] > centre[c] - a ? b - centre[c] : centre[c] - a;
    }
    vec r2 = v_set1(0);
    for (int32_t k = 0; k < count; k += VL) {
        const vec x = v_sub(v_load(column[0] + k), v_set1(centre[0]));
        const vec y = v_sub(v_load(column[1] + k), v_set1(centre[1]));
        const vec z = v_sub(v_load(column[2] + k), v_set1(centre[2]));
        r2 = v_max(r2, v_fma(z, z, v_fma(y, y, v_mul(x, x))));
    }
    *g = (struct tree_group){.first = first, .count = count, .least_acc = INFINITY};
    g->x = centre[0], g->y = centre[1], g->z = centre[2];
    g->half_x = half[0], g->half_y = half[1], g->half_z = half[2];
    g->radius = sqrtf(largest(r2));
    float most = 0.0f;
    g->eps2 = INFINITY;
    for (int32_t k = first; k < first + count; k++) {
        g->eps2 = job->eps2[k] < g->eps2 ? job->eps2[k] : g->eps2;
        most = job->eps2[k] > most ? job->eps2[k] : most;
        if (job->last_acc && job->last_acc[k] < g->least_acc) g->least_acc = job->last_acc[k];
    }
    g->eps2_spread = most - g->eps2;
    if (o->own) tree_own_group(g, job->term);
    g->unit = tree_unit(o, g);
    g->self_first = first, g->self_end = first + count;
    if (!job->self) return;
    g->self_first = INT32_MAX, g->self_end = 0;
    for (int32_t k = first; k < first + count; k++) {
        const int32_t at = job->self[k];
        if (at < 0) continue;
        if (at < g->self_first) g->self_first = at;
        if (at >= g->self_end) g->self_end = at + 1;
    }
}

/* ---- the walk ------------------------------------------------------------------- */

/* Which of the cells may act as expansions, and which on each target. */
struct allowed {
    unsigned local, point;
};

static struct allowed allow(const struct tree_job *job, const struct tree_opening *o,
                            const struct tree_group *g, int level, const int32_t *cell)
{
    const float *row[VL];
    vec place[4];
    for (int l = 0; l < VL; l++) row[l] = &job->place[cell[l]].x;
    v_columns(row, place);
    const struct tree_distance d = tree_distance_of(o, g, place[0], place[1], place[2]);
    const vec size = place[3];
    struct allowed may;
    vec least = v_set1(g->reach);
    if (o->own) {
        real apart[VL];
        for (int l = 0; l < VL; l++) apart[l] = job->reach[cell[l]];
        least = v_add(least, v_load(apart));
    }
    const vec reach = tree_reach_point(o, g, size, least);
    may.point = vmask_bits(v_lt(reach, d.box));
    may.local = vmask_bits(v_lt(tree_reach_local(o, level, g, size, least), d.centre)) &
                vmask_bits(v_lt(reach, d.centre)) & vmask_bits(v_lt(v_set1(0), d.box)) &
                vmask_bits(v_lt(v_set1(tree_reach_soft(o, g)), d.centre));
    if (!job->order) may.local = 0;
    if (level < 2) may.point = 0; /* its subgroups decide */
    if (!(may.local | may.point) || !tree_goes_by_weight(o)) return may;
    real mass[VL], spread[VL], count[VL];
    for (int l = 0; l < VL; l++) {
        mass[l] = job->tree->far[cell[l]].m;
        spread[l] = job->tree->far[cell[l]].spread;
        count[l] = tree_bodies_of(&job->tree->cell[cell[l]]);
    }
    const struct tree_weight c =
        tree_weight_of(g, v_load(mass), v_load(spread), size, v_load(count));
    if (may.local) may.local &= vmask_bits(tree_within_local(o, g, &c, d.centre));
    if (may.point) may.point &= vmask_bits(tree_within_point(o, g, &c, d.box));
    return may;
}

static void add_children(struct tree_list *list, const struct tree_cell *c)
{
    for (int32_t k = c->child; k < c->child_end; k++) list->cell[list->count++] = k;
}

static void walk(const struct tree_job *job, const struct tree_opening *o,
                 const struct tree_group *g, int level, struct tree_work *w)
{
    const struct tree_cell *cells = job->tree->cell;
    const int large = level < 2;
    const float small = o->passed_on * g->radius;
    const struct tree_list *now = &w->from[level];
    struct tree_list *rest = large ? &w->from[level + 1] : NULL;
    w->local.count = w->point.count = w->leaf.count = 0;
    if (rest) rest->count = 0;
    for (int turn = 0; now->count; turn ^= 1) {
        struct tree_list *next = &w->front[turn];
        next->count = 0;
        if (!reserve(next, 8 * (int64_t)now->count, w) || !reserve(&w->local, now->count, w) ||
            (rest && !reserve(rest, now->count, w)) ||
            (!rest && (!reserve(&w->point, now->count, w) || !reserve(&w->leaf, now->count, w))))
            return;
        for (int l = 0; l < VL; l++) now->cell[now->count + l] = job->tree->cells;
        for (int32_t k = 0; k < now->count; k += VL) {
            const int32_t *cell = now->cell + k;
            const struct allowed may = allow(job, o, g, level, cell);
            const int n = now->count - k < VL ? now->count - k : VL;
            for (int l = 0; l < n; l++) {
                const int32_t id = cell[l];
                const struct tree_cell *c = &cells[id];
                const unsigned bit = 1u << l;
                const int own = c->first < g->self_end && c->end > g->self_first;
                if (may.local & bit && !own)
                    w->local.cell[w->local.count++] = id;
                else if (large && (c->child < 0 || job->place[id].size < small))
                    rest->cell[rest->count++] = id;
                else if (large)
                    add_children(next, c);
                else if (!own && (c->child >= 0 ? may.point & bit
                                                : c->first == c->end ||
                                                      (may.point & bit &&
                                                       c->end - c->first >= o->least_count)))
                    w->point.cell[w->point.count++] = id;
                else if (c->child < 0)
                    w->leaf.cell[w->leaf.count++] = id;
                else
                    add_children(next, c);
            }
        }
        now = next;
    }
}

static void mark(const struct tree_job *job, const struct tree_opening *o,
                 const struct tree_group *region, struct tree_work *w, unsigned char *opened)
{
    const struct tree_list *now = &w->from[2];
    struct tree_group g = *region;
    g.unit = tree_unit(o, &g);
    for (int turn = 0; now->count; turn ^= 1) {
        struct tree_list *next = &w->front[turn];
        next->count = 0;
        if (!reserve(next, 8 * (int64_t)now->count, w)) return;
        for (int l = 0; l < VL; l++) now->cell[now->count + l] = job->tree->cells;
        for (int32_t k = 0; k < now->count; k += VL) {
            const struct allowed may = allow(job, o, &g, 2, now->cell + k);
            const int n = now->count - k < VL ? now->count - k : VL;
            for (int l = 0; l < n; l++) {
                const int32_t id = now->cell[k + l];
                const struct tree_cell *c = &job->tree->cell[id];
                const int light = c->child < 0 && c->end - c->first < o->least_count;
                if (may.point & 1u << l && !light) continue;
                __atomic_store_n(&opened[id], 1, __ATOMIC_RELAXED);
                if (c->child >= 0) add_children(next, c);
            }
        }
        now = next;
    }
}

/* ---- how strong the field is ---------------------------------------------------- */

/* A lower estimate of the pull on every target of the group, from the cells without targets of it:
 * what is left of the sum at its centre when the cell that varies most over the group is taken
 * away twice; at least a twentieth of the sum of absolute values (shared/tree_pull.h). */
static float pull(const struct tree_job *job, const struct tree_group *g, struct tree_work *w)
{
    const struct tree_list *now = &w->from[2];
    struct tree_pull sum = tree_pull_none();
    for (int turn = 0; now->count; turn ^= 1) {
        struct tree_list *next = &w->front[turn];
        next->count = 0;
        if (!reserve(next, 8 * (int64_t)now->count, w)) return 0.0f;
        for (int l = 0; l < VL; l++) now->cell[now->count + l] = job->tree->cells;
        for (int32_t k = 0; k < now->count; k += VL) {
            const float *row[VL];
            real mass[VL];
            vec place[4];
            for (int l = 0; l < VL; l++) row[l] = &job->place[now->cell[k + l]].x;
            v_columns(row, place);
            const unsigned whole = vmask_bits(tree_pull_is_whole(g, place));
            const int n = now->count - k < VL ? now->count - k : VL;
            for (int l = 0; l < VL; l++) {
                const struct tree_cell *c = &job->tree->cell[now->cell[k + l]];
                const int own = c->first < g->self_end && c->end > g->self_first;
                const int acts = l < n && !own && (whole >> l & 1 || c->child < 0);
                mass[l] = acts ? job->tree->far[now->cell[k + l]].m : 0.0f;
                if (l < n && !acts && c->child >= 0) add_children(next, c);
            }
            tree_pull_add(&sum, g, place, v_load(mass));
        }
        now = next;
    }
    float part[5];
    for (int c = 0; c < 4; c++) part[c] = total(sum.of[c]);
    part[4] = largest(sum.varies);
    return tree_pull_of(part);
}

/* ---- cells to expansions -------------------------------------------------------- */

/* Moments of cells, from `spread` on as in tree_cell_multipole, times factors of second and third
 * ones. */
HOST_DEVICE void take_moments(vec u2, vec u3, const vec q[16], struct tree_multipole *c)
{
    c->spread = v_mul(u2, q[0]);
    c->xx = v_mul(u2, q[1]), c->xy = v_mul(u2, q[2]), c->xz = v_mul(u2, q[3]);
    c->yy = v_mul(u2, q[4]), c->yz = v_mul(u2, q[5]);
    c->xxx = v_mul(u3, q[6]), c->xxy = v_mul(u3, q[7]), c->xxz = v_mul(u3, q[8]);
    c->xyy = v_mul(u3, q[9]), c->xyz = v_mul(u3, q[10]), c->yyy = v_mul(u3, q[11]);
    c->yyz = v_mul(u3, q[12]);
    c->tx = v_mul(u3, q[13]), c->ty = v_mul(u3, q[14]), c->tz = v_mul(u3, q[15]);
}

/* A vector of cells, as seen from the centre of a group, in its units. */
HOST_DEVICE void take_cells(const struct tree_cell_multipole *far, const int32_t *cell,
                            const struct tree_group *g, struct tree_multipole *c)
{
    const float *row[VL];
    vec v[24];
    for (int part = 0; part < 6; part++) {
        for (int l = 0; l < VL; l++) row[l] = &far[cell[l]].x + 4 * part;
        v_columns(row, v + 4 * part);
    }
    const vec u = v_set1(1.0f / g->unit);
    c->x = v_mul(u, v_sub(v_sub(v_set1(g->x), v[0]), v[4]));
    c->y = v_mul(u, v_sub(v_sub(v_set1(g->y), v[1]), v[5]));
    c->z = v_mul(u, v_sub(v_sub(v_set1(g->z), v[2]), v[6]));
    c->m = v[3];
    c->eps2 = v_mul(v_mul(u, u), v[23]);
    take_moments(v_mul(u, u), v_mul(v_mul(u, u), u), v + 7, c);
}

/* How they change: minus their velocities, and the rates of their moments as if a cell's. */
HOST_DEVICE void take_motions(const struct tree_motion *motion, const int32_t *cell,
                              const struct tree_group *g, vec back[3], struct tree_multipole *c)
{
    const float *row[VL];
    vec v[20];
    for (int part = 0; part < 5; part++) {
        for (int l = 0; l < VL; l++) row[l] = &motion[cell[l]].vx + 4 * part;
        v_columns(row, v + 4 * part);
    }
    const vec u = v_set1(1.0f / g->unit);
    for (int k = 0; k < 3; k++) back[k] = v_mul(v_set1(-1.0f / g->unit), v[k]);
    c->m = v_set1(0);
    take_moments(v_mul(u, u), v_mul(v_mul(u, u), u), v + 3, c);
}

/* call(order, soft), both constants. */
#define EACH_ORDER(job, call)                                                                      \
    switch ((job)->order + ((job)->soft ? 10 : 0)) {                                               \
    case 2: call(2, 0); break;                                                                     \
    case 3: call(3, 0); break;                                                                     \
    case 4: call(4, 0); break;                                                                     \
    case 5: call(5, 0); break;                                                                     \
    case 6: call(6, 0); break;                                                                     \
    case 12: call(2, 1); break;                                                                    \
    case 13: call(3, 1); break;                                                                    \
    case 14: call(4, 1); break;                                                                    \
    case 15: call(5, 1); break;                                                                    \
    default: call(6, 1); break;                                                                    \
    }

/* Adds sums over the lanes to terms of an expansion. */
HOST_DEVICE void add_terms(int terms, const vec *sum, float f, float (*local)[TREE_LEVEL1], int at)
{
    for (int k = 0; k < terms; k++) local[k][at] += f * total(sum[k]);
}

HOST_DEVICE void expand_order(const int order, const int soft, const int jerk,
                              const struct tree_job *job, const struct tree_group *g,
                              struct tree_work *w, float (*local)[TREE_LEVEL1], int at)
{
    const vec of_group = v_set1(g->eps2 / g->unit / g->unit);
    const vec is_own = v_set1(job->term & PAIR_OWN ? 1 : 0);
    const int terms = TREE_COUNT(soft, order);
    vec sum[TREE_TERMS], rate[TREE_TERMS];
    for (int k = 0; k < terms; k++) sum[k] = rate[k] = v_set1(0);
    for (int l = 0; l < VL; l++) w->local.cell[w->local.count + l] = job->tree->cells;
    for (int32_t k = 0; k < w->local.count; k += VL) {
        struct tree_multipole c;
        take_cells(job->tree->far, w->local.cell + k, g, &c);
        const vec eps2 = v_fma(is_own, c.eps2, of_group);
        if (!jerk) {
            tree_cell_to_local(order, soft, c.x, c.y, c.z, eps2, &c, sum);
        } else {
            struct tree_multipole change;
            vec own[TREE_TERMS], back[3];
            for (int t = 0; t < terms; t++) own[t] = v_set1(0);
            tree_cell_to_local(order, soft, c.x, c.y, c.z, eps2, &c, own);
            for (int t = 0; t < terms; t++) sum[t] = v_add(sum[t], own[t]);
            take_motions(job->tree->motion, w->local.cell + k, g, back, &change);
            tree_local_along(order, soft, own, back[0], back[1], back[2], rate);
            tree_cell_to_local(order, soft, c.x, c.y, c.z, eps2, &change, rate);
        }
    }
    add_terms(terms, sum, 1.0f, local, at);
    if (jerk) add_terms(TREE_COUNT(soft, order - 1), rate, job->speed, local + TREE_RATE, at);
    w->counts.locals += w->local.count;
}

static void expand(const struct tree_job *job, const struct tree_group *g, struct tree_work *w,
                   float (*local)[TREE_LEVEL1], int at)
{
    if (!w->local.count) return; /* there may be no memory for the list either */
#define CALL(order, soft) expand_order(order, soft, 0, job, g, w, local, at)
#define CALL_JERK(order, soft) expand_order(order, soft, 1, job, g, w, local, at)
    if (job->jerk) {
        EACH_ORDER(job, CALL_JERK)
    } else {
        EACH_ORDER(job, CALL)
    }
#undef CALL
#undef CALL_JERK
}

HOST_DEVICE void shift_order(const int order, const int soft, const struct tree_group *from,
                             const float (*local)[TREE_LEVEL1], int at, const struct tree_group *to,
                             int count, float (*shifted)[TREE_LEVEL1])
{
    vec all[TREE_TERMS], sum[TREE_TERMS];
    for (int k = 0; k < TREE_COUNT(soft, order); k++) all[k] = v_set1(local[k][at]);
    for (int first = 0; first < count; first += VL) {
        real x[VL], y[VL], z[VL], ratio[VL];
        for (int l = 0; l < VL; l++) {
            const struct tree_group *g = &to[first + l < count ? first + l : count - 1];
            x[l] = (g->x - from->x) / from->unit, y[l] = (g->y - from->y) / from->unit;
            z[l] = (g->z - from->z) / from->unit, ratio[l] = g->unit / from->unit;
        }
        for (int k = 0; k < TREE_COUNT(soft, order); k++) sum[k] = v_set1(0);
        tree_local_to_local(order, soft, all, v_load(x), v_load(y), v_load(z), sum);
        vec power = v_load(ratio);
        for (int n = 0; n <= order; n++, power = v_mul(power, v_load(ratio)))
            for (int k = TREE_COUNT(soft, n - 1); k < TREE_COUNT(soft, n); k++)
                v_store(&shifted[k][first], v_mul(power, sum[k]));
    }
}

static void shift(const struct tree_job *job, const struct tree_group *from,
                  const float (*local)[TREE_LEVEL1], int at, const struct tree_group *to, int count,
                  float (*shifted)[TREE_LEVEL1])
{
#define CALL(order, soft) shift_order(order, soft, from, local, at, to, count, shifted)
#define CALL_JERK(order, soft)                                                                     \
    shift_order((order) - 1, soft, from, local + TREE_RATE, at, to, count, shifted + TREE_RATE)
    EACH_ORDER(job, CALL)
    if (job->jerk) EACH_ORDER(job, CALL_JERK)
#undef CALL
#undef CALL_JERK
}

/* ---- sums ----------------------------------------------------------------------- */

#include "tree/kernel_eval.h"

extern const struct tree_kernel SIMD_NAME_OF_SET(tree_kernel);
const struct tree_kernel SIMD_NAME_OF_SET(tree_kernel) = {find_keys, find_group, walk,  mark,
                                                          pull,      expand,     shift, sum};
