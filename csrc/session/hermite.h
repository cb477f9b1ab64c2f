/* hermite.h - Hermite integrations whose particles are the host's, block after block. Both take a
 * locked session. */
#pragma once

#include "session/session.h"

struct g6x_hermite;
struct g6x_evolution;

/* See g6x_hermite_evolve: 0 at the end, 1 if it is to be called again, or a fault code. */
int session_hermite_evolve(struct session *s, const struct g6x_hermite *h, struct g6x_evolution *e);
/* What is wrong with an integration, also one of the device: 0 or a fault code. */
int session_hermite_check(struct session *s, const char *call, const struct g6x_hermite *h);
/* The fault of a particle that no j particle can be. */
int session_hermite_unfit(struct session *s, int row);
