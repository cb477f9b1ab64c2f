/* force_device.h - callers' arrays in the memory of the session's device. All take a locked session
 * and return 0 or an error code; on the CPU, which has no such memory, G6X_E_NO_DEVICE. */
#pragma once

#include "core/backend_device.h"
#include "session/session.h"

/* The error of a call for which the session has no device. */
int session_force_device_missing(struct session *s, const char *call);
/* A whole force call on device arrays (targets->on_device). If h2 is given, lists can be read and
 * the call used like any other afterwards. */
int session_force_device(struct session *s, int nj, const struct targets *targets,
                         const struct device_forces *to);
/* The sum of share targets->share of targets->shares as a part of *bytes, in device memory; with
 * `nearest`, also of the nearest neighbours. */
int session_force_device_part(struct session *s, int nj, const struct targets *targets, int nearest,
                              void *part, long long *bytes);
/* The results of that call from the parts of all shares, one behind the other. */
int session_force_device_merge(struct session *s, void *parts, int shares,
                               const struct device_forces *to, void *stream);
int session_force_device_receive(struct session *s, const struct device_particles *from);
/* Predicts j particles 0 .. nj - 1. Ends the last force call, as a firsthalf does. */
int session_force_device_predicted(struct session *s, int nj, double (*x)[3], double (*v)[3],
                                   void *stream);
