/* subsystems.h - subsystems of an integration on the host (steps/groups.h), in its session. */
#pragma once

#include "session/session.h"

/* Whether *h has subsystems; then *with is *h with masses of centres of mass. 0, or an error. */
int session_subsystems_begin(struct session *s, const struct g6x_hermite *h,
                             struct g6x_hermite *with);
/* See g6x_hermite_pull and g6x_hermite_unfold. */
int session_subsystems_pull(struct session *s, const struct g6x_hermite *h, int ni, double time);
int session_subsystems_unfold(struct session *s, const struct g6x_hermite *h, double time,
                              double (*x)[3], double (*v)[3], double (*acc)[3], double (*jerk)[3]);
/* See g6x_subsystems, and those of its name. */
int session_subsystems_list(struct session *s, const struct g6x_hermite *h, int carrier[],
                            double (*elements)[6]);
int session_subsystems_get(struct session *s, const struct g6x_hermite *h, int most,
                           double state[]);
int session_subsystems_put(struct session *s, const struct g6x_hermite *h, int count,
                           const double state[]);
