/* force_device.h - callers' arrays in the memory of the session's device. All take a locked session
 * and return 0 or an error code; on the CPU, which has no such memory, G6X_E_NO_DEVICE. */
#pragma once

#include "core/backend_device.h"
#include "session/session.h"

/* CUDA's number of the session's device, -1 if it is the CPU. */
int session_force_device_number(const struct session *s);
/* The error of a call for which the session has no device. */
int session_force_device_missing(struct session *s, const char *call);
/* A whole force call; targets as with on_device. Lists can be read, and it is as any other call
 * afterwards, if there is an h2. */
int session_force_device(struct session *s, int nj, const struct targets *targets,
                         const struct device_forces *to);
int session_force_device_receive(struct session *s, const struct device_particles *from);
/* Ends the last force call, as a firsthalf does. */
int session_force_device_predicted(struct session *s, int nj, double (*x)[3], double (*v)[3],
                                   void *stream);
