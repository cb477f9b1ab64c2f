/* g6x_few_body.c - the g6x_ call of a few bodies. */
#include <math.h>
#include <string.h>

#include "g6lib.h"
#include "session/registry.h"
#include "steps/few_body.h"
#include "util/fpenv.h"
#include "util/numbers.h"

_Static_assert((int)G6X_FEW_MOST == (int)CHAIN_MOST, "the header says how many there may be");
_Static_assert(sizeof(struct g6x_perturber) == sizeof(struct chain_perturber), "one layout");

/* Perturbation up to which kicks between ellipses do, where Kepler's laws may. */
#define KICKED 1e-3

static int refuse(int code, const char *what)
{
    return session_registry_refuse(code, "few bodies: %s", what);
}

static int is_share(double x) { return x >= 0.0 && x < 1.0; }

static int check(const struct g6x_few_bodies *b, double dt)
{
    double mass = 0.0;
    if (!b) return refuse(G6X_E_NULL, "null pointer");
    if (b->n < 2 || b->n > G6X_FEW_MOST) return refuse(G6X_E_ARGUMENT, "n is not 2 to 64");
    if (!(b->mass && b->x && b->v) || (b->perturbers > 0 && !b->perturber))
        return refuse(G6X_E_NULL, "null pointer");
    if (!(dt >= 0.0 && isfinite(dt))) return refuse(G6X_E_ARGUMENT, "dt is negative, NaN or Inf");
    if (b->perturbers < 0 || !(b->eps2 >= 0.0 && isfinite(b->eps2)) || !is_share(b->tolerance) ||
        !is_share(b->gamma) || !is_share(b->slow_down) || !(b->step >= 0.0 && isfinite(b->step)))
        return refuse(G6X_E_ARGUMENT,
                      "perturbers, eps2, tolerance, gamma, slow_down or step is out "
                      "of range");
    if (!all_finite(b->kappa, (size_t)b->n) || !all_finite(b->mass, (size_t)b->n) ||
        !all_finite(b->x[0], 3 * (size_t)b->n) || !all_finite(b->v[0], 3 * (size_t)b->n) ||
        (b->perturbers && !all_finite(&b->perturber->mass, 13 * (size_t)b->perturbers)))
        return refuse(G6X_E_ARGUMENT, "a mass, position or velocity is NaN or Inf");
    for (int i = 0; i < b->n; mass += b->mass[i++])
        if (b->mass[i] < 0.0) return refuse(G6X_E_ARGUMENT, "a mass is negative");
    return mass > 0.0 ? 0 : refuse(G6X_E_ARGUMENT, "no body has a mass");
}

static int unfit(void)
{
    return refuse(G6X_E_RANGE, "no step converges: two are at one place, or a number leaves the "
                               "range of doubles; they stay as they were");
}

int g6x_few_body_evolve(struct g6x_few_bodies *b, double dt)
{
    FPENV_HERE;
    const int code = check(b, dt);
    if (code) return code;
    const struct few_setting s = {
        .eps2 = b->eps2,
        .tolerance = b->tolerance > 0.0 ? b->tolerance : FEW_TOLERANCE,
        .kepler = b->gamma,
        .kicked = b->gamma > 0.0 ? KICKED : 0.0,
        .slowed = b->slow_down,
        .outside = {.count = b->perturbers,
                    .moving = b->moved,
                    .body = (const struct chain_perturber *)b->perturber},
    };
    struct few_body f;
    double x[CHAIN_MOST][3], v[CHAIN_MOST][3];
    if (few_body_begin(&f, &s, b->n, b->mass, CONST3(b->x), CONST3(b->v))) return unfit();
    if (b->step > 0.0) {
        f.step = b->step;
        if (s.slowed > 0.0) few_body_set_slow(&f, b->kappa);
    }
    if (few_body_evolve(&f, &s, dt)) return unfit();
    few_body_read(&f, x, v);
    if (!all_finite(x[0], 3 * (size_t)b->n) || !all_finite(v[0], 3 * (size_t)b->n)) return unfit();
    if (dt > 0.0) { /* else not even roundoff moves them */
        memcpy(b->x, x, (size_t)b->n * sizeof *x);
        memcpy(b->v, v, (size_t)b->n * sizeof *v);
    }
    b->step = f.step;
    few_body_get_slow(&f, b->kappa);
    b->steps += f.steps, b->pulls += f.pulls;
    b->closest = f.closest, b->closest_time = f.closest_time;
    for (int k = 0; k < 2; k++) b->pair[k] = f.pair[k];
    return 0;
}
