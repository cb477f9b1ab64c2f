/* few_body.c - see few_body.h. */
#include "steps/few_body.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "g6lib.h"
#include "util/numbers.h"

enum { COLUMNS = 8, FIRST = 3 }; /* of extrapolation: leapfrogs of 2, 4, ... 16 steps */
enum { UNCHECKED = 32 };         /* steps of a leapfrog without it */
enum { STUCK = 1000 };           /* steps in a row that take no time, as where three collide */

#define FAR 0.05     /* of a step's way that counts as the size of a vector that becomes small */
#define FAR_OFF 1e-6 /* of the energies, by which their sum may be wrong */
#define AIM 0.25     /* share of what errors may be */
#define ROUNDING 0x1p-51 /* of the largest of a vector's components in a step */

/* ---- extrapolation --------------------------------------------------------------------------- */

/* What `count` steps that make h together change. */
static void leap(struct chain_leap *l, double h, int count, double change[])
{
    if (l->chain->n == 2) /* most are pairs, and a constant n is three times as fast */
        chain_leap(l, 2, h, count);
    else
        chain_leap(l, l->chain->n, h, count);
    memcpy(change, l->moved, (size_t)chain_state_size(l->chain->n) * sizeof *change);
}

static double largest(const double a[3]) { return fmax(fabs(a[0]), fmax(fabs(a[1]), fabs(a[2]))); }

/* The largest share of what errors may be, of the vectors' and velocities' errors. */
static double share_of_errors(const struct chain_leap *l, double tolerance, const double change[],
                              const double error[])
{
    double most = 0.0;
    for (int i = 0; i < 2 * (l->chain->n - 1); i++) {
        double end[3];
        if (largest(&error[3 * i]) == 0.0) continue; /* as of two at rest at one place */
        for (int k = 0; k < 3; k++) end[k] = l->start[3 * i + k] + change[3 * i + k];
        const double size = largest(end), way = fmax(size, largest(&change[3 * i]));
        const double most_allowed = tolerance * fmax(size, FAR * way) + ROUNDING * way;
        const double share = largest(&error[3 * i]) / most_allowed;
        if (!(share <= most)) most = share;
    }
    return most;
}

/* By how much a step can be longer or shorter whose errors, of this order, were `share` of what
 * they may be: one of a few factors, so that no machine's pow() has a say. */
static double factor_of(double share, int order)
{
    const double by = share < AIM ? 1.125 : 1.0 / 1.125;
    double factor = 1.0, power = 1.0;
    for (int i = 0; i < order; i++) power *= by;
    for (int n = 0; n < 24 && (share < AIM) == (share * power <= AIM); n++)
        factor *= by, share *= power;
    return share <= AIM ? factor : factor / 1.125;
}

/* A step of h from f->at; 0 if it does not converge. `change` is what it changes; *next, how long
 * the next one had better be. */
static int extrapolate(struct few_body *f, const struct few_setting *s, struct chain_leap *l,
                       double h, double change[], double *next)
{
    const int n = chain_state_size(f->chain.n);
    double column[COLUMNS][CHAIN_STATE], error[CHAIN_STATE], least = INFINITY;
    *next = 0.0625 * h;
    if (s->tolerance == INFINITY) { /* orbits of two stay what they are */
        leap(l, h, UNCHECKED, change);
        *next = h;
        return all_finite(change, (size_t)n);
    }
    for (int k = 0; k < COLUMNS; k++) {
        const int count = 2 * (k + 1);
        leap(l, h, count, change);
        f->pulls += count;
        for (int j = 0; j < k; j++) { /* by Neville's scheme */
            const double ratio = (double)(k + 1) / (k - j), by = 1.0 / (ratio * ratio - 1.0);
            for (int i = 0; i < n; i++) {
                const double before = column[j][i];
                column[j][i] = change[i];
                error[i] = (change[i] - before) * by;
                change[i] += error[i];
            }
        }
        memcpy(column[k], change, (size_t)n * sizeof *change);
        if (k + 1 < FIRST) continue;
        const double share = share_of_errors(l, s->tolerance, change, error);
        if (!(share < INFINITY)) return 0;
        const double by = factor_of(share, 2 * k + 1), work = (k + 1) * (k + 2) / by;
        if (work < least) least = work, *next = h * by;
        if (share > 1.0) continue;
        /* One column more could let steps be longer than it costs. */
        if (k + 1 < COLUMNS && *next == h * by && share < AIM) *next *= (k + 3.0) / (k + 1.0);
        return 1;
    }
    *next = fmin(*next, 0.5 * h);
    return 0;
}

