/* A host with its own rounding mode and flush-to-zero (rows 33 and 41): same bits, and
 * the host finds its settings as it left them. */
#include "board.h"

#include <fenv.h>
#ifdef __SSE__
#include <xmmintrin.h>
#define CONTROL() (_mm_getcsr() & ~0x3fu)
#define SET_CONTROL(bits) _mm_setcsr(_mm_getcsr() | (bits))
#else
#define CONTROL() 0u
#define SET_CONTROL(bits) ((void)0)
#endif

static int denormals_live(void)
{
    volatile double tiny = 2.2250738585072014e-308;
    tiny = tiny / 4;
    return tiny != 0;
}

int main(void)
{
    const int modes[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    Board *b = board_new();
    int bad = 0;
    for (int precision = 0; precision < 3; precision++) {
        uint64_t expected = 0;
        for (int threads = 1; threads <= 2; threads++) {
            for (int m = 0; m < 8; m++) {
                unsigned before;
                fesetround(modes[m % 4]);
                if (m >= 4) {
                    SET_CONTROL(0x8040u);
                }
                before = CONTROL();
                bad += g6_open(m) != 0 || g6x_set_int(m, G6X_PRECISION, precision) != 0;
                bad += g6x_set_int(m, G6X_THREADS, threads) != 0;
                bad += board_fill(b, m) != 0 || board_force(b, m, 0.0) != 0;
                expected = expected ? expected : board_hash(b);
                if (board_hash(b) != expected) {
                    fprintf(stderr, "precision %d threads %d host mode %d: other bits\n", precision,
                            threads, m);
                    bad++;
                }
                bad += CONTROL() != before || fegetround() != modes[m % 4];
                bad += g6_close(m) != 0 || CONTROL() != before;
                fesetenv(FE_DFL_ENV);
                bad += !denormals_live();
            }
        }
    }
    return bad;
}
