#include <math.h>
#include <string.h>

#include "hermite.h"
#include "predictor.h"

static void predict(const struct hermite_state *s, int p, double dt, double3 x, double3 v)
{
    for (int k = 0; k < 3; k++)
        predict_component(dt, 0.0, s->j[p][k] / 6.0, s->a[p][k] / 2.0, s->v[p][k], s->x[p][k],
                          &x[k], &v[k]);
}

void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double3 *xi, double3 *vi)
{
    for (int i = 0; i < ni; i++) {
        const int p = address[i];
        predict(s, p, time - s->t[p], xi[i], vi[i]);
    }
}

static double norm(const double3 a) { return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]); }

/* Adds the third and fourth order to the prediction x, v (Makino and Aarseth, equations 4 to
 * 8). Returns in a2 and a3 the second and third derivative of a at the end of the step. */
static void correct(double dt, const double3 a0, const double3 j0, const double3 a1,
                    const double3 j1, double3 x, double3 v, double3 a2, double3 a3)
{
    const double dt2 = dt * dt, dt3 = dt2 * dt;
    for (int k = 0; k < 3; k++) {
        const double start = (6.0 * (a1[k] - a0[k]) - dt * (4.0 * j0[k] + 2.0 * j1[k])) / dt2;
        a3[k] = (12.0 * (a0[k] - a1[k]) + 6.0 * dt * (j0[k] + j1[k])) / dt3;
        a2[k] = start + dt * a3[k];
        x[k] += dt2 * dt2 * (start / 24.0 + dt * a3[k] / 120.0);
        v[k] += dt3 * (start / 6.0 + dt * a3[k] / 24.0);
    }
}

/* Aarseth's criterion (Makino and Aarseth, equation 9). */
static double wanted_step(const struct hermite_rule *rule, const double3 a, const double3 j,
                          const double3 a2, const double3 a3)
{
    const double a_ = norm(a), j_ = norm(j), s = norm(a2), c = norm(a3);
    const double below = j_ * c + s * s;
    return below > 0.0 ? sqrt(rule->eta * (a_ * s + j_ * j_) / below) : rule->dt_max;
}

/* Halved as often as need be; doubled once, and only where the doubled step's grid has a
 * point, so that particles of equal step stay together. */
static double next_step(const struct hermite_rule *rule, double time, double dt, double wanted)
{
    if (wanted < dt) {
        while (dt > wanted && dt > rule->dt_min) dt *= 0.5;
    } else if (wanted >= 2.0 * dt && 2.0 * dt <= rule->dt_max && fmod(time, 2.0 * dt) == 0.0) {
        dt *= 2.0;
    }
    return dt;
}

/* Whether the differences that a2 and a3 are made of could come from errors of a0 and a1 alone.
 * A body whose forces cancel, like a star in a ring of planets, would get ever shorter steps from
 * them: errors grow as 1/dt^2 in a2 and 1/dt^3 in a3. */
static int is_noise(double dt, double noise, const double3 a2, const double3 a3)
{
    return dt * dt * norm(a2) <= 36.0 * noise && dt * dt * dt * norm(a3) <= 24.0 * noise;
}

int hermite_correct(int ni, const int *address, double time, const struct hermite_rule *rule,
                    const struct hermite_state *s, const double3 *acc, const double3 *jerk,
                    const double *noise, double3 *xi, double3 *vi)
{
    int held = 0;
    for (int i = 0; i < ni; i++) {
        const int p = address[i];
        const double dt = time - s->t[p];
        double3 x, v, a1, j1, a2, a3; /* of its own: acc and xi may be one array */
        memcpy(a1, acc[i], sizeof a1);
        memcpy(j1, jerk[i], sizeof j1);
        predict(s, p, dt, x, v);
        if (dt != 0.0) correct(dt, s->a[p], s->j[p], a1, j1, x, v, a2, a3);
        memcpy(xi[i], x, sizeof x);
        memcpy(vi[i], v, sizeof v);
        if (dt == 0.0 || !s->dt) continue; /* it is there, or stays where it is */
        const double wanted =
            noise && is_noise(dt, noise[i], a2, a3) ? 2.0 * dt : wanted_step(rule, a1, j1, a2, a3);
        memcpy(s->x[p], x, sizeof x);
        memcpy(s->v[p], v, sizeof v);
        memcpy(s->a[p], a1, sizeof a1);
        memcpy(s->j[p], j1, sizeof j1);
        s->t[p] = time;
        s->dt[p] = next_step(rule, time, s->dt[p], wanted);
        held += s->dt[p] > wanted;
    }
    return held;
}
