/* ireg.h - i particles kept between calls, as in a GRAPE board's registers: for the low-level
 * GRAPE-6 calls and for GRAPE-5. */
#pragma once

/* One i particle per pipe; nip and njp as the caller set them. */
struct pipes {
    int nip, njp, capacity;
    int *index;
    double (*x)[3], (*v)[3], *eps2, *h2;
};

/* Reserves capacity; new pipes are zero. 0, or G6X_E_MEMORY and nothing is changed. */
int session_ireg_grow(struct pipes *p, int capacity);
void session_ireg_free(struct pipes *p);