/* ---- energy ---------------------------------------------------------------------------------- */

static double kinetic_of(const struct chain *c, const double at[])
{
    const struct chain_view of = chain_view_of(c->n, (double *)at);
    double v[CHAIN_MOST][3];
    chain_unfold(c->n, c, CONST3(of.v), v);
    return chain_kinetic(c->n, c, CONST3(of.v), CONST3(v));
}

static double potential_of(const struct few_body *f, const struct chain *c, double *omega)
{
    const struct chain_view of = few_body_view(f);
    double x[CHAIN_MOST][3], acc[CHAIN_MOST][3], potential;
    chain_unfold(c->n, c, CONST3(of.x), x);
    chain_pull(c->n, c, CONST3(of.x), CONST3(x), acc, &potential, omega);
    return potential;
}

/* Scales all velocities to what the energy says, and sets the transformation of time to that of
 * the places, so that neither drifts. 0 if velocities are far from it: what two did was below the
 * roundoff of their places. */
static int project(struct few_body *f)
{
    const struct chain_view at = few_body_view(f), rest = chain_view_of(f->chain.n, f->rest);
    double omega;
    const double kinetic = kinetic_of(&f->chain, f->at);
    const double potential = potential_of(f, &f->chain, &omega), wanted = potential - *at.bound;
    const double by = 0.5 * (wanted - kinetic) / kinetic;
    *at.omega = omega, *rest.omega = 0.0;
    if (!(fabs(wanted - kinetic) <= FAR_OFF * (kinetic + potential))) return 0;
    if (!(fabs(by) < 1e-6)) return 1;
    for (int i = 0; i + 1 < f->chain.n; i++)
        for (int k = 0; k < 3; k++) {
            const double add = by * at.v[i][k] + rest.v[i][k], sum = at.v[i][k] + add;
            rest.v[i][k] = add - (sum - at.v[i][k]);
            at.v[i][k] = sum;
        }
    return 1;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Notes when a pair, nearest at `when`, came to a distance; period: of its orbit, or infinity. */
static void note(struct few_body *f, int pair, double closer, double before, double when,
                 double period)
{
    const struct chain_view at = few_body_view(f);
    if (period < before) when -= floor((when + before) / period) * period;
    double low = fmax(-before, when - 0.5 * period), high = when;
    for (int n = 0; n < 60 && low < high; n++) { /* on the orbit that it is on */
        const double middle = n ? 0.5 * (low + high) : low;
        double x[3], v[3];
        memcpy(x, at.x[pair], sizeof x), memcpy(v, at.v[pair], sizeof v);
        kepler_move(f->chain.m[pair] + f->chain.m[pair + 1], middle * f->chain.slow[pair], x, v);
        if (sqrt(kepler_dot(x, x)) > closer)
            low = middle;
        else
            high = middle;
    }
    f->met = *at.time + high;
    f->met_pair[0] = f->who[pair], f->met_pair[1] = f->who[pair + 1];
}

/* Notes where two of the chain's neighbours are nearest to each other, if that is between -before
 * and 0 from now: at an end, or where their orbit has its pericentre. */
static void watch(struct few_body *f, const struct few_setting *s, double before)
{
    const struct chain_view at = few_body_view(f);
    for (int i = 0; i + 1 < f->chain.n; i++) {
        const double both = f->chain.m[i] + f->chain.m[i + 1];
        double r = sqrt(kepler_dot(at.x[i], at.x[i])), when = 0.0, period = INFINITY;
        if (both > 0.0 && f->chain.eps2 == 0.0) {
            double to, a, e, q = kepler_pericentre(both, at.x[i], at.v[i], &to);
            kepler_elements(both, at.x[i], at.v[i], &a, &e);
            if (a > 0.0) period = KEPLER_TWO_PI * a * sqrt(a / both);
            if (to > 0.0 && a > 0.0) to -= period;
            to /= f->chain.slow[i], period /= f->chain.slow[i];
            if (to <= 0.0 && to >= -before) r = q, when = to;
        }
        if (r < s->closer && f->met == INFINITY) note(f, i, s->closer, before, when, period);
        if (!(r < f->closest)) continue;
        f->closest = r, f->closest_time = *at.time + when;
        f->pair[0] = f->who[i], f->pair[1] = f->who[i + 1];
    }
}

/* Adds a step's changes with what rounding loses (Kahan 1965, Commun. ACM 8, 40). 0 as above. */
static int accept(struct few_body *f, const struct few_setting *s, double change[])
{
    for (int i = 0; i < chain_state_size(f->chain.n); i++) {
        const double add = change[i] + f->rest[i], sum = f->at[i] + add;
        f->rest[i] = add - (sum - f->at[i]);
        f->at[i] = sum;
    }
    f->steps++;
    if (s->tolerance < INFINITY && !project(f)) return 0;
    watch(f, s, *chain_view_of(f->chain.n, change).time);
    if (f->chain.n > 2) few_body_renew_chain(f);
    if (s->slowed > 0.0 && f->chain.n > 2) few_body_slow_pairs(f, s);
    return 1;
}

/* The time that the transformed one takes. */
static double pace(const struct few_body *f, const double at[])
{
    const struct chain_view of = chain_view_of(f->chain.n, (double *)at);
    return 1.0 / (kinetic_of(&f->chain, at) + *of.bound + *of.omega);
}

/* A share of the shortest time scale of a neighbour in the chain. */
static double first_step(const struct few_body *f, double pulls)
{
    const struct chain_view at = few_body_view(f);
    double least = INFINITY;
    for (int i = 0; i + 1 < f->chain.n; i++) {
        const double r2 = kepler_dot(at.x[i], at.x[i]) + f->chain.eps2;
        const double fall = r2 * sqrt(r2) / (f->chain.m[i] + f->chain.m[i + 1]);
        const double pass = r2 / kepler_dot(at.v[i], at.v[i]);
        least = fmin(least, fmin(fall, pass));
    }
    return 0.5 * sqrt(least) * pulls;
}

/* How long a step is, at most h which takes `whole`, that ends `dt` later: by the cubic polynomial
 * that has both ends and paces. */
static double part_of(double h, double whole, double first, double last, double dt)
{
    double low = 0.0, high = 1.0;
    for (int n = 0; n < 50; n++) {
        const double u = 0.5 * (low + high), w = 1.0 - u;
        const double t = u * u * (3.0 - 2.0 * u) * whole + u * w * h * (w * first - u * last);
        if (t < dt)
            low = u;
        else
            high = u;
    }
    return h * high;
}

/* A step that ends at a time which one of h, that changes `change`, goes beyond. */
static int end_at(struct few_body *f, const struct few_setting *s, struct chain_leap *l, double h,
                  double time, double change[])
{
    const int n = f->chain.n, size = chain_state_size(n);
    const struct chain_view at = few_body_view(f), changes = chain_view_of(n, change);
    const double dt = (time - *at.time) - *chain_view_of(n, f->rest).time;
    double end[CHAIN_STATE], low = 0.0, high = h, unused;
    for (int i = 0; i < size; i++) end[i] = f->at[i] + change[i];
    double part = part_of(h, *changes.time, pace(f, f->at), pace(f, end), dt);
    for (int turn = 0; turn < 60; turn++) {
        if (!extrapolate(f, s, l, part, change, &unused)) return 0;
        const double over = *changes.time - dt;
        if (fabs(over) <= 0x1p-51 * fmax(fabs(dt), fabs(time))) return 1;
        if (over > 0.0)
            high = part;
        else
            low = part;
        for (int i = 0; i < size; i++) end[i] = f->at[i] + change[i];
        double nearer = part - over / pace(f, end);
        if (!(nearer > low && nearer < high)) nearer = 0.5 * (low + high);
        if (nearer == part || !(low < high)) return 1;
        part = nearer;
    }
    return 1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

void few_body_set_chain(struct few_body *f, double eps2, int n, const double m[])
{
    struct chain *c = &f->chain;
    double least = INFINITY;
    *c = (struct chain){.n = n, .eps2 = eps2};
    for (int i = 0; i < n; i++) c->mass += m[i];
    for (int i = 0; i < n; i++) {
        c->m[i] = m[f->who[i]], c->slow[i] = 1.0;
        c->part[i] = c->mass > 0.0 ? c->m[i] / c->mass : 1.0 / n;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) least = fmin(least, m[i] * m[j]);
    const double mean = c->mass / n;
    if (least < CHAIN_LIGHT * mean * mean && (n > 2 || least == 0.0)) c->light = mean * mean;
}

int few_body_begin(struct few_body *f, const struct few_setting *s, int n, const double m[],
                   const double (*x)[3], const double (*v)[3])
{
    double omega;
    *f = (struct few_body){.closest = INFINITY, .met = INFINITY};
    const struct chain_view at = chain_view_of(n, f->at);
    struct chain *c = &f->chain;
    few_body_find_chain(n, x, f->who);
    few_body_set_chain(f, s->eps2, n, m);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < n; i++) {
            at.centre[k] += c->part[i] * x[f->who[i]][k];
            at.speed[k] += c->part[i] * v[f->who[i]][k];
        }
        for (int i = 0; i + 1 < n; i++) {
            at.x[i][k] = x[f->who[i + 1]][k] - x[f->who[i]][k];
            at.v[i][k] = v[f->who[i + 1]][k] - v[f->who[i]][k];
        }
    }
    const double potential = potential_of(f, c, &omega);
    *at.omega = omega;
    *at.bound = potential - kinetic_of(c, f->at);
    f->step = first_step(f, potential + omega);
    watch(f, s, 0.0);
    return f->step > 0.0 && f->step < INFINITY ? 0 : G6X_E_RANGE;
}

