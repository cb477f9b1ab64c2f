/* kernel_eval.h - the sums of tree/kernel.c: what a walk has found acts on a group's targets, a
 * vector of them at once: the group's expansion, cells, and particles. */

/* Targets with pairs closer than this (squared) are summed in double: terms could leave the range
 * of single. Or closer than this share of the group's radius: places are single relative to the
 * group.
 */
#define TREE_CLOSE 1e-24f
#define TREE_CLOSE_SHARE 0x1p-6f

/* A vector of targets, relative to their group, and their sums. */
struct bodies {
    vec x, y, z, phi, acc[3];
    vec eps2, far_eps2; /* of pairs, of terms of cells */
    vec v[3], jerk[3];  /* where that is wanted */
};

HOST_DEVICE void local_on(const int order, const int soft, const int jerk,
                          const struct tree_group *g, const float (*local)[TREE_LEVEL1], int at,
                          struct bodies *b)
{
    const vec u = v_set1(1.0f / g->unit), u2 = v_mul(u, u), zero = v_set1(0);
    vec all[TREE_TERMS], phi = zero, acc[3] = {zero, zero, zero};
    for (int k = 0; k < TREE_COUNT(soft, order); k++) all[k] = v_set1(local[k][at]);
    tree_local_to_point(order, soft, all, v_mul(u, b->x), v_mul(u, b->y), v_mul(u, b->z), &phi,
                        acc);
    b->phi = v_mul(u, phi);
    for (int c = 0; c < 3; c++) b->acc[c] = v_mul(u2, acc[c]);
    if (!jerk) return;
    vec rate[TREE_TERMS], sum[3] = {zero, zero, zero};
    for (int k = 0; k < TREE_COUNT(soft, order - 1); k++)
        rate[k] = v_set1(local[TREE_RATE + k][at]);
    tree_local_along(order, soft, all, v_mul(u, b->v[0]), v_mul(u, b->v[1]), v_mul(u, b->v[2]),
                     rate);
    tree_local_to_point(order - 1, soft, rate, v_mul(u, b->x), v_mul(u, b->y), v_mul(u, b->z), &phi,
                        sum);
    for (int c = 0; c < 3; c++) b->jerk[c] = v_mul(u2, sum[c]);
}

/* One cell for all lanes: its moments, from `spread` on as tree_cell_multipole's, times a scale. */
HOST_DEVICE struct tree_multipole one_cell(float m, float scale, const float *q)
{
    vec v[16];
    struct tree_multipole c = {.m = v_set1(m)};
    for (int k = 0; k < 16; k++) v[k] = v_set1(scale * q[k]);
    take_moments(v_set1(1), v_set1(1), v, &c);
    return c;
}

HOST_DEVICE void points_on(const int octupole, const int soft, const int jerk,
                           const struct tree_job *job, const struct tree_group *g,
                           const struct tree_list *list, struct bodies b[], int vectors)
{
    for (int32_t k = 0; k < list->count; k++) {
        const struct tree_cell_multipole *f = &job->tree->far[list->cell[k]];
        const vec x = v_set1((f->x - g->x) + f->xl), y = v_set1((f->y - g->y) + f->yl);
        const vec z = v_set1((f->z - g->z) + f->zl);
        const struct tree_multipole c = one_cell(f->m, 1.0f, &f->spread);
        const vec own = v_set1(job->term & PAIR_OWN ? f->eps2 : 0.0f);
        for (int v = 0; v < vectors; v++) {
            tree_cell_to_point(octupole, soft, v_sub(b[v].x, x), v_sub(b[v].y, y), v_sub(b[v].z, z),
                               v_add(b[v].far_eps2, own), &c, &b[v].phi, b[v].acc);
        }
        if (!jerk) continue;
        const struct tree_motion *r = &job->tree->motion[list->cell[k]];
        const float s = job->speed;
        const vec vx = v_set1(s * r->vx), vy = v_set1(s * r->vy), vz = v_set1(s * r->vz);
        const struct tree_multipole change = one_cell(0.0f, s, &r->spread);
        for (int v = 0; v < vectors; v++) {
            const vec dx = v_sub(b[v].x, x), dy = v_sub(b[v].y, y), dz = v_sub(b[v].z, z);
            const vec eps2 = v_add(b[v].far_eps2, own);
            vec unused = v_set1(0);
            tree_cell_to_jerk(octupole, soft, dx, dy, dz, v_sub(b[v].v[0], vx),
                              v_sub(b[v].v[1], vy), v_sub(b[v].v[2], vz), eps2, &c, b[v].jerk);
            tree_cell_to_point(octupole, soft, dx, dy, dz, eps2, &change, &unused, b[v].jerk);
        }
    }
}

