/* Prints acc, jerk and pot of 300 of 2200 particles in every mode, exactly; for comparing machines.
 */
#include "board.h"

int main(void)
{
    Board *b = board_new();
    int bad = g6_open(0) != 0;
    for (int mode = 0; mode < 3; mode++) {
        bad += g6x_set_int(0, G6X_PRECISION, mode) != 0;
        bad += board_fill(b, 0) != 0 || board_force(b, 0, 1e-4) != 0;
        for (int i = 0; i < NI; i++)
            printf("%a %a %a %a %a %a %a %d\n", b->acc[i][0], b->acc[i][1], b->acc[i][2],
                   b->jerk[i][0], b->jerk[i][1], b->jerk[i][2], b->pot[i], b->nn[i]);
    }
    free(b);
    return bad;
}
