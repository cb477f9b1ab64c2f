/* usage: host (traps | rounding | stack) [threads]
 * A host with a state of its own: it traps floating-point exceptions, as gfortran -ffpe-trap does
 * (row 32), rounds its own way and flushes denormals to zero (rows 33 and 41), or has a stack of
 * 64 kB (row 37). Calls of all kinds, faults among them, give the bits that they give elsewhere,
 * and leave that state as it is. */
#define _GNU_SOURCE
#define BOARD_N 1100
#include "board.h"
#include "g5lib.h"

#include <fenv.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#define CONTROL() (_mm_getcsr() & ~0x3fu)
#define FLUSH_TO_ZERO() _mm_setcsr(_mm_getcsr() | 0x8040u)
static unsigned x87(void)
{
    unsigned short status;
    __asm__ volatile("fnstsw %0" : "=m"(status));
    return status & FE_ALL_EXCEPT;
}
#else
#define x87() 0u
#define CONTROL() 0u
#define FLUSH_TO_ZERO() ((void)0)
#endif

enum { TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW, FEW = 40, BODIES = 6 };
static int threads = 1, bad;
static long long words[NI * G6X_PARTIAL_WORDS];
static Board *board;

#define EXPECT(call, code)                                                                         \
    do {                                                                                           \
        const int found = call;                                                                    \
        if (found == (code)) break;                                                                \
        fprintf(stderr, "%s: %d\n", #call, found);                                                 \
        bad++;                                                                                     \
    } while (0)

static void add_to(uint64_t *hash, const void *data, size_t bytes)
{
    for (size_t n = 0; n < bytes; n++)
        *hash = (*hash ^ ((const unsigned char *)data)[n]) * 1099511628211u;
}

static void forces(int id, uint64_t *hash)
{
    Board *b = malloc(sizeof *b);
    memcpy(b, board, sizeof *b); /* made before the host had a state of its own */
    EXPECT(g6_open(id), 0);
    EXPECT(g6x_set_int(id, G6X_THREADS, threads), 0);
    for (int mode = 0; mode < 3; mode++) {
        EXPECT(g6x_set_int(id, G6X_PRECISION, mode), 0);
        EXPECT(board_fill(b, id), 0);
        EXPECT(board_force(b, id, 0.0), 0);
        const uint64_t bits = board_hash(b);
        add_to(hash, &bits, sizeof bits);
        EXPECT(board_first(b, id, 900, NI, 0.0) | g6x_get_partial(id, NI, words), 0);
        add_to(hash, words, sizeof words);
    }
    EXPECT(board_everything(b, id, 1), 0);
    EXPECT(board_walks(b, id) | board_flight(b, id, 1), 0);
    b->x[5][1] = b->x[7][0] = INFINITY;
    EXPECT(board_walks(b, id), G6X_E_J_NAN);
    EXPECT(g6_open_all() | g6_close_all(), 0);
    EXPECT(g6_close(id), 0);
    free(b);
}

static void grape5(uint64_t *hash)
{
    static const double m[FEW] = {0.5, 1, 2}, eps2[FEW] = {0.25, 0, 1};
    double x[FEW][3], a[FEW][3], p[FEW], nan[1][3] = {{NAN, 0, 0}}, none[1] = {-1};
    double *const mass = (double *)(uintptr_t)m, *const eps = (double *)(uintptr_t)eps2;
    for (int i = 0; i < FEW; i++) x[i][0] = i % 7, x[i][1] = i % 5, x[i][2] = i / 8.0;
    EXPECT(g5_open() | g5_set_range(-1.0, 1.0, 1.0) | g5_set_eta(HUGE_VAL) | g5_set_n(FEW), 0);
    for (int wrong = 1; wrong >= 0; wrong--) {
        EXPECT(g5_set_xmj(0, FEW, x, mass) | g5_set_xj(0, FEW, x) | g5_set_mj(0, FEW, mass), 0);
        EXPECT(g5_set_eps_to_all(0.0) | g5_calculate_force_on_x(x, a, p, FEW), 0);
        EXPECT(g5_set_eps_to_all(0.1) | g5_set_xi(FEW, x) | g5_run() | g5_get_force(FEW, a, p), 0);
        EXPECT(g5_get_force(FEW / 2, a, p) | g5_calculate_force_on_xe(x, eps, a, p, FEW), 0);
        EXPECT(g5_set_xmj0(0, FEW, x, mass, eps), 0);
        EXPECT(g5_calculate_force_on_x0(x, a, p, FEW, eps), 0);
        if (!wrong) break;
        EXPECT(g5_set_eps_to_all(1e300), G6X_E_ARGUMENT);
        EXPECT(g5_set_eps_to_all(NAN), G6X_E_ARGUMENT);
        EXPECT(g5_calculate_force_on_x(x, a, p, FEW), G6X_E_ARGUMENT);
        EXPECT(g5_set_eps_to_all(0.1) | g5_set_xi(1, nan), 0);
        EXPECT(g5_run(), G6X_E_I_NAN);
        EXPECT(g5_get_force(1, a, p), G6X_E_I_NAN);
        EXPECT(g5_calculate_force_on_xe(x, none, a, p, 1), G6X_E_ARGUMENT);
        EXPECT(g5_set_eta(NAN), G6X_E_ARGUMENT);
        EXPECT(g5_set_xmj0(0, 1, nan, mass, eps), G6X_E_J_NAN);
        EXPECT(g5_calculate_force_on_x0(x, a, p, FEW, eps), G6X_E_J_NAN);
        EXPECT(g5_set_xmj0(0, 1, x, mass, none), G6X_E_ARGUMENT);
        EXPECT(g5_set_xj(0, 1, nan), G6X_E_J_NAN);
        EXPECT(g5_calculate_force_on_x(x, a, p, FEW), G6X_E_J_NAN);
    }
    add_to(hash, a, sizeof a);
    add_to(hash, p, sizeof p);
    EXPECT(g5_close(), 0);
}

/* Ordinary bodies, one without any force, one of huge values, one of tiny ones, one on time. */
static void block_steps(uint64_t *hash)
{
    static const double SIZES[BODIES] = {1, 0.25, 0, 0x1p660, 0x1p-996, 1};
    int address[BODIES];
    double t[BODIES] = {0, 0, 0, 0, 0, 0.125}, dt[BODIES], q[8][BODIES][3];
    for (int i = 0; i < BODIES; i++) {
        address[i] = i, dt[i] = 0.125;
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < 3; k++) q[n][i][k] = SIZES[i] * ((3 * n + 5 * k + i) % 7 - 3);
    }
    EXPECT(g6x_hermite_predict(BODIES, address, 0.125, t, q[0], q[1], q[2], q[3], q[6], q[7]), 0);
    for (int pass = 0; pass < 2; pass++)
        bad += g6x_hermite_correct(BODIES, address, 0.125, 0.02, 1e-9, 0.25, q[4], q[5], NULL, t,
                                   pass ? dt : NULL, q[0], q[1], q[2], q[3], q[6], q[7]) < 0;
    add_to(hash, q, sizeof q);
    add_to(hash, dt, sizeof dt);
}

