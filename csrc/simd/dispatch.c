/* dispatch.c - see dispatch.h. */
#include "simd/dispatch.h"

#include "g6lib.h"

#define HAS(feature) __builtin_cpu_supports(feature)

int simd_dispatch(int isa)
{
#define ROW(name, number, needs) {G6X_ISA_##number, needs},
    const struct {
        int isa, has;
    } set[] = {SIMD_COMPILED(ROW)};
#undef ROW
    int found = -1;
    for (int k = 0; k < (int)(sizeof set / sizeof *set); k++)
        if (set[k].has && (isa == G6X_ISA_BEST || isa == set[k].isa)) found = k;
    return found;
}

const char *simd_dispatch_name(int isa)
{
#define ROW(name, number, needs) #name,
    static const char *const NAMES[] = {SIMD_COMPILED(ROW)};
    const int k = simd_dispatch(isa);
#undef ROW
    return k < 0 ? "none" : NAMES[k];
}

int simd_dispatch_number(int isa)
{
#define ROW(name, number, needs) G6X_ISA_##number,
    static const int NUMBERS[] = {SIMD_COMPILED(ROW)};
    const int k = simd_dispatch(isa);
    return k < 0 ? -1 : NUMBERS[k];
}
