/* hermite_device.h - Hermite integration of particles in the memory of the session's device. All
 * functions take a locked session and return an error code, or what g6lib.h says. */
#pragma once

#include "session/session.h"

int session_hermite_device_next(struct session *s, const struct g6x_hermite *h, double *time,
                                void *stream);
int session_hermite_device_predict(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, void *stream);
int session_hermite_device_evolve(struct session *s, const struct g6x_hermite *h,
                                  struct g6x_evolution *e, void *stream);
int session_hermite_device_correct(struct session *s, const struct g6x_hermite *h, int ni,
                                   double time, int what, void *stream);