/* Pairs of `n` sources with two vectors of targets; near: the least r^2 of each. `own`: some of
 * them are targets themselves, number self after the first. */
HOST_DEVICE void pairs_on(const struct tree_work *w, const int own, const int term, int32_t first,
                          int n, const struct bodies b[2], const vec self[2], vec near[2],
                          struct pair_sum sum[2])
{
    const int jerk = term & PAIR_JERK, both = term & (PAIR_OWN | PAIR_SPLINE);
    near[0] = near[1] = v_set1(8); /* farther than the box is wide */
    for (int k = 0; k < n; k++) {
        const vec at = v_set1(own ? w->source_at[k] - first : 0);
        struct pair_j j = {.x = v_set1(w->source[0][k]),
                           .y = v_set1(w->source[1][k]),
                           .z = v_set1(w->source[2][k]),
                           .m = v_set1(w->source[3][k])};
        if (jerk) {
            j.vx = v_set1(w->motion[0][k]);
            j.vy = v_set1(w->motion[1][k]);
            j.vz = v_set1(w->motion[2][k]);
        }
        if (both) j.eps2 = v_set1(w->source_eps2[k]);
        TREE_UNROLL
        for (int v = 0; v < 2; v++) {
            const struct pair_i i = {b[v].x,           b[v].y,          b[v].z,
                                     .vx = b[v].v[0],  .vy = b[v].v[1], .vz = b[v].v[2],
                                     .eps2 = b[v].eps2};
            const struct pair_sep r = pair_separation(0, &i, &j);
            vec s2 = pair_softened2(term, &r, pair_softening(term, &i, &j)), m = j.m;
            vec r2 = pair_distance2(&r, v_set1(0)); /* not computed unless used */
            if (own) {
                const vmask same = v_lt(v_abs(v_sub(at, self[v])), v_set1(0.5));
                s2 = v_select(same, v_set1(1), s2);
                r2 = v_select(same, v_set1(1), r2);
                m = v_select(same, v_set1(0), m);
            }
            near[v] = v_min(near[v], both ? r2 : v_sub(s2, b[v].eps2));
            pair_add(term, &i, &j, m, v_rsqrt(s2), &r, &sum[v]);
        }
    }
}

/* The same of some targets, a bit each, one by one in double precision, without the pairs of a
 * target with itself. */
static void careful_pairs(const struct tree_job *job, const struct tree_group *g,
                          struct tree_work *w, uint32_t which, int n, struct tree_sums *sums)
{
    const struct tree_points *from = &job->tree->points, *to = job->targets;
    double source[SOFTENED_NUMBERS][TREE_SOURCES + 64];
    struct softened set = {.n = n,
                           .term = job->term & PAIR_SPLINE ? job->term : job->term | PAIR_OWN};
    const int length = job->tree->box.length;
    for (int c = 0; c < SOFTENED_NUMBERS; c++) set.of[c] = source[c];
    for (int k = 0; k < n; k++) {
        const int32_t at = w->source_at[k];
        source[SOFTENED_X][k] = (double)from->x[at] + from->xl[at];
        source[SOFTENED_X + 1][k] = (double)from->y[at] + from->yl[at];
        source[SOFTENED_X + 2][k] = (double)from->z[at] + from->zl[at];
        source[SOFTENED_M][k] = (double)from->m[at];
        const double eps =
            job->own_eps2 ? ldexp(job->tree->own.eps[from->order[at]], -length) : 0.0;
        source[SOFTENED_EPS2][k] = eps * eps;
        for (int c = 0; c < 3 && job->jerk; c++)
            source[SOFTENED_V + c][k] = (double)w->motion[c][k];
    }
    for (int32_t i = 0; i < g->count; i++) {
        if (!(which >> i & 1)) continue;
        const int32_t t = g->first + i, own = job->self ? job->self[t] : t;
        struct softened_target at = {
            .x = {(double)to->x[t] + to->xl[t], (double)to->y[t] + to->yl[t],
                  (double)to->z[t] + to->zl[t]},
            .eps2 = job->term > PAIR_JERK ? ldexp(job->given_eps2[to->order[t]], -2 * length)
                                          : (double)job->eps2[t],
            .self = -1};
        double sum[NSUM];
        if (job->jerk) at.v[0] = to->vx[t], at.v[1] = to->vy[t], at.v[2] = to->vz[t];
        for (int k = 0; k < n; k++)
            if (w->source_at[k] == own) at.self = k;
        w->counts.zero_distances += cpu_softened_sum(&set, &at, sum);
        sums->phi[i] += sum[SUM_POT];
        for (int c = 0; c < 3; c++) sums->acc[c][i] += sum[SUM_AX + c];
        for (int c = 0; c < 3 && job->jerk; c++) sums->jerk[c][i] += sum[SUM_JX + c];
    }
}

