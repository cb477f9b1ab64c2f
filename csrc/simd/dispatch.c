/* dispatch.c - see dispatch.h. */
#include "simd/dispatch.h"

#include "g6lib.h"

#define HAS(feature) __builtin_cpu_supports(feature)

#define SET(name, number, needs) {#name, G6X_ISA_##number},
static const struct {
    const char *name;
    int number;
} SETS[] = {SIMD_COMPILED(SET)};

int simd_dispatch(int isa)
{
#define NEEDS(name, number, needs) needs,
    const int has[] = {SIMD_COMPILED(NEEDS)};
    int found = -1;
    for (int k = 0; k < (int)(sizeof has / sizeof *has); k++)
        if (has[k] && (isa == G6X_ISA_BEST || isa == SETS[k].number)) found = k;
    return found;
}

const char *simd_dispatch_name(int isa)
{
    const int k = simd_dispatch(isa);
    return k < 0 ? "none" : SETS[k].name;
}

int simd_dispatch_number(int isa)
{
    const int k = simd_dispatch(isa);
    return k < 0 ? -1 : SETS[k].number;
}
