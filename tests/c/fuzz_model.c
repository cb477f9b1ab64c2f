/* fuzz_model.c - see fuzz.h: the contract once more, as a program that does nothing clever. */
#include "fuzz.h"

struct model model;

struct cluster *model_find(int64_t id)
{
    for (int k = 0; k < model.nclusters; k++)
        if (model.cluster[k].id == id) return &model.cluster[k];
    struct cluster *c = &model.cluster[model.nclusters++];
    if (model.nclusters > MAX_CLUSTER) broken("the model cannot hold more clusters");
    c->id = id;
    c->state = UNKNOWN;
    c->nbody = c->nip = 0;
    return c;
}

/* As after g6_open(0), g6_close(0). */
void model_reset(void)
{
    model.nclusters = model.opened = model.sort_mode = 0;
    model.fault = CODE(0);
    model.warnings_least = model.warnings_most = 0;
    model.recent = model_find(0);
    model.recent->state = CLOSED;
}

static void begin(struct cluster *c, enum state state)
{
    if (state == EXPLICIT && c->state != EXPLICIT) model.opened++;
    if (c->state < IMPLICIT) {
        const int64_t id = c->id;
        c->time = 0.0;
        c->nbody = c->nip = c->njp = 0;
        c->call.made = 0;
        c->warnings_least = c->warnings_most = 0;
        memset(c->pipe, 0, sizeof c->pipe);
        memcpy(c->settings, model.settings, sizeof c->settings);
        c->verify = model.verify;
        c->theta = model.theta;
        memcpy(c->tree, model.tree, sizeof c->tree);
        c->fault = CODE(0);
        c->id = id;
    }
    c->state = state;
}

void model_open(int64_t id)
{
    struct cluster *c = model_find(id);
    begin(c, EXPLICIT);
    for (int k = 0; k < model.nclusters; k++)
        if (model.cluster[k].state == CLOSED) model.cluster[k].state = UNKNOWN;
    model.recent = c;
}

void model_close(int64_t id)
{
    struct cluster *c = model_find(id);
    if (c->state < IMPLICIT) return;
    model.opened -= c->state == EXPLICIT;
    c->state = CLOSED;
    for (int k = 0; k < model.nclusters && !model.opened; k++)
        if (model.cluster[k].state == IMPLICIT) model.cluster[k].state = CLOSED;
}

struct cluster *model_take(int64_t id, codes *refusal)
{
    *refusal = 0;
    if (id == ID_NULL) *refusal |= CODE(G6X_E_NULL);
    if (!model.opened) *refusal |= CODE(G6X_E_NOT_OPEN);
    if (*refusal) return NULL;
    struct cluster *c = model_find(id);
    if (c->state == CLOSED) {
        *refusal = CODE(G6X_E_NOT_OPEN);
        return NULL;
    }
    if (c->state == UNKNOWN) begin(c, IMPLICIT);
    model.recent = c;
    return c;
}

static void check(codes allowed, int code)
{
    if (code > 1 || code < -62 || !(allowed >> (code == 1 ? 63 : -code) & 1))
        broken("%s returned %d; allowed were (as bits) %#llx", calling, code,
               (unsigned long long)allowed);
}

void model_returned(struct cluster *c, codes allowed, int code)
{
    check(allowed, code);
    if (code < 0) *(c ? &c->fault : &model.fault) = CODE(code);
}

void model_returned_again(struct cluster *c, codes allowed, int code)
{
    check(allowed, code);
    if (code >= 0) return;
    if (c) c->fault |= CODE(code);
    model.fault |= CODE(code);
}

static int all_finite(const double *d, int n)
{
    for (int k = 0; k < n; k++)
        if (!isfinite(d[k])) return 0;
    return 1;
}

codes model_write(struct cluster *c, const struct body *b)
{
    int at = 0;
    if (b->address < 0) return CODE(G6X_E_ADDRESS);
    if (b->address > 1 << 30) return CODE(G6X_E_MEMORY);
    while (at < c->nbody && c->body[at].address < b->address) at++;
    if (at == c->nbody || c->body[at].address != b->address) {
        if (c->nbody == MAX_BODY) broken("the model cannot hold more particles");
        memmove(c->body + at + 1, c->body + at, (size_t)(c->nbody - at) * sizeof *b);
        c->nbody++;
    }
    c->body[at] = *b;
    c->body[at].bad = !all_finite(&b->mass, 17);
    return CODE(c->body[at].bad ? G6X_E_J_NAN : 0);
}

/* Whether the verification of a sum, if it is asked for, may find it wrong for want of digits. */
int model_verify_may_fail(const struct cluster *c)
{
    for (int i = 0; c->verify > 0 && i < c->call.ni; i++) {
        struct row_model row;
        model_row(c, i, &row);
        if (row.verify_may_fail) return 1;
    }
    return 0;
}

