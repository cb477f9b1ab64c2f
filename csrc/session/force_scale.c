/* force_scale.c - the mode, scale and origin of a force call, from the j particles and the caller's
 * settings. See force_scale.h. */
#include "session/force_scale.h"
#include "g6lib.h"
#include "util/memory.h"

/* Bits are compared, not numbers: the host may trap comparisons with NaN. */
static int is_unset(double a) { return bits_of(a) << 1 > (uint64_t)0x7ff << 53; }

/* Takes the origin that the caller has set; components not set are 0. A set scale implies an
 * origin, too, so that all such sessions have the same one. */
static void take_origin(const double set[3], int scale_is_set, double origin[3])
{
    int any = scale_is_set;
    for (int k = 0; k < 3; k++) any |= !is_unset(set[k]);
    for (int k = 0; any && k < 3; k++) origin[k] = is_unset(set[k]) ? 0.0 : set[k] + 0.0;
}

/* Moves the origin to zero: the exponent must then cover the old origin's distance from zero. */
static void forget_origin(double origin[3], int *exponent)
{
    for (int k = 0; k < 3; k++) {
        const int far = scale_exponent(exponent_of(origin[k]));
        if (origin[k] != 0.0 && far > *exponent) *exponent = far;
        origin[k] = 0.0;
    }
}

int session_force_scale_begin_whole(struct session *s)
{
    session_force_scale_end_whole(s);
    s->whole = memory_zeroed(sizeof *s->whole);
    return s->whole ? 0 : error_set(&s->error, G6X_E_MEMORY, "no memory for all j particles");
}

void session_force_scale_end_whole(struct session *s)
{
    if (!s->whole) return;
    jmemory_free(s->whole);
    memory_free(s->whole);
    s->whole = NULL;
    s->whole_nj = 0;
}

/* The j particles that have the scale. */
static const struct jmemory *scaled(const struct session *s) { return s->whole ? s->whole : &s->j; }

int session_force_scale_precision(struct session *s, int nj)
{
    const struct options *o = &s->options;
    jmemory_settle(&s->j, nj, options_threads(o->threads));
    if (s->whole) jmemory_settle(s->whole, s->whole_nj, options_threads(o->threads));
    if (s->backend->capabilities & CAN_APPROXIMATE)
        return o->precision == MODE_AUTO ? MODE_GRAPE : o->precision;
    return o->scale[0] == G6X_AUTO && jmemory_is_crowded(scaled(s)) ? MODE_DOUBLE : o->precision;
}

struct scale session_force_scale_in(struct session *s, int precision)
{
    struct scale scale = jmemory_scale(scaled(s));
    const struct options *o = &s->options;
    take_origin(o->origin, o->scale[0] != G6X_AUTO, scale.origin);
    take_origin(o->drift, o->scale[2] != G6X_AUTO, scale.drift);
    if (precision == MODE_DOUBLE) { /* double resolves as much as the caller's numbers, from zero */
        forget_origin(scale.origin, &scale.length);
        forget_origin(scale.drift, &scale.velocity);
    }
    if (o->scale[0] != G6X_AUTO) scale.length = scale_exponent(o->scale[0]);
    if (o->scale[1] != G6X_AUTO) scale.mass = scale_exponent(o->scale[1]);
    if (o->scale[2] != G6X_AUTO) scale.velocity = scale_exponent(o->scale[2]);
    return scale;
}

struct scale session_force_scale(struct session *s, int nj)
{
    return session_force_scale_in(s, session_force_scale_precision(s, nj));
}
