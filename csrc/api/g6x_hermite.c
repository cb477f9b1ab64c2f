/* g6x_hermite.c - the g6x_ calls of block steps on the host, and of fields from outside. */
#include <math.h>
#include <string.h>

#include "core/field_time.h"
#include "session/hermite.h"
#include "session/registry.h"
#include "util/fpenv.h"
#include "util/numbers.h"

static int step_error(int code, const char *what)
{
    return session_registry_refuse(code, "block step: %s", what);
}

static int block_checked(int ni, const int *address, double time, const struct hermite_state *s,
                         const void *xi, const void *vi)
{
    if (ni < 0) return step_error(G6X_E_ARGUMENT, "ni is negative");
    if (!isfinite(time)) return step_error(G6X_E_ARGUMENT, "the time is NaN or Inf");
    if (ni && !(address && s->t && s->x && s->v && s->a && s->j && xi && vi))
        return step_error(G6X_E_NULL, "null pointer");
    for (int i = 0; i < ni; i++)
        if (address[i] < 0) return step_error(G6X_E_ADDRESS, "negative address");
    for (int i = 0; i < ni; i++) {
        if (!all_finite(&s->t[address[i]], 1))
            return step_error(G6X_E_ARGUMENT, "a particle's time is NaN or Inf");
        if (s->dt && !all_finite(&s->dt[address[i]], 1))
            return step_error(G6X_E_ARGUMENT, "a particle's step is NaN or Inf");
    }
    return 0;
}

int g6x_hermite_predict(int ni, const int address[], double time, const double t[],
                        const double (*x)[3], const double (*v)[3], const double (*a)[3],
                        const double (*j)[3], double (*xi)[3], double (*vi)[3])
{
    const struct hermite_state s = {
        (double *)t,      NULL, (double (*)[3])x, (double (*)[3])v, (double (*)[3])a,
        (double (*)[3])j, NULL};
    const int code = block_checked(ni, address, time, &s, xi, vi);
    if (code) return code;
    FPENV_HERE;
    hermite_predict(ni, address, time, &s, xi, vi);
    return 0;
}

int g6x_hermite_correct(int ni, const int address[], double time, double eta, double dtmin,
                        double dtmax, const double (*acc)[3], const double (*jerk)[3],
                        const double roundoff[], double t[], double dt[], double (*x)[3],
                        double (*v)[3], double (*a)[3], double (*j)[3], double (*xi)[3],
                        double (*vi)[3])
{
    struct hermite_correction c = {.address = address, .time = time, .xi = xi, .vi = vi};
    c.state = (struct hermite_state){t, dt, x, v, a, j, NULL};
    c.rule = (struct hermite_rule){eta, dtmin, dtmax};
    c.acc = (double (*)[3])acc, c.jerk = (double (*)[3])jerk, c.errors.roundoff = roundoff;
    int code = block_checked(ni, address, time, &c.state, xi, vi);
    if (!code && ni && !(acc && jerk)) code = step_error(G6X_E_NULL, "null pointer");
    if (!code && dt &&
        !(eta > 0.0 && isfinite(eta) && dtmin > 0.0 && dtmin <= dtmax && isfinite(dtmax)))
        code = step_error(G6X_E_ARGUMENT, "eta, dtmin or dtmax is out of range");
    if (code) return code;
    FPENV_HERE;
    int unfit;
    code = hermite_correct(&c, 0, ni, &unfit);
    return unfit < 0 ? code : session_registry_refuse(G6X_E_RANGE, HERMITE_UNFIT, unfit);
}

/* Checks the block of an integration on the host, and that arrays are there. */
static int check_block(const struct g6x_hermite *h, int ni, double time, int lacks)
{
    if (!h || lacks) return step_error(G6X_E_NULL, "null pointer");
    if (ni > h->n) return step_error(G6X_E_ARGUMENT, "ni is above n");
    for (int i = 0; h->address && i < ni; i++)
        if (h->address[i] >= h->n) return step_error(G6X_E_ADDRESS, "an address is not below n");
    const struct hermite_state s = {h->t, NULL, h->x, h->v, h->a, h->j, NULL};
    return block_checked(ni, h->address, time, &s, h->xi, h->vi);
}

int g6x_hermite_evolve(int clusterid, const struct g6x_hermite *h, struct g6x_evolution *e)
{
    return ON_SESSION(clusterid, session_hermite_evolve, h, e);
}

int g6x_hermite_pull(int clusterid, const struct g6x_hermite *h, int ni, double time)
{
    const int code = check_block(h, ni, time, h && ni > 0 && !(h->acc && h->jerk && h->nearest));
    return code || !ni ? code : ON_SESSION(clusterid, session_subsystems_pull, h, ni, time);
}

int g6x_hermite_unfold(int clusterid, const struct g6x_hermite *h, double time, double (*x)[3],
                       double (*v)[3], double (*acc)[3], double (*jerk)[3])
{
    const int code = check_block(h, 0, time, h && h->n > 0 && !(x && v && h->t && !acc == !jerk));
    return code ? code : ON_SESSION(clusterid, session_subsystems_unfold, h, time, x, v, acc, jerk);
}

