/* hermite_check.c - what integrations are refused for, and what is asked of them: see hermite.h. */
#include <math.h>

#include "core/field_time.h"
#include "session/force.h"
#include "session/hermite.h"

static int argument(struct session *s, const char *call, const char *what)
{
    return error_set(&s->error, G6X_E_ARGUMENT, "%s: %s", call, what);
}

int session_hermite_check(struct session *s, const char *call, const struct g6x_hermite *h)
{
    if (!h) return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    if (h->n < 0) return argument(s, call, "n is negative");
    if (!(h->eta > 0.0 && isfinite(h->eta) && h->dtmin > 0.0 && h->dtmin <= h->dtmax &&
          isfinite(h->dtmax)))
        return argument(s, call, "eta, dtmin or dtmax is out of range");
    if (!(h->noise >= 0.0 && h->noise < 1.0 && h->place >= 0.0 && h->place < 1.0))
        return argument(s, call, "noise or place is out of range");
    if (h->massless < 0 || h->massless > h->n)
        return argument(s, call, "massless is negative or above n");
    if (h->n && (!h->field_acc != !h->field_jerk || !h->work != !h->power || !h->work != !h->rate ||
                 (h->work && !h->field_acc)))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer: field_jerk, power or rate",
                         call);
    const char *wrong = h->field ? field_time_wrong(h->field) : NULL;
    if (wrong) return error_set(&s->error, G6X_E_ARGUMENT, "%s: field: %s", call, wrong);
    if (h->n && !(h->mass && h->t && h->dt && h->x && h->v && h->a && h->j && h->address && h->xi &&
                  h->vi && h->acc && h->jerk && h->pot))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    return 0;
}

int session_hermite_stuck(struct session *s, int particle)
{
    return error_set(
        &s->error, G6X_E_ARGUMENT,
        "block step: the step of particle %d ends when it begins, or t or dt is NaN or "
        "Inf",
        particle);
}

int session_hermite_unfit(struct session *s, int row)
{
    return error_set(&s->error, G6X_E_RANGE, HERMITE_UNFIT, row);
}

int session_hermite_unknown(struct session *s)
{
    return error_set(&s->error, G6X_E_ARGUMENT,
                     "block step: a nearest neighbour is none of the particles: their indices have "
                     "to be 0 to n - 1");
}

static int is_no_counter(long long n) { return n < 0 || n > 1ll << 62; }

int session_hermite_check_evolution(struct session *s, const char *call,
                                    const struct g6x_hermite *h, const struct g6x_evolution *e)
{
    const int code = session_hermite_check(s, call, e ? h : NULL);
    if (code) return code;
    if (isnan(e->t_end)) return argument(s, call, "t_end is NaN");
    if (!(e->closer >= 0.0 && e->farther >= 0.0) || !isfinite(e->closer) || !isfinite(e->farther) ||
        !all_finite(e->centre, 3))
        return argument(s, call, "closer, farther or centre is out of range");
    if (h->n && ((e->closer > 0.0 && !h->nearest) ||
                 (session_hermite_watches(e) && !(h->close && h->left))))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer: nearest, close or left", call);
    if (h->n && e->pause && !h->field_acc)
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer: field_acc", call);
    const int acting = hermite_acting(h); /* without any, nothing is shared */
    if (h->words && (h->share_first < 0 || h->share_first > h->share_end || h->share_end > acting ||
                     (acting && (!s->whole || s->whole_nj != acting))))
        return argument(s, call, "the share is not that of g6x_share_particles");
    if (h->part && (!h->parts || h->part_rows < LEAST_ROWS || h->share < 0 ||
                    h->share >= h->shares || h->share_pairs < 0))
        return argument(s, call, "parts, part_rows, share or share_pairs is out of range");
    if (e->passes < 1 || e->most_blocks < 0 || !(e->seconds >= 0.0))
        return argument(s, call, "passes, most_blocks or seconds is out of range");
    if (is_no_counter(e->blocks) || is_no_counter(e->steps) || is_no_counter(e->clamped))
        return argument(s, call, "blocks, steps or clamped is negative or above 2^62");
    if (e->ni < 0 || e->ni > h->n ||
        (e->ni && (e->row < 0 || e->row > e->ni || (e->row == e->ni && e->stage < 1) ||
                   e->pass < 0 || e->pass >= e->passes || !isfinite(e->next))))
        return argument(s, call, "the block under way is none of this integration's");
    if (!s->options.jerk)
        return argument(s, call, "the option G6X_JERK is 0, and the scheme needs the jerk");
    if (h->subsystems && (e->eps2 > 0.0 || e->pause || (h->field && h->field->omega != 0.0)))
        return argument(s, call, "subsystems take neither softening nor a field that rotates");
    return session_force_check_softening(s, 0, e->eps2);
}

int session_hermite_field(struct session *s, const struct g6x_hermite *h, double time,
                          struct field *f)
{
    if (!field_time_at(h->field, time, f)) return 0;
    return error_set(&s->error, G6X_E_ARGUMENT,
                     "block step: the orbit of the frame does not reach to time %g", time);
}
