/* tree_exact.c - what tree_exact.cu does, on the CPU. */

#include <math.h>

/* sum[k]: acceleration of particle row[k] of n, and the sum of the lengths of its terms; x[0], x[1]
 * and x[2] have n coordinates each. */
void tree_exact(int n, const double *x, const double *m, int rows, const int *row, double eps2,
                double (*sum)[4])
{
#pragma omp parallel for schedule(dynamic, 16)
    for (int k = 0; k < rows; k++) {
        const int i = row[k];
        const double *y = x + n, *z = y + n, px = x[i], py = y[i], pz = z[i];
        double ax = 0, ay = 0, az = 0, length = 0;
#pragma omp simd reduction(+ : ax, ay, az, length)
        for (int j = 0; j < n; j++) {
            const double dx = x[j] - px, dy = y[j] - py, dz = z[j] - pz;
            const double r2 = dx * dx + dy * dy + dz * dz, s2 = r2 + eps2;
            const double mr3 = j == i ? 0 : m[j] / (s2 * sqrt(s2));
            ax += mr3 * dx, ay += mr3 * dy, az += mr3 * dz, length += fabs(mr3) * sqrt(r2);
        }
        sum[k][0] = ax, sum[k][1] = ay, sum[k][2] = az, sum[k][3] = length;
    }
}
