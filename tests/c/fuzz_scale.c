/* fuzz_scale.c - see fuzz.h: the scale, the origin and the mode of a force call, once more. */
#include "fuzz.h"

static int descending(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }

/* Smallest e such that at most an eighth of n numbers with these exponents reach 2^e. */
static int scale_of(int *exponent, int n)
{
    qsort(exponent, (size_t)n, sizeof *exponent, descending);
    return n ? exponent[n / 8] : 0;
}

static void note_exponent(const double *d, int n, int *exponent, int *count)
{
    double most = 0;
    for (int k = 0; k < n; k++) most = fmax(most, fabs(d[k]));
    if (most == 0) return;
    frexp(most, &exponent[(*count)++]);
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *a, int n)
{
    qsort(a, (size_t)n, sizeof *a, rising);
    return a[n / 2];
}

static int exponent(double a)
{
    int e;
    frexp(a, &e);
    return e;
}

enum { SAMPLE = 15, NO_SIZE = -100000 };

/* docs/accuracy.md: the origin of some triples; the exponent of the size of half of them. */
static int origin_of(double (*x)[3], int n, double origin[3])
{
    double middle[3], far[SAMPLE] = {0}, a[SAMPLE];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < n; i++) a[i] = x[i][k];
        middle[k] = n ? median(a, n) : 0;
        if (fabs(middle[k]) >= 0x1p900) middle[k] = 0;
        for (int i = 0; i < n; i++) far[i] = fmax(far[i], fabs(x[i][k] - middle[k]));
    }
    const double size = n ? median(far, n) : 0;
    memset(origin, 0, 3 * sizeof *origin);
    if (size <= 0x1p-900 || size >= 0x1p900) return NO_SIZE;
    const double step = ldexp(1, exponent(size) + 1);
    for (int k = 0; k < 3; k++)
        if (fabs(middle[k]) < 0x1p52 * step) origin[k] = rint(middle[k] / step) * step;
    return exponent(size);
}

static const struct body *body_at(const struct cluster *c, int64_t address)
{
    for (int k = 0; k < c->nbody; k++)
        if (c->body[k].address == address) return &c->body[k];
    return NULL;
}

/* Places and velocities of the bodies that decide where the origin is. */
static int sample(const struct cluster *c, int nj, double (*x)[3], double (*v)[3])
{
    int64_t end = 0;
    int n = 0;
    for (int k = 0; k < c->nbody && c->body[k].address < nj; k++) end = c->body[k].address + 1;
    const int count = end < SAMPLE ? (int)end : SAMPLE;
    for (int k = 0; k < count; k++) {
        const struct body *b = body_at(c, (2 * k + 1) * end / (2 * count));
        if (!b || b->bad) continue;
        memcpy(x[n], b->x, sizeof *x);
        memcpy(v[n++], b->v, sizeof *v);
    }
    return n;
}

static void note_from(const double *a, const double *origin, int *exponents, int *count)
{
    const double d[3] = {a[0] - origin[0], a[1] - origin[1], a[2] - origin[2]};
    note_exponent(d, 3, exponents, count);
}

/* What lies at the origin is as far from zero as that. */
static void from_zero(const double origin[3], int *scale)
{
    for (int k = 0; k < 3; k++)
        if (origin[k] != 0 && exponent(origin[k]) > *scale) *scale = exponent(origin[k]);
}

static int moderate(int scale) { return scale > 960 ? 960 : scale < -960 ? -960 : scale; }

int model_scale(const struct cluster *c, int nj, int scale[3])
{
    int x[MAX_BODY], m[MAX_BODY], v[MAX_BODY], nx = 0, nm = 0, nv = 0;
    double places[SAMPLE][3], moves[SAMPLE][3], origin[3], drift[3];
    const int n = sample(c, nj, places, moves), inner = origin_of(places, n, origin);
    origin_of(moves, n, drift);
    for (int k = 0; k < c->nbody && c->body[k].address < nj; k++) {
        const struct body *b = &c->body[k];
        if (b->bad) continue;
        note_from(b->x, origin, x, &nx);
        note_exponent(&b->mass, 1, m, &nm);
        note_from(b->v, drift, v, &nv);
    }
    scale[0] = moderate(scale_of(x, nx));
    scale[1] = moderate(scale_of(m, nm));
    scale[2] = moderate(scale_of(v, nv));
    const int *wanted = &c->settings[G6X_SCALE_LENGTH];
    const int crowded = wanted[0] == G6X_AUTO && inner != NO_SIZE && scale[0] - 20 > inner - 3;
    const int in_double = crowded || c->settings[G6X_PRECISION] == G6X_DOUBLE;
    if (in_double && wanted[0] == G6X_AUTO) from_zero(origin, &scale[0]);
    if (in_double && wanted[2] == G6X_AUTO) from_zero(drift, &scale[2]);
    for (int k = 0; k < 3; k++) {
        if (wanted[k] != G6X_AUTO) scale[k] = wanted[k];
        scale[k] = moderate(scale[k]);
    }
    return in_double;
}
