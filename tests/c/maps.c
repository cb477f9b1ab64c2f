/* Opens the board, takes a force, and prints which files the process has mapped. */
#include <g6lib.h>
#include <stdio.h>

int main(void)
{
    char line[4096];
    double x[3] = {1, 0, 0}, zero[1][3] = {{0}}, acc[1][3], jerk[1][3], pot[1], h2[1] = {0};
    int index[1] = {7}, bad = g6_open(0) != 0 || g6_set_j_particle_mxonly(0, 0, 1, 1.0, x) != 0;
    bad += g6calc_firsthalf(0, 1, 1, index, zero, zero, zero, zero, h2, 0.0, h2) != 0;
    bad += g6calc_lasthalf(0, 1, 1, index, zero, zero, 0.0, h2, acc, jerk, pot) != 0;
    bad += !(acc[0][0] > 0.999 && acc[0][0] < 1.001);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) fputs(line, stdout);
    return bad + g6_close(0);
}
