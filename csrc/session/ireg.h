/* ireg.h - i particles that stay on the board between calls: of the low-level GRAPE-6 calls and
 * of GRAPE-5. */
#pragma once

/* One i particle per pipe; nip and njp as the caller set them. */
struct pipes {
    int nip, njp, capacity;
    int *index;
    double (*x)[3], (*v)[3], *eps2, *h2;
};

/* Reserves space, the new pipes zero; 0 or G6X_E_MEMORY, and then all is as before. */
int session_ireg_grow(struct pipes *p, int capacity);
void session_ireg_free(struct pipes *p);