/* The result of a first half stays as it is, but what no last half has asked for is lost. */
void model_written(struct cluster *c)
{
    struct force_model *f = &c->call;
    if (!f->made) return;
    if (!f->rows && f->code == CODE(0)) {
        f->rows = f->nearest = f->distance = 1;
        f->unverified = model_verify_may_fail(c); /* which nobody has been told yet */
        if (f->unverified) c->fault |= CODE(G6X_E_VERIFY);
        const int least = c->warnings_least;
        note_coincidences(c);
        c->warnings_least = least;
    }
    f->written = 1;
}

static int on_lattice(const double x[3])
{
    for (int k = 0; k < 3; k++)
        if (!(fabs(x[k]) <= 8.0) || x[k] * 8.0 != rint(x[k] * 8.0)) return 0;
    return 1;
}

int model_predict(const struct cluster *c, int64_t address, int snap, double time, struct source *s)
{
    int at = 0;
    memset(s, 0, sizeof *s);
    while (at < c->nbody && c->body[at].address < address) at++;
    if (at == c->nbody || c->body[at].address != address || c->body[at].bad) return 0;
    const struct body *b = &c->body[at];
    const double t = time - b->t;
    int moves = 0;
    s->address = (int)address;
    s->index = b->index;
    s->mass = b->mass;
    for (int k = 0; k < 3; k++) {
        const double k18 = snap ? b->k18[k] : 0.0;
        const double dx[4] = {b->v[k] * t, b->a2[k] * t * t, b->j6[k] * t * t * t,
                              0.75 * k18 * t * t * t * t};
        const double dv[3] = {2 * b->a2[k] * t, 3 * b->j6[k] * t * t, 3 * k18 * t * t * t};
        s->x[k] = t == 0 ? b->x[k] : b->x[k] + dx[0] + dx[1] + dx[2] + dx[3];
        s->v[k] = t == 0 ? b->v[k] : b->v[k] + dv[0] + dv[1] + dv[2];
        if (t != 0 && !isfinite(fabs(b->v[k]) + fabs(b->a2[k] * t) + fabs(b->j6[k] * t * t) +
                                fabs(0.75 * k18 * t * t * t)))
            s->x[k] = INFINITY; /* on the way, whatever the end */
        const double ex = fabs(b->x[k]) + fabs(dx[0]) + fabs(dx[1]) + fabs(dx[2]) + fabs(dx[3]);
        const double ev = fabs(b->v[k]) + fabs(dv[0]) + fabs(dv[1]) + fabs(dv[2]);
        moves |= b->v[k] != 0 || b->a2[k] != 0 || b->j6[k] != 0 || k18 != 0;
        if (t == 0) continue;
        s->ex += moves ? 0x1p-49 * ex : 0;
        s->ev += 0x1p-49 * ev;
    }
    for (int k = 0; k < 3; k++) /* three times of which is infinite, even at t = 0 */
        if (fmax(fabs(b->a2[k]), fmax(fabs(b->j6[k]), fabs(b->k18[k]))) > 0x1p1022) s->v[k] = NAN;
    s->plain = on_lattice(s->x) && (t == 0 || (!moves && isfinite(t)));
    for (int k = 0; k < 3; k++) /* smaller numbers count as zero */
        if (s->x[k] != 0 && fabs(s->x[k]) < 0x1p-1000) s->ex += 0x1p-1000;
    return 1;
}

void model_first(struct cluster *c, int nj, int ni)
{
    struct force_model *f = &c->call;
    f->nj = nj;
    f->ni = ni;
    f->rows = f->nearest = f->distance = f->written = f->zero_distances = f->unverified = 0;
    f->nsource = 0;
    memcpy(f->settings, c->settings, sizeof f->settings);
    if (model_scale(c, nj, f->scale)) f->settings[G6X_PRECISION] = G6X_DOUBLE;
    for (int k = 0; k < c->nbody && c->body[k].address < nj; k++)
        f->nsource += model_predict(c, c->body[k].address, c->settings[G6X_SNAP], c->time,
                                    &f->source[f->nsource]);
}

/* A pair as the library may see it: separation, and by how much it may be wrong. */
struct pair {
    long double dx[3], dv[3], r, s2, s, error;
    int plain;
};

