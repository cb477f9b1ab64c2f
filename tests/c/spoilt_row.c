/* One wrong row among 300 (row 40), by a library built with GRAPE6_FAULT_INJECTION; run with
 * GRAPE6_VERIFY=1. Prints the codes: of a good call, of three bad ones, of a good one again. */
#include "board.h"

void force_spoil_row(int i);

static int all_nan(const Board *b)
{
    for (int i = 0; i < NI; i++)
        for (int k = 0; k < 3; k++)
            if (!isnan(b->acc[i][k]) || !isnan(b->jerk[i][k]) || !isnan(b->pot[i])) return 0;
    return 1;
}

static int force(Board *b)
{
    const int code =
        g6calc_firsthalf(0, N, NI, b->index, b->x, b->v, b->old, b->old, b->phi, 1e-4, b->h2);
    return code ? code
                : g6calc_lasthalf2(0, N, NI, b->index, b->x, b->v, 0, b->h2, b->acc, b->jerk,
                                   b->pot, b->nn);
}

int main(void)
{
    char text[300];
    Board *b = board_new();
    int bad = g6_open(0) != 0 || board_fill(b, 0) != 0;
    for (int k = -1; k <= 3; k++) {
        force_spoil_row(k == 3 ? -1 : k * 149);
        printf("%d\n", force(b));
        if (k >= 0 && k < 3)
            bad += !all_nan(b) || g6x_last_error(0, text, sizeof text) != G6X_E_VERIFY;
    }
    bad += all_nan(b) || g6_close(0) != 0;
    free(b);
    return bad;
}
