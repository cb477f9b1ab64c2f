/* The snapshot reader on bytes in memory, for a test that compares it with Python's.
 * Compiled as C and as C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "snapshot.h"

#ifdef __cplusplus
extern "C" int read_bytes(char *bytes, size_t length, int capacity, double *table, char *fault);
#else
int read_bytes(char *bytes, size_t length, int capacity, double *table, char *fault);
#endif

/* Number of bodies, of which the first `capacity` are put into the rows m x y z vx vy vz of
 * table; -1 with the reason in fault. */
int read_bytes(char *bytes, size_t length, int capacity, double *table, char *fault)
{
    struct snapshot s;
    FILE *f = fmemopen(bytes, length, "r");
    int n = -1;

    if (f == NULL) return -2;
    if (snapshot_read(f, &s, fault) == 0) {
        n = s.n;
        for (int i = 0; i < n && i < capacity; i++) {
            table[7 * i] = s.m[i];
            memcpy(table + 7 * i + 1, s.x[i], sizeof s.x[i]);
            memcpy(table + 7 * i + 4, s.v[i], sizeof s.v[i]);
        }
    }
    snapshot_free(&s);
    fclose(f);
    return n;
}