static struct pair pair_of(const struct force_model *f, const struct target *t,
                           const struct source *j)
{
    struct pair p = {.error = j->ex, .plain = j->plain && on_lattice(t->x)};
    const int mode = f->settings[G6X_PRECISION];
    const long double length = ldexpl(1.0L, f->scale[0]);
    long double r2 = 0, far = 0;
    for (int k = 0; k < 3; k++) {
        p.dx[k] = (long double)j->x[k] - t->x[k];
        p.dv[k] = (long double)j->v[k] - t->v[k];
        r2 += p.dx[k] * p.dx[k];
        far = fmaxl(far, fmaxl(fabsl(j->x[k]), fabsl(t->x[k])));
        if (t->x[k] != 0 && fabs(t->x[k]) < 0x1p-1000) p.error += 0x1p-1000L;
    }
    p.r = sqrtl(r2);
    p.s2 = r2 + t->eps2;
    p.s = sqrtl(p.s2);
    if (p.plain && abs(f->scale[0]) <= 30) return p;
    p.plain = 0;
    /* docs/accuracy.md: close pairs are done again from the positions in double. */
    const int exactly = p.r < length * (mode == G6X_DOUBLE ? 0x1.3p-26L : 0x1.3p-20L);
    if (mode == G6X_SINGLE)
        p.error += 0x1p-22L * far;
    else if (mode == G6X_DOUBLE && !exactly)
        p.error += 0x1p-51L * far;
    else if (mode == G6X_GRAPE && !exactly)
        p.error += 0x1p-44L * length + 0x1p-47L * far;
    return p;
}

static int is_far_out(const struct force_model *f, const struct pair *p)
{
    return abs(f->scale[0]) > 60 || p->r > 0x1p60L || (p->r != 0 && p->r < 0x1p-60L);
}

static void find_nearest(const struct force_model *f, const struct target *t, struct row_model *row)
{
    const long double relative = f->settings[G6X_PRECISION] == G6X_DOUBLE ? 1e-13L : 1e-6L;
    long double low[MAX_BODY], limit = INFINITY, least = INFINITY;
    int ties = 1, vague = 0;
    row->nnear = 0;
    for (int k = 0; k < f->nsource; k++) {
        const struct pair p = pair_of(f, t, &f->source[k]);
        low[k] = INFINITY;
        if (f->source[k].index == t->index) continue;
        const long double slack = p.plain ? 0 : p.error + relative * p.r;
        low[k] = p.r - slack;
        if (is_far_out(f, &p) || !isfinite(p.r)) low[k] = 0, vague = 1;
        if (p.r + slack < limit) limit = p.r + slack;
        if (p.r < least) {
            least = p.r;
            row->distance_error = (double)(2 * f->source[k].ex + 1e-6L * p.r);
        }
    }
    for (int k = 0; k < f->nsource; k++) {
        if (f->source[k].index == t->index || !(low[k] <= limit)) continue;
        const struct pair p = pair_of(f, t, &f->source[k]);
        row->near[row->nnear++] = f->source[k].index;
        ties &= p.plain && p.r == least;
    }
    if (ties && row->nnear) row->nnear = 1; /* the lowest address */
    row->distance = vague ? INFINITY : row->nnear ? (double)least : 0.0;
    if (row->nnear > 1) row->distance_error += (double)(limit - least);
}

static int all_moderate(const double *a, int n)
{
    for (int k = 0; k < n; k++)
        if (a[k] != 0 && !(fabs(a[k]) < 1e30 && fabs(a[k]) > 1e-30)) return 0;
    return 1;
}

/* A tree's boxes have all of a call: what its errors are is told of usual numbers only. */
static int is_moderate(const struct force_model *f)
{
    int all = 1;
    for (int k = 0; k < f->nsource; k++) all &= all_moderate(&f->source[k].mass, 7);
    for (int i = 0; i < f->ni; i++)
        all &= all_moderate(f->target[i].x, 6) && all_moderate(&f->target[i].eps2, 1);
    return all;
}

