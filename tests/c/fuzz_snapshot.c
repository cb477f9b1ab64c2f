/* libFuzzer on the snapshot reader of the example programs: any bytes give bodies with finite
 * numbers and no negative mass, or a reason; never anything else. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "snapshot.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct snapshot s;
    char fault[SNAPSHOT_FAULT], *copy = malloc(length + 1);
    if (!copy) return 0;
    memcpy(copy, bytes, length);
    FILE *f = fmemopen(copy, length ? length : 1, "r");
    if (!f || !length) {
        if (f) fclose(f);
        free(copy);
        return 0;
    }
    if (snapshot_read(f, &s, fault) == 0) {
        if (s.n < 1 || *fault) abort();
        for (int i = 0; i < s.n; i++) {
            if (!(s.m[i] >= 0) || !isfinite(s.m[i])) abort();
            for (int k = 0; k < 3; k++)
                if (!isfinite(s.x[i][k]) || !isfinite(s.v[i][k])) abort();
        }
    } else if (s.n != 0 || s.m || s.x || s.v || !*fault || strlen(fault) >= SNAPSHOT_FAULT) {
        abort();
    }
    snapshot_free(&s);
    fclose(f);
    free(copy);
    return 0;
}