int few_body_evolve(struct few_body *f, const struct few_setting *s, double time)
{
    const struct chain_view at = few_body_view(f);
    struct chain_leap l = {.chain = &f->chain, .outside = &s->outside};
    double change[CHAIN_STATE], next;
    const long long last = s->most_pulls ? f->pulls + s->most_pulls : LLONG_MAX;
    int halved = 0, stuck = 0;
    if (time > *at.time && few_body_is_pair(f, s)) {
        const double before = *at.time;
        const int code = few_body_move_pair(f, s, time);
        if (!code) watch(f, s, time - before);
        return code;
    }
    while (time - *at.time > 0x1p-50 * fabs(time)) {
        memcpy(l.start, f->at, (size_t)chain_state_size(f->chain.n) * sizeof *l.start);
        double h = f->step;
        int tries = 0;
        while (!extrapolate(f, s, &l, h, change, &next) && tries++ < 60) h = next;
        if (tries >= 60) return G6X_E_RANGE;
        if (*at.time + *chain_view_of(f->chain.n, change).time > time) {
            if (!end_at(f, s, &l, h, time, change)) { /* as at a pericentre, in one step */
                f->step = 0.5 * h;
                if (++halved > 60) return G6X_E_RANGE;
                continue;
            }
            next = h;
        }
        stuck = *chain_view_of(f->chain.n, change).time > 0x1p-52 * time ? 0 : stuck + 1;
        if (stuck == STUCK || f->pulls > last || !accept(f, s, change)) return G6X_E_RANGE;
        f->step = next;
    }
    return 0;
}

