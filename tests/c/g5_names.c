/* A host that defines the by-value names itself, as wrappers of Fortran's: calls inside the library
 * must not come back here, or they would never end. */
#include <math.h>
#include <stddef.h>

int g5_open_(void), g5_close_(void), g5_run_(void), g5_set_n_(int *n);
int g5_set_xmj_(int *adr, int *nj, double (*x)[3], double *m), g5_set_eps_to_all_(double *eps);
int g5_set_xi_(int *ni, double (*x)[3]), g5_get_force_(int *ni, double (*a)[3], double *p);
int g5_calculate_force_on_x_(double (*x)[3], double (*a)[3], double *p, int *ni);

int g5_open(void) { return g5_open_(); }
int g5_close(void) { return g5_close_(); }
int g5_run(void) { return g5_run_(); }
int g5_set_n(int n) { return g5_set_n_(&n); }
int g5_set_xmj(int adr, int nj, double (*x)[3], double *m) { return g5_set_xmj_(&adr, &nj, x, m); }
int g5_set_eps_to_all(double eps) { return g5_set_eps_to_all_(&eps); }
int g5_set_xi(int ni, double (*x)[3]) { return g5_set_xi_(&ni, x); }
int g5_get_force(int ni, double (*a)[3], double *p) { return g5_get_force_(&ni, a, p); }
int g5_calculate_force_on_x(double (*x)[3], double (*a)[3], double *p, int ni)
{
    return g5_calculate_force_on_x_(x, a, p, &ni);
}

int main(void)
{
    double x[2][3] = {{0, 0, 0}, {2, 0, 0}}, m[2] = {1, 1}, a[2][3], p[2];
    int code = g5_open() | g5_set_xmj(0, 2, x, m) | g5_set_n(2) | g5_set_eps_to_all(0.0);
    code |= g5_set_xi(2, x) | g5_run() | g5_get_force(2, a, p);
    if (fabs(a[0][0] - 0.25) > 1e-6 || fabs(p[1] - 0.5) > 1e-6) return 1;
    code |= g5_calculate_force_on_x(x, a, p, 2);
    if (fabs(a[1][0] + 0.25) > 1e-6) return 1;
    return code | g5_close();
}