int g6x_subsystems(int clusterid, const struct g6x_hermite *h, int carrier[], double (*elements)[6])
{
    const int code = check_block(h, 0, 0.0, h && h->n > 0 && !(carrier && h->t));
    return code ? code : ON_SESSION(clusterid, session_subsystems_list, h, carrier, elements);
}

int g6x_subsystems_get(int clusterid, const struct g6x_hermite *h, int most, double state[])
{
    const int code = check_block(h, 0, 0.0, h && h->n > 0 && !h->t);
    if (code) return code;
    return ON_SESSION(clusterid, session_subsystems_get, h, state ? most : 0, state);
}

int g6x_subsystems_put(int clusterid, const struct g6x_hermite *h, int count, const double state[])
{
    const int code =
        check_block(h, 0, 0.0, h && h->n > 0 && !(h->t && h->mass && (state || count <= 0)));
    return code ? code : ON_SESSION(clusterid, session_hermite_put_subsystems, h, count, state);
}

/* ---- fields ------------------------------------------------------------------------ */

static int field_error(int code, const char *what)
{
    return session_registry_refuse(code, "field: %s", what);
}

/* The field at a time; 0 or a code. */
static int find_field(const struct g6x_field *f, double time, struct field *at)
{
    const char *wrong = f ? field_time_wrong(f) : NULL;
    if (wrong) return field_error(G6X_E_ARGUMENT, wrong);
    if (!isfinite(time)) return field_error(G6X_E_ARGUMENT, "the time is NaN or Inf");
    if (field_time_at(f, time, at))
        return field_error(G6X_E_ARGUMENT, "the orbit of the frame does not reach to this time");
    return 0;
}

/* The error of a particle to which the field gave no finite acceleration, or 0. */
static int check_sum(int i, const double acc[3])
{
    return all_finite(acc, 3)
               ? 0
               : session_registry_refuse(G6X_E_RANGE,
                                         "field: it is NaN or Inf at the particle in row %d, "
                                         "as in the centre of a point mass",
                                         i);
}

int g6x_field_add(const struct g6x_field *f, int n, double time, const double (*x)[3],
                  const double (*v)[3], double (*acc)[3], double (*jerk)[3], double *pot)
{
    struct field at;
    if (n < 0) return field_error(G6X_E_ARGUMENT, "n is negative");
    if (!f || (n && (!x || ((acc || jerk) && !v)))) return field_error(G6X_E_NULL, "null pointer");
    FPENV_HERE;
    int code = find_field(f, time, &at), bad = 0;
    for (int i = 0; i < n && !code; i++) {
        double none[3] = {0.0, 0.0, 0.0}, no[3] = {0.0, 0.0, 0.0};
        double *a = acc ? acc[i] : none;
        const int were_finite = all_finite(a, 3);
        if (acc || jerk) field_add(&at, x[i], v[i], a, jerk ? jerk[i] : no);
        if (pot) pot[i] += field_pot(&at, x[i]);
        if (were_finite && !bad) bad = check_sum(i, a);
    }
    return code ? code : bad;
}

int g6x_field_origin(const struct g6x_field *f, double time, double origin[4][3])
{
    struct field at;
    if (!f || !origin) return field_error(G6X_E_NULL, "null pointer");
    FPENV_HERE;
    const int code = find_field(f, time, &at);
    if (!code) memcpy(origin, at.origin, sizeof at.origin);
    return code;
}

int g6x_hermite_add_field(const struct g6x_hermite *h, int ni, double time)
{
    struct field at;
    int code = check_block(h, ni, time,
                           h && ni > 0 &&
                               (!(h->acc && h->jerk && (h->field || h->field_acc)) ||
                                !h->field_acc != !h->field_jerk));
    if (code || !ni) return code;
    struct hermite_correction c = hermite_correction_of(h, time);
    c.out.acc = h->field_acc, c.out.jerk = h->field_jerk;
    FPENV_HERE;
    if (h->field) code = find_field(h->field, time, &at);
    if (!code) hermite_add_field_to(&c, ni, h->field ? &at : NULL);
    for (int i = 0; i < ni && !code; i++) code = check_sum(i, h->acc[i]);
    return code;
}

int g6x_hermite_work(const struct g6x_hermite *h, int ni, double time, double work[])
{
    const int code = check_block(
        h, ni, time,
        h && ni > 0 &&
            !(h->acc && h->field_acc && h->field_jerk && h->work && h->power && h->rate));
    if (code) return code;
    FPENV_HERE;
    for (int i = 0; i < ni; i++) {
        const struct hermite_work w = hermite_work_of(h);
        const int p = h->address[i];
        double rate;
        const double power =
            hermite_power(h->field_acc[i], h->field_jerk[i], h->vi[i], h->acc[i], &rate);
        if (work)
            work[i] = w.work[p] + hermite_step_work(&w, p, time - h->t[p], power, rate);
        else
            w.work[p] = 0.0, w.power[p] = power, w.rate[p] = rate;
    }
    return 0;
}
