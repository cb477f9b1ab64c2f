/* One wrong row among 300 (row 40), by a library built with GRAPE6_TEST_HOOKS; run with
 * GRAPE6_VERIFY=1. Prints the codes: of a good call, of three bad ones, of a good one again. */
#include "board.h"

#include "mutants.h"

int main(void)
{
    char text[300];
    Board *b = board_new();
    int bad = g6_open(0) != 0 || board_fill(b, 0) != 0;
    for (int k = -1; k <= 3; k++) {
        mutants_wrong_row(k == 3 ? -1 : k * 149);
        const int code = board_first(b, 0, N, NI, 1e-4);
        printf("%d\n", code ? code : board_last2(b, 0, NI));
        if (k >= 0 && k < 3)
            bad += !board_all_nan(b, NI) || g6x_last_error(0, text, sizeof text) != G6X_E_VERIFY;
    }
    bad += board_all_nan(b, NI) || g6_close(0) != 0;
    free(b);
    return bad;
}