void few_body_copy(struct few_body *to, const struct few_body *from)
{
    const size_t n = (size_t)from->chain.n, size = n * sizeof *from->chain.m;
    const size_t state = (size_t)chain_state_size(from->chain.n) * sizeof *from->at;
    memcpy(to, from, offsetof(struct few_body, chain.m));
    memcpy(to->chain.m, from->chain.m, size), memcpy(to->chain.part, from->chain.part, size);
    memcpy(to->chain.slow, from->chain.slow, size);
    memcpy(to->who, from->who, n * sizeof *from->who);
    memcpy(&to->step, &from->step, offsetof(struct few_body, at) - offsetof(struct few_body, step));
    memcpy(to->at, from->at, state), memcpy(to->rest, from->rest, state);
}

void few_body_restart(struct few_body *f)
{
    *few_body_view(f).time = *chain_view_of(f->chain.n, f->rest).time = 0.0;
    f->closest = f->met = INFINITY;
}

void few_body_read(const struct few_body *f, double (*x)[3], double (*v)[3])
{
    const int n = f->chain.n;
    const struct chain_view at = few_body_view(f);
    double place[CHAIN_MOST][3], speed[CHAIN_MOST][3];
    chain_unfold(n, &f->chain, CONST3(at.x), place);
    chain_unfold(n, &f->chain, CONST3(at.v), speed);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            x[f->who[i]][k] = at.centre[k] + place[i][k];
            v[f->who[i]][k] = at.speed[k] + speed[i][k];
        }
}
