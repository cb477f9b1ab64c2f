/* Opens and closes again and again, with a force call now and then, and prints how memory (KB),
 * threads and file descriptors differ between the first tenth of the rounds and the end.
 * usage: open_close ROUNDS (same | many): one id for all rounds, or one for each */
#include "g6lib.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long entries(const char *path)
{
    long n = 0;
    DIR *folder = opendir(path);
    while (readdir(folder) != NULL) n++;
    closedir(folder);
    return n;
}

static long memory(void)
{
    char line[200];
    long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL) sscanf(line, "VmRSS: %ld", &kilobytes);
    fclose(file);
    return kilobytes;
}

static int use(int id, int round)
{
    double x[3] = {round, 1, 2}, zero[64][3] = {{0}}, acc[64][3], jerk[64][3], pot[64],
           h2[64] = {0};
    int index[64], bad = 0;
    for (int i = 0; i < 64; i++) index[i] = -1;
    bad += g6_set_j_particle_mxonly(id, round % 5000, 7, 1.0, x) != 0;
    bad += g6calc_firsthalf(id, 5000, 64, index, zero, zero, zero, zero, h2, 0.1, h2) != 0;
    bad += g6calc_lasthalf(id, 5000, 64, index, zero, zero, 0.1, h2, acc, jerk, pot) != 0;
    return bad + !(pot[63] < 0);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000, many = argc > 2 && argv[2][0] == 'm';
    long before[3] = {0, 0, 0};
    int bad = 0;
    for (int k = 0; k <= rounds; k++) {
        const int id = many ? k * 7919 : 3;
        if (k == rounds / 10) {
            before[0] = memory();
            before[1] = entries("/proc/self/task");
            before[2] = entries("/proc/self/fd");
        }
        bad += g6_open(id) != 0;
        if (k % 16 == 0) bad += use(id, k);
        if (many && k % 5 == 0) bad += g6_set_ti(id + 1, 0.5) != 0; /* opened by its first use */
        bad += g6_close(id) != 0;
    }
    printf("%ld %ld %ld\n", memory() - before[0], entries("/proc/self/task") - before[1],
           entries("/proc/self/fd") - before[2]);
    return bad != 0;
}
