/* few_body_chain.c - see few_body.h. */
#include <string.h>

#include "steps/few_body.h"

#define SLOWEST 0.05 /* of the time in which perturbers move, that a slowed period may take */

static double distance2(const double a[3], const double b[3])
{
    const double d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return kepler_dot(d, d);
}

void few_body_find_chain(int n, const double (*x)[3], int order[])
{
    int first = 0, second = 1, left[CHAIN_MOST], count = 0;
    double least = INFINITY;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            const double r2 = distance2(x[i], x[j]);
            if (r2 < least) least = r2, first = i, second = j;
        }
    for (int i = 0; i < n; i++)
        if (i != first && i != second) left[count++] = i;
    order[0] = first, order[1] = second;
    for (int known = 2; known < n; known++) {
        int best = 0, at_end = 1;
        least = INFINITY;
        for (int k = 0; k < count; k++)
            for (int end = 0; end < 2; end++) {
                const double r2 = distance2(x[left[k]], x[order[end ? known - 1 : 0]]);
                if (r2 < least) least = r2, best = k, at_end = end;
            }
        if (!at_end) memmove(order + 1, order, (size_t)known * sizeof *order);
        order[at_end ? known : 0] = left[best];
        left[best] = left[--count];
    }
}

/* Vectors along a new chain; order: the places of its bodies in the old one. */
static void turn_vectors(int n, const int order[], double (*vector)[3])
{
    double old[CHAIN_MOST][3];
    memcpy(old, vector, (size_t)(n - 1) * sizeof *old);
    for (int i = 0; i + 1 < n; i++) {
        const int back = order[i + 1] < order[i], from = order[back ? i + 1 : i];
        for (int k = 0; k < 3; k++) {
            double sum = 0.0;
            for (int j = from; j < order[back ? i : i + 1]; j++) sum += old[j][k];
            vector[i][k] = back ? -sum : sum;
        }
    }
}

/* Sets 1 / kappa of a pair, whose own energy counts by it. */
static void set_slow(struct few_body *f, int pair, double slow)
{
    const struct chain *c = &f->chain;
    const struct chain_view at = few_body_view(f);
    double a, e;
    if (slow == c->slow[pair]) return;
    kepler_elements(c->m[pair] + c->m[pair + 1], at.x[pair], at.v[pair], &a, &e);
    *at.bound += (slow - c->slow[pair]) * 0.5 * c->m[pair] * c->m[pair + 1] / a;
    f->chain.slow[pair] = slow;
}

void few_body_set_slow(struct few_body *f, const double kappa[])
{
    for (int i = 0; i + 1 < f->chain.n && f->chain.n > 2; i++) {
        const double k = kappa[f->who[i]], is_free = i == 0 || f->chain.slow[i - 1] == 1.0;
        if (k > 1.0 && k == kappa[f->who[i + 1]] && is_free) set_slow(f, i, 1.0 / k);
    }
}

void few_body_get_slow(const struct few_body *f, double kappa[])
{
    for (int i = 0; i < f->chain.n; i++) kappa[f->who[i]] = 1.0;
    for (int i = 0; i + 1 < f->chain.n; i++)
        if (f->chain.slow[i] < 1.0)
            kappa[f->who[i]] = kappa[f->who[i + 1]] = 1.0 / f->chain.slow[i];
}

double few_body_tide(const struct few_body *f, const struct few_setting *s, int pair, double apart,
                     double *lasts)
{
    const struct chain *c = &f->chain;
    const struct chain_view at = few_body_view(f);
    const double both = c->m[pair] + c->m[pair + 1], by = c->m[pair + 1] / both;
    double x[CHAIN_MOST][3], v[CHAIN_MOST][3], sum = 0.0;
    *lasts = INFINITY;
    chain_unfold(c->n, c, CONST3(at.x), x);
    chain_unfold(c->n, c, CONST3(at.v), v);
    for (int i = 0; i < c->n + s->outside.count; i++) {
        const struct chain_perturber *q = i < c->n ? NULL : &s->outside.body[i - c->n];
        double d[3], w[3];
        if (i == pair || i == pair + 1) continue;
        if (q) chain_outside_at(q, *at.time, at.centre, d);
        for (int k = 0; k < 3; k++) {
            d[k] = (q ? d[k] : x[i][k]) - x[pair][k] - by * at.x[pair][k];
            w[k] = (q ? q->v[k] - at.speed[k] : v[i][k]) - v[pair][k] - by * at.v[pair][k];
        }
        const double r2 = kepler_dot(d, d), near = apart / sqrt(r2), m = q ? q->mass : c->m[i];
        sum += 2.0 * m / both * near * near * near;
        *lasts = fmin(*lasts, sqrt(r2 / kepler_dot(w, w)));
    }
    return sum + chain_far_size(&s->outside.far) / both * apart * apart * apart;
}

/* 1 / kappa of a pair, or 1: it is not bound, or perturbed too much. */
static double slow_of(const struct few_body *f, const struct few_setting *s, int pair)
{
    const struct chain_view at = few_body_view(f);
    const double both = f->chain.m[pair] + f->chain.m[pair + 1];
    double a, e, lasts;
    if (!(fmin(f->chain.m[pair], f->chain.m[pair + 1]) > CHAIN_PLANET * both)) return 1.0;
    kepler_elements(both, at.x[pair], at.v[pair], &a, &e);
    if (!(a > 0.0)) return 1.0;
    const double tide = few_body_tide(f, s, pair, a * (1.0 + e), &lasts);
    const double period = KEPLER_TWO_PI * a * sqrt(a / both);
    const double kappa = fmin(s->slowed / tide, SLOWEST * lasts / period);
    return kappa > 2.0 ? 1.0 / kappa : 1.0;
}

void few_body_slow_pairs(struct few_body *f, const struct few_setting *s)
{
    for (int i = 0; i + 1 < f->chain.n; i++) {
        const int taken = i && f->chain.slow[i - 1] < 1.0; /* a body is in one pair */
        set_slow(f, i, taken ? 1.0 : slow_of(f, s, i));
    }
}

void few_body_renew_chain(struct few_body *f)
{
    const int n = f->chain.n;
    int order[CHAIN_MOST], who[CHAIN_MOST], same = 1;
    double place[CHAIN_MOST][3], m[CHAIN_MOST];
    const struct chain_view at = few_body_view(f), rest = chain_view_of(n, f->rest);
    chain_unfold(n, &f->chain, CONST3(at.x), place);
    few_body_find_chain(n, CONST3(place), order);
    for (int i = 0; i < n; i++) same &= order[i] == i || order[i] == n - 1 - i;
    if (same) return;
    for (int i = 0; i + 1 < n; i++) set_slow(f, i, 1.0);
    turn_vectors(n, order, at.x), turn_vectors(n, order, at.v);
    turn_vectors(n, order, rest.x), turn_vectors(n, order, rest.v);
    for (int i = 0; i < n; i++) who[i] = f->who[order[i]], m[i] = f->chain.m[order[i]];
    for (int i = 0; i < n; i++) {
        f->who[i] = who[i], f->chain.m[i] = m[i];
        f->chain.part[i] = m[i] / f->chain.mass;
    }
}
