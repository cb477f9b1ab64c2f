/* hermite_device.c - see hermite_device.h. */
#include "session/hermite_device.h"

#include <math.h>

#include "core/backend_device.h"
#include "session/force.h"
#include "session/force_device.h"
#include "session/hermite.h"
#include "util/fpenv.h"
#include "g6lib.h"

static int check(struct session *s, const char *call, const struct g6x_hermite *h, int ni,
                 double time)
{
    const int code = session_hermite_check(s, call, h);
    if (code) return code;
    if (ni < 0 || ni > h->n)
        return error_set(&s->fault, G6X_E_ARGUMENT, "%s: ni is negative or above n", call);
    if (!isfinite(time))
        return error_set(&s->fault, G6X_E_ARGUMENT, "%s: the time is NaN or Inf", call);
    return s->backend->arrays ? 0 : session_force_device_missing(s, call);
}

/* To be called with what a call of the device has returned. */
static int leave(struct session *s, int code, const struct fpenv *host)
{
    if (code) (void)session_force_fall_back(s, code);
    fpenv_leave(host);
    return code;
}

int session_hermite_device_next(struct session *s, const struct g6x_hermite *h, double *time,
                                void *stream)
{
    static const char call[] = "g6x_hermite_next_device";
    int ni = 0, code = check(s, call, time ? h : NULL, 0, 0.0);
    struct fpenv host;
    if (code) return code;
    *time = INFINITY;
    if (!h->n) return 0;
    fpenv_enter(&host);
    code = leave(s, s->backend->arrays->next(s->state, h, stream, &ni, time, &s->fault), &host);
    return code ? code : ni;
}

int session_hermite_device_predict(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, void *stream)
{
    const int code = check(s, "g6x_hermite_predict_device", h, ni, time);
    struct fpenv host;
    if (code || !ni) return code;
    fpenv_enter(&host);
    return leave(s, s->backend->arrays->predict(s->state, h, ni, time, stream, &s->fault), &host);
}

int session_hermite_device_correct(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, int what, void *stream)
{
    struct device_particles rows;
    int held = 0, code = check(s, "g6x_hermite_correct_device", h, ni, time);
    struct fpenv host;
    if (code || !ni) return code;
    fpenv_enter(&host);
    code = leave(s,
                 s->backend->arrays->correct(s->state, h, ni, time, what & G6X_HERMITE_MOVE, stream,
                                             what & G6X_HERMITE_WRITE ? &rows : NULL, &held,
                                             &s->fault),
                 &host);
    if (!code && what & G6X_HERMITE_WRITE) code = session_force_device_receive(s, &rows);
    return code ? code : held;
}