static void clear(struct tree_sums *sums, int jerk)
{
    memset(sums, 0, jerk ? sizeof *sums : offsetof(struct tree_sums, jerk));
}

/* Of the v-th vector of targets. */
HOST_DEVICE void add_up(vec phi, const vec acc[3], const vec rate[3], int v, int jerk,
                        struct tree_sums *sums)
{
    v_accumulate(sums->phi + v * VL, phi);
    for (int c = 0; c < 3; c++) v_accumulate(sums->acc[c] + v * VL, acc[c]);
    for (int c = 0; c < 3 && jerk; c++) v_accumulate(sums->jerk[c] + v * VL, rate[c]);
}

enum { VECTORS = TREE_GROUP / VL };

/* Where the targets are among the particles, after g->self_first; those that are none of them, far
 * before. */
static void number_selves(const struct tree_job *job, const struct tree_group *g, int v,
                          vec self[2])
{
    for (int k = 0; k < 2; k++) {
        real at[VL];
        for (int l = 0; l < VL; l++) {
            const int32_t t = g->first + (v + k) * VL + l, own = job->self ? job->self[t] : t;
            at[l] = own < 0 ? (real)-0x1p30 : (real)(own - g->self_first);
        }
        self[k] = v_load(at);
    }
}

/* Sources gathered so far act on all targets of the group. */
static void flush(const struct tree_job *job, const struct tree_group *g, struct tree_work *w,
                  int n, int own, const struct bodies b[VECTORS], struct tree_sums *sums)
{
    const vec zero = v_set1(0);
    const int jerk = job->jerk;
    const float share = TREE_CLOSE_SHARE * g->radius;
    const vec close = v_set1(share * share > TREE_CLOSE ? share * share : TREE_CLOSE);
    const int far_apart =
        own && g->self_end - g->self_first > 1 << 22; /* beyond single's numbers */
    uint32_t careful = far_apart ? ~0u : 0;           /* a bit for each target */
    struct tree_sums found;
    w->counts.pairs += (int64_t)n * g->count;
    clear(&found, jerk);
    for (int v = 0; v < VECTORS && !far_apart; v += 2) {
        const struct pair_sum none = {zero, zero, zero, zero, zero, zero, zero};
        struct pair_sum sum[2] = {none, none};
        vec self[2] = {zero, zero}, near[2];
        if (own) number_selves(job, g, v, self);
#define PAIRS(own, term) pairs_on(w, own, term, g->self_first, n, b + v, self, near, sum)
#define EITHER(term) own ? PAIRS(1, term) : PAIRS(0, term)
        switch (job->term) {
        case PAIR_FORCE: EITHER(PAIR_FORCE); break;
        case PAIR_JERK: EITHER(PAIR_JERK); break;
        case PAIR_OWN: EITHER(PAIR_OWN); break;
        case PAIR_OWN | PAIR_JERK: EITHER(PAIR_OWN | PAIR_JERK); break;
        case PAIR_SPLINE: EITHER(PAIR_SPLINE); break;
        default: EITHER(PAIR_SPLINE | PAIR_JERK); break;
        }
#undef EITHER
#undef PAIRS
        for (int k = 0; k < 2; k++) {
            careful |= (uint32_t)vmask_bits(v_lt(near[k], close)) << (v + k) * VL;
            const vec acc[3] = {sum[k].ax, sum[k].ay, sum[k].az};
            const vec rate[3] = {sum[k].jx, sum[k].jy, sum[k].jz};
            add_up(sum[k].pot, acc, rate, v + k, jerk, &found);
        }
    }
    if (careful) careful_pairs(job, g, w, careful, n, sums);
    for (int i = 0; i < TREE_GROUP; i++) {
        if (careful >> i & 1) continue;
        sums->phi[i] += found.phi[i];
        for (int c = 0; c < 3; c++) sums->acc[c][i] += found.acc[c][i];
        for (int c = 0; c < 3 && jerk; c++) sums->jerk[c][i] += found.jerk[c][i];
    }
}

