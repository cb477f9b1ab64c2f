/* The snapshot reader of the example programs on bytes in memory, for a test that compares it with
 * Python's; compiled as C and as C++. With -DFUZZ for libFuzzer: any bytes give bodies with finite
 * numbers and no negative mass, or a reason; never anything else. */
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
    } else if (s.n != 0 || s.m || s.x || s.v) {
        n = -3;
    }
    snapshot_free(&s);
    fclose(f);
    return n;
}

#ifdef FUZZ
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
    enum { MOST = 600 }; /* in 4096 bytes, libFuzzer's most */
    double *table = calloc(MOST, 7 * sizeof *table);
    char fault[SNAPSHOT_FAULT] = "", *copy = malloc(length + 1);
    if (!table || !copy || !length) return free(table), free(copy), 0;
    memcpy(copy, bytes, length);
    const int n = read_bytes(copy, length, MOST, table, fault);
    if (n == -3 || n == 0 || n > MOST || (n < 0) != (*fault != 0)) abort();
    if (strlen(fault) >= SNAPSHOT_FAULT) abort();
    for (int k = 0; k < 7 * n; k++)
        if (!isfinite(table[k]) || (k % 7 == 0 && table[k] < 0)) abort();
    return free(table), free(copy), 0;
}
#endif
