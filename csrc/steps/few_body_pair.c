/* few_body_pair.c - see few_body.h: Kepler's laws, with kicks by the tide of what is outside
 * between parts of an orbit that are equal in the eccentric anomaly (Wisdom and Holman 1991, AJ
 * 102, 1528; Mikkola 1997, Celest. Mech. Dyn. Astron. 67, 145). */
#include "g6lib.h"
#include "steps/few_body.h"

/* Kicks of an orbit, and the perturbation up to which these are enough: their errors are this times
 * the square of a kick's share of the orbit, and do not add up. With 8 they do so where steps are
 * shorter than the orbit. */
#define KICKS 16.0
#define ENOUGH 1e-4

static double tide_at_apocentre(const struct few_body *f, const struct few_setting *s)
{
    const struct chain_view at = few_body_view(f);
    double a, e, lasts;
    if (!s->outside.count && s->outside.far.span == 0.0) return 0.0;
    kepler_elements(f->chain.mass, at.x[0], at.v[0], &a, &e);
    return a > 0.0 ? few_body_tide(f, s, 0, a * (1.0 + e), &lasts) : INFINITY;
}

int few_body_is_pair(const struct few_body *f, const struct few_setting *s)
{
    if (f->chain.n != 2 || f->chain.eps2 > 0.0) return 0;
    const double most = s->outside.moving ? s->kepler : fmax(s->kepler, s->kicked);
    return most > 0.0 && tide_at_apocentre(f, s) < most;
}

/* Relative acceleration of the two by what is outside. */
static void tide(const struct few_body *f, const struct few_setting *s, double time,
                 const double x[3], double acc[3])
{
    const struct chain_view at = few_body_view(f);
    const double part[2] = {-f->chain.part[1], f->chain.part[0]};
    double place[2][3];
    for (int k = 0; k < 3; k++) {
        acc[k] = 0.0;
        for (int i = 0; i < 2; i++) place[i][k] = part[i] * x[k];
    }
    if (s->outside.far.span > 0.0) {
        double far[CHAIN_FAR_TERMS], on[2][3] = {{0.0}};
        chain_far_at(&s->outside.far, time, far);
        for (int i = 0; i < 2; i++) chain_far_pull(far, place[i], on[i]);
        for (int k = 0; k < 3; k++) acc[k] = on[1][k] - on[0][k];
    }
    for (int p = 0; p < s->outside.count; p++) {
        double d[3];
        chain_outside_at(&s->outside.body[p], time, at.centre, d);
        for (int i = 0; i < 2; i++) {
            const double to[3] = {d[0] - place[i][0], d[1] - place[i][1], d[2] - place[i][2]};
            const double r2 = kepler_dot(to, to), inverse = r2 > 0.0 ? 1.0 / sqrt(r2) : 0.0;
            const double by = s->outside.body[p].mass * inverse * inverse * inverse;
            for (int k = 0; k < 3; k++) acc[k] += (i ? by : -by) * to[k];
        }
    }
}

static void kick(double v[3], double dt, const double acc[3])
{
    for (int k = 0; k < 3; k++) v[k] += dt * acc[k];
}

/* Time goes on, and the centre of mass with it. */
static void go_on(const struct chain_view *at, double dt)
{
    *at->time += dt;
    for (int k = 0; k < 3; k++) at->centre[k] += dt * at->speed[k];
}

static int move_by_kicks(struct few_body *f, const struct few_setting *s, double time, double count)
{
    const struct chain_view at = few_body_view(f);
    const double gm = f->chain.mass;
    double acc[3], g[4], r1, *x = at.x[0], *v = at.v[0];
    tide(f, s, *at.time, x, acc);
    for (;;) {
        struct kepler_orbit o = kepler_orbit_of(gm, x, v);
        const double part = KEPLER_TWO_PI / (count * sqrt(o.beta)), left = time - *at.time;
        f->pulls++;
        if (!(o.beta > 0.0)) return G6X_E_RANGE;
        if (kepler_time(&o, part, g, &r1) >= left) {
            kick(v, 0.5 * left, acc);
            if (!kepler_move(gm, left, x, v)) return G6X_E_RANGE;
            go_on(&at, left);
            tide(f, s, time, x, acc);
            kick(v, 0.5 * left, acc);
            return 0;
        }
        kick(v, 0.5 * part * o.r, acc);
        o = kepler_orbit_of(gm, x, v);
        go_on(&at, kepler_time(&o, part, g, &r1));
        kepler_turn(&o, g, r1, 1.0, x, v);
        tide(f, s, *at.time, x, acc);
        kick(v, 0.5 * part * sqrt(kepler_dot(x, x)), acc);
    }
}

int few_body_move_pair(struct few_body *f, const struct few_setting *s, double time)
{
    const struct chain_view at = few_body_view(f);
    const double dt = time - *at.time, gamma = tide_at_apocentre(f, s);
    int code = 0;
    if (gamma < s->kepler) {
        code = kepler_move(f->chain.mass, dt, at.x[0], at.v[0]) ? 0 : G6X_E_RANGE;
        go_on(&at, dt);
    } else {
        code = move_by_kicks(f, s, time, KICKS * sqrt(fmax(gamma / ENOUGH, 1.0)));
    }
    *at.time = time;
    const double r = sqrt(kepler_dot(at.x[0], at.x[0]));
    const double reduced = f->chain.m[0] * f->chain.part[1];
    *at.bound = reduced * (f->chain.mass / r - 0.5 * kepler_dot(at.v[0], at.v[0]));
    *at.omega = chain_is_light(&f->chain, 0, 1) ? f->chain.light / r : 0.0; /* a chain may follow */
    f->steps++;
    return code;
}