static void leaves_on(const struct tree_job *job, const struct tree_group *g, struct tree_work *w,
                      int own, const struct bodies b[VECTORS], struct tree_sums *sums)
{
    const struct tree_points *p = &job->tree->points;
    const vec gx = v_set1(g->x), gy = v_set1(g->y), gz = v_set1(g->z), speed = v_set1(job->speed);
    int n = 0;
    for (int32_t k = 0; k < w->leaf.count; k++) {
        const struct tree_cell *c = &job->tree->cell[w->leaf.cell[k]];
        if (own != (c->first < g->self_end && c->end > g->self_first)) continue;
        for (int32_t j = c->first; j < c->end; j += VL) {
            const int32_t left = c->end - j < VL ? c->end - j : VL;
            if (n + VL > TREE_SOURCES) {
                flush(job, g, w, n, own, b, sums);
                n = 0;
            }
            v_store(w->source[0] + n, v_add(v_sub(v_load(p->x + j), gx), v_load(p->xl + j)));
            v_store(w->source[1] + n, v_add(v_sub(v_load(p->y + j), gy), v_load(p->yl + j)));
            v_store(w->source[2] + n, v_add(v_sub(v_load(p->z + j), gz), v_load(p->zl + j)));
            v_store(w->source[3] + n, v_load(p->m + j));
            if (job->jerk) {
                v_store(w->motion[0] + n, v_mul(speed, v_load(p->vx + j)));
                v_store(w->motion[1] + n, v_mul(speed, v_load(p->vy + j)));
                v_store(w->motion[2] + n, v_mul(speed, v_load(p->vz + j)));
            }
            if (job->term > PAIR_JERK)
                v_store(w->source_eps2 + n, job->own_eps2 ? v_load(job->own_eps2 + j) : v_set1(0));
            for (int l = 0; l < VL; l++) w->source_at[n + l] = j + l;
            n += left;
        }
    }
    if (n) flush(job, g, w, n, own, b, sums);
}

/* A vector of targets from the t-th on. */
HOST_DEVICE void take_bodies(const int jerk, const struct tree_job *job, const struct tree_group *g,
                             int32_t t, struct bodies *b)
{
    const struct tree_points *p = job->targets;
    const vec zero = v_set1(0);
    b->x = v_add(v_sub(v_load(p->x + t), v_set1(g->x)), v_load(p->xl + t));
    b->y = v_add(v_sub(v_load(p->y + t), v_set1(g->y)), v_load(p->yl + t));
    b->z = v_add(v_sub(v_load(p->z + t), v_set1(g->z)), v_load(p->zl + t));
    b->eps2 = v_load(job->eps2 + t);
    b->far_eps2 = job->term & PAIR_SPLINE ? zero : b->eps2;
    b->phi = zero;
    for (int c = 0; c < 3; c++) b->acc[c] = b->v[c] = b->jerk[c] = zero;
    if (jerk) b->v[0] = v_load(p->vx + t), b->v[1] = v_load(p->vy + t), b->v[2] = v_load(p->vz + t);
}

HOST_DEVICE void sum_of(const int jerk, const struct tree_job *job, const struct tree_group *g,
                        struct tree_work *w, const float (*local)[TREE_LEVEL1], int at,
                        struct tree_sums *sums)
{
    struct bodies b[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        take_bodies(jerk, job, g, g->first + v * VL, &b[v]);
        if (job->order) {
#define CALL(order, soft) local_on(order, soft, jerk, g, local, at, &b[v])
            EACH_ORDER(job, CALL)
#undef CALL
        }
    }
    if (job->order && job->soft)
        points_on(1, 1, jerk, job, g, &w->point, b, VECTORS);
    else if (job->order)
        points_on(1, 0, jerk, job, g, &w->point, b, VECTORS);
    else
        points_on(0, 0, jerk, job, g, &w->point, b, VECTORS);
    w->counts.points += (int64_t)w->point.count * g->count;
    clear(sums, jerk);
    for (int v = 0; v < VECTORS; v++) add_up(b[v].phi, b[v].acc, b[v].jerk, v, jerk, sums);
    leaves_on(job, g, w, 0, b, sums);
    leaves_on(job, g, w, 1, b, sums);
}

static void sum(const struct tree_job *job, const struct tree_group *g, struct tree_work *w,
                const float (*local)[TREE_LEVEL1], int at, struct tree_sums *sums)
{
    if (job->jerk)
        sum_of(1, job, g, w, local, at, sums);
    else
        sum_of(0, job, g, w, local, at, sums);
}
