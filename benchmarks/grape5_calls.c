/* grape5_calls.c - times GRAPE-5 calls of the library that it is linked with:
 *
 *   grape5_calls NI NJ among|elsewhere
 *
 * Writing nj particles and the forces on ni, which are among them or elsewhere: a list is sent and
 * used once. Prints a line of JSON; a figure is the median of 15, one thread's.
 */
#include "bodies.h"

enum { TAKES = 15 };

int g5_open(void), g5_set_eps_to_all(double), g5_set_n(int);
int g5_set_xmj(int, int, double (*)[3], double *);
int g5_calculate_force_on_x(double (*)[3], double (*)[3], double *, int);

int main(int count, char **word)
{
    const int ni = count == 4 ? atoi(word[1]) : 0, nj = count == 4 ? atoi(word[2]) : 0;
    if (ni < 1 || nj < ni) {
        fputs("usage: grape5_calls NI NJ among|elsewhere\n", stderr);
        return 2;
    }
    const int among = !strcmp(word[3], "among"), calls = 1 + (int)(2e7 / ((double)ni * nj));
    const struct bodies b = plummer(nj);
    double (*x)[3] = malloc((size_t)ni * 24), (*a)[3] = malloc((size_t)ni * 24), take[TAKES];
    double *p = calloc((size_t)ni, 8);
    for (int i = 0; i < ni; i++)
        for (int c = 0; c < 3; c++) x[i][c] = b.x[i][c] + (among ? 0 : 1e-3 * (c + 1));
    g5_open();
    g5_set_eps_to_all(0.01);
    for (int k = -1; k < TAKES; k++) {
        const double start = now();
        for (int c = 0; c < calls; c++) {
            g5_set_xmj(0, nj, b.x, b.mass);
            g5_set_n(nj);
            g5_calculate_force_on_x(x, a, p, ni);
        }
        if (k >= 0) take[k] = (now() - start) / calls;
    }
    if (!(fabs(p[0]) > 0)) {
        fputs("grape5_calls: no forces\n", stderr);
        return 1;
    }
    const double seconds = median(take, TAKES);
    printf("{\"what\": \"grape5\", \"ni\": %d, \"nj\": %d, \"among\": %s, \"pairs_per_s\": %.4g, "
           "\"seconds_per_call\": %.4g}\n",
           ni, nj, among ? "true" : "false", (double)ni * nj / seconds, seconds);
    return 0;
}