static uint64_t work(int id)
{
    const unsigned control = CONTROL(), status = x87();
    const int rounding = fegetround(), traps = fegetexcept();
    uint64_t hash = 14695981039346656037u;
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0) forces(id, &hash);
        if (kind == 1) grape5(&hash);
        if (kind == 2) block_steps(&hash);
        if (fegetround() == rounding && fegetexcept() == traps && CONTROL() == control &&
            x87() == status)
            continue;
        fprintf(stderr, "kind %d changed the state of the host\n", kind);
        bad++;
    }
    return hash;
}

static void *in_thread(void *hash) { return *(uint64_t *)hash = work(2), NULL; }

static uint64_t on_a_small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    uint64_t hash = 0;
    pthread_attr_init(&attributes);
    bad += pthread_attr_setstacksize(&attributes, 65536) != 0;
    if (pthread_create(&thread, &attributes, in_thread, &hash) == 0) pthread_join(thread, NULL);
    return hash;
}

/* Does the host's own 1/0 still end a child with SIGFPE? */
static int still_traps(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        volatile double zero = 0.0, one = 1.0;
        signal(SIGFPE, SIG_DFL);
        one = one / zero;
        _exit(one > 0 ? 3 : 4);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGFPE;
}

int main(int argc, char **argv)
{
    static const int ROUNDING[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const char how = argc > 1 ? argv[1][0] : 't';
    threads = argc > 2 ? atoi(argv[2]) : 1;
    board = board_new();
    const uint64_t right = work(1);
    if (how == 's') bad += on_a_small_stack() != right;
    for (int m = 0; how == 'r' && m < 4; m++) {
        volatile double tiny = 2.2250738585072014e-308;
        fesetround(ROUNDING[m]);
        if (m % 2) FLUSH_TO_ZERO();
        bad += work(m) != right;
        fesetenv(FE_DFL_ENV);
        bad += tiny / 4 == 0;
    }
    if (how == 't') {
        feenableexcept(TRAPS);
        bad += work(0) != right || !still_traps();
    }
    return bad;
}
