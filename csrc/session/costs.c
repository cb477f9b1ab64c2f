/* costs.c - see costs.h. Typical costs are those of two machines with 16 cores and an H200
 * (benchmarks/pages/runs.md). */
#include "session/costs.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/backend.h"
#include "cpu/direct_kernel.h"
#include "cuda/cuda.h"
#include "g6lib.h"
#include "util/clock.h"

static const double CPU_CALL = 1.5e-6, GPU_CALL = 20e-6, GPU_START = 0.2;
/* Programs work between their calls: then threads sleep, and each has to be woken. */
static const double WAKE = 6e-6;
static const double THREAD_GAIN = 0.6; /* of each further thread; 1: as much as the first */
static const double PAIRS_PER_MULTIPROCESSOR = 2.3e9, MULTIPROCESSORS = 132;

/* ---- one timing ---------------------------------------------------------------------------- */

/* Seconds of a pair and of a prediction by mode and instruction set; zero until timed. Threads that
 * ask at once all time. */
static struct timing {
    _Atomic double pair, prediction;
} timings[MODE_AUTO + 1][G6X_ISA_NEON + 1];
static const double PAIR = 1e-9, PREDICTION = 5e-9; /* if it fails for lack of memory */

enum { NJ = 4096, NI = 32, TAKES = 5 };

/* Seconds of the shortest of some calls; 0 if one fails. If the time `moves`, they predict. */
static double shortest(void *state, struct upload *j, const struct targets *i, int moves)
{
    const struct backend *const cpu = &cpu_direct_backend;
    struct error error = {.quiet = 1};
    double least = 0.0;
    for (int take = 0; take < TAKES; take++) {
        struct results results;
        const double start = clock_seconds();
        j->time += moves ? 0x1p-20 : 0.0;
        if (cpu->set_j(state, j, &error) || cpu->submit(state, i, &error) ||
            cpu->collect(state, WANT_JERK, i->ni, &results, &error))
            return 0.0;
        const double seconds = clock_seconds() - start;
        if (!take || seconds < least) least = seconds;
    }
    return least;
}

/* Times one thread with particles on a lattice. */
static void time_cpu(const struct options *asked, struct timing *t)
{
    struct options options = *asked;
    struct error error = {.quiet = 1};
    struct jmemory j = {0};
    double x[NI][3], v[NI][3], eps2[NI], pair = 0.0, prediction = 0.0;
    int32_t index[NI];
    void *state;
    options.threads = 1;
    for (int k = NJ - 1; k >= 0; k--) { /* the first NI are the i particles */
        const int i = k % NI;
        for (int axis = 0; axis < 3; axis++)
            x[i][axis] = 0.01 * (k >> 4 * axis & 15), v[i][axis] = !axis;
        index[i] = k, eps2[i] = 1e-6;
        (void)jmemory_set(&j, k, k, 0.0, 1e-4, NULL, NULL, NULL, v[i], x[i]);
    }
    if (j.capacity >= NJ && !cpu_direct_backend.open(&options, 0, &state, &error)) {
        jmemory_settle(&j, NJ, 1);
        const struct scale scale = jmemory_scale(&j);
        const double (*at)[3] = (const double (*)[3])x, (*moving)[3] = (const double (*)[3])v;
        const struct targets one = {.ni = 1, .index = index, .x = at, .v = moving, .eps2 = eps2};
        struct targets some = one;
        struct upload upload = {&j, NJ, 0.0, scale, scale, &options};
        some.ni = NI;
        pair = shortest(state, &upload, &some, 0) / (NI * NJ);
        prediction = shortest(state, &upload, &one, 1) / NJ - pair;
        cpu_direct_backend.close(state);
    }
    jmemory_free(&j);
    atomic_store(&t->prediction, prediction > 0.0 ? prediction : PREDICTION);
    atomic_store(&t->pair, pair > 0.0 ? pair : PAIR);
}

/* ---- estimates ----------------------------------------------------------------------------- */

/* Work that takes one thread so many seconds, and can be divided into so many parts. */
static double shared_out(double seconds, double parts, double threads)
{
    const double more = fmin(parts, threads - 1.0);
    return fmin(seconds, seconds / (1.0 + more * THREAD_GAIN) + more * WAKE);
}

double session_costs_cpu(const struct options *o, double ni, double nj, double predictions)
{
    struct timing *t = &timings[o->precision][o->isa];
    const char *given = TEST_VARIABLE(CPU_PAIR);
    if (given)
        atomic_store(&t->prediction, PREDICTION), atomic_store(&t->pair, strtod(given, NULL));
    if (!(atomic_load(&t->pair) > 0.0)) time_cpu(o, t);
    const double threads = options_threads(o->threads), pairs = ni * nj,
                 summing = pairs * atomic_load(&t->pair),
                 predicting = nj * atomic_load(&t->prediction);
    return CPU_CALL + shared_out(summing, pairs / DIRECT_PAIRS_PER_THREAD, threads) +
           predictions * shared_out(predicting, nj / (DIRECT_CHUNKS_PER_THREAD * CHUNK), threads);
}

double session_costs_gpu(double ni, double nj)
{
    const double open = cuda_device_multiprocessors();
    return GPU_CALL + ni * nj / (PAIRS_PER_MULTIPROCESSOR * (open > 0.0 ? open : MULTIPROCESSORS));
}

double session_costs_start(void)
{
    const char *given = TEST_VARIABLE(GPU_START);
    return given ? strtod(given, NULL) : cuda_device_multiprocessors() ? 0.0 : GPU_START;
}
