/* field_time.c - see field_time.h. */
#include "core/field_time.h"

#include <math.h>
#include <string.h>

#include "g6lib.h"

#define SAME(kind) ((int)FIELD_##kind == (int)G6X_FIELD_##kind)
_Static_assert(SAME(TERMS) && SAME(PLUMMER) && SAME(MIYAMOTO_NAGAI) && SAME(NFW) &&
                   SAME(LOGARITHMIC) && SAME(CUTOFF),
               "shared/field.h has the numbers of g6lib.h");

/* ---- checks ----------------------------------------------------------------------------- */

static const char *term_wrong(const struct g6x_field_term *term)
{
    const double *p = term->p;
    for (int k = 0; k < FIELD_NUMBERS; k++)
        if (!isfinite(p[k])) return "a parameter is NaN or Inf";
    switch (term->kind) {
    case FIELD_PLUMMER: return p[1] >= 0.0 ? NULL : "a Plummer sphere needs a scale >= 0";
    case FIELD_MIYAMOTO_NAGAI:
        return p[1] >= 0.0 && p[2] > 0.0 ? NULL : "a Miyamoto-Nagai disk needs a >= 0 and b > 0";
    case FIELD_NFW: return p[1] > 0.0 ? NULL : "an NFW halo needs a scale > 0";
    case FIELD_LOGARITHMIC:
        if (p[1] >= 0.0 && p[2] > 0.0) return NULL;
        return "a logarithmic field needs a core >= 0 and a flattening > 0";
    case FIELD_CUTOFF:
        if (p[1] >= 0.0 && p[1] < 2.0 && p[2] > 0.0) return NULL;
        return "a power law with cutoff needs an exponent from 0 to below 2 and a cutoff > 0";
    default: return "a term is of no known kind";
    }
}

const char *field_time_wrong(const struct g6x_field *f)
{
    if (f->terms < 0 || f->terms > FIELD_TERMS) return "the number of terms is not from 0 to 8";
    for (int i = 0; i < f->terms; i++) {
        const char *wrong = term_wrong(&f->term[i]);
        if (wrong) return wrong;
    }
    if (!isfinite(f->omega) || !isfinite(f->epoch)) return "omega or epoch is NaN or Inf";
    if (f->nodes < 0 || f->nodes == 1 || (f->nodes && !f->orbit))
        return "an orbit needs two nodes or more";
    if (f->nodes && f->omega != 0.0) return "a frame moves or rotates, but not both";
    return NULL;
}

/* ---- the origin of a moving frame ------------------------------------------------------- */

/* One component between two nodes, by the polynomial of degree 7 that has their position, velocity,
 * acceleration and jerk: so the acceleration is smooth, and just that of the position. `s` is the
 * time since the first node over h, the time between them. */
static void interpolate(double h, double s, const double a[4], const double b[4], double out[4])
{
    /* Taylor's series of the first node, and what the second node is off it, in powers of s - 1. */
    const double c0 = a[0], c1 = h * a[1], c2 = h * h * a[2] / 2.0, c3 = h * h * h * a[3] / 6.0;
    const double r0 = b[0] - (c0 + c1 + c2 + c3), r1 = h * b[1] - (c1 + 2.0 * c2 + 3.0 * c3);
    const double r2 = h * h * b[2] / 2.0 - (c2 + 3.0 * c3), r3 = h * h * h * b[3] / 6.0 - c3;
    /* The rest is s^4 times a cubic of u = s - 1. */
    const double e0 = r0, e1 = r1 - 4.0 * e0, e2 = r2 - 4.0 * e1 - 6.0 * e0;
    const double e3 = r3 - 4.0 * e2 - 6.0 * e1 - 4.0 * e0, u = s - 1.0;
    const double q0 = e0 + u * (e1 + u * (e2 + u * e3)), q1 = e1 + u * (2.0 * e2 + 3.0 * u * e3);
    const double q2 = 2.0 * e2 + 6.0 * u * e3, q3 = 6.0 * e3, s2 = s * s, s3 = s2 * s;
    out[0] = c0 + s * (c1 + s * (c2 + s * c3)) + s2 * s2 * q0;
    out[1] = (c1 + s * (2.0 * c2 + 3.0 * s * c3) + 4.0 * s3 * q0 + s2 * s2 * q1) / h;
    out[2] = (2.0 * c2 + 6.0 * s * c3 + 12.0 * s2 * q0 + 8.0 * s3 * q1 + s2 * s2 * q2) / (h * h);
    out[3] =
        (6.0 * c3 + 24.0 * s * q0 + 36.0 * s2 * q1 + 12.0 * s3 * q2 + s2 * s2 * q3) / (h * h * h);
}

static double largest(const double x[3]) { return fmax(fabs(x[0]), fmax(fabs(x[1]), fabs(x[2]))); }

/* Sets the origin at `time`, and the roundoff of what is measured from there: that of its
 * acceleration, and of second differences of its places. -1 if the orbit does not reach there. */
static int find_origin(const struct g6x_field *f, double time, struct field *at)
{
    int low = 0, high = f->nodes - 1;
    if (!(time >= f->orbit[low][0] && time <= f->orbit[high][0])) return -1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (time < f->orbit[middle][0])
            high = middle;
        else
            low = middle;
    }
    const double *from = f->orbit[low], *to = f->orbit[high], h = to[0] - from[0];
    for (int k = 0; k < 3; k++) {
        double a[4], b[4], out[4];
        for (int d = 0; d < 4; d++) a[d] = from[1 + 3 * d + k], b[d] = to[1 + 3 * d + k];
        interpolate(h, (time - from[0]) / h, a, b, out);
        for (int d = 0; d < 4; d++) at->origin[d][k] = out[d];
    }
    at->roundoff = 0x1p-49 * (largest(at->origin[2]) + 8.0 * largest(at->origin[0]) / (h * h));
    return 0;
}

int field_time_at(const struct g6x_field *f, double time, struct field *to)
{
    memset(to, 0, sizeof *to);
    if (!f) return 0;
    to->terms = f->terms;
    to->omega = f->omega;
    to->moves = f->nodes > 0;
    for (int i = 0; i < f->terms; i++) {
        to->term[i].kind = f->term[i].kind;
        memcpy(to->term[i].p, f->term[i].p, sizeof to->term[i].p);
        if (f->term[i].kind == FIELD_CUTOFF)
            to->term[i].norm = 1.0 / tgamma(1.5 - f->term[i].p[1] / 2.0);
    }
    return f->nodes ? find_origin(f, time + f->epoch, to) : 0;
}