void model_row(const struct cluster *c, int i, struct row_model *row)
{
    static const long double WORST[4][3] = {{1e-6L, 2e-6L, 6e-7L},
                                            {2e-14L, 4e-14L, 1e-14L},
                                            {1e-6L, 2e-6L, 6e-7L},
                                            {3e-5L, 6e-5L, 3e-5L}};
    static const long double VERIFIED[3] = {5e-6L, 5e-13L, 5e-3L};
    const struct force_model *f = &c->call;
    const struct target *t = &f->target[i];
    const int mode = f->settings[G6X_PRECISION];
    long double sum[7] = {0}, size[3] = {0}, tolerance[3] = {0};
    const long double lightest =
        fmaxl(0x1p-1022L, mode == G6X_DOUBLE ? ldexpl(1.0L, f->scale[1] - 1000) : 0.0L);
    memset(row, 0, sizeof *row);
    row->anything = by_tree && !is_moderate(f);
    for (int k = 0; k < f->nsource; k++) {
        const struct source *j = &f->source[k];
        if (j->index == t->index) continue;
        const struct pair p = pair_of(f, t, j);
        if (!isfinite(p.s) || !isfinite(p.dv[0] + p.dv[1] + p.dv[2])) {
            row->anything = row->zero_distances |= 1;
            continue;
        }
        if (p.s == 0 || (t->eps2 == 0 && p.r <= p.error))
            row->zero_distances = p.error == 0 ? 2 : row->zero_distances | 1;
        if (p.error > p.s / 16 || (p.s2 != 0 && p.s2 < 0x1p-900L)) row->anything = 1;
        if (p.s == 0) continue;
        const long double m = j->mass, y = 1 / p.s, y3 = y * y * y;
        const long double speed = sqrtl(p.dv[0] * p.dv[0] + p.dv[1] * p.dv[1] + p.dv[2] * p.dv[2]);
        long double speeds = speed, rv = 0;
        for (int q = 0; q < 3; q++) {
            rv += p.dx[q] * p.dv[q];
            speeds += fabsl(j->v[q]) + fabsl(t->v[q]);
        }
        for (int q = 0; q < 3; q++) {
            sum[q] += m * p.dx[q] * y3;
            sum[3 + q] += m * (p.dv[q] - 3 * rv * p.dx[q] * y * y) * y3;
        }
        sum[6] -= m * y;
        const long double term[3] = {fabsl(m) * y * y, 4 * fabsl(m) * speeds * y3, fabsl(m) * y};
        for (int w = 0; w < 3; w++) {
            size[w] += term[w];
            tolerance[w] += term[w] * (WORST[by_tree ? 3 : mode][w] + 8 * p.error * y);
            if (fabsl(m) < lightest) tolerance[w] += term[w]; /* it counts as zero */
        }
        /* Velocities that are next to nothing in units of the scale lose digits, or count as zero.
         */
        const long double slowest =
            ldexpl(1.0L + ldexpl(p.r, mode == G6X_DOUBLE ? 26 - f->scale[0] : 20 - f->scale[0]),
                   f->scale[2] - (mode == G6X_DOUBLE ? 1000 : 120));
        tolerance[1] += 8 * fabsl(m) * (j->ev + slowest + 0x1p-1000L) * y3;
    }
    const int x = (mode == G6X_DOUBLE ? 26 : 20) - f->scale[0], m = 60 - f->scale[1];
    const int unit[3] = {2 * x - m, 3 * x - m + f->scale[2], x - m};
    for (int w = 0; w < 3; w++) {
        long double most = 0;
        for (int q = 3 * w; q < (w < 2 ? 3 * w + 3 : 7); q++) most = fmaxl(most, fabsl(sum[q]));
        row->fits[w] = 1;
        if (w == 1) /* what is too small for the mode's arithmetic */
            tolerance[w] += ldexpl(f->nsource, unit[w] - (mode == G6X_DOUBLE ? 1010 : 122));
        if (size[w] > 1e300L) row->fits[w] = most - tolerance[w] > 1.8e308L ? 0 : -1;
        row->tolerance[w] = (double)(tolerance[w] + 1e-298L);
        row->verify_may_fail |= tolerance[w] > size[w] * VERIFIED[mode];
    }
    if (abs(unit[0]) > 900 || abs(unit[1]) > 900 || abs(unit[2]) > 900) row->verify_may_fail = 1;
    for (int w = 0; w < 3; w++) row->verify_may_fail |= row->fits[w] != 1 || row->anything;
    for (int q = 0; q < 3; q++) row->acc[q] = (double)sum[q], row->jerk[q] = (double)sum[3 + q];
    row->pot = (double)sum[6];
    find_nearest(f, t, row);
}

static int ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

void model_list(const struct cluster *c, int i, int with_self, struct list_model *list)
{
    const struct force_model *f = &c->call;
    const struct target *t = &f->target[i];
    list->nmust = list->nmay = 0;
    for (int k = 0; t->h2 >= 0 && k < f->nsource; k++) {
        const struct source *j = &f->source[k];
        if (j->index == t->index && !with_self) continue;
        const struct pair p = pair_of(f, t, j);
        const int round =
            t->h2 * 4096 == rint(t->h2 * 4096) && t->eps2 * 4096 == rint(t->eps2 * 4096);
        long double error = 2 * p.r * p.error + p.error * p.error + 1e-13L * p.s2;
        if (p.plain && round && t->h2 < 4096 && t->eps2 < 4096) error = 0;
        if (is_far_out(f, &p) || (t->h2 < 1e-30 && !p.plain) || t->h2 > 1e30 || t->eps2 > 1e30)
            error = isinf(t->h2) ? 0 : INFINITY;
        if (!isfinite(p.s2)) error = INFINITY;
        if (p.s2 + error <= t->h2) list->must[list->nmust++] = j->index;
        if (!(p.s2 - error > t->h2)) list->may[list->nmay++] = j->index;
    }
    qsort(list->must, (size_t)list->nmust, sizeof(int), ascending);
    qsort(list->may, (size_t)list->nmay, sizeof(int), ascending);
}
